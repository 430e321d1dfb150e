// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.h"

#include <cstring>
#include <mutex>
#include <set>

namespace lockstep::detail {

using program::ArenaRole;

Execution::Execution(program::ValidProgram program, std::shared_ptr<States> states)
    : states_(std::move(states)), program_(std::move(program)) {
  std::set<program::BufferId> persistent;
  for (const program::PersistentState& state : program_->states) persistent.insert(state.buffer);
  for (size_t i = 0; i < program_->buffers.size(); ++i) {
    const program::Buffer& buffer = program_->buffers[i];
    if (buffer.role != ArenaRole::State) continue;
    arenas_.emplace(buffer.name, states_->declare(buffer.name, {buffer.type, buffer.initial, persistent.contains(program::BufferId(i))}));
  }
  for (const program::InputPort& port : program_->inputs) {
    const auto* formulas = std::get_if<program::FormulaSource>(&port.source);
    if (formulas == nullptr) continue;
    MadeInput& made = made_.emplace_back(MadeInput{port.name, {}});
    for (const std::string& text : formulas->elements)
      made.elements.push_back(program::Formula::parse(text, program::kStepNames).orThrow());
  }
  std::lock_guard turn(*states_->device().turn);
  executable_ = states_->device().backend->compile(program_).orThrow();
}

Execution::~Execution() {
  std::lock_guard turn(*states_->device().turn);
  executable_.reset();
  arenas_.clear();
}

StepValues Execution::stepValues(const RunNumbers& numbers) const {
  const std::array values{static_cast<double>(numbers.step), numbers.rate, numbers.last ? 1.0 : 0.0};  // kStepNames
  StepValues made;
  for (const MadeInput& input : made_) {
    std::vector<double> elements;
    for (const program::Formula& formula : input.elements) elements.push_back(formula(values));
    made.push_back(stepValue(input.name, elements));
  }
  made.push_back(randomKey(numbers.seed, numbers.run));
  return made;
}

std::vector<std::byte> Execution::encode(std::span<const NamedBytes> batch, const StepValues& values) const {
  std::vector<std::byte> bytes(inputBytes());
  const auto place = [&](std::string_view name, std::span<const std::byte> data) {
    // An input that nothing reads may have no place in the program.
    const program::InputPort* port = program().findInput(name);
    if (port != nullptr) std::memcpy(bytes.data() + program()[port->buffer].offset, data.data(), data.size());
  };
  for (const NamedBytes& item : batch) place(item.name, item.bytes);
  for (const StepValue& value : values) place(value.name, std::as_bytes(std::span(value.words)));
  return bytes;
}

Result<Ticket> Execution::submit(const std::vector<std::vector<std::byte>>& inputs) {
  std::vector<std::span<const std::byte>> spans(inputs.begin(), inputs.end());
  std::lock_guard turn(*states_->device().turn);
  Result<Ticket> ticket = executable_->submit(arenas_, spans);
  merge(*states_->device().findings, executable_->takeFindings());
  return ticket;
}

Result<std::vector<std::vector<std::byte>>> Execution::wait(Ticket ticket) {
  std::lock_guard turn(*states_->device().turn);
  return executable_->wait(ticket);
}

Result<std::vector<CommandTime>> Execution::time(std::span<const std::byte> input) {
  std::lock_guard turn(*states_->device().turn);
  return executable_->time(arenas_, input);
}

uint64_t Execution::arenaBytes(ArenaRole role) const {
  const program::ArenaId arena = program().findArena(role);
  return arena.valid() ? program()[arena].size : 0;
}

ExecutionStatistics Execution::statistics() const {
  std::lock_guard turn(*states_->device().turn);
  return executable_->statistics();
}

}  // namespace lockstep::detail
