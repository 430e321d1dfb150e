// SPDX-License-Identifier: Apache-2.0
// Random kernels made of what the rules of the bounds prover and of the loop analyses reason about: counters that step up and down, by
// large strides and across the wrap, several exits, `continue` inside of an exit's arm, loads from before a loop, conditions around
// accesses that are one off. A list of numbers becomes a kernel; any list does.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::prover {

/// Binding 0: kInputs numbers, read. Binding 1: kOutputs numbers, written. One workgroup.
inline constexpr uint32_t kInputs = 8, kOutputs = 64;

/// A valid kernel without guards. It may not end.
kernel::Module makeKernel(const std::vector<uint32_t>& choices);
/// Numbers for binding 0: small ones, and those near the ends of the types.
std::vector<uint32_t> makeInputs(uint32_t seed);
/// Fewer choices, of which the same is wrong.
std::vector<uint32_t> smallest(std::vector<uint32_t> choices, const std::function<bool(const std::vector<uint32_t>&)>& isBad);

}  // namespace lockstep::prover
