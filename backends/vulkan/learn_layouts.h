// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/vulkan/context.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// Learns the layouts that the kernels need, once per context: where elements are, which invocations share a row, whether a result lies as
/// a left operand does. Where a device's layout does not allow that, its units do not take such kernels, whose matrices are spread over
/// invocations then.
Status learnLayouts(const std::shared_ptr<Context>& context, const program::ValidProgram& program);

}  // namespace lockstep::vulkan
