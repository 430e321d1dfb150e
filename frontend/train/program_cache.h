// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the programs of one trainer or forward, by what they were compiled for.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <memory>

#include "frontend/train/session.h"
#include "frontend/train/shared_extents.h"

namespace lockstep::detail {

/// Everything that programs of one function can differ in.
struct ProgramKey {
  int64_t extent = 0;  ///< of the dynamic axes; 0: there are none
  bool captures = false;
  bool is_shared = false;  ///< it serves smaller extents, too
  friend bool operator==(const ProgramKey&, const ProgramKey&) = default;
};

/// What programs of one function are made of.
struct ProgramSource {
  const std::vector<InputSpec>& inputs;  ///< as declared
  std::function<graph::Graph(const std::vector<InputSpec>& concrete)> trace;
  std::function<passes::CompileOptions()> options;
  std::shared_ptr<States> states;
  const std::vector<std::string>& disabled;  ///< with passes::kOpenExtents each extent gets a program of its own
};

/// The programs that were used last. One that is dropped lives on until its last step was waited for.
class ProgramCache {
 public:
  explicit ProgramCache(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}

  /// One that is here, or that is compiled now: for the extent, or for several (shared_extents.h). Throws Error.
  std::shared_ptr<Session> get(const ProgramKey& key, const ProgramSource& source);
  /// A program for just this key that is not here.
  [[nodiscard]] static std::shared_ptr<Session> compile(const ProgramKey& key, const ProgramSource& source);
  void insert(const ProgramKey& key, std::shared_ptr<Session> session) {
    entries_.emplace_front(key, std::move(session));
    ++compiled_;
    while (entries_.size() > capacity_) {
      retire(*entries_.back().second);
      entries_.pop_back();
    }
  }
  void clear() {
    for (const auto& [key, session] : entries_) retire(*session);
    entries_.clear();
    choosers_ = {};
  }

  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] uint64_t compiled() const { return compiled_; }
  /// Of all programs, except that device_bytes counts those that are here.
  [[nodiscard]] ExecutionStatistics statistics() const {
    ExecutionStatistics sum = retired_;
    for (const auto& [key, session] : entries_) {
      const ExecutionStatistics one = session->statistics();
      add(sum, one);
      sum.device_bytes += one.device_bytes;
    }
    return sum;
  }

 private:
  /// Null when there is none.
  std::shared_ptr<Session> find(const ProgramKey& key) {
    auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == key; });
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().second;
  }
  /// Null where the extent needs a program of its own.
  std::shared_ptr<Session> findShared(const ProgramKey& key, const ProgramSource& source);
  static void add(ExecutionStatistics& sum, const ExecutionStatistics& one) {
    sum.submissions += one.submissions;
    sum.steps += one.steps;
    sum.device_allocations += one.device_allocations;
  }
  void retire(const Session& session) { add(retired_, session.statistics()); }

  size_t capacity_;
  std::list<std::pair<ProgramKey, std::shared_ptr<Session>>> entries_;  // the last used one first
  std::array<ExtentChooser, 2> choosers_;                               // without and with captures
  uint64_t compiled_ = 0;
  ExecutionStatistics retired_;
};

}  // namespace lockstep::detail
