// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::search_sorted_op {
namespace {

using kernel::Op;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &sorted = c.operands[0], &values = c.operands[1];
  if (sorted.dtype != DType::I32 || sorted.shape.rank() != 1)
    return violated("search_sorted", "C1", fmt::format("the sorted operand is {}, wanted i32 with one axis", toString(sorted)));
  if (values.dtype != DType::I32) return violated("search_sorted", "C2", fmt::format("the values are {}, wanted i32", toString(values)));
  return std::vector{i32(values.shape)};
}

constexpr uint32_t kMostHalvings = 32;

/// Binary search: `low` elements are below the value, and none is from `high` on.
kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  const auto length = static_cast<uint32_t>(e.graph().shapeOf(e.node().operands[0]).extent(0));
  const kernel::ValueId wanted = e.operandAt(1, {e.index().begin(), e.index().end()});
  const kernel::ValueId low = b.var(b.types().u32(), "low", b.u32(0)), high = b.var(b.types().u32(), "high", b.u32(length));
  b.forRange(b.u32(0), b.u32(kMostHalvings), b.u32(1), "halving", [&](kernel::ValueId) {
    const kernel::ValueId from = b.load(low), to = b.load(high);
    b.ifThen(b.make(Op::Ge, {from, to}), [&] { b.breakLoop(); });
    const kernel::ValueId middle = b.make(Op::Div, {b.make(Op::Add, {from, to}), b.u32(2)});
    const kernel::ValueId element = e.operandAt(0, {b.make(Op::Min, {middle, b.u32(length - 1)})});
    const kernel::ValueId is_below = b.make(Op::Lt, {element, wanted});
    b.store(low, b.make(Op::Select, {from, b.make(Op::Add, {middle, b.u32(1)}), is_below}));
    b.store(high, b.make(Op::Select, {middle, to, is_below}));
  });
  return b.convert(b.types().i32(), b.load(low));
}

std::vector<Tensor> evaluateSearchSorted(const EvaluateContext& c) {
  const std::vector<double>&sorted = c.operands[0]->data, &values = c.operands[1]->data;
  Tensor places{c.results[0], values};
  for (double& place : places.data) {
    const double value = place;
    place = static_cast<double>(std::ranges::count_if(sorted, [&](double element) { return element < value; }));
  }
  return {std::move(places)};
}

std::vector<KnownRange> rangeOfCounts(const RangeContext& c) { return {IntegerRange{0, c.graph.shapeOf(c.node.operands[0]).extent(0)}}; }

// Equal elements are in order whatever the case's values are; others are tested by the pass that makes the op.
std::vector<OpCase> cases() {
  auto make = [](std::string_view name, int64_t length, Shape values, double element) {
    return OpCase{name, {{i32({length}), element, element}, {i32(std::move(values)), -2, 6}}, {}, 0, kExactReason};
  };
  return {make("vector", 7, {9}, 2), make("matrix", 33, {3, 5}, 0), make("one", 1, {4}, 1), make("scalar", 5, {}, 3)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "search_sorted",
    .summary = "How many elements of a sorted line are below each value: where the value would be inserted.",
    .constraints = ConstantList<Constraint>{{"C1", "the sorted operand is i32 with one axis"}, {"C2", "the values are i32"}},
    .operands = ConstantList<std::string_view>{"sorted", "values"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is an integer"},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true, .rounds = kMostHalvings + 1},
    .alias = NoAlias{},
    .evaluate = evaluateSearchSorted,
    .cases = cases,
    .range = rangeOfCounts,
};

}  // namespace lockstep::graph::search_sorted_op
