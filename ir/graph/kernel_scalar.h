// SPDX-License-Identifier: Apache-2.0
// What an element of a tensor is in a kernel.
#pragma once

#include "ir/graph/type.h"
#include "ir/kernel/builder.h"

namespace lockstep::graph {

/// In registers, where a bool is a bool.
kernel::Scalar registerScalar(DType dtype);
/// In buffers, where a bool is a u32.
kernel::Scalar memoryScalar(DType dtype);

/// A constant element in registers; integers are taken modulo 2^32.
kernel::ValueId kernelConstant(kernel::Builder& builder, DType dtype, double value);

}  // namespace lockstep::graph
