// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Parts of one word that are put together again are the word: two numbers of 16 bits that were unpacked to f32 and are packed as they
/// are, also where a condition makes both zero.
kernel::Module joinBits(kernel::Module module);

}  // namespace lockstep::passes
