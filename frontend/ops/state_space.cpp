// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/state_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ops/element.h"
#include "frontend/ops/network.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::Trace;

namespace {

/// Types of memory with 16 bits are widened; the op refuses what is not a float.
Tensor wide(Tensor x, const Where& where) {
  const DType dtype = x.dtype(where);
  return dtype == DType::F16 || dtype == DType::BF16 ? cast(x, DType::F32, where) : x;
}

/// Options would be broadcast where their shape is another one.
void requireShape(std::string_view code, std::string_view name, const Tensor& option, const Shape& wanted, const Where& where) {
  if (option.shape(where) == wanted) return;
  detail::raise(std::string(code), fmt::format("{} is {}, wanted {}", name, toString(option.shape(where)), toString(wanted)), {option},
                where, "give the option that shape, or leave it out");
}

/// Arithmetic whose nodes have the place of the user's call.
struct At {
  const Where& where;
  [[nodiscard]] Tensor add(const Tensor& a, const Tensor& b) const { return lockstep::add({a, where}, {b, where}, where); }
  [[nodiscard]] Tensor sub(const Tensor& a, const Tensor& b) const { return lockstep::sub({a, where}, {b, where}, where); }
  [[nodiscard]] Tensor mul(const Tensor& a, const Tensor& b) const { return lockstep::mul({a, where}, {b, where}, where); }
  [[nodiscard]] Tensor div(const Tensor& a, const Tensor& b) const { return lockstep::div({a, where}, {b, where}, where); }
  [[nodiscard]] Tensor mul(const Tensor& a, double b) const { return lockstep::mul({a, where}, {b, where}, where); }
  [[nodiscard]] Tensor lessThanOne(const Tensor& a) const { return lockstep::sub({1.0, where}, {a, where}, where); }
  /// With new last axes of extent 1.
  [[nodiscard]] Tensor wider(Tensor x, int64_t axes) const {
    for (int64_t i = 0; i < axes; ++i) x = expand_dims(x, -1, where);
    return x;
  }
  /// The last element along the axis of time, without that axis.
  [[nodiscard]] Tensor last(const Tensor& x) const { return squeeze(narrow(x, 1, x.extent(1, where) - 1, 1, where), 1, where); }
};

/// A complex number of each element.
struct Complex {
  Tensor re, im;
};

/// (e^z - 1) / z by its series, to f64's last digits for |z| up to 1/4.
Complex growthNearZero(const At& at, const Complex& z) {
  constexpr int kTerms = 12;
  double factorial = 1;
  for (int k = 2; k <= kTerms; ++k) factorial *= k;
  const std::vector<int64_t> extents = z.re.shape(at.where).extents();
  Complex sum{full(extents, 1 / factorial, DType::F32, at.where), zeros(extents, DType::F32, at.where)};
  for (int k = kTerms; k > 1; --k) {
    factorial /= k;
    const Tensor re = at.sub(at.mul(sum.re, z.re), at.mul(sum.im, z.im)), im = at.add(at.mul(sum.re, z.im), at.mul(sum.im, z.re));
    sum = {lockstep::add({re, at.where}, {1 / factorial, at.where}, at.where), im};
  }
  return sum;
}

/// (e^z - 1) / lambda for z = dt lambda, without a difference of neighbours. Near z = 0 it is a series, since the gradient of the quotient
/// is such a difference, and lambda may be 0.
Complex gainOf(const At& at, const Tensor& dt, const Complex& z, const Complex& lambda) {
  const Where& where = at.where;
  const Tensor size = at.add(lockstep::abs(z.re, where), lockstep::abs(z.im, where));
  const Tensor is_small = less({size, where}, {0.25, where}, where);
  const auto choose = [&](const Operand& small, const Operand& large) { return lockstep::where(is_small, small, large, where); };
  const Complex near = growthNearZero(at, {choose({z.re, where}, {0.0, where}), choose({z.im, where}, {0.0, where})});
  const Tensor rate = choose({-1.0, where}, {lambda.re, where}), frequency = choose({0.0, where}, {lambda.im, where});
  const Tensor half = sin(at.mul(z.im, 0.5), where);
  const Tensor grown = at.sub(at.mul(expm1(z.re, where), cos(z.im, where)), at.mul(at.mul(half, half), 2.0));
  const Tensor turned = at.mul(exp(z.re, where), sin(z.im, where));
  const Tensor square = at.add(at.mul(rate, rate), at.mul(frequency, frequency));
  const Tensor re = at.div(at.add(at.mul(grown, rate), at.mul(turned, frequency)), square);
  const Tensor im = at.div(at.sub(at.mul(turned, rate), at.mul(grown, frequency)), square);
  return {choose({at.mul(dt, near.re), where}, {re, where}), choose({at.mul(dt, near.im), where}, {im, where})};
}

/// The extents of a scan by heads.
struct Heads {
  int64_t batch, length, heads, groups, states;
};

/// x [B, L, H, ...] of a rank, dt [B, L, H], and b, c [B, L, G, ..., N] of the same rank.
Heads headsOf(std::string_view code, const Tensor& x, const Tensor& dt, const Tensor& b, const Tensor& c, int64_t rank,
              const Where& where) {
  const Shape &of_x = x.shape(where), &of_b = b.shape(where);
  const auto wanted = static_cast<size_t>(rank);
  const bool fits = of_x.rank() == wanted && of_b.rank() == wanted && c.shape(where) == of_b && of_b[0] == of_x[0] && of_b[1] == of_x[1] &&
                    of_x.extent(2) % of_b.extent(2) == 0;
  if (!fits || dt.shape(where) != Shape{of_x.extent(0), of_x.extent(1), of_x.extent(2)}) {
    detail::raise(std::string(code),
                  fmt::format("x is {}, dt {}, b {} and c {}, wanted [B, L, H, ...], [B, L, H] and [B, L, G, ..., N] of {} axes where G "
                              "divides H",
                              toString(of_x), toString(dt.shape(where)), toString(of_b), toString(c.shape(where)), rank),
                  {x, dt, b, c}, where, "reshape the operands; one group of b and c serves all heads with G = 1");
  }
  return {of_x.extent(0), of_x.extent(1), of_x.extent(2), of_b.extent(2), of_b.extent(wanted - 1)};
}

/// The state of a trapezoidal scan, widened. Each part must have its shape, or it would be broadcast.
TrapezoidalState checkedState(TrapezoidalState state, const Heads& e, int64_t rank, int64_t width, const Where& where) {
  const auto check = [&](std::string_view name, Tensor& part, const Shape& wanted) {
    requireShape("trapezoidal_scan.options", name, part, wanted, where);
    part = wide(part, where);
  };
  check("the initial state", state.state, Shape{e.batch, e.heads, width, e.states});
  check("the initial x", state.x, Shape{e.batch, e.heads, rank, width});
  check("the initial b", state.b, Shape{e.batch, e.heads, rank, e.states});
  check("the initial angle", state.angle, Shape{e.batch, e.heads, e.states / 2});
  return state;
}

/// The op, for x [B, L, H, R, P].
Ssd runSsd(Trace& trace, const Tensor& x, const Tensor& scale, const Tensor& log_decay, const Tensor& b, const Tensor& c,
           const std::optional<Tensor>& initial, int64_t chunk, const Where& where) {
  std::vector<Tensor> operands{x, scale, log_decay, b, c};
  if (initial) operands.push_back(wide(*initial, where));
  const std::vector<Tensor> made = trace.emitAll("ssd", operands, {{"chunk", chunk}}, where);
  return {.y = made[0], .state = made[1]};
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
    requireShape("selective_scan.options", "skip", *options.skip, Shape{u.extent(2, where)}, where);
    result.y = add({result.y, where}, {mul({u, where}, {wide(*options.skip, where), where}, where), where}, where);
  }
  if (options.gate) {
    requireShape("selective_scan.options", "gate", *options.gate, u.shape(where), where);
    result.y = mul({result.y, where}, {silu(wide(*options.gate, where), where), where}, where);
  }
  return result;
}

Ssd ssd(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, SsdOptions options, Where where) {
  Trace& trace = Trace::require("ssd", where);
  const At at{where};
  x = wide(x, where);
  dt = wide(dt, where);
  const Heads e = headsOf("ssd.operands", x, dt, b, c, 4, where);
  const Shape of_heads{e.heads};
  requireShape("ssd.operands", "a", a, of_heads, where);
  if (options.dt_bias) {
    requireShape("ssd.options", "dt_bias", *options.dt_bias, of_heads, where);
    dt = at.add(dt, wide(*options.dt_bias, where));
  }
  if (options.softplus) dt = softplus(dt, where);
  Ssd result = runSsd(trace, expand_dims(x, 3, where), dt, at.mul(dt, wide(a, where)), expand_dims(wide(b, where), 3, where),
                      expand_dims(wide(c, where), 3, where), options.initial, options.chunk, where);
  result.y = squeeze(result.y, 3, where);
  if (options.skip) {
    requireShape("ssd.options", "skip", *options.skip, of_heads, where);
    result.y = at.add(result.y, at.mul(x, at.wider(wide(*options.skip, where), 1)));
  }
  return result;
}

TrapezoidalScan trapezoidal_scan(Tensor x, Tensor dt, Tensor a, Tensor mix, Tensor theta, Tensor b, Tensor c, TrapezoidalOptions options,
                                 Where where) {
  Trace& trace = Trace::require("trapezoidal_scan", where);
  const At at{where};
  for (Tensor* operand : {&x, &dt, &a, &mix, &theta, &b, &c}) *operand = wide(*operand, where);
  const bool has_rank = x.rank(where) == 5;
  const Heads e = headsOf("trapezoidal_scan.operands", x, dt, b, c, has_rank ? 5 : 4, where);
  requireShape("trapezoidal_scan.operands", "a", a, dt.shape(where), where);
  requireShape("trapezoidal_scan.operands", "mix", mix, dt.shape(where), where);
  requireShape("trapezoidal_scan.operands", "theta", theta, Shape{e.batch, e.length, e.heads, std::max<int64_t>(e.states / 2, 1)}, where);
  if (e.states % 2 != 0 || (has_rank && x.extent(3, where) != b.extent(3, where)))
    detail::raise(
        "trapezoidal_scan.operands",
        fmt::format("x is {} and b {}, wanted an even number of states, and one rank", toString(x.shape(where)), toString(b.shape(where))),
        {x, b}, where);
  const Tensor x5 = has_rank ? x : expand_dims(x, 3, where);
  const int64_t rank = x5.extent(3, where);
  if (options.initial) options.initial = checkedState(*options.initial, e, rank, x5.extent(4, where), where);
  Tensor angle = cumsum(at.mul(theta, at.wider(dt, 1)), 1, false, where);
  if (options.initial) angle = at.add(angle, expand_dims(options.initial->angle, 1, where));
  // Each head turns the b and c of its group by its own angle, in pairs of neighbouring states.
  const Tensor cosine = at.wider(expand_dims(cos(angle, where), 3, where), 1), sine = at.wider(expand_dims(sin(angle, where), 3, where), 1);
  const auto turned = [&](const Tensor& vectors) {
    const Tensor of_heads = repeat(has_rank ? vectors : expand_dims(vectors, 3, where), e.heads / e.groups, 2, where);
    const Tensor pairs = reshape(of_heads, {e.batch, e.length, e.heads, rank, e.states / 2, 2}, where);
    const Tensor first = narrow(pairs, 5, 0, 1, where), second = narrow(pairs, 5, 1, 1, where);
    const Tensor made =
        concat({at.add(at.mul(first, cosine), at.mul(second, sine)), at.sub(at.mul(second, cosine), at.mul(first, sine))}, 5, where);
    return reshape(made, {e.batch, e.length, e.heads, rank, e.states}, where);
  };
  const Tensor b_turned = turned(b), c_turned = turned(c);
  // What step t + 1 takes of step t, exp(dt a) (1 - mix) dt of it, is what the decay leaves of this share: so one scan adds up both ends.
  const Tensor late = at.mul(at.lessThanOne(mix), dt), own = at.mul(mix, dt);
  const Tensor share = narrow(pad(late, {{}, {.before = 0, .after = 1}, {}}, 0, where), 1, 1, e.length, where);
  std::optional<Tensor> initial;
  if (options.initial) {
    const Tensor first = at.wider(squeeze(narrow(late, 1, 0, 1, where), 1, where), 2);
    const Tensor before = matmul(swap_axes(options.initial->x, 2, 3, where), options.initial->b, where);
    initial = at.add(options.initial->state, at.mul(before, first));
  }
  Ssd made = runSsd(trace, x5, at.add(own, share), at.mul(dt, a), b_turned, c_turned, initial, options.chunk, where);
  // A step itself has none of the share yet.
  const Tensor met = matmul(c_turned, swap_axes(b_turned, 3, 4, where), where);
  Tensor y = at.sub(made.y, at.mul(matmul(met, x5, where), at.wider(share, 2)));
  if (options.skip) {
    requireShape("trapezoidal_scan.options", "skip", *options.skip, Shape{e.heads}, where);
    y = at.add(y, at.mul(x5, at.wider(wide(*options.skip, where), 2)));
  }
  return {.y = has_rank ? y : squeeze(y, 3, where),
          .last = {.state = made.state, .x = at.last(x5), .b = at.last(b_turned), .angle = at.last(angle)}};
}

ComplexScan complex_scan(Tensor x, Tensor dt, Tensor log_rate, Tensor frequency, Tensor b, Tensor c, ComplexScanOptions options,
                         Where where) {
  Trace& trace = Trace::require("complex_scan", where);
  const At at{where};
  for (Tensor* operand : {&x, &dt, &log_rate, &frequency, &b, &c}) *operand = wide(*operand, where);
  if (b.rank(where) != 5 || b.extent(4, where) != 2 || c.shape(where) != b.shape(where))
    detail::raise("complex_scan.operands",
                  fmt::format("b is {} and c {}, wanted [B, L, G, N, 2]", toString(b.shape(where)), toString(c.shape(where))), {b, c},
                  where);
  const auto real = [&](const Tensor& z) { return squeeze(narrow(z, -1, 0, 1, where), -1, where); };
  const auto imaginary = [&](const Tensor& z) { return squeeze(narrow(z, -1, 1, 1, where), -1, where); };
  const Heads e = headsOf("complex_scan.operands", x, dt, real(b), real(c), 4, where);
  requireShape("complex_scan.operands", "log_rate", log_rate, Shape{e.heads}, where);
  requireShape("complex_scan.operands", "frequency", frequency, Shape{e.heads}, where);
  // lambda = -e^log_rate + i frequency
  const Tensor rate = at.mul(exp(log_rate, where), -1.0), decay = at.mul(dt, rate), turn = at.mul(dt, frequency);
  const auto [gain, gain_turned] = gainOf(at, dt, {decay, turn}, {rate, frequency});
  // In a frame that turns with the state only its size changes: b turns back, c forth.
  const Tensor angle = cumsum(turn, 1, false, where), cosine = cos(angle, where), sine = sin(angle, where);
  const Tensor in = at.wider(at.add(at.mul(gain, cosine), at.mul(gain_turned, sine)), 1);
  const Tensor in_turned = at.wider(at.sub(at.mul(gain_turned, cosine), at.mul(gain, sine)), 1);
  const Tensor out = at.wider(cosine, 1), out_turned = at.wider(sine, 1);
  const auto times = [&](const Tensor& re, const Tensor& im, const Tensor& z, double sign) {
    const Tensor of_heads = repeat(z, e.heads / e.groups, 2, where), x_part = real(of_heads), y_part = imaginary(of_heads);
    const Tensor second = at.mul(at.add(at.mul(re, y_part), at.mul(im, x_part)), sign);
    return expand_dims(concat({at.sub(at.mul(re, x_part), at.mul(im, y_part)), second}, 3, where), 3, where);
  };
  const auto halves = [&](const Tensor& state) { return concat({real(state), at.mul(imaginary(state), -1.0)}, 3, where); };
  std::optional<Tensor> initial;
  if (options.initial) {
    requireShape("complex_scan.options", "the initial state", *options.initial, Shape{e.batch, e.heads, x.extent(3, where), e.states, 2},
                 where);
    initial = halves(wide(*options.initial, where));
  }
  const Ssd made = runSsd(trace, expand_dims(x, 3, where), ones({e.batch, e.length, e.heads}, DType::F32, where), decay,
                          times(in, in_turned, b, -1), times(out, out_turned, c, 1), initial, options.chunk, where);
  Tensor y = squeeze(made.y, 3, where);
  if (options.skip) {
    requireShape("complex_scan.options", "skip", *options.skip, Shape{e.heads}, where);
    y = at.add(y, at.mul(x, at.wider(wide(*options.skip, where), 1)));
  }
  const Tensor last_cos = at.wider(at.last(cosine), 2), last_sin = at.wider(at.last(sine), 2);
  const Tensor re = narrow(made.state, 3, 0, e.states, where), im = at.mul(narrow(made.state, 3, e.states, e.states, where), -1.0);
  const Tensor state =
      stack({at.sub(at.mul(re, last_cos), at.mul(im, last_sin)), at.add(at.mul(re, last_sin), at.mul(im, last_cos))}, 4, where);
  return {.y = y, .state = state};
}

}  // namespace lockstep
