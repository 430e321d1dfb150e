// SPDX-License-Identifier: Apache-2.0
#include "frontend/graph_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/session.h"
#include "ir/graph/op_def.h"
#include "passes/grad.h"
#include "passes/optimizer_config.h"

namespace lockstep {

using graph::DType;
using graph::Graph;
using graph::LeafValues;
using graph::OutputKind;

namespace {

const graph::Tensor& leafValue(const LeafValues& leaves, const std::string& name, const graph::TensorType& type) {
  auto found = leaves.find(name);
  if (found == leaves.end() || found->second.type != type) {
    throw Error({.code = "run.leaf",
                 .message = fmt::format("there is no value of {} for '{}'", toString(type), name),
                 .where = {},
                 .notes = {},
                 .remedy = {}});
  }
  return found->second;
}

/// Owns the typed data that a Batch only views.
struct HostBatch {
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<int32_t>> ints;
  std::vector<std::vector<uint32_t>> uints;
  std::vector<InputSpec> specs;
  Batch batch;
};

HostBatch encodeInputs(const Graph& graph, const LeafValues& leaves) {
  HostBatch host;
  size_t count = graph.body().nodes.size();
  // Views must not move while more data is added.
  host.floats.reserve(count);
  host.ints.reserve(count);
  host.uints.reserve(count);
  host.specs.reserve(count);
  for (graph::NodeId id : graph.body().nodes) {
    const graph::Node& node = graph[id];
    if (*node.op->name != "input") continue;
    host.specs.push_back({node.attributes.get<std::string>("name"), graph.typeOf(node.results[0])});
    const InputSpec& spec = host.specs.back();
    const std::vector<double>& data = leafValue(leaves, spec.name, spec.type).data;
    switch (spec.type.dtype) {
      case DType::F32:
        host.batch.emplace_back(spec.name, host.floats.emplace_back(data.begin(), data.end()));
        break;
      case DType::I32:
        host.batch.emplace_back(spec.name, host.ints.emplace_back(data.begin(), data.end()));
        break;
      case DType::U32:
      case DType::Bool:
        host.batch.emplace_back(spec.name, host.uints.emplace_back(data.begin(), data.end()));
        break;
    }
  }
  return host;
}

std::vector<graph::Tensor> runOnEvaluator(Graph graph, const LeafValues& leaves, const GraphRunOptions& options) {
  if (options.gradients) graph = passes::grad(graph, {options.wrt}).orThrow();
  return graph::evaluate(graph, leaves, options.kernels).orThrow();
}

void writeParameters(detail::States& states, const Graph& graph, const LeafValues& leaves) {
  graph::ParameterLayout layout = graph::layoutParameters(graph.parameters);
  if (layout.total == 0) return;
  std::vector<float> flat(static_cast<size_t>(layout.total), 0.0f);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    const std::vector<double>& data = leafValue(leaves, slot.name, slot.type).data;
    std::transform(data.begin(), data.end(), flat.begin() + slot.offset, [](double value) { return static_cast<float>(value); });
  }
  states.writeFloats(passes::kParameterState, flat);
}

}  // namespace

std::vector<graph::Tensor> runGraph(const Graph& graph, const LeafValues& leaves, const GraphRunOptions& options) {
  if (options.device == "evaluate") return runOnEvaluator(graph, leaves, options);
  HostBatch host = encodeInputs(graph, leaves);
  passes::CompileOptions compile_options;
  compile_options.keep_gradients = options.gradients;
  compile_options.wrt = options.wrt;
  compile_options.disabled = options.disable;
  compile_options.dump_directory = options.dump_ir;
  auto states = std::make_shared<detail::States>(detail::openChosenDevice(options.device));
  detail::Session session(graph, std::move(compile_options), states, host.specs);
  writeParameters(*states, graph, leaves);
  std::vector<std::byte> arena = session.run(session.encode(host.batch, {}));

  std::vector<graph::Tensor> values;
  auto take = [&](OutputKind kind, const std::string& name) {
    std::vector<HostTensor> outputs = session.outputs(arena, kind);
    auto found = std::find_if(outputs.begin(), outputs.end(), [&](const HostTensor& output) { return output.name() == name; });
    if (found == outputs.end()) internalError(fmt::format("the program lost its output '{}'", name));
    values.push_back({found->type(), found->doubles()});
  };
  for (const graph::Output& output : graph.outputs) take(output.kind, output.name);
  if (!options.gradients) return values;
  std::vector<std::string> wrt = options.wrt;
  for (const graph::ParameterInfo& parameter : graph.parameters) {
    if (options.wrt.empty()) wrt.push_back(parameter.name);
  }
  for (const std::string& name : wrt) take(OutputKind::Gradient, name);
  return values;
}

}  // namespace lockstep
