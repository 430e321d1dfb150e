// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/module.h"

namespace lockstep::kernel {
Module canonical(const Module& module) { return module; }
}  // namespace lockstep::kernel
