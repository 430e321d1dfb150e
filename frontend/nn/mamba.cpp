// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/mamba.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep::nn {

namespace {

constexpr double kMostStep = 3e38;  // that f32 has

[[noreturn]] void refuse(const std::string& message, const Where& where) {
  throw Error({.code = "mamba.options",
               .message = message,
               .where = detail::toLocation(where),
               .notes = {},
               .remedy = "extents are at least 1, a convolution has two taps or more, head_width divides the inner width and groups the "
                         "heads, states that turn are even, and of step limits the smaller one comes first"});
}

int64_t positive(std::string_view name, int64_t extent, const Where& where, int64_t least = 1) {
  if (extent < least) refuse(fmt::format("{} is {}", name, extent), where);
  return extent;
}

/// Of positive extents. None of a parameter is as large as the limit, and sums of a few below it fit 64 bits.
int64_t product(std::string_view name, std::initializer_list<int64_t> extents, const Where& where) {
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t made = 1;
  for (const int64_t extent : extents) {
    if (extent > kMost / made) refuse(fmt::format("{} is {}, which is more than 2^32", name, fmt::join(extents, " x ")), where);
    made *= extent;
  }
  return made;
}

int64_t innerOf(int64_t width, int64_t expand, const Where& where) {
  return product("width x expand", {positive("width", width, where), positive("expand", expand, where)}, where);
}
int64_t rankOf(int64_t width, const Mamba1Options& options, const Where& where) {
  return options.step_rank == 0 ? (width + 15) / 16 : product("step_rank", {positive("step_rank", options.step_rank, where)}, where);
}
int64_t projectedOf(int64_t width, const Mamba1Options& options, const Where& where) {
  return rankOf(width, options, where) + product("2 x states", {2, positive("states", options.states, where)}, where);
}
int64_t headsOf(int64_t width, const auto& options, const Where& where) {
  const int64_t inner = innerOf(width, options.expand, where), head = positive("head_width", options.head_width, where);
  if (inner % head != 0) refuse(fmt::format("{} channels cannot be split into heads of {}", inner, head), where);
  if (inner / head % positive("groups", options.groups, where) != 0)
    refuse(fmt::format("{} heads cannot be split into {} groups", inner / head, options.groups), where);
  return inner / head;
}

int64_t evenStates(int64_t states, const Where& where) {
  if (states < 2 || states % 2 != 0) refuse(fmt::format("{} states do not make pairs", states), where);
  return states;
}

/// What in_proj makes of u, b and c.
int64_t mixedOf(int64_t width, const Mamba2Options& options, const Where& where) {
  const int64_t groups = positive("groups", options.groups, where), states = positive("states", options.states, where);
  return innerOf(width, options.expand, where) + product("b and c", {2, groups, states, options.complex ? 2 : 1}, where);
}
int64_t mixedOf(int64_t width, const Mamba3Options& options, const Where& where) {
  const int64_t groups = positive("groups", options.groups, where), rank = positive("rank", options.rank, where);
  return innerOf(width, options.expand, where) + product("b and c", {2, groups, rank, evenStates(options.states, where)}, where);
}

std::optional<std::pair<double, double>> stepLimits(const Mamba2Options& options, const Where& where) {
  if (!options.step_limits) return std::nullopt;
  const auto [least, most] = *options.step_limits;
  if (!(least >= 0 && least <= most && least <= kMostStep)) refuse(fmt::format("step_limits are {} and {}", least, most), where);
  return std::pair{least, std::min(most, kMostStep)};
}

LinearOptions projection(const auto& options, bool bias) {
  return {.bias = bias, .init = options.init, .decay = options.decay, .format = options.format};
}

/// As PyTorch begins with a convolution of one channel each: U(-1 / sqrt(taps), 1 / sqrt(taps)).
Initializer ofTaps(int64_t taps, const Where& where) {
  const double end = 1 / std::sqrt(static_cast<double>(positive("conv", taps, where, 2)));
  return init::uniform(-end, end, where);
}

/// log 1 .. log states for each channel: the real part of S4D (Gu and others, 2022).
std::vector<float> logarithms(int64_t channels, int64_t states) {
  std::vector<float> values;
  for (int64_t i = 0; i < channels * states; ++i) values.push_back(static_cast<float>(std::log(static_cast<double>(i % states + 1))));
  return values;
}

/// For each head a rate of 1 and a frequency of its own.
std::vector<float> frequencies(int64_t heads) {
  std::vector<float> values;
  for (int64_t head = 0; head < heads; ++head) {
    values.push_back(0);
    values.push_back(static_cast<float>(2 * std::numbers::pi * static_cast<double>(head) / static_cast<double>(heads)));
  }
  return values;
}

Tensor negExp(const Parameter& logs, const Where& where) { return neg(exp(logs.tensor(where), where), where); }

/// The convolution after what the state has, and into it.
Tensor convolved(const Tensor& x, const Parameter& w, const std::unique_ptr<Parameter>& b, MixerState* state, const Tensor* count,
                 const Where& where) {
  CausalConvOptions options;
  if (b) options.bias = b->tensor(where);
  if (state != nullptr) options.tail = state->inputs;
  const CausalConv made = causal_conv1d(x, w.tensor(where), options, where);
  if (count != nullptr) {
    // The inputs before the first one that does not count.
    const Tensor all = concat({state->inputs, x}, 1, where);
    state->inputs = narrow(all, 1, *count, state->inputs.extent(1, where), where);
  } else if (state != nullptr) {
    state->inputs = *made.tail;
  }
  return made.y;
}

/// Step sizes [B, L, channels] before softplus, so low where a step does not count that it leaves the state as it is.
constexpr double kNothing = -1e4;  // exp(-1e4) is 0 in f64
Tensor counted(const Tensor& delta, const Tensor* count, const Where& where, double nothing = kNothing) {
  if (count == nullptr) return delta;
  const Tensor step = reshape(arange(delta.extent(1, where), DType::I32, where), {-1, 1}, where);
  const Tensor counts = less({step, where}, {reshape(*count, {-1, 1, 1}, where), where}, where);
  return lockstep::where(counts, {delta, where}, {nothing, where}, where);
}

std::unique_ptr<Parameter> biasOf(Module& layer, bool has_bias, int64_t width, const Where& where) {
  return has_bias ? std::make_unique<Parameter>(layer, "conv_b", std::vector<int64_t>{width}, init::zeros(), ParameterOptions{}, where)
                  : nullptr;
}

void checkCount(const Module& layer, std::string_view kind, const Tensor& x, const Tensor& count, const Where& where) {
  checkInput(layer, count, {.kind = kind, .axes = {{"B", x.extent(0, where), "rows"}}, .dtype = DType::I32, .operand = "count"}, where);
}

}  // namespace

Mamba1::Mamba1(Module& parent, std::string name, int64_t width, const Mamba1Options& options, Where where)
    : Module(parent, std::move(name), where),
      in_proj(*this, "in_proj", width, 2 * innerOf(width, options.expand, where), projection(options, options.bias), where),
      conv_W(*this, "conv_W", {width * options.expand, options.conv}, ofTaps(options.conv, where), {.decay = options.decay}, where),
      conv_b(biasOf(*this, options.conv_bias, width * options.expand, where)),
      x_proj(*this, "x_proj", width * options.expand, projectedOf(width, options, where), projection(options, options.x_bias), where),
      dt_W(*this, "dt_W", {rankOf(width, options, where), width * options.expand},
           init::uniform(-1 / std::sqrt(static_cast<double>(rankOf(width, options, where))),
                         1 / std::sqrt(static_cast<double>(rankOf(width, options, where))), where),
           {.decay = options.decay}, where),
      dt_b(*this, "dt_b", {width * options.expand}, init::before_softplus(options.least_step, options.largest_step, where),
           {.decay = false}, where),
      A_log(*this, "A_log", {width * options.expand, options.states}, init::literal(logarithms(width * options.expand, options.states)),
            {.decay = false}, where),
      D(*this, "D", {width * options.expand}, init::ones(), {}, where),
      out_proj(*this, "out_proj", width * options.expand, width, projection(options, options.bias), where),
      rank_(rankOf(width, options, where)),
      states_(options.states),
      chunk_(positive("chunk", options.chunk, where)),
      discretisation_(options.discretisation) {}

Tensor Mamba1::mix(const Tensor& x, MixerState* state, const Tensor* count, const Where& where) const {
  checkInput(*this, x, {.kind = "Mamba1", .axes = {{"B"}, {"L"}, {"width", in_proj.W.type().shape.extent(0), "features"}}}, where);
  if (count != nullptr) checkCount(*this, "Mamba1", x, *count, where);
  const std::vector<Tensor> halves = split(in_proj(x, where), D.type().shape.extent(0), -1, where);
  const Tensor u = silu(convolved(halves[0], conv_W, conv_b, state, count, where), where);
  const std::vector<Tensor> parts = split(x_proj(u, where), {rank_, states_, states_}, -1, where);
  const Tensor delta = add({matmul(parts[0], dt_W.tensor(where), where), where}, {dt_b.tensor(where), where}, where);
  SelectiveScanOptions options{
      .skip = D.tensor(where), .gate = halves[1], .softplus = true, .discretisation = discretisation_, .chunk = chunk_};
  if (state != nullptr) options.initial = state->hidden;
  const SelectiveScan made = selective_scan(u, counted(delta, count, where), negExp(A_log, where), parts[1], parts[2], options, where);
  if (state != nullptr) state->hidden = made.state;
  return out_proj(made.y, where);
}

Tensor Mamba1::operator()(Tensor x, Where where) const { return mix(x, nullptr, nullptr, where); }
Tensor Mamba1::operator()(Tensor x, MixerState& state, Where where) const { return mix(x, &state, nullptr, where); }
Tensor Mamba1::operator()(Tensor x, MixerState& state, Tensor count, Where where) const { return mix(x, &state, &count, where); }

MixerState Mamba1::state(int64_t batch, Where where) const {
  const graph::Shape &taps = conv_W.type().shape, &rates = A_log.type().shape;
  return {.inputs = zeros({batch, taps.extent(1) - 1, taps.extent(0)}, DType::F32, where),
          .hidden = zeros({batch, rates.extent(0), rates.extent(1)}, DType::F32, where)};
}

Mamba2::Mamba2(Module& parent, std::string name, int64_t width, const Mamba2Options& options, Where where)
    : Module(parent, std::move(name), where),
      in_proj(*this, "in_proj", width,
              (options.gate ? innerOf(width, options.expand, where) : 0) + mixedOf(width, options, where) + headsOf(width, options, where),
              projection(options, options.bias), where),
      conv_W(*this, "conv_W", {mixedOf(width, options, where), options.conv}, ofTaps(options.conv, where), {.decay = options.decay}, where),
      conv_b(biasOf(*this, options.conv_bias, mixedOf(width, options, where), where)),
      dt_bias(*this, "dt_bias", {headsOf(width, options, where)}, init::before_softplus(options.least_step, options.largest_step, where),
              {.decay = false}, where),
      A_log(
          *this, "A_log",
          options.complex ? std::vector<int64_t>{headsOf(width, options, where), 2} : std::vector<int64_t>{headsOf(width, options, where)},
          options.complex ? init::literal(frequencies(headsOf(width, options, where)))
                          : init::log_of_uniform(options.least_rate, options.largest_rate, where),
          {.decay = false}, where),
      D(*this, "D", {headsOf(width, options, where)}, init::ones(), {}, where),
      norm(*this, "norm", width * options.expand, {.eps = options.eps}, where),
      out_proj(*this, "out_proj", width * options.expand, width, projection(options, options.bias), where),
      inner_(width * options.expand),
      heads_(headsOf(width, options, where)),
      groups_(options.groups),
      states_(options.states),
      chunk_(positive("chunk", options.chunk, where)),
      gate_(options.gate),
      activation_(options.activation),
      complex_(options.complex),
      step_limits_(stepLimits(options, where)) {}

Tensor Mamba2::scan(const Tensor& u, const Tensor& dt, const Tensor& b, const Tensor& c, MixerState* state, const Where& where) const {
  const int64_t batch = u.extent(0, where), length = u.extent(1, where);
  const Tensor x = reshape(u, {batch, length, heads_, inner_ / heads_}, where);
  const std::optional<Tensor> initial = state != nullptr ? std::optional(state->hidden) : std::nullopt;
  if (complex_) {
    const auto byGroups = [&](const Tensor& vectors) { return reshape(vectors, {batch, length, groups_, states_, 2}, where); };
    const auto column = [&](int64_t place) { return squeeze(narrow(A_log.tensor(where), 1, place, 1, where), 1, where); };
    const Tensor step = step_limits_ ? dt : softplus(add({dt, where}, {dt_bias.tensor(where), where}, where), where);
    const ComplexScan made = complex_scan(x, step, column(0), column(1), byGroups(b), byGroups(c),
                                          {.skip = D.tensor(where), .initial = initial, .chunk = chunk_}, where);
    if (state != nullptr) state->hidden = made.state;
    return made.y;
  }
  const auto byGroups = [&](const Tensor& vectors) { return reshape(vectors, {batch, length, groups_, states_}, where); };
  SsdOptions options{.skip = D.tensor(where), .initial = initial, .chunk = chunk_};
  if (!step_limits_) {
    options.dt_bias = dt_bias.tensor(where);
    options.softplus = true;
  }
  const Ssd made = ssd(x, dt, negExp(A_log, where), byGroups(b), byGroups(c), options, where);
  if (state != nullptr) state->hidden = made.state;
  return made.y;
}

Tensor Mamba2::mix(const Tensor& x, MixerState* state, const Tensor* count, const Where& where) const {
  checkInput(*this, x, {.kind = "Mamba2", .axes = {{"B"}, {"L"}, {"width", in_proj.W.type().shape.extent(0), "features"}}}, where);
  if (count != nullptr) checkCount(*this, "Mamba2", x, *count, where);
  const int64_t of_groups = groups_ * states_ * (complex_ ? 2 : 1);
  std::vector<int64_t> widths{inner_ + 2 * of_groups, heads_};
  if (gate_) widths.insert(widths.begin(), inner_);
  const std::vector<Tensor> parts = split(in_proj(x, where), widths, -1, where);
  const Tensor taken = convolved(parts[parts.size() - 2], conv_W, conv_b, state, count, where);
  const std::vector<Tensor> mixed = split(activation_ ? silu(taken, where) : taken, {inner_, of_groups, of_groups}, -1, where);
  Tensor dt = counted(parts.back(), count, where);
  if (step_limits_) {
    const auto [least, most] = *step_limits_;
    dt = softplus(add({parts.back(), where}, {dt_bias.tensor(where), where}, where), where);
    dt = counted(clamp(dt, least, most, where), count, where, 0);
  }
  const Tensor made = scan(mixed[0], dt, mixed[1], mixed[2], state, where);
  const Tensor y = reshape(made, {x.extent(0, where), x.extent(1, where), inner_}, where);
  return out_proj(norm(gate_ ? mul({y, where}, {silu(parts[0], where), where}, where) : y, where), where);
}

Tensor Mamba2::operator()(Tensor x, Where where) const { return mix(x, nullptr, nullptr, where); }
Tensor Mamba2::operator()(Tensor x, MixerState& state, Where where) const { return mix(x, &state, nullptr, where); }
Tensor Mamba2::operator()(Tensor x, MixerState& state, Tensor count, Where where) const { return mix(x, &state, &count, where); }

MixerState Mamba2::state(int64_t batch, Where where) const {
  const graph::Shape& taps = conv_W.type().shape;
  std::vector<int64_t> hidden{batch, heads_, inner_ / heads_, states_};
  if (complex_) hidden.push_back(2);
  return {.inputs = zeros({batch, taps.extent(1) - 1, taps.extent(0)}, DType::F32, where), .hidden = zeros(hidden, DType::F32, where)};
}

Mamba3::Mamba3(Module& parent, std::string name, int64_t width, const Mamba3Options& options, Where where)
    : Module(parent, std::move(name), where),
      in_proj(
          *this, "in_proj", width,
          innerOf(width, options.expand, where) + mixedOf(width, options, where) + 3 * headsOf(width, options, where) + options.states / 2,
          projection(options, options.bias), where),
      dt_bias(*this, "dt_bias", {headsOf(width, options, where)}, init::before_softplus(options.least_step, options.largest_step, where),
              {.decay = false}, where),
      D(*this, "D", {headsOf(width, options, where)}, init::ones(), {}, where),
      norm_b(*this, "norm_b", options.states, {.eps = options.eps}, where),
      norm_c(*this, "norm_c", options.states, {.eps = options.eps}, where),
      b_bias(*this, "b_bias", {headsOf(width, options, where), options.rank, options.states}, init::ones(), {}, where),
      c_bias(*this, "c_bias", {headsOf(width, options, where), options.rank, options.states}, init::ones(), {}, where),
      out_proj(*this, "out_proj", width * options.expand, width, projection(options, options.bias), where),
      inner_(width * options.expand),
      heads_(headsOf(width, options, where)),
      groups_(options.groups),
      rank_(options.rank),
      states_(options.states),
      chunk_(positive("chunk", options.chunk, where)) {
  if (rank_ == 1) return;
  const auto scales = [&](const char* scale, double start) {
    const std::vector<int64_t> shape{heads_, rank_, options.head_width};
    return std::make_unique<Parameter>(*this, scale, shape, init::constant(start, where), ParameterOptions{.decay = false}, where);
  };
  const double share = 1 / static_cast<double>(rank_);
  u_W = scales("u_W", share);
  z_W = scales("z_W", 1);
  y_W = scales("y_W", share);
}

Tensor Mamba3::mix(const Tensor& x, TrapezoidalState* state, const Where& where) const {
  checkInput(*this, x, {.kind = "Mamba3", .axes = {{"B"}, {"L"}, {"width", in_proj.W.type().shape.extent(0), "features"}}}, where);
  const int64_t batch = x.extent(0, where), length = x.extent(1, where), of_groups = groups_ * rank_ * states_, width = inner_ / heads_;
  const std::vector<Tensor> parts =
      split(in_proj(x, where), {inner_, inner_, of_groups, of_groups, heads_, heads_, heads_, states_ / 2}, -1, where);
  const auto times = [&](const Tensor& a, const Tensor& b) { return mul({a, where}, {b, where}, where); };
  const auto plus = [&](const Tensor& a, const Tensor& b) { return add({a, where}, {b, where}, where); };
  // [B, L, heads, rank, head_width]
  const auto byHeads = [&](const Tensor& channels, const std::unique_ptr<Parameter>& scales) {
    const Tensor one = reshape(channels, {batch, length, heads_, 1, width}, where);
    return scales ? times(one, scales->tensor(where)) : one;
  };
  const auto vectors = [&](const Tensor& flat, const RMSNorm& norm, const Parameter& bias) {
    const Tensor normed = norm(reshape(flat, {batch, length, groups_, rank_, states_}, where), where);
    return plus(repeat(normed, heads_ / groups_, 2, where), bias.tensor(where));
  };
  const Tensor u = byHeads(parts[1], u_W), gate = silu(byHeads(parts[0], z_W), where);
  const Tensor dt = softplus(plus(parts[4], dt_bias.tensor(where)), where), rate = neg(softplus(parts[5], where), where);
  const Tensor theta = broadcast_to(reshape(parts[7], {batch, length, 1, states_ / 2}, where), {batch, length, heads_, states_ / 2}, where);
  TrapezoidalOptions options{.skip = D.tensor(where), .chunk = chunk_};
  if (state != nullptr) options.initial = *state;
  const TrapezoidalScan made = trapezoidal_scan(u, dt, rate, sigmoid(parts[6], where), theta, vectors(parts[2], norm_b, b_bias),
                                                vectors(parts[3], norm_c, c_bias), options, where);
  if (state != nullptr) *state = made.last;
  Tensor y = times(made.y, gate);
  y = rank_ == 1 ? y : sum(times(y, y_W->tensor(where)), 3, {}, where);
  return out_proj(reshape(y, {batch, length, inner_}, where), where);
}

Tensor Mamba3::operator()(Tensor x, Where where) const { return mix(x, nullptr, where); }
Tensor Mamba3::operator()(Tensor x, TrapezoidalState& state, Where where) const { return mix(x, &state, where); }

TrapezoidalState Mamba3::state(int64_t batch, Where where) const {
  const int64_t width = inner_ / heads_;
  return {.state = zeros({batch, heads_, width, states_}, DType::F32, where),
          .x = zeros({batch, heads_, rank_, width}, DType::F32, where),
          .b = zeros({batch, heads_, rank_, states_}, DType::F32, where),
          .angle = zeros({batch, heads_, states_ / 2}, DType::F32, where)};
}

}  // namespace lockstep::nn
