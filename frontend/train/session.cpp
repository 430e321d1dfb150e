// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "frontend/train/batch.h"
#include "frontend/train/dump.h"
#include "frontend/train/templates.h"
#include "frontend/train/tuning.h"
#include "frontend/train/wrong_index.h"

namespace lockstep::detail {

Session::Session(graph::Graph traced, passes::CompileOptions options, std::shared_ptr<States> states, std::vector<InputSpec> inputs)
    : inputs_(std::move(inputs)) {
  const Device& device = states->device();
  options.profile = device.chosen.info.profile;
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

void Session::checkIndices(const Batch& batch, std::string_view when) const { checkGivenIndices(checks_, batch, when); }

std::vector<std::byte> Session::encode(const Batch& batch, const StepValues& values) const {
  std::vector<NamedBytes> items;
  const MatchedBatch matched = matchBatch(inputs_, batch);
  std::vector<io::Array> rounded;
  rounded.reserve(inputs_.size());  // views must not move
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const BatchItem& item = *matched.items[i];
    std::span<const std::byte> bytes = bytesOf(item);
    if (const graph::DType dtype = inputs_[i].type.dtype; needsRounding(dtype)) bytes = rounded.emplace_back(toArray(item, dtype)).data;
    items.push_back({item.name, bytes});
  }
  return execution_->encode(items, values);
}

HostTensor Session::take(const auto& port, const std::vector<std::byte>& arena) const {
  return {port.name, program()[port.buffer].type, execution_->bytesOf(port, arena)};
}

std::vector<HostTensor> Session::decode(const std::vector<std::byte>& input) const {
  std::vector<HostTensor> values;
  for (const program::InputPort& port : program().inputs) values.push_back(take(port, input));
  return values;
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

std::vector<HostTensor> Session::outputs(const std::vector<std::byte>& arena, graph::OutputKind kind) const {
  std::vector<HostTensor> values;
  for (const program::OutputPort& port : program().outputs) {
    if (port.kind == kind) values.push_back(take(port, arena));
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
