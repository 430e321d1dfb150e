// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/quantized_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/attention.h"
#include "ir/ops/support/row_norm.h"

namespace lockstep::graph {

namespace {

constexpr size_t kNormGain = 3;  // among the operands

Status checkNorm(std::string_view op, const InferContext& c, int64_t k) {
  const bool has_gain = c.operands.size() > kNormGain, has_eps = c.attributes.find("eps") != nullptr;
  if (c.operands.size() > kNormGain + 1) return violated(op, "C6", fmt::format("there are {} operands, wanted 3 or 4", c.operands.size()));
  if (has_gain != has_eps)
    return violated(op, "C6", fmt::format("there is {} g and {} eps, wanted both or none", has_gain ? "a" : "no", has_eps ? "an" : "no"));
  if (!has_gain) return Success{};
  const TensorType& gain = c.operands[kNormGain];
  if (gain != f32({k})) return violated(op, "C6", fmt::format("g is {}, wanted {}", toString(gain), toString(f32({k}))));
  return checkEps(op, "C6", c.attributes);
}

/// The rows that are multiplied: x [m, k], normalised where that is asked for.
std::vector<double> multipliedRows(const EvaluateContext& c) {
  const std::vector<double>& x = c.operands[0]->data;
  return hasNorm(c.node) ? rmsNormalised(x, c.operands[kNormGain]->data, c.node.attributes.get<double>("eps")) : x;
}

}  // namespace

QuantizedExtents quantizedExtents(const Shape& x, const Shape& words, const Attributes& attributes) {
  QuantizedExtents e{.n = words.extent(0), .k = x.extent(x.rank() - 1)};
  for (size_t axis = 0; axis + 1 < x.rank(); ++axis) e.m *= x.extent(axis);
  e.bits = attributes.get<int64_t>("bits");
  e.group = std::min(attributes.get<int64_t>("group"), e.k);
  return e;
}

DType roundedWeight(const QuantizedExtents& e, const Node& node) { return e.groups() == 1 ? DType::F32 : lowOf(node); }

bool hasNorm(const Node& node) { return node.operands.size() > kNormGain; }

bool hasWholePieces(int64_t k, const Attributes& attributes) {
  const auto group = attributes.get<int64_t>("group");
  return group >= k || group % (4 * 32 / attributes.get<int64_t>("bits")) == 0;
}

Result<std::vector<TensorType>> inferQuantizedProduct(std::string_view op, const InferContext& c) {
  const TensorType &x = c.operands[0], &words = c.operands[1], &scales = c.operands[2];
  if (x.dtype != DType::F32 || scales.dtype != DType::F32 || words.dtype != DType::U32) {
    return violated(op, "C1",
                    fmt::format("x is {}, the words are {} and the scales {}, wanted f32, u32 and f32", toString(x), toString(words),
                                toString(scales)));
  }
  const auto bits = c.attributes.get<int64_t>("bits"), group = c.attributes.get<int64_t>("group");
  if ((bits != 4 && bits != 8) || group < 1)
    return violated(op, "C2", fmt::format("bits is {} and group is {}, wanted 4 or 8 and at least 1", bits, group));
  if (x.shape.rank() == 0 || words.shape.rank() != 2) {
    return violated(op, "C3", fmt::format("x is {} and the words are {}, wanted [..., K] and [N, W]", toString(x), toString(words)));
  }
  const QuantizedExtents e = quantizedExtents(x.shape, words.shape, c.attributes);
  if (words.shape.extent(1) != e.words()) {
    return violated(op, "C3",
                    fmt::format("x is {} and the words are {}; {} elements of {} bits take {} words", toString(x), toString(words), e.k,
                                bits, e.words()));
  }
  if (scales.shape != Shape{e.n, e.groups()})
    return violated(op, "C4", fmt::format("the scales are {}, wanted {}", toString(scales), toString(f32({e.n, e.groups()}))));
  // What the decomposition makes: the weight with whole words, and scales with whole groups.
  LS_CHECK(checkExtents(op, "C5", {e.n, std::max(e.words() * e.perWord(), e.groups() * e.group)}));
  std::vector<int64_t> shape = x.shape.extents();
  shape.back() = e.n;
  LS_CHECK(checkExtents(op, "C5", shape));
  LS_CHECK(checkNorm(op, c, e.k));
  return std::vector{f32(Shape(shape))};
}

std::vector<Tensor> evaluateQuantizedProduct(const EvaluateContext& c) {
  const std::vector<double>&words = c.operands[1]->data, &scales = c.operands[2]->data;
  const QuantizedExtents e = quantizedExtents(c.operands[0]->type.shape, c.operands[1]->type.shape, c.node.attributes);
  const std::vector<double> x = multipliedRows(c);
  const auto element = [&](int64_t row, int64_t column) {
    const auto word = static_cast<uint32_t>(words[static_cast<size_t>(row * e.words() + column / e.perWord())]);
    const int64_t high = int64_t{1} << (e.bits - 1);
    const int64_t field = word >> (e.bits * (column % e.perWord())) & ((1u << e.bits) - 1);
    return static_cast<double>(field < high ? field : field - 2 * high);
  };
  const DType low = roundedWeight(e, c.node);
  const auto weight = [&](int64_t row, int64_t column) {
    const double scaled = element(row, column) * scales[static_cast<size_t>(row * e.groups() + column / e.group)];
    return low == DType::F32 ? scaled : roundedTo(low, scaled);
  };
  Tensor out{c.results[0], {}};
  for (int64_t i = 0; i < e.m; ++i) {
    for (int64_t j = 0; j < e.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < e.k; ++l) sum += x[static_cast<size_t>(i * e.k + l)] * weight(j, l);
      out.data.push_back(sum);
    }
  }
  return {std::move(out)};
}

std::vector<OpCase> quantizedProductCases() {
  const auto make = [](std::string_view name, Shape x, int64_t n, int64_t bits, int64_t group) {
    QuantizedExtents e{.n = n, .k = x.extent(x.rank() - 1), .bits = bits, .group = group};
    return OpCase{name,
                  {{f32(std::move(x)), -1, 1}, {{DType::U32, Shape{n, e.words()}}, 0, 4294967295.0}, {f32({n, e.groups()}), 0.5, 2}},
                  {{"bits", bits}, {"group", group}},
                  2e-6,
                  "sums of at most 1100 products"};
  };
  const auto normed = [](std::string_view name, OpCase one) {
    const Shape& x = one.operands[0].type.shape;
    one.name = name;
    one.operands.push_back({f32({x.extent(x.rank() - 1)}), -2, 2});
    one.attributes.set("eps", 1e-5);
    return one;
  };
  return {make("tiny", {1, 7}, 3, 4, 4),
          make("four_bits", {1, 256}, 65, 4, 32),
          make("four_bits_long", {1, 1100}, 37, 4, 128),
          make("four_bits_odd", {3, 333}, 41, 4, 64),
          make("vector", {40}, 5, 4, 32),
          make("rows", {2, 3, 64}, 19, 4, 32),
          make("eight_bits_by_row", {1, 515}, 67, 8, 515),
          make("eight_bits", {2, 160}, 33, 8, 32),
          make("uneven_groups", {1, 100}, 9, 8, 24),
          normed("normalised", make("", {1, 256}, 65, 4, 32)),
          normed("normalised_long", make("", {1, 1100}, 37, 4, 128)),
          normed("normalised_rows", make("", {3, 333}, 41, 8, 333))};
}

}  // namespace lockstep::graph
