// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/support/attention_cache.h"

namespace lockstep::graph::join_shares_op {
namespace {

using kernel::Op;

constexpr std::string_view kName = "join_shares";

int64_t widthOf(const Shape& row, int64_t shares) { return row.extents().back() / shares - 2; }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& parts = c.operands[0];
  if (parts.dtype != DType::F32 || parts.shape.rank() == 0)
    return violated(kName, "C1", fmt::format("the operand is {}, wanted f32 with an axis or more", toString(parts)));
  const auto shares = c.attributes.get<int64_t>(kSharesAttribute);
  const int64_t row = parts.shape.extents().back();
  if (shares < 1 || shares > kMostShares || row % shares != 0 || row / shares < 3)
    return violated(kName, "C2", fmt::format("rows of {} elements are not those of {} shares", row, shares));
  std::vector<int64_t> extents = parts.shape.extents();
  extents.back() = widthOf(parts.shape, shares);
  return std::vector{f32(Shape(extents))};
}

/// sum_s 2^(h_s - h) x_s / sum_s 2^(h_s - h) t_s, where h is the highest of all (Dao and others 2023, Flash-Decoding).
kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  const int64_t shares = e.node().attributes.get<int64_t>(kSharesAttribute);
  const int64_t width = widthOf(e.graph().shapeOf(e.node().operands[0]), shares);
  std::vector<kernel::ValueId> position(e.index().begin(), e.index().end());
  const kernel::ValueId own = position.back();
  const auto at = [&](kernel::ValueId d, int64_t share) {
    position.back() = b.make(Op::Add, {b.make(Op::Mul, {d, b.u32(static_cast<uint32_t>(shares))}), b.u32(static_cast<uint32_t>(share))});
    return e.operandAt(0, position);
  };
  std::vector<kernel::ValueId> highest;
  kernel::ValueId most, sum, total;
  for (int64_t share = 0; share < shares; ++share) {
    highest.push_back(at(b.u32(static_cast<uint32_t>(width + 1)), share));
    most = share == 0 ? highest.back() : b.make(Op::Max, {most, highest.back()});
  }
  for (int64_t share = 0; share < shares; ++share) {
    const kernel::ValueId weight = b.make(Op::Exp2, {b.make(Op::Sub, {highest[static_cast<size_t>(share)], most})});
    const auto added = [&](kernel::ValueId so_far, kernel::ValueId element) {
      const kernel::ValueId part = b.make(Op::Mul, {weight, element});
      return share == 0 ? part : b.make(Op::Add, {so_far, part});
    };
    total = added(total, at(b.u32(static_cast<uint32_t>(width)), share));
    sum = added(sum, at(own, share));
  }
  return b.make(Op::Div, {sum, total});
}

std::vector<Tensor> evaluateJoinShares(const EvaluateContext& c) {
  const std::vector<double>& parts = c.operands[0]->data;
  const auto shares = static_cast<size_t>(c.node.attributes.get<int64_t>(kSharesAttribute));
  const size_t row = static_cast<size_t>(c.operands[0]->type.shape.extents().back()), width = row / shares - 2;
  Tensor joined{c.results[0], {}};
  for (size_t first = 0; first < parts.size(); first += row) {
    const auto at = [&](size_t d, size_t share) { return parts[first + d * shares + share]; };
    double most = at(width + 1, 0), total = 0;
    for (size_t share = 1; share < shares; ++share) most = std::max(most, at(width + 1, share));
    for (size_t share = 0; share < shares; ++share) total += std::exp2(at(width + 1, share) - most) * at(width, share);
    for (size_t d = 0; d < width; ++d) {
      double sum = 0;
      for (size_t share = 0; share < shares; ++share) sum += std::exp2(at(width + 1, share) - most) * at(d, share);
      joined.data.push_back(sum / total);
    }
  }
  return {std::move(joined)};
}

std::vector<OpCase> cases() {
  const auto make = [](std::string_view name, Shape parts, int64_t shares) {
    // Totals of shares are at least 1.
    return OpCase{name, {{f32(std::move(parts)), 1, 4}}, {{"shares", shares}}, 2e-6, "a weighted mean of few numbers and its roundings"};
  };
  return {make("", {2, 3, 1, 40}, 4), make("odd", {5, 27}, 3), make("one", {7, 5}, 1), make("vector", {48}, 8)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "The result of attention whose keys were shared out: what attend_cache made of each share, put together.",
    .constraints =
        ConstantList<Constraint>{
            {"C1", "the operand is f32 with an axis or more"},
            {"C2", "the last axis has an element or more, a total and a highest score, each for all of 1 to 64 shares"}},
    .operands = ConstantList<std::string_view>{"parts"},
    .attributes = ConstantList<AttributeDef>{{kSharesAttribute, AttributeKind::Integer, "of the keys; those of an element are neighbours"}},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true},
    .alias = NoAlias{},
    .evaluate = evaluateJoinShares,
    .cases = cases,
};

}  // namespace lockstep::graph::join_shares_op
