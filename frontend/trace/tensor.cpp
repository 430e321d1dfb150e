// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/tensor.h"

#include <fmt/format.h>

#include "frontend/trace/module.h"
#include "frontend/trace/trace.h"

namespace lockstep {

const TensorType& Tensor::type(Where where) const {
  detail::Trace& trace = detail::Trace::require("type", where);
  return trace.builder().typeOf(trace.value(*this, "type", where));
}

int64_t Tensor::rank(Where where) const { return static_cast<int64_t>(type(where).shape.rank()); }

int64_t Tensor::extent(int64_t axis, Where where) const {
  return type(where).shape.extent(static_cast<size_t>(detail::normaliseAxis("tensor", axis, *this, where)));
}

Operand::Operand(const Parameter& parameter, Where where) : tensor_(parameter.tensor(where)), where_(where) {}
Operand::Operand(const Buffer& buffer, Where where) : tensor_(buffer.tensor(where)), where_(where) {}

}  // namespace lockstep
