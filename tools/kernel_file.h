// SPDX-License-Identifier: Apache-2.0
// Kernels from files: WGSL or the kernel IR's own text, by the file's ending.
#pragma once

#include <map>
#include <string>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::tools {

/// ".kir" and ".wgsl"; `overrides` are values of a WGSL module's override constants. Warnings go to
/// standard error. Codes run.file and those of the readers.
Result<kernel::Module> readKernelFile(const std::string& path, const std::map<std::string, double>& overrides = {});

}  // namespace lockstep::tools
