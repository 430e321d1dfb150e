// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/graph_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "frontend/train/templates.h"
#include "frontend/train/tuning.h"
#include "ir/graph/op_def.h"
#include "passes/graph/bind_parameters.h"
#include "passes/graph/grad.h"
#include "passes/graph/optimizer.h"
#include "runtime/device_states.h"
#include "runtime/memory_array.h"

namespace lockstep {
namespace {

/// The device that keeps track of errors.
constexpr std::string_view kErrorSanitizer = "sanitizer:error";

/// The evaluator is what devices are measured against, so f32 stays f64 there; but what is stored in fewer bits is rounded as on a device.
std::vector<double> asStored(const graph::TensorType& type, std::vector<double> values) {
  if (!graph::isPacked(type.dtype)) return values;
  for (double& value : values) value = graph::roundedTo(type.dtype, value);
  return values;
}

Failure missingInput(std::string_view name, size_t expected, const std::vector<double>* given) {
  if (given == nullptr) return fail("graph_run.input", fmt::format("there is no data for the input '{}'", name));
  return fail("graph_run.input", fmt::format("the input '{}' takes {} elements but has {}", name, expected, given->size()));
}
Failure unknownState(std::string_view name) {
  return fail("graph_run.state", fmt::format("the program has no state '{}' of that size", name));
}

/// Finds an input and checks its size.
const std::vector<double>* findInput(const ValueMap& inputs, std::string_view name, int64_t elements) {
  const auto found = inputs.find(name);
  return found != inputs.end() && static_cast<int64_t>(found->second.size()) == elements ? &found->second : nullptr;
}

class EvaluatingRunner : public GraphRunner {
 public:
  explicit EvaluatingRunner(graph::Graph graph) : graph_(std::move(graph)) {
    for (const graph::NodeId id : graph_.body().nodes) {
      const graph::Node& node = graph_[id];
      if (graph::leafKind(node) == graph::LeafKind::State) {
        const graph::TensorType& type = graph_.typeOf(node.results.front());
        const std::vector<double> values(static_cast<size_t>(type.shape.elementCount()), node.attributes.get<double>("init"));
        states_.emplace(node.attributes.get<std::string>("name"), graph::Tensor{.type = type, .data = asStored(type, values)});
      } else if (graph::leafKind(node) == graph::LeafKind::Input) {
        inputs_.emplace(node.attributes.get<std::string>("name"), graph_.typeOf(node.results.front()));
      }
    }
  }

  Result<StepOutputs> step(const ValueMap& inputs) override {
    graph::LeafValues leaves = states_;
    for (const auto& [name, type] : inputs_) {
      const int64_t elements = type.shape.elementCount();
      const std::vector<double>* values = findInput(inputs, name, elements);
      if (values == nullptr) {
        const auto given = inputs.find(name);
        return missingInput(name, static_cast<size_t>(elements), given == inputs.end() ? nullptr : &given->second);
      }
      leaves.insert_or_assign(name, graph::Tensor{.type = type, .data = asStored(type, *values)});
    }
    LS_TRY(std::vector<graph::Tensor> results, graph::evaluate(graph_, leaves));
    StepOutputs outputs;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const graph::Output& output = graph_.outputs[i];
      if (output.kind == graph::OutputKind::NextState) {
        states_.insert_or_assign(output.name, std::move(results[i]));
      } else {
        outputs.emplace(std::pair(output.kind, output.name), std::move(results[i].data));
      }
    }
    return outputs;
  }

  Result<std::vector<double>> readState(const std::string& name) override {
    const auto found = states_.find(name);
    if (found == states_.end()) return unknownState(name);
    return found->second.data;
  }

  Status writeState(const std::string& name, const std::vector<double>& values) override {
    const auto found = states_.find(name);
    if (found == states_.end() || found->second.data.size() != values.size()) return unknownState(name);
    found->second.data = asStored(found->second.type, values);
    return Success{};
  }

 private:
  graph::Graph graph_;
  graph::LeafValues states_;
  std::map<std::string, graph::TensorType, std::less<>> inputs_;
};

class DeviceRunner : public GraphRunner {
 public:
  DeviceRunner(program::ValidProgram program, const detail::Device& device) : program_(std::move(program)), states_(device) {}

  Status prepare() {
    for (const program::Buffer& buffer : program_->buffers) {
      if (buffer.role != program::ArenaRole::State) continue;
      arenas_.emplace(buffer.name, states_.declare(buffer.name, {buffer.type, buffer.initial, true}));
    }
    LS_TRY(executable_, states_.device().backend->compile(program_));
    const program::ArenaId input = program_->findArena(program::ArenaRole::Input);
    input_.resize(input.valid() ? (*program_)[input].size : 0);
    return Success{};
  }

  Result<StepOutputs> step(const ValueMap& inputs) override {
    for (const program::InputPort& port : program_->inputs) {
      const program::Buffer& buffer = (*program_)[port.buffer];
      const int64_t elements = buffer.type.shape.elementCount();
      const std::vector<double>* values = findInput(inputs, port.name, elements);
      if (values == nullptr) {
        const auto given = inputs.find(port.name);
        return missingInput(port.name, static_cast<size_t>(elements), given == inputs.end() ? nullptr : &given->second);
      }
      std::ranges::copy(detail::encodeArray(buffer.type, *values).data, input_.begin() + static_cast<ptrdiff_t>(buffer.offset));
    }
    const std::span<const std::byte> input = input_;
    LS_TRY(const Ticket ticket, executable_->submit(arenas_, std::span(&input, 1)));
    merge(*states_.device().findings, executable_->takeFindings());
    LS_TRY(const std::vector<std::vector<std::byte>> results, executable_->wait(ticket));
    StepOutputs outputs;
    for (const program::OutputPort& port : program_->outputs) {
      const program::Buffer& buffer = (*program_)[port.buffer];
      const std::span<const std::byte> bytes = std::span(results.front()).subspan(buffer.offset, buffer.type.byteSize());
      outputs.emplace(std::pair(port.kind, port.name), detail::decodeMemory(buffer.type, bytes));
    }
    return outputs;
  }

  [[nodiscard]] StepBounds bounds() const override {
    StepBounds all;
    for (const program::OutputPort& port : program_->outputs) {
      const graph::TensorType& type = (*program_)[port.buffer].type;
      if (type.dtype != graph::DType::F32) continue;  // words of several numbers, or of none, have no bounds
      all.emplace(std::pair(port.kind, port.name), executable_->bounds({.buffer = port.buffer, .offset = 0, .size = type.byteSize()}));
    }
    return all;
  }

  Result<std::vector<double>> readState(const std::string& name) override {
    if (!states_.has(name)) return unknownState(name);
    return states_.read(name).toDoubles();
  }

  Status writeState(const std::string& name, const std::vector<double>& values) override {
    const auto infos = states_.infos();
    const auto info = infos.find(name);
    if (info == infos.end() || info->second.type.shape.elementCount() != static_cast<int64_t>(values.size())) return unknownState(name);
    states_.write(name, detail::encodeArray(info->second.type, values));
    return Success{};
  }

 private:
  program::ValidProgram program_;
  detail::States states_;
  ArenaSet arenas_;
  std::unique_ptr<Executable> executable_;
  std::vector<std::byte> input_;
};

}  // namespace

Result<std::unique_ptr<GraphRunner>> makeEvaluatingRunner(const graph::Graph& traced, const passes::CompileOptions& options) {
  LS_TRY(passes::Form updated, passes::compileTo(passes::Stage::Updated, traced, options));
  return std::unique_ptr<GraphRunner>(std::make_unique<EvaluatingRunner>(std::get<graph::Graph>(std::move(updated))));
}

namespace {

Result<std::unique_ptr<GraphRunner>> prepare(program::Program program, const detail::Device& device) {
  LS_TRY(program::ValidProgram valid, program::validate(std::move(program)));
  auto runner = std::make_unique<DeviceRunner>(std::move(valid), device);
  LS_CHECK(runner->prepare());
  return std::unique_ptr<GraphRunner>(std::move(runner));
}

Result<std::unique_ptr<GraphRunner>> makeRunner(const graph::Graph& traced, passes::CompileOptions options, const detail::Device& device) {
  options.templates = detail::templateSource();
  LS_TRY(passes::Compiled compiled, passes::compile(traced, options));
  return prepare(std::move(compiled.program), device);
}

/// What a device says to the compiler.
Status addDevice(passes::CompileOptions& options, const DeviceInfo& device) {
  options.profile = device.profile;
  LS_TRY(options.measured, detail::tuningOf(device));
  return Success{};
}

}  // namespace

Result<std::unique_ptr<GraphRunner>> makeProgramRunner(program::Program program, const detail::Device& device) {
  passes::CompileOptions options;
  LS_CHECK(addDevice(options, device.chosen.info));
  options.templates = detail::templateSource();
  LS_TRY(program, passes::runRemainingPasses(std::move(program), options));
  return prepare(std::move(program), device);
}

Result<std::unique_ptr<GraphRunner>> makeDeviceRunner(const graph::Graph& traced, passes::CompileOptions options,
                                                      const detail::Device& device) {
  LS_CHECK(addDevice(options, device.chosen.info));
  return makeRunner(traced, std::move(options), device);
}

Result<std::unique_ptr<GraphRunner>> makeBoundingRunner(const graph::Graph& traced, passes::CompileOptions options,
                                                        const detail::Device& device) {
  LS_CHECK(addDevice(options, device.chosen.info));
  LS_TRY(const detail::Device sanitizer, detail::tryOpenDevice(std::string(kErrorSanitizer)));
  return makeRunner(traced, std::move(options), sanitizer);
}

Status writeParameters(GraphRunner& runner, const graph::ParameterLayout& layout, const ValueMap& values) {
  std::vector<double> flat(static_cast<size_t>(layout.total), 0.0);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    const auto found = values.find(slot.name);
    if (found == values.end() || static_cast<int64_t>(found->second.size()) != slot.size) {
      return fail("graph_run.parameter", fmt::format("there is no parameter '{}' of {} elements", slot.name, slot.size));
    }
    std::ranges::copy(found->second, flat.begin() + slot.offset);
  }
  if (values.size() != layout.slots.size()) {
    return fail("graph_run.parameter", fmt::format("{} parameters are given but the model has {}", values.size(), layout.slots.size()));
  }
  return runner.writeState(std::string(passes::kParameterState), flat);
}

Result<ValueMap> readParameters(GraphRunner& runner, const graph::ParameterLayout& layout) {
  LS_TRY(const std::vector<double> flat, runner.readState(std::string(passes::kParameterState)));
  ValueMap values;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    values.emplace(slot.name, std::vector<double>(flat.begin() + slot.offset, flat.begin() + slot.offset + slot.size));
  }
  return values;
}

namespace {

const graph::Tensor& leafValue(const graph::LeafValues& leaves, const std::string& name, const graph::TensorType& type) {
  auto found = leaves.find(name);
  if (found == leaves.end() || found->second.type != type) {
    throw Error({.code = "graph_run.input",
                 .message = fmt::format("there is no value of {} for '{}'", toString(type), name),
                 .where = {},
                 .notes = {},
                 .remedy = {}});
  }
  return found->second;
}

}  // namespace

/// A graph on a device.
class DeviceGraph {
 public:
  /// The program of `options.device`, on it or on another one.
  DeviceGraph(const detail::Device& device, const graph::Graph& graph, const GraphRunOptions& options) {
    passes::CompileOptions compile_options;
    compile_options.check_indices = false;  // what an index outside gives is part of what is compared
    compile_options.keep_gradients = options.gradients;
    compile_options.wrt = options.wrt;
    compile_options.disabled = options.disable;
    compile_options.preferred_templates = options.prefer;
    compile_options.dump_directory = options.dump_ir;
    const DeviceInfo planned = options.opened != nullptr ? options.opened->chosen.info : chooseDevice(options.device).orThrow().info;
    (void)addDevice(compile_options, planned).orThrow();
    runner_ = makeRunner(graph, std::move(compile_options), device).orThrow();
    for (const graph::NodeId id : graph.body().nodes) {
      const graph::Node& node = graph[id];
      if (graph::leafKind(node) != graph::LeafKind::Input) continue;
      inputs_.push_back(node.attributes.get<std::string>("name"));
      types_.emplace(inputs_.back(), graph.typeOf(node.results.front()));
    }
    for (const graph::ParameterInfo& info : graph.parameters) types_.emplace(info.name, info.type);
    if (!graph.parameters.empty()) layout_ = graph::layoutParameters(graph.parameters);
  }

  [[nodiscard]] StepOutputs run(const graph::LeafValues& leaves) {
    ValueMap inputs, parameters;
    for (const std::string& name : inputs_) inputs.emplace(name, leafValue(leaves, name, types_.at(name)).data);
    for (const graph::ParameterLayout::Slot& slot : layout_.slots) {
      parameters.emplace(slot.name, leafValue(leaves, slot.name, types_.at(slot.name)).data);
    }
    if (!parameters.empty()) (void)writeParameters(*runner_, layout_, parameters).orThrow();
    return runner_->step(inputs).orThrow();
  }
  [[nodiscard]] StepBounds bounds() const { return runner_->bounds(); }
  [[nodiscard]] const graph::TensorType& typeOf(const std::string& leaf) const { return types_.at(leaf); }

 private:
  std::unique_ptr<GraphRunner> runner_;
  std::vector<std::string> inputs_;
  graph::ParameterLayout layout_;
  std::map<std::string, graph::TensorType, std::less<>> types_;  ///< of the leaves
};

namespace {

/// Calls visit(kind, name, type) for the outputs of the graph in its order, then the gradients.
template <class Visit>
void forEachOutput(const graph::Graph& graph, const GraphRunOptions& options, const DeviceGraph& compiled, const Visit& visit) {
  for (const graph::Output& output : graph.outputs) visit(output.kind, output.name, graph.typeOf(output.value));
  if (!options.gradients) return;
  std::vector<std::string> wrt = options.wrt;
  for (const graph::ParameterInfo& info : graph.parameters) {
    if (options.wrt.empty()) wrt.push_back(info.name);
  }
  for (const std::string& name : wrt) {
    const graph::TensorType& leaf = compiled.typeOf(name);
    visit(graph::OutputKind::Gradient, name, graph::TensorType{graph::factsOf(leaf.dtype).compute, leaf.shape});
  }
}

}  // namespace

struct CompiledGraph::Impl {
  graph::Graph graph;  ///< for the evaluator with its gradients
  GraphRunOptions options;
  std::optional<DeviceGraph> on_device;  ///< none: the evaluator
};

CompiledGraph::CompiledGraph(const graph::Graph& graph, GraphRunOptions options)
    : impl_(std::make_unique<Impl>(Impl{.graph = graph, .options = std::move(options), .on_device = {}})) {
  const GraphRunOptions& o = impl_->options;
  if (o.device == "evaluate") {
    if (o.gradients) impl_->graph = passes::grad(graph, {o.wrt}).orThrow();
  } else {
    impl_->on_device.emplace(o.opened != nullptr ? *o.opened : detail::openChosenDevice(o.device), graph, o);
  }
}
CompiledGraph::CompiledGraph(CompiledGraph&&) noexcept = default;
CompiledGraph& CompiledGraph::operator=(CompiledGraph&&) noexcept = default;
CompiledGraph::~CompiledGraph() = default;

std::vector<graph::Tensor> CompiledGraph::run(const graph::LeafValues& leaves) {
  if (!impl_->on_device) return graph::evaluate(impl_->graph, leaves, impl_->options.kernels).orThrow();
  const StepOutputs outputs = impl_->on_device->run(leaves);
  std::vector<graph::Tensor> values;
  forEachOutput(impl_->graph, impl_->options, *impl_->on_device,
                [&](graph::OutputKind kind, const std::string& name, const graph::TensorType& type) {
                  const auto found = outputs.find(std::pair(kind, name));
                  if (found == outputs.end()) internalError(fmt::format("the program lost its output '{}'", name));
                  values.push_back({type, found->second});
                });
  return values;
}

std::vector<graph::Tensor> runGraph(const graph::Graph& graph, const graph::LeafValues& leaves, const GraphRunOptions& options) {
  return CompiledGraph(graph, options).run(leaves);
}

std::vector<RoundingBounds> boundGraph(const graph::Graph& graph, const graph::LeafValues& leaves, const GraphRunOptions& options) {
  DeviceGraph compiled(detail::openChosenDevice(std::string(kErrorSanitizer)), graph, options);
  (void)compiled.run(leaves);
  StepBounds bounds = compiled.bounds();
  std::vector<RoundingBounds> all;
  forEachOutput(graph, options, compiled, [&](graph::OutputKind kind, const std::string& name, const graph::TensorType&) {
    all.push_back(std::move(bounds[std::pair(kind, name)]));
  });
  return all;
}

}  // namespace lockstep
