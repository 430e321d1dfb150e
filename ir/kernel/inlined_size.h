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
/// Bytes of one invocation's private and local variables. No device tells a limit: a driver that runs out of stack for them crashes. WGSL
/// promises 8 KiB.
inline constexpr uint64_t kMaxPrivateBytes = 64u << 10u;

struct InlinedSize {
  uint64_t instructions = 0;  ///< of the function and, for every call, of what it calls; stops counting at 2^62
  uint64_t bytes = 0;         ///< of local variables above 256 bytes, likewise
  uint32_t nesting = 0;       ///< blocks and bodies of called functions within each other; the function's own is 1
};
/// Takes time linear in the module.
InlinedSize inlinedSize(const Module& module, const Function& function);

/// Fails with `code` where an entry point is larger than one of the maxima; private variables of the module count with its own.
Status checkInlinedSize(const Module& module, const Function& entry, const char* code);

}  // namespace lockstep::kernel
