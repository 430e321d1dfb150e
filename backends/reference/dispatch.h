// SPDX-License-Identifier: Apache-2.0
// Runs a kernel over a grid of workgroups on several threads.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "backends/backend.h"
#include "backends/reference/machine.h"
#include "ir/support/result.h"

namespace lockstep::reference {

/// The threads that dispatches may use.
class ThreadPool {
 public:
  explicit ThreadPool(uint32_t max_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  [[nodiscard]] uint32_t threads() const;

 private:
  friend struct Outcome dispatch(ThreadPool& pool, const Bytecode& code, std::span<const BufferView> bindings,
                                 std::array<uint32_t, 3> groups, const MachineOptions& options);
  struct State;
  std::unique_ptr<State> state_;
};

struct Outcome {
  Fault fault;       ///< of the lowest batch of workgroups that has one
  PrintLog printed;  ///< up to that batch
};

/// The outcome is the same whatever the threads do, unless workgroups race: docs/numerics.md, "Determinism".
Outcome dispatch(ThreadPool& pool, const Bytecode& code, std::span<const BufferView> bindings, std::array<uint32_t, 3> groups,
                 const MachineOptions& options);

/// The diagnostic of a fault. `kernel` is the kernel's name in the program, `module` what `code` was decoded from.
Failure report(const Fault& fault, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
               std::array<uint32_t, 3> groups);

struct InvocationIds {
  std::array<uint32_t, 3> workgroup{}, local{}, global{};
};
/// Of invocation number `lane` in workgroup number `group`, both x first.
InvocationIds idsOf(uint64_t group, uint64_t lane, const Bytecode& code, std::array<uint32_t, 3> groups);

/// "workgroup (0, 0, 0), local (5, 0, 0)"
std::string invocationText(uint64_t group, uint64_t lane, const Bytecode& code, std::array<uint32_t, 3> groups);

/// Where an instruction (1 + its id) stands in the text that the module was read from; else its line of `kernel`.kir. Nowhere for 0: what a
/// kernel does before its first instruction has no place.
Location placeOf(uint32_t site, const kernel::Module& module, const std::string& kernel);

/// What a dispatch of `code` printed.
Printed printedLines(PrintLog log, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
                     std::array<uint32_t, 3> groups);

}  // namespace lockstep::reference
