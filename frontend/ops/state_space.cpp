// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/state_space.h"

#include <vector>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::Trace;

namespace {

/// Types of memory with 16 bits are widened; what is no float is left for the op to refuse.
Tensor wide(Tensor x, const Where& where) {
  const DType dtype = x.dtype(where);
  return dtype == DType::F16 || dtype == DType::BF16 ? cast(x, DType::F32, where) : x;
}

}  // namespace

CausalConv causal_conv1d(Tensor x, Tensor w, CausalConvOptions options, Where where) {
  Trace& trace = Trace::require("causal_conv1d", where);
  x = wide(x, where);
  w = wide(w, where);
  const int64_t channels = x.rank(where) == 3 ? x.extent(2, where) : 1;
  std::vector<Tensor> operands{x, w, options.bias ? wide(*options.bias, where) : zeros({channels}, DType::F32, where)};
  if (options.tail) operands.push_back(wide(*options.tail, where));
  CausalConv result{.y = trace.emitAll("causal_conv1d", operands, {}, where).front(), .tail = {}};
  const int64_t before = w.extent(1, where) - 1, length = x.extent(1, where);
  if (before == 0) return result;
  const Tensor earlier = options.tail ? operands.back() : zeros({x.extent(0, where), before, channels}, DType::F32, where);
  result.tail = length >= before ? narrow(x, 1, length - before, before, where)
                                 : concat({narrow(earlier, 1, length, before - length, where), x}, 1, where);
  return result;
}

}  // namespace lockstep
