// SPDX-License-Identifier: Apache-2.0
#include "frontend/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "frontend/dump.h"
#include "frontend/templates.h"

namespace lockstep::detail {

using graph::DType;
using program::ArenaRole;

namespace {

[[noreturn]] void reject(std::string code, std::string message, std::string remedy = {}, ExitCode exit_code = ExitCode::BadInput) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)}, exit_code);
}

void check(Status status) { (void)std::move(status).orThrow(); }

std::string known(const std::vector<InputSpec>& inputs) {
  std::string names;
  for (const InputSpec& input : inputs) names += fmt::format("{}{} {}", names.empty() ? "" : ", ", input.name, toString(input.type));
  return names.empty() ? "the program takes no inputs" : "declared: " + names;
}

DType dtypeOf(const BatchItem& item) {
  static constexpr DType kTypes[] = {DType::F32, DType::I32, DType::U32};
  return kTypes[item.data.index()];
}

std::span<const std::byte> bytesOf(const BatchItem& item) {
  return std::visit([](auto values) { return std::as_bytes(values); }, item.data);
}

/// Finds and checks the data of a declared input.
const BatchItem& itemFor(const Batch& batch, const InputSpec& input, const std::vector<InputSpec>& inputs) {
  const BatchItem* found = nullptr;
  for (const BatchItem& item : batch) {
    if (item.name != input.name) continue;
    if (found != nullptr) reject("batch.twice", fmt::format("input '{}' is given twice", input.name));
    found = &item;
  }
  if (found == nullptr) reject("batch.missing", fmt::format("input '{}' is missing", input.name), known(inputs));
  // In memory a bool is a u32 of 0 or 1.
  DType wanted = input.type.dtype == DType::Bool ? DType::U32 : input.type.dtype;
  if (dtypeOf(*found) != wanted) {
    reject("batch.type", fmt::format("input '{}' is {} but gets {} data", input.name, toString(input.type), toString(dtypeOf(*found))));
  }
  uint64_t given = bytesOf(*found).size() / sizeof(float);
  if (given != static_cast<uint64_t>(input.type.shape.elementCount())) {
    reject("batch.length", fmt::format("input '{}' is {} with {} elements but gets {}", input.name, toString(input.type),
                                       input.type.shape.elementCount(), given));
  }
  return *found;
}

}  // namespace

Device openChosenDevice(const std::string& selector) {
  ChosenDevice chosen = chooseDevice(selector).orThrow();
  std::shared_ptr<Backend> backend = openDevice(chosen.info).orThrow();
  return {std::move(chosen), std::move(backend)};
}

StepValue stepValue(std::string_view name, std::span<const double> values) {
  StepValue made{name, {DType::F32, graph::Shape{static_cast<int64_t>(values.size())}}, {}};
  for (double value : values) made.words.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
  return made;
}

StepValue randomKey(uint64_t seed, uint64_t step) {
  return {graph::kRandomKeyInput,
          {DType::U32, graph::Shape{4}},
          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)}};
}

Session::Session(graph::Graph traced, passes::CompileOptions options, Device device, std::vector<InputSpec> inputs, const ArenaSet& shared)
    : device_(std::move(device)), inputs_(std::move(inputs)) {
  options.profile = device_.chosen.info.profile;
  options.templates = templateSource();
  passes::Compiled compiled = passes::compile(std::move(traced), options).orThrow();
  plan_ = compiled.plan;
  passes_ = std::move(compiled.passes);
  if (uint64_t memory = device_.chosen.info.memory_bytes; memory != 0 && plan_.total_bytes > memory) {
    reject("compile.memory",
           fmt::format("the program needs {} bytes, but '{}' has {}", plan_.total_bytes, device_.chosen.info.name, memory),
           "make the batch or the model smaller, or choose another device", ExitCode::OutOfMemory);
  }
  auto valid = program::validate(std::move(compiled.program));
  if (!valid) internalError(fmt::format("the compiler made an invalid program:\n{}", toString(valid.diagnostics())));
  program_ = std::make_unique<program::ValidProgram>(std::move(*valid));
  if (!options.dump_directory.empty()) check(dumpKernels(options.dump_directory, *program_, *device_.backend));
  if (program::ArenaId input = (*program_)->findArena(ArenaRole::Input); input.valid()) input_bytes_ = (**program_)[input].size;
  allocateState(shared);
  executable_ = device_.backend->compile(*program_).orThrow();
}

void Session::allocateState(const ArenaSet& shared) {
  for (const program::Arena& arena : (*program_)->arenas) {
    if (arena.role != ArenaRole::State) continue;
    if (auto found = shared.find(arena.name); found != shared.end()) {
      if (found->second->size() != arena.size) internalError(fmt::format("shared state '{}' has another size", arena.name));
      state_.emplace(arena.name, found->second);
      continue;
    }
    state_.emplace(arena.name, device_.backend->allocate(arena.size).orThrow());
    fillState(arena.name);
  }
}

std::vector<std::byte> Session::encode(const Batch& batch, const StepValues& values) const {
  for (const BatchItem& item : batch) {
    bool declared = std::any_of(inputs_.begin(), inputs_.end(), [&](const InputSpec& input) { return input.name == item.name; });
    if (!declared) reject("batch.unknown", fmt::format("there is no input '{}'", item.name), known(inputs_));
  }
  std::vector<std::byte> bytes(input_bytes_);
  auto place = [&](std::string_view name, std::span<const std::byte> data) {
    // An input that nothing reads may have no place in the program.
    const program::Port* port = (*program_)->findInput(name);
    if (port != nullptr) std::memcpy(bytes.data() + (**program_)[port->buffer].offset, data.data(), data.size());
  };
  for (const InputSpec& input : inputs_) place(input.name, bytesOf(itemFor(batch, input, inputs_)));
  for (const StepValue& value : values) place(value.name, std::as_bytes(std::span(value.words)));
  return bytes;
}

Ticket Session::submit(const std::vector<std::vector<std::byte>>& inputs) {
  std::vector<std::span<const std::byte>> spans(inputs.begin(), inputs.end());
  return executable_->submit(state_, spans).orThrow();
}

std::vector<std::vector<std::byte>> Session::wait(Ticket ticket) { return executable_->wait(ticket).orThrow(); }

std::vector<std::pair<std::string, double>> Session::time(const std::vector<std::byte>& input) {
  std::vector<std::pair<std::string, double>> times;
  for (const CommandTime& command : executable_->time(state_, input).orThrow()) {
    times.emplace_back((*program_)->commands.at(command.command).label, command.seconds);
  }
  return times;
}

std::vector<HostTensor> Session::outputs(const std::vector<std::byte>& arena, graph::OutputKind kind) const {
  std::vector<HostTensor> values;
  for (const program::Port& port : (*program_)->outputs) {
    if (port.kind != kind) continue;
    const program::Buffer& buffer = (**program_)[port.buffer];
    values.emplace_back(port.name, buffer.type, std::span(arena).subspan(buffer.offset, buffer.type.byteSize()));
  }
  return values;
}

const program::Buffer& Session::stateBuffer(std::string_view name) const {
  for (const program::Buffer& buffer : (*program_)->buffers) {
    if (buffer.role == ArenaRole::State && buffer.name == name) return buffer;
  }
  internalError(fmt::format("the program has no state '{}'", name));
}

std::vector<float> Session::readState(std::string_view name) const {
  const program::Buffer& buffer = stateBuffer(name);
  std::vector<float> values(static_cast<size_t>(buffer.type.shape.elementCount()));
  check(state_.find(name)->second->read(buffer.offset, std::as_writable_bytes(std::span(values))));
  return values;
}

void Session::writeState(std::string_view name, std::span<const float> values) {
  const program::Buffer& buffer = stateBuffer(name);
  if (static_cast<int64_t>(values.size()) != buffer.type.shape.elementCount())
    internalError(fmt::format("state '{}' has another size", name));
  check(state_.find(name)->second->write(buffer.offset, std::as_bytes(values)));
}

void Session::fillState(std::string_view name) {
  const program::Buffer& buffer = stateBuffer(name);
  std::vector<float> values(static_cast<size_t>(buffer.type.shape.elementCount()), static_cast<float>(buffer.initial));
  writeState(name, values);
}

}  // namespace lockstep::detail
