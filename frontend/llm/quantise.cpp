// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "frontend/llm/weight_names.h"
#include "ir/graph/type.h"
#include "runtime/memory_array.h"

namespace lockstep::llm {
namespace {

float scaleOf(double largest, int64_t most, graph::DType dtype) {
  const auto scale = static_cast<float>(graph::roundedTo(dtype, static_cast<float>(largest / static_cast<double>(most))));
  // Devices take subnormal numbers for 0.
  return scale < std::numeric_limits<float>::min() ? 0.0F : scale;
}

}  // namespace

QuantizedMatrix quantise(const nn::WeightFormat& format, nn::SumAxis sums, std::span<const float> values, int64_t rows, int64_t columns) {
  std::vector<float> turned;
  if (sums == nn::SumAxis::First) {
    turned = transposed(values, static_cast<size_t>(rows), static_cast<size_t>(columns));
    values = turned;
    std::swap(rows, columns);
  }
  const nn::QuantizedRows lie = nn::quantizedRows(format, columns);
  const int64_t bits = format.bits(), per_word = 32 / bits, most = (int64_t{1} << (bits - 1)) - 1;
  std::vector<uint32_t> words(static_cast<size_t>(rows * lie.words));
  std::vector<float> scales(static_cast<size_t>(rows * lie.groups));
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float> all = values.subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns));
    for (int64_t first = 0; first < columns; first += lie.group) {
      const std::span<const float> group =
          all.subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(lie.group, columns - first)));
      float largest = 0;
      for (const float one : group) largest = std::max(largest, std::abs(one));
      const float scale = scaleOf(static_cast<double>(largest), most, lie.scale);
      scales[static_cast<size_t>(row * lie.groups + first / lie.group)] = scale;
      if (scale == 0) continue;
      int64_t k = first;
      for (const float one : group) {
        const double nearest = std::nearbyint(static_cast<double>(one) / static_cast<double>(scale));
        const auto whole = static_cast<int32_t>(std::clamp(nearest, static_cast<double>(-most - 1), static_cast<double>(most)));
        const uint32_t field = static_cast<uint32_t>(whole) & ((uint32_t{1} << bits) - 1);
        words[static_cast<size_t>(row * lie.words + k / per_word)] |= field << (bits * (k % per_word));
        ++k;
      }
    }
  }
  QuantizedMatrix made{.words = io::Array::zeros(io::ElementType::U32, {rows, lie.words}), .scales = {}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
  std::ranges::copy(bytes, made.words.data.begin());
  made.scales = detail::encodeArray({lie.scale, graph::Shape{rows, lie.groups}}, scales);
  return made;
}

}  // namespace lockstep::llm
