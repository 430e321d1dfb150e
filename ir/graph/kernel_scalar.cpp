// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/kernel_scalar.h"

#include "ir/support/diagnostic.h"

namespace lockstep::graph {

using kernel::Scalar;

Scalar registerScalar(DType dtype) {
  switch (factsOf(dtype).compute) {
    case DType::F32:
      return Scalar::F32;
    case DType::I32:
      return Scalar::I32;
    case DType::U32:
      return Scalar::U32;
    case DType::Bool:
      return Scalar::Bool;
    case DType::F16:
    case DType::BF16:
    case DType::I8:
    case DType::U8:
    case DType::U16:
      break;  // nothing is computed in them
  }
  internalError("unknown element type");
}

Scalar memoryScalar(DType dtype) { return dtype == DType::Bool || isPacked(dtype) ? Scalar::U32 : registerScalar(dtype); }

kernel::ValueId kernelConstant(kernel::Builder& builder, DType dtype, double value) {
  if (isFloat(dtype)) return builder.f32(static_cast<float>(value));
  if (dtype == DType::Bool) return builder.boolean(value != 0);
  return builder.scalar(registerScalar(dtype), static_cast<uint32_t>(static_cast<uint64_t>(static_cast<int64_t>(value))));
}

}  // namespace lockstep::graph
