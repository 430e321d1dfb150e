// SPDX-License-Identifier: Apache-2.0
// Private to the library: one program on a device. It works on states that others own, so several programs can share them and each can go
// without a trace.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program/formula.h"
#include "ir/program/program.h"
#include "runtime/device_states.h"
#include "runtime/step_values.h"

namespace lockstep::detail {

/// The value of an input, as memory has it.
struct NamedBytes {
  std::string_view name;
  std::span<const std::byte> bytes;
};

/// Calls into the device take the device's turn.
class Execution {
 public:
  /// States of the program that `states` lacks are declared there. Throws Error.
  Execution(program::ValidProgram program, std::shared_ptr<States> states);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// The inputs that the host makes for a run, as the program says how.
  [[nodiscard]] StepValues stepValues(const RunNumbers& numbers) const;
  /// The bytes of the Input arena for one run. Values that the program has no input for are left out; inputs without a value are zeros.
  [[nodiscard]] std::vector<std::byte> encode(std::span<const NamedBytes> batch, const StepValues& values) const;
  Result<Ticket> submit(const std::vector<std::vector<std::byte>>& inputs);
  /// The Output arena of each run of a submission.
  Result<std::vector<std::vector<std::byte>>> wait(Ticket ticket);
  /// One run with the time of each command.
  Result<std::vector<CommandTime>> time(std::span<const std::byte> input);

  /// The value of an input or output in its arena.
  template <class Port>
  [[nodiscard]] std::span<const std::byte> bytesOf(const Port& port, std::span<const std::byte> arena) const {
    const program::Buffer& buffer = program()[port.buffer];
    return arena.subspan(buffer.offset, buffer.type.byteSize());
  }

  [[nodiscard]] const program::Program& program() const { return *program_; }
  [[nodiscard]] const program::ValidProgram& validProgram() const { return program_; }
  [[nodiscard]] const States& states() const { return *states_; }
  [[nodiscard]] uint64_t inputBytes() const { return arenaBytes(program::ArenaRole::Input); }
  [[nodiscard]] uint64_t outputBytes() const { return arenaBytes(program::ArenaRole::Output); }
  [[nodiscard]] ExecutionStatistics statistics() const;

 private:
  /// An input that formulas make.
  struct MadeInput {
    std::string_view name;
    std::vector<program::Formula> elements;
  };
  [[nodiscard]] uint64_t arenaBytes(program::ArenaRole role) const;

  std::shared_ptr<States> states_;
  program::ValidProgram program_;
  std::vector<MadeInput> made_;
  ArenaSet arenas_;                         ///< those of the program
  std::unique_ptr<Executable> executable_;  // last: it uses all of the above
};

}  // namespace lockstep::detail
