// SPDX-License-Identifier: Apache-2.0
// Which indices are checked, and what a check gives.
#include "passes/graph/check_indices.h"

#include <gtest/gtest.h>

#include "ir/graph/evaluate.h"
#include "ir/graph/loop.h"
#include "passes/pipeline.h"

namespace lockstep::passes {
namespace {

using namespace graph;

constexpr DType kFloat = DType::F32, kInteger = DType::I32;

struct Program {
  Builder b{};
  ValueId table, index;

  Program() : table(input("table", kFloat, {6, 4})), index(input("index", kInteger, {2, 5})) {}
  ValueId input(const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  }
  /// The rows of the table at `places`, as an output.
  void look(ValueId places) {
    b.output(OutputKind::Result, "y" + std::to_string(b.graph().outputs.size()), b.make("embedding", {table, places}));
  }
  ValueId integer(double value, const Shape& shape) { return b.constant(value, TensorType{kInteger, shape}); }
  std::vector<IndexCheck> checks() { return findIndexChecks(b.graph()).checks; }
};

TEST(CheckIndices, an_input_is_checked_once_for_each_range) {
  Program p;
  p.look(p.index);
  p.look(p.b.reshape(p.index, Shape{10}));
  p.look(p.b.permute(p.index, {1, 0}));
  p.look(p.b.make("stop_gradient", {p.index}));
  std::vector<IndexCheck> checks = p.checks();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].index, p.index);
  EXPECT_EQ(checks[0].range.extent, 6);
  p.b.output(OutputKind::Result, "hot", p.b.make("one_hot", {p.index}, {{"depth", int64_t{4}}}));
  checks = p.checks();
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[1].range.extent, 4);
}

TEST(CheckIndices, a_part_of_an_input_is_checked_alone) {
  Program p;
  const ValueId part = p.b.make("narrow", {p.index}, {{"axis", int64_t{1}}, {"start", int64_t{1}}, {"length", int64_t{2}}});
  p.look(part);
  ASSERT_EQ(p.checks().size(), 1u);
  EXPECT_EQ(p.checks()[0].index, part);
}

TEST(CheckIndices, what_no_output_needs_is_not_checked) {
  Program p;
  p.b.make("embedding", {p.table, p.index});
  EXPECT_TRUE(p.checks().empty());
}

TEST(CheckIndices, what_cannot_be_wrong_is_not_checked) {
  Program p;
  Builder& b = p.b;
  const Shape shape{2, 5};
  p.look(p.integer(5, shape));
  p.look(b.make("arange", {}, {{"n", int64_t{6}}, {"dtype", kInteger}}));
  p.look(b.broadcastTo(b.make("arange", {}, {{"n", int64_t{5}}, {"dtype", kInteger}}), shape));
  p.look(b.make("argmax", {p.input("scores", kFloat, {3, 6})}, {{"axis", int64_t{1}}}));
  p.look(b.makeAll("sort", {p.input("line", kFloat, {6})}, {{"axis", int64_t{0}}, {"descending", false}})[1]);
  p.look(b.makeAll("top_k", {p.input("best", kFloat, {6})}, {{"axis", int64_t{0}}, {"k", int64_t{2}}})[1]);
  p.look(b.make("min", {b.make("max", {p.index, p.integer(0, shape)}), p.integer(5, shape)}));
  p.look(b.make("where", {b.make("less", {p.index, p.integer(3, shape)}), p.integer(0, shape), p.integer(5, shape)}));
  p.look(b.make("cast", {b.make("less", {p.index, p.integer(3, shape)})}, {{"dtype", kInteger}}));
  const ValueId up_to_two = b.make("arange", {}, {{"n", int64_t{3}}, {"dtype", kInteger}});
  p.look(b.add(b.add(up_to_two, up_to_two), p.integer(1, Shape{3})));
  p.look(b.make("sub", {p.integer(5, Shape{3}), up_to_two}));
  p.look(b.mul(up_to_two, up_to_two));
  EXPECT_TRUE(p.checks().empty());
}

TEST(CheckIndices, what_may_be_wrong_is_checked) {
  Program p;
  Builder& b = p.b;
  const Shape shape{2, 5};
  p.look(p.integer(6, shape));
  p.look(p.integer(-1, shape));
  p.look(b.make("arange", {}, {{"n", int64_t{7}}, {"dtype", kInteger}}));
  p.look(b.make("argmax", {p.input("scores", kFloat, {3, 7})}, {{"axis", int64_t{1}}}));
  p.look(b.make("min", {p.index, p.integer(5, shape)}));
  p.look(b.make("max", {p.index, p.integer(0, shape)}));
  p.look(b.make("cast", {p.input("x", kFloat, {4})}, {{"dtype", kInteger}}));
  p.look(b.add(b.make("min", {b.make("max", {p.index, p.integer(0, shape)}), p.integer(5, shape)}), p.integer(1, shape)));
  p.look(b.mul(p.index, p.integer(0x10000, shape)));  // wraps
  // The padding of a view may be outside.
  const ValueId inside = b.make("arange", {}, {{"n", int64_t{6}}, {"dtype", kInteger}});
  p.look(b.make("pad", {inside}, {{"axis", int64_t{0}}, {"before", int64_t{0}}, {"after", int64_t{2}}, {"value", 9.0}}));
  EXPECT_EQ(p.checks().size(), 10u);
}

/// Row and value of check 0 for this index.
std::pair<double, double> firstWrong(const std::vector<double>& index,
                                     const Attributes& attributes = {{"reduction", std::string("mean")}}) {
  Builder b;
  auto input = [&](const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  };
  const ValueId logits = input("logits", kFloat, {5, 3}), given = input("labels", kInteger, {5});
  // The program's own numbers.
  const ValueId labels = b.mul(given, b.constant(1, TensorType{kInteger, Shape{5}}));
  b.output(OutputKind::Result, "y", b.make("cross_entropy", {logits, labels}, attributes));
  Graph checked = checkIndices(b.graph()).orThrow();
  EXPECT_TRUE(validate(checked).ok());
  LeafValues leaves;
  leaves.emplace("logits", Tensor{{kFloat, {5, 3}}, std::vector<double>(15, 0.0)});
  leaves.emplace("labels", Tensor{{kInteger, {5}}, index});
  const std::vector<Tensor> outputs = evaluate(checked, leaves).orThrow();
  EXPECT_EQ(outputs.size(), 3u);
  EXPECT_EQ(checked.outputs[1].kind, OutputKind::Check);
  EXPECT_EQ(checked.outputs[1].name, indexRowName(0));
  EXPECT_EQ(checked.outputs[2].name, indexValueName(0));
  return {outputs[1].data[0], outputs[2].data[0]};
}

TEST(CheckIndices, gives_the_first_row_and_its_value) {
  using Pair = std::pair<double, double>;
  EXPECT_EQ(firstWrong({0, 1, 2, 0, 1}).first, kNoRow);
  EXPECT_EQ(firstWrong({0, 1, 3, -1, 1}), Pair(2, 3));
  EXPECT_EQ(firstWrong({-2147483648.0, 1, 3, -1, 1}), Pair(0, -2147483648.0));
  EXPECT_EQ(firstWrong({0, 1, 2, 0, 2147483647}), Pair(4, 2147483647));
  const Attributes ignoring{{"reduction", std::string("mean")}, {"ignore_index", int64_t{-100}}};
  EXPECT_EQ(firstWrong({0, -100, 2, -100, 1}, ignoring).first, kNoRow);
  EXPECT_EQ(firstWrong({0, -100, 2, -1, 1}, ignoring), Pair(3, -1));
  // An ignored number that no element can be.
  EXPECT_EQ(firstWrong({0, -100, 2, -1, 1}, {{"reduction", std::string("mean")}, {"ignore_index", int64_t{1} << 40}}), Pair(1, -100));
}

TEST(CheckIndices, whoever_gives_an_index_looks_at_it) {
  Program p;
  p.look(p.b.reshape(p.index, Shape{10}));
  const std::vector<IndexCheck> checks = p.checks();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_TRUE(checks[0].is_given);
  EXPECT_EQ(checks[0].leaf, "index");
  // The graph only says what is right.
  graph::Graph expected = p.b.graph();
  expected.nodes[expected[p.index].node.index()].attributes.set("below", checks[0].range.extent);
  EXPECT_EQ(checkIndices(p.b.graph()).orThrow(), expected);
}

/// below and ignored of the index after the pass; 0: none.
std::pair<int64_t, int64_t> rangeOf(const Program& p) {
  const graph::Graph checked = checkIndices(p.b.graph()).orThrow();
  const graph::Attributes& range = checked.definition(p.index).attributes;
  const graph::Attribute* ignored = range.find("ignored");
  return {range.get<int64_t>("below"), ignored == nullptr ? 0 : std::get<int64_t>(*ignored)};
}

TEST(CheckIndices, range_of_an_input_is_what_all_uses_agree_on) {
  const auto classify = [](Program& p, int64_t classes, int64_t ignored) {
    const std::string name = "scores" + std::to_string(p.b.graph().nodes.size());
    const ValueId scores = p.input(name, kFloat, {10, classes}), labels = p.b.reshape(p.index, Shape{10});
    const graph::Attributes attributes{{"reduction", std::string("mean")}, {"ignore_index", ignored}};
    p.b.output(OutputKind::Result, name + " loss", p.b.make("cross_entropy", {scores, labels}, attributes));
  };
  Program p;
  classify(p, 9, -1);
  EXPECT_EQ(rangeOf(p), std::pair(int64_t{9}, int64_t{-1}));
  classify(p, 5, -1);
  EXPECT_EQ(rangeOf(p), std::pair(int64_t{5}, int64_t{-1}));
  classify(p, 8, 5);
  EXPECT_EQ(rangeOf(p), std::pair(int64_t{5}, int64_t{0})) << "-1 is wrong for the last one, and 5 for the others";
  Program q;
  classify(q, 9, 20);
  classify(q, 30, -1);
  EXPECT_EQ(rangeOf(q), std::pair(int64_t{9}, int64_t{20})) << "20 is one of 30 classes";
  q.look(q.index);
  EXPECT_EQ(rangeOf(q), std::pair(int64_t{6}, int64_t{0}));
}

/// A loop of three steps that looks rows up, with its carry, a slice and a capture of two places each. The next carry is `next` of the one
/// before.
Graph looped(const std::function<ValueId(Builder&, ValueId)>& next, const std::function<ValueId(Builder&, ValueId)>& used) {
  Builder inner;
  const auto leaf = [](Builder& b, const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  };
  const ValueId carry = leaf(inner, carryName(0), kInteger, {2}), slice = leaf(inner, sliceName(0), kInteger, {2});
  const ValueId table = leaf(inner, captureName(0), kFloat, {6, 4});
  inner.output(OutputKind::Result, carryName(0), next(inner, carry));
  inner.output(OutputKind::Result, resultName(0), inner.make("embedding", {table, used(inner, carry)}));
  inner.output(OutputKind::Result, resultName(1), inner.make("embedding", {table, slice}));
  Builder b;
  const ValueId start = leaf(b, "start", kInteger, {2}), rows = leaf(b, "rows", kInteger, {3, 2}), all = leaf(b, "table", kFloat, {6, 4});
  const std::vector<ValueId> made =
      makeLoop(b, {.carries = {start}, .held = {}, .slices = {rows}, .captures = {all}}, 3, false, inner.take());
  for (size_t i = 0; i < made.size(); ++i) b.output(OutputKind::Result, "y" + std::to_string(i), made[i]);
  return b.take();
}

TEST(CheckIndices, of_loops_are_those_of_what_they_take_and_what_they_compute) {
  const auto same = [](Builder&, ValueId x) { return x; };
  const auto more = [](Builder& b, ValueId x) { return b.add(x, b.constant(1, b.typeOf(x))); };
  const auto most = [](Builder& b, ValueId x) {
    return b.make("min", {b.make("max", {x, b.constant(0, b.typeOf(x))}), b.constant(5, b.typeOf(x))});
  };
  // The rows are given, the carry is a stack of all its values.
  const IndexChecks carried = findIndexChecks(looped(more, same));
  ASSERT_EQ(carried.checks.size(), 2U);
  EXPECT_EQ(carried.checks[1].shape, (Shape{3, 2}));
  EXPECT_FALSE(carried.checks[1].is_given);
  EXPECT_TRUE(carried.checks[0].is_given);
  EXPECT_EQ(carried.checks[0].leaf, "rows");
  // What a step computes becomes one more stack.
  const Graph computes = looped(same, more);
  const IndexChecks computed = findIndexChecks(computes);
  ASSERT_EQ(computed.checks.size(), 2U);
  EXPECT_EQ(computed.graph.definition(computed.checks[1].index).results.size(), 4U);
  EXPECT_EQ(computed.graph.outputs.size(), computes.outputs.size());
  EXPECT_TRUE(validate(computed.graph).ok());
  // What cannot be wrong is left alone: whatever the carry is at first, the place is one of six.
  EXPECT_EQ(findIndexChecks(looped(more, most)).checks.size(), 1U);
}

TEST(CheckIndices, of_loops_give_the_first_place_and_its_value) {
  const auto more = [](Builder& b, ValueId x) { return b.add(x, b.constant(1, b.typeOf(x))); };
  const Graph checked = checkIndices(looped(more, more)).orThrow();
  ASSERT_TRUE(validate(checked).ok());
  LeafValues leaves;
  leaves.emplace("start", Tensor{{kInteger, {2}}, {0, 3}});
  leaves.emplace("rows", Tensor{{kInteger, {3, 2}}, {0, 1, 2, 3, 4, 5}});
  leaves.emplace("table", Tensor{{kFloat, {6, 4}}, std::vector<double>(24, 0.0)});
  const std::vector<Tensor> outputs = evaluate(checked, leaves).orThrow();
  // Places 1 and 4, 2 and 5, 3 and 6.
  EXPECT_EQ(outputs[outputs.size() - 2].data[0], 5);
  EXPECT_EQ(outputs.back().data[0], 6);
}

TEST(CheckIndices, nothing_is_added_where_nothing_is_checked) {
  Program p;
  p.look(p.integer(5, Shape{3}));
  EXPECT_EQ(checkIndices(p.b.graph()).orThrow(), p.b.graph());
}

}  // namespace
}  // namespace lockstep::passes
