// SPDX-License-Identifier: Apache-2.0
// Which products get copies of their operands in rows of whole quads.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/graph/pad_products.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::Shape;
using graph::ValueId;

program::DeviceProfile unitsProfile() {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 132;
  profile.f16 = true;
  profile.matrix_f16 = profile.matrix_bf16 = {.m = 16, .n = 16, .k = 16};
  return profile;
}

/// a b, of which either may be stored transposed.
graph::Graph product(int64_t m, int64_t n, int64_t k, std::string_view order = "nn", DType stored = DType::F32) {
  graph::Builder b;
  const auto operand = [&](std::string name, int64_t rows, int64_t columns, bool turned) {
    if (turned) std::swap(rows, columns);
    ValueId made = b.make("input", {}, {{"name", std::move(name)}, {"shape", std::vector<int64_t>{rows, columns}}, {"dtype", stored}});
    if (stored != DType::F32) made = b.make("cast", {made}, {{"dtype", DType::F32}});
    return turned ? b.swapLastAxes(made) : made;
  };
  const ValueId left = operand("a", m, k, order[0] == 't'), right = operand("b", k, n, order[1] == 't');
  b.output(graph::OutputKind::Result, "out", b.make("matmul", {left, right}));
  return b.take();
}

struct Found {
  int64_t copies = 0;
  Shape left{}, right{};  ///< of the product
};

Found padded(const graph::Graph& graph, const program::DeviceProfile& profile = unitsProfile()) {
  const graph::Graph made = passes::padProducts(graph, {profile}).orThrow();
  Found found;
  for (const graph::NodeId id : made.body().nodes) {
    const graph::Node& node = made[id];
    if (*node.op->name == "barrier") ++found.copies;
    if (*node.op->name == "matmul") found = {found.copies, made.shapeOf(node.operands[0]), made.shapeOf(node.operands[1])};
  }
  EXPECT_EQ(made.shapeOf(made.outputs[0].value), graph.shapeOf(graph.outputs[0].value));
  return found;
}

TEST(PadProducts, rows_of_odd_lengths_are_copied) {
  const Found all = padded(product(4095, 4095, 4095));
  EXPECT_EQ(all.copies, 2);
  EXPECT_EQ(all.left, (Shape{4095, 4096}));
  EXPECT_EQ(all.right, (Shape{4096, 4096}));
  const Found turned = padded(product(4095, 4095, 4095, "tt"));
  EXPECT_EQ(turned.left, (Shape{4096, 4096}));
  EXPECT_EQ(turned.right, (Shape{4096, 4095}));
  EXPECT_EQ(padded(product(4095, 4095, 4095, "nt", DType::BF16)).copies, 2);
}

TEST(PadProducts, only_what_lies_in_such_rows_is) {
  const Found columns = padded(product(4095, 4097, 4096));
  EXPECT_EQ(columns.copies, 1) << "the left one has whole rows";
  EXPECT_EQ(columns.left, (Shape{4095, 4096}));
  EXPECT_EQ(columns.right, (Shape{4096, 4100}));
  EXPECT_EQ(padded(product(4095, 4097, 4096, "nt")).copies, 0) << "odd extents that are no lengths of rows";
}

TEST(PadProducts, small_products_and_devices_without_units_are_left_alone) {
  EXPECT_EQ(padded(product(255, 255, 255)).copies, 0);
  EXPECT_EQ(padded(product(4095, 4095, 63)).copies, 0);
  EXPECT_EQ(padded(product(1 << 18, 3, 4096)).copies, 0) << "too few columns for a tile";
  EXPECT_EQ(padded(product(4095, 4095, 17, "nn", DType::BF16)).copies, 0);
  EXPECT_EQ(padded(product(4095, 4095, 4095), gpuProfile()).copies, 0);
  program::DeviceProfile strict = unitsProfile();
  strict.matrix_f16 = {};
  EXPECT_EQ(padded(product(4095, 4095, 4095), strict).copies, 0);
}

/// Heads side by side in rows: the copy is of what lies in memory, and the views of it follow.
TEST(PadProducts, views_follow_their_copy) {
  graph::Builder b;
  const ValueId x = b.make("input", {}, {{"name", "x"}, {"shape", std::vector<int64_t>{64, 256, 1001}}, {"dtype", DType::F32}});
  const ValueId w = b.make("input", {}, {{"name", "w"}, {"shape", std::vector<int64_t>{1001, 4096}}, {"dtype", DType::F32}});
  b.output(graph::OutputKind::Result, "out", b.make("matmul", {b.reshape(x, Shape{16384, 1001}), w}));
  const Found found = padded(b.take());
  EXPECT_EQ(found.copies, 2);
  EXPECT_EQ(found.left, (Shape{16384, 1004}));
  EXPECT_EQ(found.right, (Shape{1004, 4096}));
}

TEST(PadProducts, a_product_with_itself_turned_is_padded_once) {
  graph::Builder b;
  const ValueId x = b.make("input", {}, {{"name", "x"}, {"shape", std::vector<int64_t>{4096, 4095}}, {"dtype", DType::F32}});
  b.output(graph::OutputKind::Result, "out", b.make("matmul", {x, b.swapLastAxes(x)}));
  const Found found = padded(b.take());
  EXPECT_EQ(found.copies, 1);
  EXPECT_EQ(found.left, (Shape{4096, 4096}));
  EXPECT_EQ(found.right, (Shape{4096, 4096}));
}

TEST(PadProducts, products_of_one_operand_share_its_copy) {
  graph::Builder b;
  const auto leaf = [&](std::string name, int64_t rows, int64_t columns) {
    return b.make("input", {}, {{"name", std::move(name)}, {"shape", std::vector<int64_t>{rows, columns}}, {"dtype", DType::F32}});
  };
  const ValueId shared = leaf("shared", 4096, 4095);
  b.output(graph::OutputKind::Result, "one", b.make("matmul", {leaf("a", 4096, 4096), shared}));
  b.output(graph::OutputKind::Result, "other", b.make("matmul", {leaf("c", 8192, 4096), shared}));
  EXPECT_EQ(padded(b.take()).copies, 1);
}

}  // namespace
}  // namespace lockstep
