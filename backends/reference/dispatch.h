// SPDX-License-Identifier: Apache-2.0
// Runs a kernel over a grid of workgroups on several threads.
#pragma once

#include <array>
#include <memory>
#include <span>

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
  friend Fault dispatch(ThreadPool& pool, const Bytecode& code, std::span<const BufferView> bindings, std::array<uint32_t, 3> groups,
                        const MachineOptions& options);
  struct State;
  std::unique_ptr<State> state_;
};

/// The fault of the lowest batch of workgroups that has one: the same whatever the threads do.
Fault dispatch(ThreadPool& pool, const Bytecode& code, std::span<const BufferView> bindings, std::array<uint32_t, 3> groups,
               const MachineOptions& options);

/// The diagnostic of a fault. `kernel` is the kernel's name in the program, `module` what `code` was decoded from.
Failure report(const Fault& fault, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
               std::array<uint32_t, 3> groups);

}  // namespace lockstep::reference
