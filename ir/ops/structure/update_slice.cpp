// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"

namespace lockstep::graph::update_slice_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &state = c.operands[0], &value = c.operands[1];
  if (state.dtype != value.dtype)
    return violated("update_slice", "C1", fmt::format("the state is {} and the value {}", toString(state), toString(value)));
  int64_t offset = c.attributes.get<int64_t>("offset"), room = state.shape.elementCount(), size = value.shape.elementCount();
  if (offset < 0 || size > room || offset > room - size)
    return violated("update_slice", "C2", fmt::format("{} elements from {} on do not lie within the state's {}", size, offset, room));
  return std::vector{state};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Shape state = b.shapeOf(g.operands[0]), value = b.shapeOf(g.operands[1]);
  int64_t offset = g.node.attributes.get<int64_t>("offset"), room = state.elementCount(), size = value.elementCount();
  ValueId flat = b.reshape(g.cotangents[0], Shape{room});
  ValueId part = b.make("narrow", {flat}, {{"axis", int64_t{0}}, {"start", offset}, {"length", size}});
  // What was overwritten gets nothing. Written without update_slice, which would claim the cotangent's storage.
  ValueId written = b.make("pad", {b.constant(1, Shape{size})},
                           {{"axis", int64_t{0}}, {"before", offset}, {"after", room - offset - size}, {"value", 0.0}});
  ValueId zero = b.constant(0, Shape{room});
  ValueId kept = b.make("where", {b.make("greater", {written, zero}), zero, flat});
  return {b.reshape(kept, state), b.reshape(part, value)};
}

std::vector<Tensor> evaluateUpdateSlice(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  const std::vector<double>& value = c.operands[1]->data;
  std::copy(value.begin(), value.end(), out.data.begin() + static_cast<ptrdiff_t>(c.node.attributes.get<int64_t>("offset")));
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape state, Shape value, int64_t offset) {
    return OpCase{name, {{f32(std::move(state))}, {f32(std::move(value))}}, {{"offset", offset}}, 0, kExactReason};
  };
  return {make("middle", {5, 7}, {2, 3}, 9), make("row", {4, 64}, {64}, 128), make("all", {33}, {33}, 0), make("scalar", {6}, {}, 5)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "update_slice",
    .summary = "The next version of a state: the value written into it, both flat in row-major order, from an offset on.",
    .constraints =
        ConstantList<Constraint>{{"C1", "state and value have the same element type"}, {"C2", "the value lies within the state"}},
    .operands = ConstantList<std::string_view>{"state", "value"},
    .attributes = ConstantList<AttributeDef>{{"offset", AttributeKind::Integer, "first element that is written"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = StorageLowering{},
    .alias = AliasUpdate{},
    .evaluate = evaluateUpdateSlice,
    .cases = cases,
};

}  // namespace lockstep::graph::update_slice_op
