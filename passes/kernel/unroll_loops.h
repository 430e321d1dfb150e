// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// A loop that is known to run n times becomes n copies of its body, if that makes at most kUnrolledInstructions of them or n is at most 1.
/// The shape: a counter that is declared before the loop in the same block with a constant and is stored to in `continuing` alone, an exit
/// at the head (`if` on the counter with a break, after nothing but pure operations and loads) or at the tail (break_if), and no other
/// jump out of the loop. Inner loops come first.
kernel::Module unrollLoops(kernel::Module module);

inline constexpr size_t kUnrolledInstructions = 512;

/// The same with another limit; with a name only those loops that call the function of this name.
kernel::Module unrollLoops(kernel::Module module, size_t most, std::string_view callee = {});

}  // namespace lockstep::passes
