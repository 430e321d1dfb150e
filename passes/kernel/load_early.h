// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Loads from storage move up to the first one of their block, and those from read-only storage in front of the first store to storage, so
/// that several are on their way at once: drivers do not know that the store leaves alone what they read. Nothing moves across barriers,
/// atomics, calls and control flow.
kernel::Module loadEarly(kernel::Module module);

}  // namespace lockstep::passes
