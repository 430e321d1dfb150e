// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/conflicts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "passes/visits.h"

namespace lockstep::passes {

namespace {

bool writes(const Touch& touch) { return touch.range.access != kernel::Access::Read; }

/// Accesses that reach the byte where the sweep is, by their end.
class Open {
 public:
  void add(const Touch& touch) { by_end_.emplace(touch.range.offset + touch.range.size, &touch); }
  void dropEnded(uint64_t byte) { by_end_.erase(by_end_.begin(), by_end_.upper_bound(byte)); }
  void clear() { by_end_.clear(); }
  void meet(const Touch& next, const std::function<void(const Touch&, const Touch&)>& each) const {
    for (const auto& [end, open] : by_end_) {
      countVisits();
      if (open->by != next.by) each(*open, next);
    }
  }

 private:
  std::multimap<uint64_t, const Touch*> by_end_;
};

}  // namespace

void forEachConflict(std::vector<Touch> touches, const std::function<void(const Touch&, const Touch&)>& each) {
  std::ranges::stable_sort(touches, {}, [](const Touch& touch) { return std::tuple(touch.range.buffer, touch.range.offset); });
  Open reading, writing;
  for (size_t i = 0; i < touches.size(); ++i) {
    const Touch& next = touches[i];
    for (Open* open : {&reading, &writing}) {
      if (i > 0 && touches[i - 1].range.buffer != next.range.buffer) open->clear();
      open->dropEnded(next.range.offset);
    }
    writing.meet(next, each);
    if (writes(next)) reading.meet(next, each);
    (writes(next) ? writing : reading).add(next);
    countVisits();
  }
}

}  // namespace lockstep::passes
