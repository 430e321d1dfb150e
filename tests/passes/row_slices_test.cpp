// SPDX-License-Identifier: Apache-2.0
// Bodies that run in slices of their rows give what they give whole; bodies that cannot are refused.
#include "passes/schedule/row_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/graph/evaluate.h"
#include "ir/graph/op_def.h"

namespace lockstep::passes {
namespace {

using namespace graph;

struct Body {
  const char* name;
  const char* nodes;  ///< makes %y
};
std::string textOf(const Body& body) { return std::string("lockstep.graph 1\ngraph {\n") + body.nodes + "\noutput result \"y\" %y\n}\n"; }

#define X "%x: f32[8,6] = input {dtype = f32, name = \"x\", shape = [8, 6]}\n"
#define ROW "%r: f32[6] = input {dtype = f32, name = \"r\", shape = [6]}\n"
#define TABLE "%t: f32[8,1] = input {dtype = f32, name = \"t\", shape = [8, 1]}\n"

class SlicedBody : public testing::TestWithParam<Body> {};
INSTANTIATE_TEST_SUITE_P(
    Bodies, SlicedBody,
    testing::Values(Body{"element", X "%y: f32[8,6] = exp %x"},
                    Body{"bias", X ROW "%b: f32[8,6] = broadcast_to %r {shape = [8, 6]}\n%y: f32[8,6] = add %x, %b"},
                    Body{"table", X TABLE "%b: f32[8,6] = broadcast_to %t {shape = [8, 6]}\n%y: f32[8,6] = mul %x, %b"},
                    Body{"reshaped", X "%f: f32[48] = reshape %x {shape = [48]}\n%e: f32[48] = neg %f\n"
                                       "%y: f32[16,3] = reshape %e {shape = [16, 3]}"},
                    Body{"row_sum", X "%s: f32[8] = sum %x {axes = [1], keep_dims = false}\n%y: f32[8] = sqrt %s"},
                    Body{"columns_moved", X "%z: f32[8,2,3] = reshape %x {shape = [8, 2, 3]}\n"
                                            "%p: f32[8,3,2] = permute %z {permutation = [0, 2, 1]}\n%y: f32[8,3,2] = neg %p"},
                    Body{"columns_cut", X "%n: f32[8,2] = narrow %x {axis = 1, length = 2, start = 3}\n%y: f32[8,2] = neg %n"},
                    Body{"position_in_row", X "%a: f32[6] = arange {dtype = f32, n = 6}\n"
                                              "%b: f32[8,6] = broadcast_to %a {shape = [8, 6]}\n%y: f32[8,6] = add %x, %b"}),
    [](const auto& info) { return std::string(info.param.name); });

/// The share of a value's elements that rows [row, row + rows) of `of` have.
Tensor shareOf(const Tensor& whole, const TensorType& type, int64_t row, int64_t of) {
  auto begin = whole.data.begin() + static_cast<std::ptrdiff_t>(whole.type.shape.elementCount() / of * row);
  return {type, {begin, begin + type.shape.elementCount()}};
}

LeafValues leavesOf(const Graph& graph) {
  LeafValues leaves;
  for (NodeId id : graph.body().nodes) {
    if (*graph[id].op->name != "input") continue;
    Tensor value{graph.typeOf(graph[id].results[0]), {}};
    for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) value.data.push_back(static_cast<double>(i * 7 % 13));
    leaves.emplace(graph[id].attributes.get<std::string>("name"), std::move(value));
  }
  return leaves;
}

TEST_P(SlicedBody, slices_give_what_the_whole_gives) {
  Graph body = parse(textOf(GetParam())).orThrow();
  ASSERT_TRUE(validate(body).ok()) << toString(validate(body).diagnostics());
  std::optional<RowCut> cut = cutRows(body);
  ASSERT_TRUE(cut.has_value());
  ASSERT_GE(cut->rows, 2);
  LeafValues leaves = leavesOf(body);
  Tensor whole = evaluate(body, leaves).orThrow().front();
  int64_t step = cut->rows / 2 + 1;  // the last slice is shorter
  for (int64_t row = 0; row < cut->rows; row += step) {
    std::optional<Graph> slice = sliceRows(body, *cut, std::min(step, cut->rows - row));
    ASSERT_TRUE(slice.has_value());
    ASSERT_TRUE(validate(*slice).ok());
    LeafValues parts;
    for (size_t i = 0; i < body.body().nodes.size(); ++i) {
      const Node &old = body[body.body().nodes[i]], &now = (*slice)[slice->body().nodes[i]];
      if (*old.op->name != "input") continue;
      const Tensor& value = leaves.find(old.attributes.get<std::string>("name"))->second;
      bool in_slices = cut->cut[old.results[0].index()];
      parts.emplace(old.attributes.get<std::string>("name"),
                    in_slices ? shareOf(value, slice->typeOf(now.results[0]), row, cut->rows) : value);
    }
    Tensor part = evaluate(*slice, parts).orThrow().front();
    EXPECT_EQ(part.data, shareOf(whole, part.type, row, cut->rows).data);
  }
}

class WholeBody : public testing::TestWithParam<Body> {};
INSTANTIATE_TEST_SUITE_P(
    Bodies, WholeBody,
    testing::Values(Body{"transposed", X "%p: f32[6,8] = permute %x {permutation = [1, 0]}\n%y: f32[6,8] = neg %p"},
                    Body{"rows_cut", X "%n: f32[3,6] = narrow %x {axis = 0, length = 3, start = 2}\n%y: f32[3,6] = neg %n"},
                    Body{"rows_padded", X "%n: f32[9,6] = pad %x {after = 1, axis = 0, before = 0, value = 0.0}\n%y: f32[9,6] = neg %n"},
                    Body{"sum_over_rows", X "%y: f32[6] = sum %x {axes = [0], keep_dims = false}"},
                    Body{"position_of_row", X "%a: f32[8] = arange {dtype = f32, n = 8}\n%c: f32[8,1] = reshape %a {shape = [8, 1]}\n"
                                              "%b: f32[8,6] = broadcast_to %c {shape = [8, 6]}\n%y: f32[8,6] = add %x, %b"},
                    Body{"mask_by_row",
                         "%x: f32[8,8] = input {dtype = f32, name = \"x\", shape = [8, 8]}\n"
                         "%y: f32[8,8] = where_causal %x {fill = 0.0}"},
                    Body{"product", X "%w: f32[6,2] = input {dtype = f32, name = \"w\", shape = [6, 2]}\n%y: f32[8,2] = matmul %x, %w"},
                    Body{"whole_and_in_slices",
                         "%x: f32[4,4] = input {dtype = f32, name = \"x\", shape = [4, 4]}\n"
                         "%z: f32[1,4,4] = reshape %x {shape = [1, 4, 4]}\n"
                         "%b: f32[4,4,4] = broadcast_to %z {shape = [4, 4, 4]}\n"
                         "%u: f32[4,4,1] = reshape %x {shape = [4, 4, 1]}\n"
                         "%c: f32[4,4,4] = broadcast_to %u {shape = [4, 4, 4]}\n%y: f32[4,4,4] = add %b, %c"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(WholeBody, is_refused) {
  Graph body = parse(textOf(GetParam())).orThrow();
  ASSERT_TRUE(validate(body).ok()) << toString(validate(body).diagnostics());
  EXPECT_FALSE(cutRows(body).has_value());
}

}  // namespace
}  // namespace lockstep::passes
