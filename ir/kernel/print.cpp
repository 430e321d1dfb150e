// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/module.h"

namespace lockstep::kernel {
std::string print(const Module&, bool) { return "lockstep.kernel 1\n"; }
}  // namespace lockstep::kernel
