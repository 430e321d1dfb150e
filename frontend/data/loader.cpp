// SPDX-License-Identifier: Apache-2.0
#include "frontend/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "frontend/data/random.h"
#include "frontend/trace/throw_error.h"

namespace lockstep {
namespace {

using Values = decltype(Column::values);

/// What a batch refers to.
struct Prepared {
  uint64_t step = 0;
  std::vector<Values> columns;
};

size_t sizeOf(const Values& values) {
  return std::visit([](const auto& all) { return all.size(); }, values);
}

}  // namespace

struct Loader::State {
  std::vector<Column> columns;
  size_t rows = 0;
  LoaderOptions options;

  // The order of the epoch that was asked for last. The worker has its own.
  struct Order {
    uint64_t epoch = UINT64_MAX;
    std::vector<uint32_t> rows;
  };
  Order order, worker_order;

  Prepared current;  ///< what the last batch refers to
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Prepared> ready;  ///< consecutive steps
  uint64_t next = 0;           ///< the step that the worker prepares next; 0: none yet
  bool stop = false;
  std::exception_ptr failure;  ///< of the worker, for the next batch()
  std::thread worker;

  [[nodiscard]] uint64_t stepsPerEpoch() const { return rows / options.batch; }

  /// Fisher and Yates, from random numbers of the epoch.
  void shuffle(Order& of, uint64_t epoch) const {
    if (of.epoch == epoch) return;
    of.rows.resize(rows);
    of.epoch = epoch;
    std::iota(of.rows.begin(), of.rows.end(), 0u);
    if (!options.shuffle) return;
    Random random(options.seed, epoch);
    for (size_t i = rows - 1; i > 0; --i) {
      const auto other = static_cast<size_t>(random.below(static_cast<uint32_t>(i + 1)));
      std::swap(of.rows[i], of.rows[other]);
    }
  }

  std::span<const uint32_t> rowsOf(uint64_t step, Order& with) const {
    shuffle(with, (step - 1) / stepsPerEpoch());
    return std::span(with.rows).subspan((step - 1) % stepsPerEpoch() * options.batch, options.batch);
  }

  Prepared prepare(uint64_t step, Order& with) const {
    Prepared prepared{.step = step, .columns = {}};
    const std::span<const uint32_t> chosen = rowsOf(step, with);
    for (const Column& column : columns) {
      std::visit(
          [&](const auto& all) {
            const size_t length = all.size() / rows;
            std::decay_t<decltype(all)> some;
            some.reserve(chosen.size() * length);
            for (const uint32_t row : chosen) some.insert(some.end(), all.begin() + row * length, all.begin() + (row + 1) * length);
            prepared.columns.emplace_back(std::move(some));
          },
          column.values);
    }
    return prepared;
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || (next != 0 && ready.size() < options.prefetch); });
      if (stop) return;
      const uint64_t step = next;
      lock.unlock();
      Prepared prepared;
      std::exception_ptr thrown;
      try {
        prepared = prepare(step, worker_order);
      } catch (...) {
        thrown = std::current_exception();  // out of a thread it would end the process
      }
      lock.lock();
      // Another step may have been asked for meanwhile.
      if (next != step) continue;
      try {
        if (!thrown) ready.push_back(std::move(prepared));
      } catch (...) {
        thrown = std::current_exception();
      }
      failure = thrown;
      next = thrown ? 0 : next + 1;
      changed.notify_all();
    }
  }

  Prepared take(uint64_t step) {
    if (options.prefetch == 0) return prepare(step, order);
    std::unique_lock lock(mutex);
    if (!worker.joinable()) {
      try {
        worker = std::thread([this] { work(); });
      } catch (const std::system_error&) {
        return prepare(step, order);  // a limit on threads: nothing is prepared ahead
      }
    }
    const bool in_line = !ready.empty() ? ready.front().step == step : next == step;
    if (!in_line) {
      ready.clear();
      next = step;
      failure = nullptr;  // was one of a batch ahead; this one is tried anew
    }
    changed.notify_all();
    changed.wait(lock, [&] { return !ready.empty() || failure; });
    if (ready.empty()) std::rethrow_exception(std::exchange(failure, nullptr));
    Prepared prepared = std::move(ready.front());
    ready.pop_front();
    changed.notify_all();
    return prepared;
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    if (worker.joinable()) worker.join();
  }
};

Loader::Loader(std::vector<Column> columns, size_t rows, LoaderOptions options, Where where) : state_(std::make_unique<State>()) {
  if (options.batch == 0) detail::rejectAt(where, "loader.batch", "a batch has no rows", "set LoaderOptions::batch to 1 or more");
  if (rows < options.batch) {
    detail::rejectAt(where, "loader.rows", fmt::format("a dataset of {} rows has no batch of {}", rows, options.batch),
                     "use smaller batches");
  }
  for (const Column& column : columns) {
    if (const size_t size = sizeOf(column.values); size == 0 || size % rows != 0) {
      detail::rejectAt(where, "loader.rows", fmt::format("column '{}' has {} values, no multiple of the {} rows", column.name, size, rows),
                       "give every row the same number of values");
    }
  }
  state_->columns = std::move(columns);
  state_->rows = rows;
  state_->options = options;
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

Batch Loader::batch(uint64_t step) {
  state_->current = state_->take(std::max<uint64_t>(step, 1));
  Batch batch;
  for (size_t i = 0; i < state_->columns.size(); ++i) {
    std::visit([&](const auto& values) { batch.emplace_back(state_->columns[i].name, values); }, state_->current.columns[i]);
  }
  return batch;
}

size_t Loader::rows() const { return state_->rows; }
uint64_t Loader::steps_per_epoch() const { return state_->stepsPerEpoch(); }

std::vector<uint32_t> Loader::rows_of(uint64_t step) const {
  const std::span<const uint32_t> rows = state_->rowsOf(std::max<uint64_t>(step, 1), state_->order);
  return {rows.begin(), rows.end()};
}

}  // namespace lockstep
