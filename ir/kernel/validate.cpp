// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/module.h"

namespace lockstep::kernel {
Result<ValidModule> validate(Module module) { return ValidModule(std::move(module)); }
}  // namespace lockstep::kernel
