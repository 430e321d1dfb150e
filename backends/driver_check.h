// SPDX-License-Identifier: Apache-2.0
// Whether drivers may be loaded into this process.
#pragma once

#include "ir/support/result.h"

namespace lockstep {

/// Asked once, before the first Vulkan driver is loaded; a Failure keeps all of them out and says why. Drivers may crash or hang while they
/// are loaded. Only another process can find that out, and the library starts none: whoever sets this may.
using DriverCheck = Status (*)();
/// Null: drivers are loaded unasked.
void checkDriversWith(DriverCheck check);

}  // namespace lockstep
