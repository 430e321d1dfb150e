// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/state_space.h"

#include <fmt/format.h>

#include <string_view>
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

/// Options would be broadcast where their shape is another one.
void requireShape(std::string_view op, std::string_view name, const Tensor& option, const Shape& wanted, const Where& where) {
  if (option.shape(where) == wanted) return;
  detail::raise(fmt::format("{}.options", op), fmt::format("{} is {}, wanted {}", name, toString(option.shape(where)), toString(wanted)),
                {option}, where);
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

SelectiveScan selective_scan(Tensor u, Tensor delta, Tensor a, Tensor b, Tensor c, SelectiveScanOptions options, Where where) {
  Trace& trace = Trace::require("selective_scan", where);
  u = wide(u, where);
  delta = wide(delta, where);
  if (options.softplus) delta = softplus(delta, where);
  std::vector<Tensor> operands{u, delta, wide(a, where), wide(b, where), wide(c, where)};
  if (options.initial) operands.push_back(wide(*options.initial, where));
  const bool hold = options.discretisation == Discretisation::ZeroOrderHold;
  const std::vector<Tensor> made = trace.emitAll("selective_scan", operands, {{"chunk", options.chunk}, {"zero_order_hold", hold}}, where);
  SelectiveScan result{.y = made[0], .state = made[1]};
  if (options.skip) {
    requireShape("selective_scan", "skip", *options.skip, Shape{u.extent(2, where)}, where);
    result.y = add({result.y, where}, {mul({u, where}, {wide(*options.skip, where), where}, where), where}, where);
  }
  if (options.gate) {
    requireShape("selective_scan", "gate", *options.gate, u.shape(where), where);
    result.y = mul({result.y, where}, {silu(wide(*options.gate, where), where), where}, where);
  }
  return result;
}

Ssd ssd(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, SsdOptions options, Where where) {
  Trace& trace = Trace::require("ssd", where);
  x = wide(x, where);
  dt = wide(dt, where);
  if (options.dt_bias) {
    requireShape("ssd", "dt_bias", *options.dt_bias, a.shape(where), where);
    dt = add({dt, where}, {wide(*options.dt_bias, where), where}, where);
  }
  if (options.softplus) dt = softplus(dt, where);
  std::vector<Tensor> operands{x, dt, wide(a, where), wide(b, where), wide(c, where)};
  if (options.initial) operands.push_back(wide(*options.initial, where));
  const std::vector<Tensor> made = trace.emitAll("ssd", operands, {{"chunk", options.chunk}}, where);
  Ssd result{.y = made[0], .state = made[1]};
  if (options.skip) {
    requireShape("ssd", "skip", *options.skip, a.shape(where), where);
    const Tensor of_heads = expand_dims(wide(*options.skip, where), -1, where);
    result.y = add({result.y, where}, {mul({x, where}, {of_heads, where}, where), where}, where);
  }
  return result;
}

}  // namespace lockstep
