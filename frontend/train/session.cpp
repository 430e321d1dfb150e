// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "frontend/trace/tensor.h"
#include "frontend/train/batch.h"
#include "frontend/train/compile_options.h"
#include "frontend/train/dump.h"
#include "frontend/train/templates.h"
#include "frontend/train/tuning.h"
#include "frontend/train/wrong_index.h"

namespace lockstep::detail {

namespace {

/// A number in memory.
uint32_t wordOf(double number, graph::DType dtype) {
  if (dtype == graph::DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(number));
  return static_cast<uint32_t>(static_cast<int64_t>(number));
}

}  // namespace

Session::Session(graph::Graph traced, passes::CompileOptions options, std::shared_ptr<States> states, std::vector<InputSpec> inputs)
    : inputs_(std::move(inputs)) {
  const Device& device = states->device();
  options.profile = profileFor(device.chosen.info.profile, options);
  options.templates = templateSource();
  options.measured = tuningOf(device.chosen.info).orThrow();
  passes::Compiled compiled = passes::compile(std::move(traced), options).orThrow();
  traced_ = std::move(compiled.traced);
  plan_ = compiled.plan;
  work_ = std::move(compiled.work);
  passes_ = std::move(compiled.passes);
  if (uint64_t memory = device.chosen.info.memory_bytes; memory != 0 && plan_.total_bytes > memory) {
    const Failure failure = fail(
        "compile.memory", fmt::format("the program needs {} bytes, but '{}' has {}", plan_.total_bytes, device.chosen.info.name, memory),
        {}, "make the batch or the model smaller, or choose another device");
    throw Error(failure.diagnostics, ExitCode::OutOfMemory);
  }
  auto valid = program::validate(std::move(compiled.program));
  if (!valid) internalError(fmt::format("the compiler made an invalid program:\n{}", toString(valid.diagnostics())));
  if (options.check_indices && std::ranges::find(options.disabled, "checkIndices") == options.disabled.end())
    checks_ = passes::findIndexChecks(traced_).checks;
  if (!options.dump_directory.empty()) (void)dumpProgram(options.dump_directory, *valid, *device.backend).orThrow();
  execution_ = std::make_unique<Execution>(std::move(*valid), std::move(states));
}

Session::Session(std::shared_ptr<const SharedExtents> shared, passes::CompileOptions options, std::shared_ptr<States> states,
                 std::vector<InputSpec> inputs)
    : Session(shared->graph, std::move(options), std::move(states), std::move(inputs)) {
  shared_ = std::move(shared);
}

void Session::checkIndices(const Batch& batch, int64_t extent, std::string_view when) const {
  if (checks_.empty()) return;
  checkGivenIndices(checks_, withExtent(inputs_, extent), batch, when);
}

std::vector<std::byte> Session::encode(const Batch& batch, const StepValues& values) const {
  std::vector<NamedBytes> items;
  const MatchedBatch matched = matchBatch(inputs_, batch);
  std::vector<io::Array> rounded;
  std::vector<std::vector<std::byte>> filled;
  rounded.reserve(inputs_.size());  // views must not move
  filled.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const BatchItem& item = *matched.items[i];
    std::span<const std::byte> bytes = bytesOf(item);
    if (const graph::DType dtype = inputs_[i].type.dtype; needsRounding(dtype)) bytes = rounded.emplace_back(toArray(item, dtype)).data;
    if (shared_ != nullptr && hasDynamicExtent(inputs_[i]))
      bytes = filled.emplace_back(filledUp(inputs_[i].type, bytes, matched.extent, shared_->capacity));
    items.push_back({item.name, bytes});
  }
  const auto extent = static_cast<int32_t>(matched.extent);
  std::vector<std::pair<std::string, uint32_t>> numbers;
  if (shared_ != nullptr) {
    items.push_back({passes::kExtentInput, std::as_bytes(std::span(&extent, 1))});
    const std::vector<double>& of_extent = numbers_.at(matched.extent);
    for (size_t i = 0; i < of_extent.size(); ++i) {
      const std::string name = passes::extentNumber(i);
      if (const program::InputPort* port = program().findInput(name); port != nullptr)
        numbers.emplace_back(name, wordOf(of_extent[i], program()[port->buffer].type.dtype));
    }
  }
  for (const auto& [name, word] : numbers) items.push_back({name, std::as_bytes(std::span(&word, 1))});
  return execution_->encode(items, values);
}

HostTensor Session::take(const auto& port, const std::vector<std::byte>& arena, const graph::OpenAxes& open, int64_t extent) const {
  const graph::TensorType& type = program()[port.buffer].type;
  const std::span<const std::byte> bytes = execution_->bytesOf(port, arena);
  return graph::isOpen(open) ? counted(port.name, type, bytes, open, shared_->capacity, extent) : HostTensor(port.name, type, bytes);
}

std::vector<HostTensor> Session::decode(const std::vector<std::byte>& input, int64_t extent) const {
  std::vector<HostTensor> values;
  for (const program::InputPort& port : program().inputs) values.push_back(take(port, input, openAxesOf(findInput(port.name)), extent));
  return values;
}

const InputSpec* Session::findInput(std::string_view name) const {
  const auto found = std::ranges::find(inputs_, name, &InputSpec::name);
  return found == inputs_.end() ? nullptr : &*found;
}

graph::OpenAxes Session::openAxesOf(const InputSpec* input) const {
  graph::OpenAxes axes;
  if (shared_ == nullptr || input == nullptr) return axes;
  for (const int64_t extent : input->type.shape.extents()) axes.push_back(extent == dynamic ? 1 : 0);
  return axes;
}

graph::OpenAxes Session::openAxesOf(const program::OutputPort& port) const {
  if (shared_ == nullptr) return {};
  if (port.kind == graph::OutputKind::Gradient) return openAxesOf(findInput(port.name));
  const std::vector<graph::Output>& outputs = shared_->graph.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].kind == port.kind && outputs[i].name == port.name) return shared_->outputs[i];
  }
  return {};
}

void Session::printOutputs(const std::vector<std::byte>& arena, std::string_view when, const PrintFunction& print) const {
  for (const HostTensor& value : outputs(arena, graph::OutputKind::Print)) {
    const std::string line = fmt::format("{} {}: {}", when, value.name(), to_string(value));
    if (print) {
      print(line);
    } else {
      fmt::print(stderr, "{}\n", line);
    }
  }
}

std::optional<Diagnostic> Session::wrongIndex(const std::vector<std::byte>& arena, std::string_view when) const {
  auto read = [&](const std::string& name) {
    const program::OutputPort* port = program().findOutput(name);
    if (port == nullptr) internalError(fmt::format("the program has no output '{}'", name));
    int32_t value = 0;
    std::memcpy(&value, execution_->bytesOf(*port, arena).data(), sizeof(value));
    return value;
  };
  for (size_t i = 0; i < checks_.size(); ++i) {
    if (checks_[i].is_given) continue;
    if (const int32_t row = read(passes::indexRowName(i)); row != graph::kNoRow)
      return describeWrongIndex(checks_[i], row, read(passes::indexValueName(i)), when);
  }
  return std::nullopt;
}

std::vector<HostTensor> Session::outputs(const std::vector<std::byte>& arena, graph::OutputKind kind, int64_t extent) const {
  std::vector<HostTensor> values;
  for (const program::OutputPort& port : program().outputs) {
    if (port.kind == kind) values.push_back(take(port, arena, openAxesOf(port), extent));
  }
  return values;
}

std::optional<float> Session::scalar(std::string_view output, const std::vector<std::byte>& arena) const {
  const program::OutputPort* port = program().findOutput(output);
  return port == nullptr ? std::nullopt : std::optional(take(*port, arena).floats().front());
}

std::optional<float> Session::gradientNorm(const std::vector<std::byte>& arena) const { return scalar(passes::kGradientNorm, arena); }
std::optional<float> Session::lossScale(const std::vector<std::byte>& arena) const { return scalar(passes::kLossScale, arena); }

std::vector<std::byte> Session::run(std::vector<std::byte> input) {
  return std::move(wait(submit({std::move(input)}).orThrow()).orThrow().front());
}

std::vector<ProfiledCommand> Session::time(const std::vector<std::byte>& input) {
  const std::vector<CommandTime> times = execution_->time(input).orThrow();
  std::vector<ProfiledCommand> profiled;
  double start = 0;
  for (const CommandTime& time : times) {
    const program::Command& command = program().commands.at(time.command);
    const passes::CommandWork& work = work_.at(time.command);
    ProfiledCommand& made = profiled.emplace_back();
    made.label = command.label;
    if (const auto* dispatch = std::get_if<program::Dispatch>(&command.action)) {
      made.kernel = program()[dispatch->kernel].name;
      made.groups = dispatch->groups;
    }
    made.level = command.level;
    made.start = start;
    made.seconds = time.seconds;
    made.bytes = work.bytes;
    made.operations = work.operations;
    made.lines = work.lines;
    start += time.seconds;
  }
  return profiled;
}

}  // namespace lockstep::detail
