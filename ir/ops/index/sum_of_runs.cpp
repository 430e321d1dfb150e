// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::sum_of_runs_op {
namespace {

using kernel::Op;

constexpr int64_t kLongestOrder = 32768;  // what a device whose loops end after 65 535 rounds can go through
// Loads that are under way at once, for the few segments that have most of the slices.
constexpr uint32_t kTogether = 8;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &source = c.operands[0], &order = c.operands[1], &starts = c.operands[2];
  const int64_t axis = c.attributes.get<int64_t>("axis");
  if (source.dtype != DType::F32) return violated("sum_of_runs", "C1", fmt::format("the source is {}, wanted f32", toString(source)));
  LS_CHECK(checkAxis("sum_of_runs", "C2", axis, source.shape.rank()));
  if (order.dtype != DType::I32 || order.shape.rank() != 1 || order.shape.extent(0) > kLongestOrder)
    return violated("sum_of_runs", "C3",
                    fmt::format("the order is {}, wanted i32 with one axis of at most {}", toString(order), kLongestOrder));
  if (starts.dtype != DType::I32 || starts.shape.rank() != 1 || starts.shape.extent(0) < 2)
    return violated("sum_of_runs", "C4", fmt::format("the starts are {}, wanted i32 with one axis of two or more", toString(starts)));
  std::vector<int64_t> extents = source.shape.extents();
  extents[static_cast<size_t>(axis)] = starts.shape.extent(0) - 1;
  LS_CHECK(checkExtents("sum_of_runs", "C5", extents));
  return std::vector{f32(Shape(extents))};
}

kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  const size_t axis = axisOf(e.node());
  const auto length = static_cast<uint32_t>(e.graph().shapeOf(e.node().operands[1]).extent(0));
  std::vector<kernel::ValueId> position(e.index().begin(), e.index().end());
  const kernel::ValueId segment = position[axis];
  const auto startOf = [&](kernel::ValueId number) { return b.convert(b.types().u32(), e.operandAt(2, {number})); };
  const kernel::ValueId begin = startOf(segment), end = startOf(b.make(Op::Add, {segment, b.u32(1)}));
  const kernel::ValueId sum = b.var(b.types().f32(), "sum", b.f32(0));
  b.forRange(b.u32(0), b.u32(length), b.u32(kTogether), "run", [&](kernel::ValueId done) {
    const kernel::ValueId first = b.make(Op::Add, {begin, done});
    b.ifThen(b.make(Op::Ge, {first, end}), [&] { b.breakLoop(); });
    std::vector<kernel::ValueId> elements;
    for (uint32_t i = 0; i < kTogether; ++i) {
      const kernel::ValueId at = b.make(Op::Add, {first, b.u32(i)});
      const kernel::ValueId known = b.make(Op::Min, {at, b.u32(length - 1)});
      const kernel::ValueId slice = e.operandAt(1, {known});
      const kernel::ValueId element = emitSelected(e, axis, slice, position);
      elements.push_back(b.make(Op::Select, {b.f32(0), element, b.make(Op::Lt, {at, end})}));
    }
    kernel::ValueId total = b.load(sum);
    for (const kernel::ValueId element : elements) total = b.make(Op::Add, {total, element});
    b.store(sum, total);
  });
  return b.load(sum);
}

std::vector<Tensor> evaluateSumOfRuns(const EvaluateContext& c) {
  const size_t axis = axisOf(c.node);
  const std::vector<double>&order = c.operands[1]->data, &starts = c.operands[2]->data;
  ElementReader element(*c.operands[0]);
  const auto slices = static_cast<double>(c.operands[0]->type.shape.extent(axis));
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    const auto segment = static_cast<size_t>(index[axis]);
    double sum = 0;
    for (double at = starts[segment]; at < starts[segment + 1]; ++at) {
      const double slice = order[std::min(static_cast<size_t>(at), order.size() - 1)];
      if (slice < 0 || slice >= slices) continue;
      index[axis] = static_cast<int64_t>(slice);
      sum += element(index);
    }
    return sum;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType source, int64_t length, int64_t starts, int64_t axis) {
    const auto slices = static_cast<double>(source.shape.extent(static_cast<size_t>(axis)));
    return OpCase{name,
                  {{std::move(source)}, {i32({length}), -1, slices}, {i32({starts}), 0, static_cast<double>(length)}},
                  {{"axis", axis}},
                  2e-6,
                  "sums of a few numbers"};
  };
  return {make("rows", f32({5, 6}), 7, 9, 0), make("last", f32({3, 5}), 33, 6, 1), make("long", f32({40, 3}), 257, 12, 0)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sum_of_runs",
    .summary =
        "For each segment the sum of the slices that a run of the order names; what segment_sum becomes where its index is sorted first.",
    .constraints = ConstantList<Constraint>{{"C1", "the source is f32"},
                                            {"C2", "the axis is within the rank of the source"},
                                            {"C3", "the order is i32 with one axis of at most 32768"},
                                            {"C4", "the starts are i32 with one axis, one more than there are segments"},
                                            {"C5", "every extent is at least 1 and the element count is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"source", "order", "starts"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of the slices"}},
    .infer = infer,
    .gradient = NotDifferentiable{"a pass makes it, after all gradients"},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true, .rounds = kLongestOrder / kTogether + 1},
    .alias = NoAlias{},
    .evaluate = evaluateSumOfRuns,
    .cases = cases,
};

}  // namespace lockstep::graph::sum_of_runs_op
