// SPDX-License-Identifier: Apache-2.0
// What a text says of its kernel and devices would believe.
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// Takes back what nobody has proven to whoever reads a text: that accesses are in bounds, and that workgroup memory is written before it
/// is read. guardAccesses() proves the first again where it can and guards the rest; the second is given up, so the memory is zeroed. For
/// each text that a device is to run and that did not come from this process.
Module dropClaims(Module module);

}  // namespace lockstep::kernel
