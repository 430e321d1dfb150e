// SPDX-License-Identifier: Apache-2.0
// How many rounds the loops of a planned kernel make, in closed form. Some devices end loops after a number of them
// (DeviceProfile::max_loop_iterations), so a chooser takes more lanes, or more elements per round, until its plan fits.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>

#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {

/// Elements that one register adds up, whatever a device allows: more lose bits.
inline constexpr int64_t kLongestSum = 65536;

/// The most elements per round of a loop: a longer text does not end the loop sooner.
inline constexpr int64_t kMostUnroll = 64;

/// The rounds that a kernel of ours is planned for: a little below the device's limit. A number that no plan reaches where there is none.
int64_t plannedRounds(const program::DeviceProfile& profile);

/// A loop of `count` elements, `unroll` of them per round; each element costs `element` rounds of loops inside.
int64_t loopCost(int64_t count, int64_t unroll, int64_t element);

/// The rounds of the loops that ops of the body emit for one element.
int64_t elementRounds(const graph::Graph& body);

/// The fewest elements per round that keep a plan within the planned rounds. `cost` gives its rounds by that number. Error
/// "schedule.loop_limit" where no number does.
Result<int64_t> chooseUnroll(const PlanQuery& query, const std::function<int64_t(int64_t)>& cost);

inline int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t largestPowerOfTwo(int64_t at_most);
constexpr bool isPowerOfTwo(int64_t number) { return number >= 1 && std::has_single_bit(static_cast<uint64_t>(number)); }

/// The most invocations of a workgroup that is one row of them.
int64_t mostInvocations(const program::DeviceProfile& profile);

}  // namespace lockstep::passes
