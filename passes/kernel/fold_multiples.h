// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Quotients and remainders, by powers of two, of a multiple of one and a constant: (8 * x + 5) / 4 is 2 * x + 1 and (8 * x + 5) % 4 is 1,
/// and (8 * x + 5) / 32 is x / 4. A quotient only where the sum is known not to wrap.
kernel::Module foldMultiples(kernel::Module module);

}  // namespace lockstep::passes
