// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/replay.h"

#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/evaluate.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/claims.h"
#include "ir/program/program.h"
#include "ir/support/text.h"
#include "passes/pipeline.h"
#include "runtime/memory_array.h"

namespace lockstep::tools {
namespace {

Failure badInput(std::string_view name, const io::Array* found, const graph::TensorType& type) {
  if (found == nullptr)
    return fail("replay.input", fmt::format("the inputs have no '{}'", name), {}, "use the inputs.safetensors of the same dump");
  return fail("replay.input", fmt::format("'{}' is {} but the stage takes {}", name, io::describe(*found), graph::toString(type)), {},
              "use the inputs.safetensors of the same dump");
}

/// The values of a leaf. Shapes are those of the stage: views of a parameter may be flat in the file.
Result<std::vector<double>> valuesFor(const io::TensorFile& inputs, const std::string& name, const graph::TensorType& type) {
  const io::Array* found = inputs.find(name);
  if (found == nullptr || static_cast<int64_t>(found->elementCount()) != type.shape.elementCount()) return badInput(name, found, type);
  return found->toDoubles();
}

io::Array toArray(const std::vector<double>& values, std::vector<int64_t> shape) {
  return io::Array::fromDoubles(std::move(shape), values);
}

/// A text's claims about its kernels are somebody's word.
program::Program withoutClaims(program::Program program) {
  for (program::Kernel& kernel : program.kernels) {
    if (auto* module = std::get_if<kernel::Module>(&kernel.code)) *module = kernel::dropClaims(std::move(*module));
  }
  return program;
}

Result<io::TensorFile> replayGraph(const std::string& text, const std::string& path, const io::TensorFile& inputs) {
  LS_TRY(const passes::Form stage, passes::parseForm(text, path));
  if (!std::holds_alternative<graph::Graph>(stage))
    return fail("replay.stage", fmt::format("'{}' holds a program", path), {}, "name it .program");
  const graph::Graph& graph = std::get<graph::Graph>(stage);
  Result<io::TensorFile> outputs = evaluateStage(graph, inputs);
  if (!outputs.ok()) return pointInto(outputs.failure(), "graph", graph::print(graph), text, path);
  return outputs;
}

Result<program::Program> parseProgram(const std::string& text, const std::string& path) {
  LS_TRY(passes::Form stage, passes::parseForm(text, path));
  if (!std::holds_alternative<program::Program>(stage))
    return fail("replay.stage", fmt::format("'{}' holds a graph", path), {}, "name it .graph");
  return withoutClaims(std::get<program::Program>(std::move(stage)));
}

}  // namespace

std::string outputName(graph::OutputKind kind, const std::string& name) { return fmt::format("{}.{}", graph::toString(kind), name); }

Result<Bytes> leafBytes(const io::TensorFile& inputs, const std::string& name, const graph::TensorType& type) {
  const io::Array* found = inputs.find(name);
  const bool fits = found != nullptr && static_cast<int64_t>(found->elementCount()) == type.shape.elementCount() &&
                    found->type == detail::elementType(type.dtype);
  if (!fits) return badInput(name, found, type);
  return found->data;
}

Result<io::TensorFile> evaluateStage(const graph::Graph& graph, const io::TensorFile& inputs) {
  graph::LeafValues leaves;
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node& node = graph[id];
    const std::string* name = graph::leafName(node);
    if (name == nullptr) continue;
    const graph::TensorType& type = graph.typeOf(node.results.front());
    LS_TRY(std::vector<double> values, valuesFor(inputs, *name, type));
    leaves.insert_or_assign(*name, graph::Tensor{.type = type, .data = std::move(values)});
  }
  LS_TRY(const std::vector<graph::Tensor> results, graph::evaluate(graph, leaves));
  io::TensorFile outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const graph::Output& output = graph.outputs[i];
    outputs.tensors.emplace(outputName(output.kind, output.name), toArray(results[i].data, results[i].type.shape.extents()));
  }
  return outputs;
}

Result<Replayed> runStage(program::Program program, const io::TensorFile& inputs, const detail::Device& device) {
  const program::Program description = program;
  LS_TRY(const std::unique_ptr<GraphRunner> runner, makeProgramRunner(std::move(program), device));
  ValueMap values;
  for (const program::InputPort& port : description.inputs) {
    LS_TRY(std::vector<double> data, valuesFor(inputs, port.name, description[port.buffer].type));
    values.emplace(port.name, std::move(data));
  }
  std::vector<const program::Buffer*> states;
  for (const program::Buffer& buffer : description.buffers) {
    if (buffer.role != program::ArenaRole::State) continue;
    LS_TRY(const std::vector<double> data, valuesFor(inputs, buffer.name, buffer.type));
    LS_CHECK(runner->writeState(buffer.name, data));
    states.push_back(&buffer);
  }
  LS_TRY(const StepOutputs results, runner->step(values));
  io::TensorFile outputs;
  for (const program::OutputPort& port : description.outputs) {
    const auto found = results.find(std::pair(port.kind, port.name));
    if (found == results.end()) internalError("a program without the value of its output");
    outputs.tensors.emplace(outputName(port.kind, port.name), toArray(found->second, description[port.buffer].type.shape.extents()));
  }
  for (const program::Buffer* buffer : states) {
    LS_TRY(const std::vector<double> data, runner->readState(buffer->name));
    outputs.tensors.emplace(outputName(graph::OutputKind::NextState, buffer->name), toArray(data, buffer->type.shape.extents()));
  }
  return Replayed{.outputs = std::move(outputs), .findings = *device.findings};
}

Result<program::Program> readProgram(const std::string& path, const program::DeviceProfile& profile) {
  LS_TRY(const std::string text, io::readTextFile(path));
  LS_TRY(program::Program program, parseProgram(text, path));
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  return passes::runRemainingPasses(std::move(program), options);
}

Result<Replayed> replay(const std::string& path, const io::TensorFile& inputs, const std::string& device) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".graph" && ending != ".program") {
    return fail("replay.stage", fmt::format("'{}' is neither a .graph nor a .program", path), {},
                "give a stage of a folder that --dump-ir made");
  }
  LS_TRY(const std::string text, io::readTextFile(path));
  if (ending == ".program") {
    LS_TRY(program::Program program, parseProgram(text, path));
    LS_TRY(const detail::Device opened, detail::tryOpenDevice(device));
    return runStage(std::move(program), inputs, opened);
  }
  if (device != "auto" && device != "evaluate") {
    return fail("replay.device", "a graph runs on the evaluator only", {},
                "leave out --device, or run the .program that was emitted from it");
  }
  LS_TRY(io::TensorFile outputs, replayGraph(text, path, inputs));
  return Replayed{.outputs = std::move(outputs), .findings = {}};
}

std::string summarise(const io::TensorFile& outputs) {
  std::string text;
  for (const auto& [name, array] : outputs.tensors) {
    const std::vector<double> values = array.toDoubles();
    double squares = 0;
    for (const double value : values) squares += value * value;
    const std::string shown = values.size() == 1 ? fmt::format("{}", values.front()) : fmt::format("norm {}", std::sqrt(squares));
    text += fmt::format("{:<24}{:<16}{}\n", name, fmt::format("[{}]", fmt::join(array.shape, ",")), shown);
  }
  return text;
}

}  // namespace lockstep::tools
