// SPDX-License-Identifier: Apache-2.0
// Kernels from files: WGSL or the kernel IR's own text, by the file's ending.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::tools {

/// The values of --override: "NAME=NUMBER" each; true is 1 and false 0, as browsers have it. code usage.override
Result<std::map<std::string, double>> parseOverrides(const std::vector<std::string>& texts);

/// The text of a kernel in kernel IR, checked; mistakes have their place in it.
Result<kernel::Module> readKernelText(const std::string& text, const std::string& path);

/// ".kir" and ".wgsl"; `overrides` are values of a WGSL module's override constants, needed for those that the entry point uses (that
/// any uses, if it is empty); `groups` are the workgroups of a dispatch, or zeros, and `uniforms` what it binds, for warnings. Warnings go
/// to standard error. Codes run.file and those of the readers.
Result<kernel::Module> readKernelFile(const std::string& path, const std::map<std::string, double>& overrides = {},
                                      const std::string& entry = {}, std::array<uint32_t, 3> groups = {},
                                      const wgsl::UniformContents& uniforms = {});

}  // namespace lockstep::tools
