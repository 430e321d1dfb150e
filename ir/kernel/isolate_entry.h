// SPDX-License-Identifier: Apache-2.0
// One entry point of a kernel module, with what it uses.
#pragma once

#include <string>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::kernel {

/// The module with only this entry point, the functions that it calls and the variables that they use. `name` may be empty where there is
/// only one entry point. The result is canonical and keeps its locations. code "run.entry".
Result<Module> isolateEntry(const Module& module, const std::string& name);

}  // namespace lockstep::kernel
