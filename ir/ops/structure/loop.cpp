// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/loop.h"

#include <fmt/format.h>

#include <cstdint>

#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::loop_op {
namespace {

struct Wanted {
  std::string name;
  TensorType type;
  LeafKind kind = LeafKind::Input;
};

/// The leaves that a body has to have.
std::vector<Wanted> leavesOf(const LoopForm& loop, std::span<const TensorType> operands) {
  std::vector<Wanted> wanted;
  for (size_t i = 0; i < loop.carries; ++i) wanted.push_back({carryName(i), operands[i]});
  for (size_t i = 0; i < loop.held; ++i) wanted.push_back({heldName(i), operands[loop.carries + i], LeafKind::State});
  for (size_t i = 0; i < loop.slices; ++i) wanted.push_back({sliceName(i), rowType(operands[loop.firstSlice() + i])});
  for (size_t i = 0; i < loop.captures; ++i) wanted.push_back({captureName(i), operands[loop.firstCapture() + i]});
  return wanted;
}

Status checkLeaves(const Graph& body, const std::vector<Wanted>& wanted) {
  size_t leaves = 0;
  for (const NodeId id : body.body().nodes) {
    const Node& node = body[id];
    if (leafName(node) != nullptr) ++leaves;
  }
  for (const Wanted& one : wanted) {
    const ValueId leaf = findLeaf(body, one.name);
    if (!leaf.valid() || leafKind(body.definition(leaf)) != one.kind)
      return violated("loop", "C3", fmt::format("the body has no {} '{}'", one.kind == LeafKind::State ? "state" : "input", one.name));
    if (body.typeOf(leaf) != one.type)
      return violated("loop", "C3",
                      fmt::format("the body's '{}' is {}, wanted {}", one.name, toString(body.typeOf(leaf)), toString(one.type)));
  }
  if (leaves != wanted.size()) return violated("loop", "C3", fmt::format("the body has {} leaves, wanted {}", leaves, wanted.size()));
  return Success{};
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const int64_t iterations = c.attributes.get<int64_t>("iterations"), carries = c.attributes.get<int64_t>("carries"),
                slices = c.attributes.get<int64_t>("slices");
  const auto count = static_cast<int64_t>(c.operands.size());
  const Attribute* given = c.attributes.find("held");
  const int64_t held = given == nullptr ? 0 : std::get<int64_t>(*given);
  const bool negative = carries < 0 || held < 0 || slices < 0;
  if (iterations < 1 || iterations >= INT32_MAX || negative || carries > count || held > count - carries || slices > count - carries - held)
    return violated("loop", "C1",
                    fmt::format("{} iterations of {} carries and {} slices do not fit {} operands", iterations, carries, slices, count));
  const LoopForm loop(c.operands.size(), c.attributes);
  for (size_t i = loop.firstSlice(); i < loop.firstCapture(); ++i) {
    const TensorType& stack = c.operands[i];
    if (stack.shape.rank() == 0 || stack.shape.extent(0) != iterations)
      return violated("loop", "C2", fmt::format("slice {} is {}, wanted {} rows", i - loop.firstSlice(), toString(stack), iterations));
  }
  const Graph& body = loop.body();
  LS_CHECK(checkLeaves(body, leavesOf(loop, c.operands)));
  if (body.outputs.size() < loop.firstResult() || body.outputs.empty())
    return violated("loop", "C4", fmt::format("the body has {} outputs for {} carries", body.outputs.size(), loop.carries));
  std::vector<TensorType> types;
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const Output& output = body.outputs[i];
    const TensorType& type = body.typeOf(output.value);
    const bool carried = i < loop.carries, is_held = !carried && i < loop.firstResult();
    const std::string name = carried ? carryName(i) : is_held ? heldName(i - loop.carries) : resultName(i - loop.firstResult());
    const OutputKind kind = is_held ? OutputKind::NextState : OutputKind::Result;
    if (output.kind != kind || output.name != name)
      return violated("loop", "C4",
                      fmt::format("output {} of the body is \"{}\", wanted the {} \"{}\"", i, output.name, toString(kind), name));
    if ((carried || is_held) && type != c.operands[i])
      return violated("loop", "C4", fmt::format("carry {} is {} and becomes {}", i, toString(c.operands[i]), toString(type)));
    types.push_back(is_held ? type : stackType(type, carried ? iterations + 1 : iterations));
  }
  for (size_t i = 0; i < types.size() + loop.slices; ++i) {
    const TensorType& type = i < types.size() ? types[i] : c.operands[loop.firstSlice() + i - types.size()];
    const bool is_held = i >= loop.carries && i < loop.firstResult();
    if (!is_held && byteSize(type.dtype) != 4)
      return violated("loop", "C5", fmt::format("a stack is {}, wanted elements of 32 bits", toString(type)));
  }
  for (const TensorType& type : types) LS_CHECK(checkExtents("loop", "C6", type.shape.extents()));
  return types;
}

/// Leaves of a body under construction.
struct BodyLeaves {
  Builder& b;
  ValueId operator()(const std::string& name, const Shape& shape) const {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", shape.extents()}});
  }
};

/// h' = tanh(x + h w), and results h' h'.
Graph recurrentBody(const Shape& state, const Shape& matrix) {
  Builder b;
  const BodyLeaves leaf{b};
  const ValueId h = leaf(carryName(0), state), x = leaf(sliceName(0), state), w = leaf(captureName(0), matrix);
  const ValueId next = b.make("tanh", {b.add(x, b.make("matmul", {h, w}))});
  b.output(OutputKind::Result, carryName(0), next);
  b.output(OutputKind::Result, resultName(0), b.mul(next, next));
  return b.take();
}

/// h' = h / 2 + x.
Graph decayBody(const Shape& state) {
  Builder b;
  const BodyLeaves leaf{b};
  const ValueId h = leaf(carryName(0), state), x = leaf(sliceName(0), state);
  b.output(OutputKind::Result, carryName(0), b.add(b.mul(h, 0.5), x));
  return b.take();
}

/// a' = b + x0, b' = 0.9 a with a scalar b, a result of what all iterations have.
Graph exchangeBody(const Shape& wide) {
  Builder b;
  const BodyLeaves leaf{b};
  const ValueId a = leaf(carryName(0), wide), s = leaf(carryName(1), {}), x = leaf(sliceName(0), {}), c = leaf(captureName(0), wide);
  b.output(OutputKind::Result, carryName(0), b.mul(b.add(b.broadcastTo(s, wide), b.broadcastTo(x, wide)), c));
  b.output(OutputKind::Result, carryName(1), b.mul(b.sum(a, 0, false), 0.3));
  b.output(OutputKind::Result, resultName(0), b.mul(b.make("exp", {c}), a));
  return b.take();
}

/// No carry: y = (x w) c.
Graph mapBody(const Shape& row, const Shape& matrix) {
  Builder b;
  const BodyLeaves leaf{b};
  const ValueId x = leaf(sliceName(0), row), w = leaf(captureName(0), matrix), c = leaf(captureName(1), Shape{matrix.extent(1)});
  const ValueId y = b.make("matmul", {x, w});
  b.output(OutputKind::Result, resultName(0), b.mul(y, b.broadcastTo(c, b.shapeOf(y))));
  return b.take();
}

/// h' = h / 2 + the row read as another shape, so that what flows back to it is a view.
Graph reshapedBody(const Shape& state, const Shape& row) {
  Builder b;
  const BodyLeaves leaf{b};
  const ValueId h = leaf(carryName(0), state), x = leaf(sliceName(0), row);
  b.output(OutputKind::Result, carryName(0), b.add(b.mul(h, 0.5), b.reshape(x, state)));
  return b.take();
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, std::vector<Shape> operands, int64_t iterations, int64_t carries, int64_t slices, bool reverse,
                 Graph body, double most = 0.5) {
    OpCase made{.name = name,
                .operands = {},
                .attributes = {{"iterations", iterations},
                               {"carries", carries},
                               {"slices", slices},
                               {"reverse", reverse},
                               {"body", NestedGraph(std::move(body))}},
                .tolerance = 2e-6,
                .reason = "some roundings per iteration, which later ones make smaller"};
    for (Shape& shape : operands) made.operands.push_back({f32(std::move(shape)), -most, most});
    return made;
  };
  return {make("decay", {{3}, {5, 3}}, 5, 1, 1, false, decayBody({3})),
          make("decay_reverse", {{3}, {5, 3}}, 5, 1, 1, true, decayBody({3})),
          make("recurrent", {{4, 6}, {7, 4, 6}, {6, 6}}, 7, 1, 1, false, recurrentBody({4, 6}, {6, 6})),
          make("recurrent_reverse", {{4, 6}, {7, 4, 6}, {6, 6}}, 7, 1, 1, true, recurrentBody({4, 6}, {6, 6})),
          make("aligned", {{2, 64}, {5, 2, 64}, {64, 64}}, 5, 1, 1, false, recurrentBody({2, 64}, {64, 64}), 0.1),
          make("two_carries", {{5}, {}, {4}, {5}}, 4, 2, 1, false, exchangeBody({5})),
          make("no_carry", {{3, 2, 5}, {5, 4}, {4}}, 3, 0, 1, false, mapBody({2, 5}, {5, 4})),
          make("reshaped_row", {{6}, {5, 2, 3}}, 5, 1, 1, false, reshapedBody({6}, {2, 3})),
          make("once", {{3}, {1, 3}}, 1, 1, 1, false, decayBody({3})),
          make("long", {{3}, {257, 3}}, 257, 1, 1, true, decayBody({3}))};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "loop",
    .summary = "Runs its body once per row of the slices, each time with the carries that it made last; stacks all carries and results.",
    .constraints = ConstantList<Constraint>{{"C1", "there is an iteration, and an operand for each carry and slice"},
                                            {"C2", "slices have a row for each iteration"},
                                            {"C3", "the body's leaves are carries, held states, rows of the slices and the other operands"},
                                            {"C4", "the body's outputs are the next carries and states, of their types, and results"},
                                            {"C5", "carries, slices and results have elements of 32 bits, but not carries that are held"},
                                            {"C6", "the element count of a result is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"operands..."},
    .attributes =
        ConstantList<AttributeDef>{{"iterations", AttributeKind::Integer, "how often the body runs"},
                                   {"carries", AttributeKind::Integer, "so many operands are the first values of carries"},
                                   {"held", AttributeKind::Integer, "so many after them are states of the body, written in place", false},
                                   {"slices", AttributeKind::Integer, "so many after them are cut into rows, one per iteration"},
                                   {"reverse", AttributeKind::Boolean, "from the last row to the first"},
                                   {"body", AttributeKind::Graph, "what an iteration computes"}},
    .infer = infer,
    .gradient = ThroughBody{},
    .lower = LoopLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = cases,
};

}  // namespace lockstep::graph::loop_op
