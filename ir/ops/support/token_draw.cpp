// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/token_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace lockstep::graph {

int64_t rankedChunk(int64_t length) {
  constexpr uint64_t kMost = 1024;
  return static_cast<int64_t>(std::min(std::bit_ceil(static_cast<uint64_t>(length)), kMost));
}

Status checkDrawSettings(std::string_view op, std::string_view label, std::span<const TensorType> operands, const Dim& lines) {
  const Shape each{std::vector<Dim>{lines}};
  const std::span<const TensorType> settings = operands.last(4);
  for (size_t i = 0; i < settings.size(); ++i) {
    const TensorType wanted = i == 0 ? i32(each) : f32(each);
    if (settings[i] != wanted)
      return violated(op, label, fmt::format("setting {} is {}, wanted {}", i, toString(settings[i]), toString(wanted)));
  }
  return Success{};
}

namespace {

double within(double x, double otherwise) { return std::isnan(x) ? otherwise : std::clamp(x, 0.0, 1.0); }

}  // namespace

DrawSettings drawSettingsOf(const EvaluateContext& c, size_t first, size_t line) {
  const auto at = [&](size_t setting) { return c.operands[first + setting]->data[line]; };
  return {.top_k = at(0), .top_p = within(at(1), 1), .min_p = within(at(2), 0), .uniform = within(at(3), 0)};
}

size_t drawRanked(const Ranked& ranked, const DrawSettings& settings) {
  const std::vector<double>& weights = ranked.weights;
  size_t left = weights.size();
  if (settings.top_k > 0 && settings.top_k < static_cast<double>(left)) {
    const size_t all = left;
    left = static_cast<size_t>(settings.top_k);
    while (left < all && ranked.tied[left]) ++left;
  }
  const auto sumOf = [&](size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += weights[i];
    return sum;
  };
  if (settings.top_p < 1) {
    const double bound = settings.top_p * sumOf(left);
    double before = weights[0];
    size_t count = 1;
    for (; count < left && before < bound; ++count) before += weights[count];
    left = count;
  }
  while (left > 1 && ranked.ratios[left - 1] < settings.min_p) --left;
  const double bound = settings.uniform * sumOf(left);
  double sum = 0;
  for (size_t i = 0; i < left; ++i) {
    sum += weights[i];
    if (sum > bound) return i;
  }
  return left - 1;
}

double orderingKey(double x) {
  if (std::isnan(x)) return std::numeric_limits<int32_t>::max();
  if (x == 0) return 0;
  const auto bits = static_cast<double>(std::bit_cast<uint32_t>(static_cast<float>(std::abs(x))));
  return x > 0 ? bits : -bits - 1;
}

double numberOfKey(double key) {
  const auto bits = static_cast<uint32_t>(key >= 0 ? key : -key - 1);
  const auto size = static_cast<double>(std::bit_cast<float>(bits));
  return key >= 0 ? size : -size;
}

double drawWeight(double key, double largest) {
  if (key == largest) return 1;
  const double top = numberOfKey(largest);
  return std::isfinite(top) ? std::exp(numberOfKey(key) - top) : 0;
}

}  // namespace lockstep::graph
