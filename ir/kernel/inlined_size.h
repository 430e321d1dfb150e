// SPDX-License-Identifier: Apache-2.0
// How large an entry point is once every call in it is inlined: twice as large with every level of functions that call the next one twice.
#pragma once

#include <cstdint>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::kernel {

/// What backends that inline accept.
inline constexpr uint64_t kMaxInlinedInstructions = uint64_t(1) << 20u;

/// Instructions of the function and, for every call, of what it calls; stops counting at 2^63. Takes time linear in the module.
uint64_t inlinedSize(const Module& module, const Function& function);

/// Fails with `code` where an entry point is larger than kMaxInlinedInstructions.
Status checkInlinedSize(const Module& module, const Function& entry, const char* code);

}  // namespace lockstep::kernel
