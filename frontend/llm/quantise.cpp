// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/graph/type.h"
#include "runtime/memory_array.h"

namespace lockstep::llm {
namespace {

/// Where the elements of sum `n` are: values[start + stride * k].
struct Strides {
  int64_t count = 0, length = 0;  ///< sums, and their terms
  int64_t apart = 0, stride = 0;
};

Strides stridesOf(nn::SumAxis sums, int64_t rows, int64_t columns) {
  if (sums == nn::SumAxis::First) return {.count = columns, .length = rows, .apart = 1, .stride = columns};
  return {.count = rows, .length = columns, .apart = columns, .stride = 1};
}

float scaleOf(double largest, int64_t most, graph::DType dtype) {
  const auto scale = static_cast<float>(graph::roundedTo(dtype, static_cast<float>(largest / static_cast<double>(most))));
  // Devices take subnormal numbers for 0.
  return scale < std::numeric_limits<float>::min() ? 0.0F : scale;
}

}  // namespace

QuantizedMatrix quantise(const nn::WeightFormat& format, nn::SumAxis sums, std::span<const float> values, int64_t rows, int64_t columns) {
  const Strides at = stridesOf(sums, rows, columns);
  const nn::QuantizedRows lie = nn::quantizedRows(format, at.length);
  const int64_t bits = format.bits(), per_word = 32 / bits, most = (int64_t{1} << (bits - 1)) - 1;
  QuantizedMatrix made{.words = io::Array::zeros(io::ElementType::U32, {at.count, lie.words}), .scales = {}};
  std::vector<uint32_t> words(static_cast<size_t>(at.count * lie.words));
  std::vector<float> scales(static_cast<size_t>(at.count * lie.groups));
  for (int64_t n = 0; n < at.count; ++n) {
    const auto element = [&](int64_t k) { return static_cast<double>(values[static_cast<size_t>(n * at.apart + k * at.stride)]); };
    for (int64_t g = 0; g < lie.groups; ++g) {
      const int64_t first = g * lie.group, end = std::min(first + lie.group, at.length);
      double largest = 0;
      for (int64_t k = first; k < end; ++k) largest = std::max(largest, std::abs(element(k)));
      const float scale = scaleOf(largest, most, lie.scale);
      scales[static_cast<size_t>(n * lie.groups + g)] = scale;
      if (scale == 0) continue;
      for (int64_t k = first; k < end; ++k) {
        const double nearest = std::nearbyint(element(k) / static_cast<double>(scale));
        const auto whole = static_cast<int64_t>(std::clamp<double>(nearest, static_cast<double>(-most - 1), static_cast<double>(most)));
        const uint32_t field = static_cast<uint32_t>(whole) & ((uint32_t{1} << bits) - 1);
        words[static_cast<size_t>(n * lie.words + k / per_word)] |= field << (bits * (k % per_word));
      }
    }
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
  made.words.data.assign(bytes.begin(), bytes.end());
  made.scales = detail::encodeArray({lie.scale, graph::Shape{at.count, lie.groups}}, scales);
  return made;
}

}  // namespace lockstep::llm
