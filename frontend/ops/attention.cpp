// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/ops/element.h"
#include "frontend/ops/network.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

namespace {

/// x [..., T, D] turned by its frequencies times positions, i32 [T] or [B, T], or 0, 1, ... without them.
Tensor turnedBy(const Tensor& x, const Tensor* positions, const RopeOptions& options, const Where& where) {
  const int64_t columns = x.extent(-1, where), dims = options.dims != 0 ? options.dims : columns;
  const bool finite = std::ranges::all_of(options.frequencies, [](double one) { return std::isfinite(one); });
  if (std::ssize(options.frequencies) * 2 != dims || dims > columns || !finite) {
    detail::raise("rope.frequencies",
                  fmt::format("there are {} frequencies for {} of {} columns", options.frequencies.size(), dims, columns), {x}, where,
                  "give a finite number for each pair of columns that turns");
  }
  if (positions != nullptr) {
    const Shape &shape = x.shape(where), &places = positions->shape(where);
    const bool by_row = places.rank() == 2 && shape.rank() >= 3 && places[0] == shape[0] && places[1] == shape.extent(shape.rank() - 2);
    if (positions->dtype(where) != DType::I32 || !(by_row || places == Shape{x.extent(-2, where)}))
      detail::raise("rope.positions",
                    fmt::format("x is {} and positions {}, wanted i32 [T], or [B, T] for the first axis of x", toString(shape),
                                toString(graph::TensorType{positions->dtype(where), places})),
                    {x, *positions}, where, "give one position per row");
  }
  if (options.layout != RopeLayout::Half)
    detail::raise("rope.frequencies", "frequencies are for pairs (i, i + dims / 2)", {x}, where, "use RopeLayout::Half");
  std::vector<float> frequencies, signs;
  for (int64_t column = 0; column < dims; ++column) {
    frequencies.push_back(static_cast<float>(options.frequencies[static_cast<size_t>(column % (dims / 2))]));
    signs.push_back(column < dims / 2 ? -1.0F : 1.0F);
  }
  // [T, 1], or [B, 1, ..., T, 1].
  Tensor places = positions == nullptr ? arange(x.extent(-2, where), DType::I32, where) : *positions;
  std::vector<int64_t> shape = places.shape(where).extents();
  if (shape.size() > 1) shape.insert(shape.begin() + 1, static_cast<size_t>(x.rank(where) - 3), 1);
  shape.push_back(1);
  places = reshape(cast(places, DType::F32, where), shape, where);
  if (options.offset != 0) places = add({places, where}, {options.offset, where}, where);
  const Tensor angles = mul({places, where}, {constant(std::span<const float>(frequencies), {dims}, where), where}, where);
  const Tensor sines = mul({sin(angles, where), where}, {constant(std::span<const float>(signs), {dims}, where), where}, where);
  const Tensor turning = dims == columns ? x : narrow(x, -1, 0, dims, where);
  const Tensor partners = roll(turning, dims / 2, -1, where);
  const Tensor turned = add({mul({turning, where}, {cos(angles, where), where}, where), where},
                            {mul({partners, where}, {sines, where}, where), where}, where);
  return dims == columns ? turned : concat({turned, narrow(x, -1, dims, columns - dims, where)}, -1, where);
}

Tensor turned(const std::vector<Tensor>& operands, const RopeOptions& options, const Where& where) {
  detail::Trace& trace = detail::Trace::require("rope", where);
  const Tensor& x = operands.front();
  if (!options.frequencies.empty()) return turnedBy(x, operands.size() > 1 ? &operands[1] : nullptr, options, where);
  int64_t dims = options.dims != 0 || x.rank(where) == 0 ? options.dims : x.extent(-1, where);
  std::string layout = options.layout == RopeLayout::Half ? "half" : "interleaved";
  graph::Attributes attributes{
      {"base", options.base}, {"offset", options.offset}, {"dims", dims}, {"layout", std::move(layout)}, {"inverse", false}};
  return trace.emitAll("rope", operands, std::move(attributes), where).front();
}

/// A large negative number where keys are hidden from queries by position, else 0: [T, S].
Tensor positionMask(int64_t queries, int64_t keys, const AttentionOptions& options, const Where& where) {
  Tensor at = add({arange(queries, DType::I32, where), where}, {options.offset, where}, where);
  at = reshape(at, {queries, 1}, where);
  const Tensor key = arange(keys, DType::I32, where);
  Tensor hidden = greater({key, where}, {at, where}, where);
  if (options.window > 0) {
    const Tensor distance = sub({at, where}, {key, where}, where);
    hidden = logical_or(hidden, greater_equal({distance, where}, {options.window, where}, where), where);
  }
  // Each query sees at least its own key, beside which exp(kHidden) is nothing.
  constexpr double kHidden = -1e30;
  return lockstep::where(hidden, {full({}, kHidden, DType::F32, where), where}, {0.0, where}, where);
}

/// With the scores as a tensor of their own.
Tensor cappedAttention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, double cap, const std::optional<Tensor>& mask,
                       const Where& where) {
  const int64_t served = q.extent(-3, where) / k.extent(-3, where);
  const auto perQuery = [&](const Tensor& heads) { return served == 1 ? heads : repeat(heads, served, -3, where); };
  Tensor scores = matmul(q, swap_axes(perQuery(k), -1, -2, where), where);
  scores = tanh(mul({scores, where}, {scale / cap, where}, where), where);
  scores = mul({scores, where}, {cap, where}, where);
  if (mask) scores = add({scores, where}, {*mask, where}, where);
  return matmul(softmax(scores, -1, where), perQuery(v), where);
}

void checkOptions(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options, const Where& where) {
  const auto refuse = [&](const char* message, const char* remedy) {
    detail::raise("attention.options", message, {q, k, v}, where, remedy);
  };
  if (options.length && (options.causal || options.offset != 0 || options.mask)) {
    refuse("a length says which keys each query sees, and causal, offset or mask say so as well",
           "give the length alone, or add -infinity to the mask where a key is hidden");
  }
  if (options.window < 0 || (options.window > 0 && !options.causal && !options.length))
    refuse("a window counts back from the position of a query", "give a window above 0, with causal or length");
  if (!(options.soft_cap >= 0 && std::isfinite(options.soft_cap)))
    refuse("soft_cap is not a positive number", "give the largest score, or 0");
}

}  // namespace

Tensor rope(Tensor x, const RopeOptions& options, Where where) { return turned({x}, options, where); }
Tensor rope(Tensor x, Tensor positions, const RopeOptions& options, Where where) { return turned({x, positions}, options, where); }

Tensor scaled_dot_product_attention(Tensor q, Tensor k, Tensor v, AttentionOptions options, Where where) {
  detail::Trace& trace = detail::Trace::require("scaled_dot_product_attention", where);
  const double width = q.rank(where) == 0 ? 1 : static_cast<double>(q.extent(-1, where));
  const double scale = options.scale.value_or(1 / std::sqrt(width));
  checkOptions(q, k, v, options, where);
  std::vector<Tensor> operands{q, k, v};
  if (options.length) {
    operands.push_back(*options.length);
    graph::Attributes attributes{{"scale", scale}};
    if (options.window > 0) attributes.set("window", options.window);
    if (options.soft_cap > 0) attributes.set("soft_cap", options.soft_cap);
    return trace.emitAll("cached_attention", operands, std::move(attributes), where).front();
  }
  if (options.window == 0 && options.soft_cap == 0) {
    if (options.mask) operands.push_back(*options.mask);
    graph::Attributes attributes{{"causal", options.causal}, {"offset", options.offset}, {"scale", scale}};
    return trace.emitAll("scaled_dot_product_attention", operands, std::move(attributes), where).front();
  }
  std::optional<Tensor> mask = options.mask;
  if (options.causal) {
    const Tensor seen = positionMask(q.extent(-2, where), k.extent(-2, where), options, where);
    mask = mask ? add({*mask, where}, {seen, where}, where) : seen;
  }
  if (options.soft_cap > 0) return cappedAttention(q, k, v, scale, options.soft_cap, mask, where);
  operands.push_back(*mask);
  return trace.emitAll("scaled_dot_product_attention", operands, {{"causal", false}, {"offset", int64_t{0}}, {"scale", scale}}, where)
      .front();
}

}  // namespace lockstep
