// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::causal_conv1d_op {
namespace {

constexpr std::string_view kName = "causal_conv1d";
/// Places of the operands.
enum Operand : size_t { kX, kW, kB, kTail };

/// Terms that a map has where it need not: its kernel takes minutes to compile with a thousand. With more than the second number of them
/// nothing gets done.
constexpr int64_t kMostTerms = 64, kMostShifts = 1024;

/// Of a convolution, with those of its gradient.
Status checkWindows(const Shape& x, int64_t taps) {
  return checkExtents(kName, "C6", {x.extent(0), x.extent(2), x.extent(1) + taps - 1, taps});
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[kX], &w = c.operands[kW], &bias = c.operands[kB];
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated(kName, "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  if (x.shape.rank() != 3 || w.shape.rank() != 2 || w.shape.extent(0) != x.shape.extent(2))
    return violated(kName, "C2", fmt::format("x is {} and w is {}, wanted [B, L, D] and [D, K]", toString(x), toString(w)));
  const int64_t batch = x.shape.extent(0), length = x.shape.extent(1), channels = x.shape.extent(2), taps = w.shape.extent(1);
  if (bias.shape != Shape{channels})
    return violated(kName, "C3", fmt::format("b is {}, wanted f32{}", toString(bias), toString(Shape{channels})));
  if (c.operands.size() > kTail + 1) return violated(kName, "C4", fmt::format("there are {} operands, wanted 3 or 4", c.operands.size()));
  if (c.operands.size() > kTail && (taps < 2 || c.operands[kTail].shape != Shape{batch, taps - 1, channels}))
    return violated(kName, "C4",
                    fmt::format("the tail is {} for {} taps, wanted the {} inputs before x, [{}, {}, {}]", toString(c.operands[kTail]),
                                taps, taps - 1, batch, taps - 1, channels));
  LS_CHECK(checkExtents(kName, "C5", {batch, length + taps - 1, channels}));
  if (taps > kMostShifts) LS_CHECK(checkWindows(x.shape, taps));
  return std::vector{x};
}

/// x without its bias as a convolution of one channel each, from what it sees.
ValueId asConv(Builder& b, ValueId seen, ValueId w) {
  const int64_t channels = b.shapeOf(w).extent(0), taps = b.shapeOf(w).extent(1);
  const std::vector<int64_t> one{1}, none{0};
  const ValueId lines = b.permute(seen, {0, 2, 1}), rows = b.reshape(w, Shape{channels, 1, taps});
  return b.permute(b.make("conv", {lines, rows}, {{"stride", one}, {"padding", none}, {"dilation", one}, {"groups", channels}}), {0, 2, 1});
}

// K shifted copies of x times a column of w each, in one map; with many of them a convolution.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  const Shape x = b.shapeOf(operands[kX]);
  const int64_t length = x.extent(1), channels = x.extent(2), taps = b.shapeOf(operands[kW]).extent(1);
  ValueId seen = operands[kX];
  if (operands.size() > kTail) {
    seen = b.make("concat", {operands[kTail], seen}, {{"axis", int64_t{1}}});
  } else if (taps > 1) {
    seen = b.make("pad", {seen}, {{"axis", int64_t{1}}, {"before", taps - 1}, {"after", int64_t{0}}, {"value", 0.0}});
  }
  ValueId sum = b.broadcastTo(operands[kB], x);
  if (taps > kMostTerms && checkWindows(x, taps).ok()) return {b.add(sum, asConv(b, seen, operands[kW]))};
  for (int64_t tap = 0; tap < taps; ++tap) {
    const ValueId shifted = b.make("narrow", {seen}, {{"axis", int64_t{1}}, {"start", tap}, {"length", length}});
    const ValueId column = b.make("narrow", {operands[kW]}, {{"axis", int64_t{1}}, {"start", tap}, {"length", int64_t{1}}});
    sum = b.add(sum, b.mul(shifted, b.reshape(column, Shape{channels})));
  }
  return {sum};
}

std::vector<Tensor> evaluateConv(const EvaluateContext& c) {
  const Tensor &x = *c.operands[kX], &w = *c.operands[kW], &bias = *c.operands[kB];
  const Tensor* tail = c.operands.size() > kTail ? c.operands[kTail] : nullptr;
  const int64_t length = x.type.shape.extent(1), channels = x.type.shape.extent(2), taps = w.type.shape.extent(1);
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    const int64_t batch = index[0], t = index[1], d = index[2];
    double sum = bias.data[static_cast<size_t>(d)];
    for (int64_t ago = 0; ago < taps; ++ago) {
      double input = 0;
      if (t >= ago) {
        input = x.data[static_cast<size_t>((batch * length + t - ago) * channels + d)];
      } else if (tail != nullptr) {
        input = tail->data[static_cast<size_t>((batch * (taps - 1) + taps - 1 + t - ago) * channels + d)];
      }
      sum += w.data[static_cast<size_t>(d * taps + taps - 1 - ago)] * input;
    }
    return sum;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, int64_t batch, int64_t length, int64_t channels, int64_t taps, bool has_tail) {
    OpCase made{name, {{f32({batch, length, channels})}, {f32({channels, taps})}, {f32({channels})}}, {}, 1e-6, "a sum of K + 1 terms"};
    if (has_tail) made.operands.push_back({f32({batch, taps - 1, channels})});
    return made;
  };
  return {make("four_taps", 2, 21, 6, 4, false),
          make("tail", 3, 9, 5, 4, true),
          make("step", 2, 1, 8, 4, true),
          make("shorter_than_taps", 1, 2, 3, 4, false),
          make("tail_shorter_than_taps", 2, 2, 3, 5, true),
          make("one_tap", 2, 5, 3, 1, false),
          make("many_taps", 2, 9, 3, 70, true),
          make("many_taps_from_zeros", 1, 80, 2, 65, false),
          make("wide", 1, 33, 64, 3, false)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "Each channel of x [B, L, D] convolved along L with its row of w [D, K], whose last tap meets the current element, plus b: what "
        "comes "
        "before x is the tail [B, K-1, D], or zeros (Gu and Dao 2023, Mamba).",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "x is [B, L, D] and w [D, K]"},
                                            {"C3", "b is [D]"},
                                            {"C4", "there is one tail at most, [B, K-1, D] with K above 1"},
                                            {"C5", "x with its tail has at most 2^31 - 1 elements"},
                                            {"C6", "K is at most 1024, or [B, D, L + K - 1, K] has at most 2^31 - 1 elements"}},
    .operands = ConstantList<std::string_view>{"x", "w", "b", "tail..."},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = ByDecomposition{},
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateConv,
    .cases = cases,
};

}  // namespace lockstep::graph::causal_conv1d_op
