// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/binding_windows.h"

#include <algorithm>
#include <bit>

#include "ir/graph/graph.h"

namespace lockstep::passes {

using program::DeviceProfile;
using program::Range;

namespace {

constexpr uint64_t kWord = 4;

uint64_t windowBytes(const DeviceProfile& profile) { return std::bit_floor(profile.max_binding_bytes); }

}  // namespace

int64_t windowWords(const DeviceProfile& profile) { return static_cast<int64_t>(windowBytes(profile) / kWord); }

std::vector<Range> windowsOf(const Range& range, const DeviceProfile& profile) {
  if (range.size <= profile.max_binding_bytes) return {range};
  std::vector<Range> windows;
  for (uint64_t begin = 0; begin < range.size; begin += windowBytes(profile)) {
    Range& window = windows.emplace_back(range);
    window.offset += begin;
    window.size = std::min(windowBytes(profile), range.size - begin);
  }
  return windows;
}

size_t countBindings(const std::vector<Range>& ranges, size_t inputs, const DeviceProfile& profile) {
  size_t count = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    auto isSame = [&](const Range& other) {
      return other.buffer == ranges[i].buffer && other.offset == ranges[i].offset && other.size == ranges[i].size &&
             other.step == ranges[i].step;
    };
    const bool shared = i >= inputs && std::any_of(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(i), isSame);
    if (!shared) count += windowsOf(ranges[i], profile).size();
  }
  return count;
}

}  // namespace lockstep::passes
