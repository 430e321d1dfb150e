// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/ops/support/common.h"

namespace lockstep::graph::merge_order_op {
namespace {

using kernel::Op;

size_t axisOf(const Node& node) { return static_cast<size_t>(node.attributes.get<int64_t>("axis")); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& keys = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis"), run = c.attributes.get<int64_t>("run");
  if (keys.dtype != DType::I32 && keys.dtype != DType::U32)
    return violated("merge_order", "C1", fmt::format("the keys are {}, wanted i32 or u32", toString(keys)));
  LS_CHECK(checkAxis("merge_order", "C2", axis, keys.shape.rank()));
  if (run < 1 || run > INT32_MAX / 2) return violated("merge_order", "C3", fmt::format("the run is {}", run));
  return std::vector{i32(keys.shape)};
}

constexpr uint32_t kMostHalvings = 32;

/// An element of the merged pair of runs at place q is number i of the first run or number q - i of the second, where i elements of the
/// first run are among the q before it. Binary search finds i: an element of the first run comes before an equal one of the second.
kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  size_t axis = axisOf(e.node());
  auto length = static_cast<uint32_t>(e.graph().shapeOf(e.node().operands[0]).extent(axis));
  auto run = static_cast<uint32_t>(e.node().attributes.get<int64_t>("run"));
  std::vector<kernel::ValueId> position(e.index().begin(), e.index().end());
  auto keyAt = [&](kernel::ValueId place) {
    position[axis] = b.make(Op::Min, {place, b.u32(length - 1)});
    return e.operandAt(0, position);
  };
  auto add = [&](kernel::ValueId x, kernel::ValueId y) { return b.make(Op::Add, {x, y}); };
  auto sub = [&](kernel::ValueId x, kernel::ValueId y) { return b.make(Op::Sub, {x, y}); };
  kernel::ValueId here = e.index()[axis];
  kernel::ValueId q = b.make(Op::Rem, {here, b.u32(2 * run)});
  kernel::ValueId first = sub(here, q);
  kernel::ValueId middle = b.make(Op::Min, {add(first, b.u32(run)), b.u32(length)});
  kernel::ValueId end = b.make(Op::Min, {add(first, b.u32(2 * run)), b.u32(length)});
  kernel::ValueId size_a = sub(middle, first), size_b = sub(end, middle);
  kernel::ValueId low = b.var(b.types().u32(), "low", sub(b.make(Op::Max, {q, size_b}), size_b));
  kernel::ValueId high = b.var(b.types().u32(), "high", b.make(Op::Min, {q, size_a}));
  // Each round halves what is left of a run.
  b.forRange(b.u32(0), b.u32(kMostHalvings), b.u32(1), "halving", [&](kernel::ValueId) {
    kernel::ValueId from = b.load(low), to = b.load(high);
    b.ifThen(b.make(Op::Ge, {from, to}), [&] { b.breakLoop(); });
    kernel::ValueId i = b.make(Op::Div, {add(from, to), b.u32(2)});
    kernel::ValueId a = keyAt(add(first, i));
    kernel::ValueId other = keyAt(add(middle, sub(sub(q, i), b.u32(1))));
    kernel::ValueId a_first = b.make(Op::Le, {a, other});
    b.store(low, b.make(Op::Select, {from, add(i, b.u32(1)), a_first}));
    b.store(high, b.make(Op::Select, {i, to, a_first}));
  });
  kernel::ValueId i = b.load(low), j = sub(q, i);
  kernel::ValueId a = keyAt(add(first, i)), other = keyAt(add(middle, j));
  kernel::ValueId b_is_empty = b.make(Op::Ge, {j, size_b});
  kernel::ValueId a_first = b.make(Op::Or, {b_is_empty, b.make(Op::Le, {a, other})});
  kernel::ValueId takes_a = b.make(Op::And, {b.make(Op::Lt, {i, size_a}), a_first});
  return b.convert(b.types().i32(), b.make(Op::Select, {add(middle, j), add(first, i), takes_a}));
}

std::vector<Tensor> evaluateMergeOrder(const EvaluateContext& c) {
  const Tensor& keys = *c.operands[0];
  size_t axis = axisOf(c.node);
  int64_t length = keys.type.shape.extent(axis), stride = keys.type.shape.strides()[axis];
  int64_t pair = 2 * c.node.attributes.get<int64_t>("run");
  Tensor order{c.results[0], keys.data};
  for (int64_t line = 0; line < keys.type.shape.elementCount() / length; ++line) {
    int64_t start = line / stride * stride * length + line % stride;
    for (int64_t first = 0; first < length; first += pair) {
      std::vector<int64_t> places(static_cast<size_t>(std::min(pair, length - first)));
      std::iota(places.begin(), places.end(), first);
      auto key = [&](int64_t place) { return keys.data[static_cast<size_t>(start + place * stride)]; };
      std::ranges::stable_sort(places, {}, key);
      for (size_t i = 0; i < places.size(); ++i)
        order.data[static_cast<size_t>(start + (first + static_cast<int64_t>(i)) * stride)] = static_cast<double>(places[i]);
    }
  }
  return {std::move(order)};
}

// Runs of one element, and of equal ones, are in order whatever the case's values are; longer ones are tested by sort.
std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType keys, int64_t axis, int64_t run, double lo, double hi) {
    return OpCase{name, {{std::move(keys), lo, hi}}, {{"axis", axis}, {"run", run}}, 0, kExactReason};
  };
  return {make("pairs", i32({3, 8}), 1, 1, -5, 5), make("odd", u32({9}), 0, 1, 0, 5), make("middle", i32({2, 5, 3}), 1, 1, -2, 2),
          make("equal", i32({2, 21}), 1, 4, 3, 3)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "merge_order",
    .summary =
        "Where the elements of each two neighbouring sorted runs of an axis are, in the order of both; what sorting long lines repeats.",
    .constraints =
        ConstantList<Constraint>{{"C1", "the keys are i32 or u32"}, {"C2", "the axis is within the rank"}, {"C3", "the run is at least 1"}},
    .operands = ConstantList<std::string_view>{"keys"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis whose runs are in ascending order"},
                                             {"run", AttributeKind::Integer, "elements of a run; the last one may have fewer"}},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is an integer"},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true, .rounds = kMostHalvings + 1},
    .alias = NoAlias{},
    .evaluate = evaluateMergeOrder,
    .cases = cases,
};

}  // namespace lockstep::graph::merge_order_op
