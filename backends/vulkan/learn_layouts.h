// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/vulkan/context.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// Learns the layout of each matrix for which a kernel asks where its elements are, once per context. If MatrixLayout cannot describe a
/// device's layout, its units are not used for such matrices: the kernel's matrices are spread over invocations then.
Status learnLayouts(const std::shared_ptr<Context>& context, const program::ValidProgram& program);

}  // namespace lockstep::vulkan
