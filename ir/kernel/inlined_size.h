// SPDX-License-Identifier: Apache-2.0
// How large an entry point is once every call in it is inlined: twice as large with every level of functions that call the next one twice.
#pragma once

#include <cstdint>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::kernel {

/// What backends that inline accept.
inline constexpr uint64_t kMaxInlinedInstructions = uint64_t(1) << 20u;
inline constexpr uint32_t kMaxInlinedNesting = 2000;

struct InlinedSize {
  uint64_t instructions = 0;  ///< of the function and, for every call, of what it calls; stops counting at 2^62
  uint32_t nesting = 0;       ///< blocks and bodies of called functions within each other; the function's own is 1
};
/// Takes time linear in the module.
InlinedSize inlinedSize(const Module& module, const Function& function);

/// Fails with `code` where an entry point is larger than the two maxima.
Status checkInlinedSize(const Module& module, const Function& entry, const char* code);

}  // namespace lockstep::kernel
