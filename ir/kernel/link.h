// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// Appends the functions of `part` to `module`: types interned, ids shifted, origins kept, locations dropped. Entry points become plain
/// functions, their builtins ordinary parameters. variables[i] is the variable of `module` that takes the place of part.globals[i]; where
/// it is invalid the variable is copied. Returns what each function of `part` became. Constants may stand twice afterwards; canonical()
/// puts them together. Structs of one name must be equal.
std::vector<FunctionId> link(Module& module, const Module& part, const std::vector<ValueId>& variables);

}  // namespace lockstep::kernel
