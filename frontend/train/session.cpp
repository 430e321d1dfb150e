// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/session.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <mutex>
#include <set>

#include "frontend/train/batch.h"
#include "frontend/train/dump.h"
#include "frontend/train/templates.h"
#include "frontend/train/wrong_index.h"
#include "ir/graph/op_def.h"

namespace lockstep::detail {

using graph::DType;
using program::ArenaRole;

Result<Device> tryOpenDevice(const std::string& selector) {
  LS_TRY(ChosenDevice chosen, chooseDevice(selector));
  LS_TRY(std::shared_ptr<Backend> backend, openDevice(chosen.info));
  return Device{std::move(chosen), std::move(backend), std::make_shared<Turn>()};
}

Device openChosenDevice(const std::string& selector) { return tryOpenDevice(selector).orThrow(); }

StepValue stepValue(std::string_view name, std::span<const double> values) {
  StepValue made{name, graph::TensorType{DType::F32, graph::Shape{static_cast<int64_t>(values.size())}}, {}};
  for (double value : values) made.words.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
  return made;
}

StepValue randomKey(uint64_t seed, uint64_t step) {
  return {graph::kRandomKeyInput,
          graph::TensorType{DType::U32, graph::Shape{4}},  // named: g++ 12 destroys it twice when the next line throws
          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)}};
}

io::Array toArray(const StepValue& value) {
  io::ElementType type = value.type.dtype == DType::F32 ? io::ElementType::F32 : io::ElementType::U32;
  std::span<const std::byte> bytes = std::as_bytes(std::span(value.words));
  return {type, value.type.shape.extents(), {bytes.begin(), bytes.end()}};
}

Session::Session(graph::Graph traced, passes::CompileOptions options, std::shared_ptr<States> states, std::vector<InputSpec> inputs)
    : states_(std::move(states)), inputs_(std::move(inputs)) {
  const Device& device = states_->device();
  options.profile = device.chosen.info.profile;
  options.templates = templateSource();
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
  program_ = std::make_unique<program::ValidProgram>(std::move(*valid));
  if (options.check_indices && std::ranges::find(options.disabled, "checkIndices") == options.disabled.end())
    checks_ = passes::findIndexChecks(traced_);
  if (!options.dump_directory.empty()) (void)dumpKernels(options.dump_directory, *program_, *device.backend).orThrow();
  if (program::ArenaId input = (*program_)->findArena(ArenaRole::Input); input.valid()) input_bytes_ = (**program_)[input].size;
  declareStates(compiled.optimized);
  std::lock_guard turn(*device.turn);
  executable_ = device.backend->compile(*program_).orThrow();
}

Session::~Session() {
  std::lock_guard turn(*states_->device().turn);
  executable_.reset();
  arenas_.clear();
}

void Session::declareStates(const graph::Graph& graph) {
  std::set<std::string> leaves;
  for (const graph::Node& node : graph.nodes) {
    if (graph::leafKind(node) == graph::LeafKind::State) leaves.insert(node.attributes.get<std::string>("name"));
  }
  for (const program::Buffer& buffer : (*program_)->buffers) {
    if (buffer.role != ArenaRole::State) continue;
    // Between steps the sum of gradients is zero.
    const bool persistent = leaves.contains(buffer.name) && buffer.name != passes::kAccumulatedState;
    auto memory = states_->declare(buffer.name, {buffer.type, buffer.initial, persistent});
    arenas_.emplace(buffer.name, std::move(memory));
  }
}

void Session::checkIndices(const Batch& batch, std::string_view when) const { checkGivenIndices(traced_, checks_, batch, when); }

std::vector<std::byte> Session::encode(const Batch& batch, const StepValues& values) const {
  MatchedBatch matched = matchBatch(inputs_, batch);
  std::vector<std::byte> bytes(input_bytes_);
  auto place = [&](std::string_view name, std::span<const std::byte> data) {
    // An input that nothing reads may have no place in the program.
    const program::Port* port = (*program_)->findInput(name);
    if (port != nullptr) std::memcpy(bytes.data() + (**program_)[port->buffer].offset, data.data(), data.size());
  };
  for (const BatchItem* item : matched.items) place(item->name, bytesOf(*item));
  for (const StepValue& value : values) place(value.name, std::as_bytes(std::span(value.words)));
  return bytes;
}

namespace {

HostTensor take(const program::Program& program, const program::Port& port, std::span<const std::byte> arena) {
  const program::Buffer& buffer = program[port.buffer];
  return {port.name, buffer.type, arena.subspan(buffer.offset, buffer.type.byteSize())};
}

}  // namespace

std::vector<HostTensor> Session::decode(const std::vector<std::byte>& input) const {
  std::vector<HostTensor> values;
  for (const program::Port& port : (*program_)->inputs) values.push_back(take(**program_, port, input));
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
  const program::Program& program = **program_;
  auto read = [&](const std::string& name) {
    const auto port =
        std::ranges::find_if(program.outputs, [&](const program::Port& p) { return p.kind == graph::OutputKind::Check && p.name == name; });
    if (port == program.outputs.end()) internalError(fmt::format("the program has no output '{}'", name));
    int32_t value = 0;
    std::memcpy(&value, arena.data() + program[port->buffer].offset, sizeof(value));
    return value;
  };
  for (size_t i = 0; i < checks_.size(); ++i) {
    if (passes::isGiven(traced_, checks_[i])) continue;
    if (const int32_t row = read(passes::indexRowName(i)); row != passes::kNoRow)
      return describeWrongIndex(traced_, checks_[i], row, read(passes::indexValueName(i)), when);
  }
  return std::nullopt;
}

std::vector<HostTensor> Session::outputs(const std::vector<std::byte>& arena, graph::OutputKind kind) const {
  std::vector<HostTensor> values;
  for (const program::Port& port : (*program_)->outputs) {
    if (port.kind == kind) values.push_back(take(**program_, port, arena));
  }
  return values;
}

Result<Ticket> Session::submit(const std::vector<std::vector<std::byte>>& inputs) {
  std::vector<std::span<const std::byte>> spans(inputs.begin(), inputs.end());
  std::lock_guard turn(*states_->device().turn);
  return executable_->submit(arenas_, spans);
}

Result<std::vector<std::vector<std::byte>>> Session::wait(Ticket ticket) {
  std::lock_guard turn(*states_->device().turn);
  return executable_->wait(ticket);
}

std::vector<std::byte> Session::run(std::vector<std::byte> input) {
  return std::move(wait(submit({std::move(input)}).orThrow()).orThrow().front());
}

std::vector<ProfiledCommand> Session::time(const std::vector<std::byte>& input) {
  std::vector<CommandTime> times;
  {
    std::lock_guard turn(*states_->device().turn);
    times = executable_->time(arenas_, input).orThrow();
  }
  const program::Program& program = **program_;
  std::vector<ProfiledCommand> profiled;
  double start = 0;
  for (const CommandTime& time : times) {
    const program::Command& command = program.commands.at(time.command);
    const passes::CommandWork& work = work_.at(time.command);
    ProfiledCommand& made = profiled.emplace_back();
    made.label = command.label;
    if (const auto* dispatch = std::get_if<program::Dispatch>(&command.action)) {
      made.kernel = program[dispatch->kernel].name;
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

uint64_t Session::outputBytes() const {
  const program::ArenaId output = (*program_)->findArena(ArenaRole::Output);
  return output.valid() ? (**program_)[output].size : 0;
}

ExecutionStatistics Session::statistics() const {
  std::lock_guard turn(*states_->device().turn);
  return executable_->statistics();
}

}  // namespace lockstep::detail
