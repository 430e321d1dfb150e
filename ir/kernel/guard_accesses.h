// SPDX-License-Identifier: Apache-2.0
// What an index outside of its composite does: one policy, lowered once, for all backends.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

enum class OutOfBounds : uint8_t {
  Trap,         ///< a mistake of the kernel: left as it is, so that the reference reports it; devices that cannot, clamp
  Clamp,        ///< the index becomes the last one
  ZeroAndSkip,  ///< loads give zero, stores and atomics do nothing
};
std::string_view toString(OutOfBounds policy);  ///< "trap", "clamp", "zero"
std::optional<OutOfBounds> findOutOfBounds(std::string_view text);

/// Marks every access `in_bounds` whose indices are provably in range: by constants, built-in values, arithmetic that cannot wrap, counters
/// of loops and the conditions around. Under Clamp and ZeroAndSkip the others get guards, and afterwards all accesses are marked; an index
/// into a value (extract) is guarded too. A negative i32 counts as a large index. Where ZeroAndSkip meets a pointer that goes to a
/// function, a workgroup_uniform_load or an element of a value that is no scalar or vector, it clamps. The module must be valid and stays
/// so.
Module guardAccesses(Module module, OutOfBounds policy);

}  // namespace lockstep::kernel
