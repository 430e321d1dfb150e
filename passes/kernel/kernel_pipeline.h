// SPDX-License-Identifier: Apache-2.0
// The passes over one kernel module: values in, values out, no bit of any result changed, nothing moved across a barrier or another effect.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::passes {

struct KernelPassInfo {
  std::string_view name, summary;
};
/// In the order in which they first run.
std::vector<KernelPassInfo> listKernelPasses();

/// The whole table. `disabled` names passes that are left out; names that are no kernel passes are not looked at.
kernel::Module optimizeKernel(kernel::Module module, const std::vector<std::string>& disabled = {});

/// Some passes by name, in the given order. Unknown names fail with the known ones; code "pipeline.pass".
Result<kernel::Module> runKernelPasses(kernel::Module module, const std::vector<std::string>& names);

}  // namespace lockstep::passes
