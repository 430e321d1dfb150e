// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/vulkan/context.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// Finds out the layouts of the matrices whose places the kernels ask for, once per context. Where a device has one that is no sum of
/// places (MatrixLayout), its units are not used for such matrices: the kernel's matrices are spread over invocations then.
Status learnLayouts(const std::shared_ptr<Context>& context, const program::ValidProgram& program);

}  // namespace lockstep::vulkan
