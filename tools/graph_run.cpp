// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "backends/backend.h"
#include "frontend/templates.h"
#include "ir/graph/evaluate.h"
#include "passes/bind_parameters.h"
#include "passes/grad.h"
#include "passes/optimizer.h"

namespace lockstep::tools {
namespace {

using graph::DType;

template <class T>
void encodeAs(const std::vector<double>& values, std::byte* target) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(target + i * sizeof(T), &value, sizeof(T));
  }
}
void encode(DType dtype, const std::vector<double>& values, std::byte* target) {
  if (dtype == DType::F32) return encodeAs<float>(values, target);
  if (dtype == DType::I32) return encodeAs<int32_t>(values, target);
  encodeAs<uint32_t>(values, target);
}

template <class T>
std::vector<double> decodeAs(std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}
std::vector<double> decode(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::F32) return decodeAs<float>(bytes);
  if (dtype == DType::I32) return decodeAs<int32_t>(bytes);
  return decodeAs<uint32_t>(bytes);
}

Failure missingInput(std::string_view name, size_t expected, const std::vector<double>* given) {
  if (given == nullptr) return fail("golden.input", fmt::format("there is no data for the input '{}'", name));
  return fail("golden.input", fmt::format("the input '{}' takes {} elements but has {}", name, expected, given->size()));
}
Failure unknownState(std::string_view name) {
  return fail("golden.state", fmt::format("the program has no state '{}' of that size", name));
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
      if (*node.op->name == "state") {
        const graph::TensorType& type = graph_.typeOf(node.results.front());
        const std::vector<double> values(static_cast<size_t>(type.shape.elementCount()), node.attributes.get<double>("init"));
        states_.emplace(node.attributes.get<std::string>("name"), graph::Tensor{.type = type, .data = values});
      } else if (*node.op->name == "input") {
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
      leaves.insert_or_assign(name, graph::Tensor{.type = type, .data = *values});
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
    found->second.data = values;
    return Success{};
  }

 private:
  graph::Graph graph_;
  graph::LeafValues states_;
  std::map<std::string, graph::TensorType, std::less<>> inputs_;
};

class DeviceRunner : public GraphRunner {
 public:
  DeviceRunner(program::ValidProgram program, std::shared_ptr<Backend> backend)
      : program_(std::move(program)), backend_(std::move(backend)) {}

  Status prepare() {
    for (const program::Buffer& buffer : program_->buffers) {
      if (buffer.role != program::ArenaRole::State) continue;
      const program::Arena& arena = (*program_)[buffer.arena];
      if (!arenas_.contains(arena.name)) {
        LS_TRY(std::shared_ptr<Memory> memory, backend_->allocate(arena.size));
        arenas_.emplace(arena.name, std::move(memory));
      }
      const std::vector<double> initial(static_cast<size_t>(buffer.type.shape.elementCount()), buffer.initial);
      LS_CHECK(writeState(buffer.name, initial));
    }
    LS_TRY(executable_, backend_->compile(program_));
    const program::ArenaId input = program_->findArena(program::ArenaRole::Input);
    input_.resize(input.valid() ? (*program_)[input].size : 0);
    return Success{};
  }

  Result<StepOutputs> step(const ValueMap& inputs) override {
    for (const program::Port& port : program_->inputs) {
      const program::Buffer& buffer = (*program_)[port.buffer];
      const int64_t elements = buffer.type.shape.elementCount();
      const std::vector<double>* values = findInput(inputs, port.name, elements);
      if (values == nullptr) {
        const auto given = inputs.find(port.name);
        return missingInput(port.name, static_cast<size_t>(elements), given == inputs.end() ? nullptr : &given->second);
      }
      encode(buffer.type.dtype, *values, input_.data() + buffer.offset);
    }
    const std::span<const std::byte> input = input_;
    LS_TRY(const Ticket ticket, executable_->submit(arenas_, std::span(&input, 1)));
    LS_TRY(const std::vector<std::vector<std::byte>> results, executable_->wait(ticket));
    StepOutputs outputs;
    for (const program::Port& port : program_->outputs) {
      const program::Buffer& buffer = (*program_)[port.buffer];
      const std::span<const std::byte> bytes = std::span(results.front()).subspan(buffer.offset, buffer.type.byteSize());
      outputs.emplace(std::pair(port.kind, port.name), decode(buffer.type.dtype, bytes));
    }
    return outputs;
  }

  Result<std::vector<double>> readState(const std::string& name) override {
    const program::Buffer* buffer = findState(name);
    if (buffer == nullptr) return unknownState(name);
    std::vector<std::byte> bytes(buffer->type.byteSize());
    LS_CHECK(arenas_.find((*program_)[buffer->arena].name)->second->read(buffer->offset, bytes));
    return decode(buffer->type.dtype, bytes);
  }

  Status writeState(const std::string& name, const std::vector<double>& values) override {
    const program::Buffer* buffer = findState(name);
    if (buffer == nullptr || buffer->type.shape.elementCount() != static_cast<int64_t>(values.size())) return unknownState(name);
    std::vector<std::byte> bytes(buffer->type.byteSize());
    encode(buffer->type.dtype, values, bytes.data());
    return arenas_.find((*program_)[buffer->arena].name)->second->write(buffer->offset, bytes);
  }

 private:
  [[nodiscard]] const program::Buffer* findState(std::string_view name) const {
    const auto found = std::ranges::find_if(
        program_->buffers, [&](const program::Buffer& buffer) { return buffer.role == program::ArenaRole::State && buffer.name == name; });
    return found == program_->buffers.end() ? nullptr : &*found;
  }

  program::ValidProgram program_;
  std::shared_ptr<Backend> backend_;
  ArenaSet arenas_;
  std::unique_ptr<Executable> executable_;
  std::vector<std::byte> input_;
};

}  // namespace

Result<std::unique_ptr<GraphRunner>> makeEvaluatingRunner(const graph::Graph& traced, const passes::CompileOptions& options) {
  graph::Graph graph = traced;
  if (options.optimizer || options.keep_gradients) {
    LS_TRY(graph, passes::grad(graph, {options.wrt}));
  }
  LS_TRY(graph, options.optimizer ? passes::optimizer(graph, *options.optimizer) : passes::bindParameters(graph, options.parameter_state));
  return std::unique_ptr<GraphRunner>(std::make_unique<EvaluatingRunner>(std::move(graph)));
}

namespace {

Result<std::unique_ptr<GraphRunner>> prepare(program::Program program, const SharedDevice& device) {
  LS_TRY(program::ValidProgram valid, program::validate(std::move(program)));
  auto runner = std::make_unique<DeviceRunner>(std::move(valid), device.backend);
  LS_CHECK(runner->prepare());
  return std::unique_ptr<GraphRunner>(std::move(runner));
}

}  // namespace

Result<SharedDevice> openShared(const std::string& selector) {
  LS_TRY(ChosenDevice chosen, chooseDevice(selector));
  LS_TRY(std::shared_ptr<Backend> backend, openDevice(chosen.info));
  return SharedDevice{std::move(chosen), std::move(backend)};
}

Result<std::unique_ptr<GraphRunner>> makeProgramRunner(program::Program program, const std::string& selector) {
  LS_TRY(const SharedDevice device, openShared(selector));
  passes::CompileOptions options;
  options.profile = device.chosen.info.profile;
  options.templates = detail::templateSource();
  LS_TRY(program, passes::runRemainingPasses(std::move(program), options));
  return prepare(std::move(program), device);
}

Result<std::unique_ptr<GraphRunner>> makeDeviceRunner(const graph::Graph& traced, passes::CompileOptions options,
                                                      const SharedDevice& device) {
  options.profile = device.chosen.info.profile;
  options.templates = detail::templateSource();
  LS_TRY(passes::Compiled compiled, passes::compile(traced, options));
  return prepare(std::move(compiled.program), device);
}

Status writeParameters(GraphRunner& runner, const graph::ParameterLayout& layout, const ValueMap& values) {
  std::vector<double> flat(static_cast<size_t>(layout.total), 0.0);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    const auto found = values.find(slot.name);
    if (found == values.end() || static_cast<int64_t>(found->second.size()) != slot.size) {
      return fail("golden.parameter", fmt::format("there is no parameter '{}' of {} elements", slot.name, slot.size));
    }
    std::ranges::copy(found->second, flat.begin() + slot.offset);
  }
  if (values.size() != layout.slots.size()) {
    return fail("golden.parameter", fmt::format("{} parameters are given but the model has {}", values.size(), layout.slots.size()));
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

}  // namespace lockstep::tools
