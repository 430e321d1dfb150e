// SPDX-License-Identifier: Apache-2.0
// Where small programs save levels: independent products whose sum is left to its reader, and short columns that are summed in one stage.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/graph_input.h"

namespace lockstep {
namespace {

using graph::ValueId;

struct Plan {
  size_t levels = 0, dispatches = 0;
  friend bool operator==(const Plan&, const Plan&) = default;
  friend void PrintTo(const Plan& plan, std::ostream* out) { *out << plan.levels << " levels, " << plan.dispatches << " dispatches"; }
};

Plan planned(graph::Builder& b) {
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 132;
  options.disabled = {"chainRows"};  // which would make these small products in one kernel
  options.templates = detail::templateSource();
  const auto program = std::get<program::Program>(passes::compileTo(passes::Stage::Scheduled, b.graph(), options).orThrow());
  return {program.levelCount(), program.commands.size()};
}

/// Three products of `rows` x 64, their sum, and a softmax of that where `is_read`.
graph::Builder threeProducts(int64_t rows, bool is_read) {
  graph::Builder b;
  ValueId sum;
  for (const char* name : {"q", "k", "v"}) {
    const ValueId x = b.make("exp", {f32Input(b, name, {rows, 64})}), w = f32Input(b, std::string(name) + ".w", {64, 64});
    const ValueId product = b.make("matmul", {x, w});
    sum = sum.valid() ? b.add(sum, product) : product;
  }
  b.output(graph::OutputKind::Result, "y", is_read ? b.make("softmax", {sum}) : sum);
  return b;
}

TEST(LateSums, products_do_not_wait_for_each_other) {
  graph::Builder small = threeProducts(1536, true);
  // The exponentials, the products, and rows that add them: not three products one after the other.
  EXPECT_EQ(planned(small), (Plan{3, 7}));
}

TEST(LateSums, without_a_reader_a_product_adds) {
  graph::Builder b = threeProducts(1536, false);
  // Two products run in one level. The third one runs in the next and adds all three.
  EXPECT_EQ(planned(b), (Plan{3, 6}));
}

TEST(LateSums, large_sums_are_made_by_products) {
  graph::Builder large = threeProducts(65536, true);
  EXPECT_EQ(planned(large).levels, 5u) << "to write and read 16 MiB more takes longer than a level";
}

TEST(ShortColumns, run_in_one_stage) {
  const auto columns = [](int64_t rows) {
    graph::Builder b;
    const ValueId x = f32Input(b, "x", {rows, 768});
    b.output(graph::OutputKind::Result, "y", b.make("sum", {x}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}}));
    return planned(b);
  };
  EXPECT_EQ(columns(128), (Plan{1, 1}));
  EXPECT_EQ(columns(131), (Plan{1, 1}));
  EXPECT_EQ(columns(16384), (Plan{2, 2}));
}

}  // namespace
}  // namespace lockstep
