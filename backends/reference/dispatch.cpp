// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/dispatch.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace lockstep::reference {

struct ThreadPool::State {
  tbb::task_arena arena;
};

ThreadPool::ThreadPool(uint32_t max_threads) : state_(std::make_unique<State>()) {
  state_->arena.initialize(max_threads == 0 ? tbb::task_arena::automatic : static_cast<int>(max_threads));
}

ThreadPool::~ThreadPool() = default;

uint32_t ThreadPool::threads() const { return static_cast<uint32_t>(state_->arena.max_concurrency()); }

Outcome dispatch(ThreadPool& pool, const Bytecode& code, std::span<const BufferView> bindings, std::array<uint32_t, 3> groups,
                 const MachineOptions& options) {
  const uint64_t count = uint64_t(groups[0]) * groups[1] * groups[2];
  const uint64_t batches = (count + code.batch_groups - 1) / code.batch_groups;
  if (count == 0) return {};
  Outcome outcome;
  std::mutex mutex;
  std::atomic<uint64_t> lowest = UINT64_MAX;
  // Batches below the lowest fault still run, so that the one reported does not depend on the order.
  auto runRange = [&](Machine& machine, uint64_t begin, uint64_t end) {
    for (uint64_t batch = begin; batch < end; ++batch) {
      uint64_t first = batch * code.batch_groups;
      if (first >= lowest.load(std::memory_order_relaxed)) return;
      machine.run(first, static_cast<uint32_t>(std::min<uint64_t>(code.batch_groups, count - first)));
      if (machine.fault().kind == Fault::Kind::None) continue;
      std::lock_guard lock(mutex);
      if (first >= lowest.load(std::memory_order_relaxed)) return;
      lowest.store(first, std::memory_order_relaxed);
      outcome.fault = machine.fault();
      return;
    }
  };
  auto finish = [&] {
    if (outcome.fault.kind != Fault::Kind::None)
      outcome.printed.dropFrom((outcome.fault.first_group + code.batch_groups) * code.group_lanes);
    return std::move(outcome);
  };
  if (options.order_seed != 0) {
    std::vector<uint64_t> order(batches);
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(options.order_seed));
    Machine machine(code, bindings, groups, options);
    for (const uint64_t batch : order) runRange(machine, batch, batch + 1);
    outcome.printed.take(machine.printed());
    return finish();
  }
  const bool in_order = groups[1] == 1 && groups[2] == 1 ? code.in_order : code.in_order_of_grid;
  if (batches == 1 || pool.threads() == 1 || in_order || options.watch != nullptr) {
    Machine machine(code, bindings, groups, options);
    runRange(machine, 0, batches);
    outcome.printed.take(machine.printed());
    return finish();
  }
  pool.state_->arena.execute([&] {
    tbb::enumerable_thread_specific<std::unique_ptr<Machine>> machines;
    tbb::parallel_for(tbb::blocked_range<uint64_t>(0, batches), [&](const tbb::blocked_range<uint64_t>& range) {
      std::unique_ptr<Machine>& machine = machines.local();
      if (machine == nullptr) machine = std::make_unique<Machine>(code, bindings, groups, options);
      runRange(*machine, range.begin(), range.end());
    });
    for (const std::unique_ptr<Machine>& machine : machines) outcome.printed.take(machine->printed());
  });
  return finish();
}

}  // namespace lockstep::reference
