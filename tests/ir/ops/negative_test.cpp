// SPDX-License-Identifier: Apache-2.0
// Every constraint of every op: operands or attributes that break it alone are refused under its code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"
#include "tests/ir/ops/broken_ops.h"

namespace lockstep::graph::testing {
namespace {

Result<std::vector<ValueId>> build(const Broken& broken) {
  Builder builder;
  builder.mutableGraph().constants = broken.constants;
  std::vector<ValueId> operands;
  for (const TensorType& type : broken.operands) operands.push_back(addInput(builder, fmt::format("operand{}", operands.size()), type));
  return builder.tryMake(op(broken.op), operands, broken.attributes);
}

class Constraint : public ::testing::TestWithParam<Broken> {};

TEST_P(Constraint, Broken_IsRefusedUnderItsCode) {
  auto made = build(GetParam());
  ASSERT_FALSE(made.ok());
  ASSERT_EQ(made.diagnostics().size(), 1U);
  const Diagnostic& diagnostic = made.diagnostics().front();
  EXPECT_EQ(diagnostic.code, fmt::format("{}.{}", GetParam().op, GetParam().label));
  ASSERT_FALSE(diagnostic.message.empty());
  EXPECT_NE(diagnostic.message.back(), '.');
}

INSTANTIATE_TEST_SUITE_P(Op, Constraint, ::testing::ValuesIn(brokenCases()), [](const auto& info) { return info.param.name(); });

TEST(Constraints, EachOne_HasABrokenCase) {
  std::set<std::string> tested;
  for (const Broken& broken : brokenCases()) tested.insert(broken.name());
  for (const OpDef* op : allOps()) {
    for (const auto& constraint : *op->constraints) {
      std::string name = fmt::format("{}_{}", *op->name, constraint.label);
      EXPECT_EQ(tested.erase(name), 1U) << name;
    }
  }
  EXPECT_TRUE(tested.empty()) << *tested.begin();
}

// Further ways to break a constraint that share a code with the ones above.
TEST(Constraints, OtherWaysToBreakThem_AreRefusedToo) {
  TensorType x = f32({2, 3}), flag = boolean({2, 3});
  int64_t huge = int64_t{1} << 62;
  double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Broken> others{
      {"add", "C1", {flag, flag}, {}, {}},
      {"less", "C1", {flag, flag}, {}, {}},
      {"clamp", "C2", {x}, {{"lo", nan}, {"hi", 1.0}}, {}},
      {"argmax", "C2", {x}, {{"axis", int64_t{-1}}}, {}},
      {"input", "C1", {}, leaf({huge, huge, huge}), {}},
      {"constant", "C2", {}, {{"value", nan}, {"dtype", DType::I32}, {"shape", Integers{2}}}, {}},
      {"constant", "C2", {}, {{"value", 2147483648.0}, {"dtype", DType::I32}, {"shape", Integers{2}}}, {}},
      {"constant", "C2", {}, {{"value", 2.0}, {"dtype", DType::Bool}, {"shape", Integers{2}}}, {}},
      {"sum", "C2", {x}, reduction({0, 0}), {}},
      {"sum", "C2", {x}, reduction({-1}), {}},
      {"reshape", "C1", {x}, shapeOf({huge, huge}), {}},
      {"permute", "C1", {x}, {{"permutation", Integers{0}}}, {}},
      {"permute", "C1", {x}, {{"permutation", Integers{-1, 0}}}, {}},
      {"narrow", "C2", {x}, range(1, INT64_MAX, 1), {}},
      {"narrow", "C2", {x}, range(1, 0, 0), {}},
      {"narrow", "C2", {x}, range(1, -1, 1), {}},
      {"narrow", "C1", {f32({})}, range(0, 0, 1), {}},
      {"pad", "C3", {x}, padding(1, INT64_MAX, INT64_MAX, 0), {}},
      {"broadcast_to", "C2", {x}, shapeOf({3}), {}},
      {"sum_to_shape", "C2", {x}, shapeOf({1, 2, 3}), {}},
      {"windows", "C1", {x}, window({{"padding_low", Integers{INT64_MIN}}, {"fill", 0.0}}), {}},
      {"windows", "C1", {x}, window({{"kernel", Integers{2, 2, 2}}, {"fill", 0.0}}), {}},
      {"windows", "C2", {x}, window({{"padding_high", Integers{-2}}, {"fill", 0.0}}), {}},
      {"skew", "C2", {x}, skewed({{"padding", Integers{INT64_MIN}}}), {}},
      {"fold", "C3", {f32({3, 2})}, window({{"extents", Integers{INT64_MAX}}}), {}},
      {"conv", "C3", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"stride", Integers{1}}}), {}},
      {"conv", "C3", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"dilation", Integers{1, INT64_MAX}}}), {}},
      {"conv_transpose", "C3", {f32({1, 2, 4, 4}), f32({2, 3, 3, 3})}, transposed({{"output_padding", Integers{0}}}), {}},
      {"conv_transpose", "C5", {f32({1, 1, 4, 4}), f32({1, 1, 1 << 20, 3})}, transposed({{"dilation", Integers{1 << 20, 1}}}), {}},
      {"einsum", "C2", {x}, {{"equation", std::string("i j->ij")}}, {}},
      {"einsum", "C2", {x, x, x}, {{"equation", std::string("ij,ij,ij->ij")}}, {}},
      {"einsum", "C6", {x}, {{"equation", std::string("ij->ii")}}, {}},
      {"matmul", "C4", {f32({2, 2, 3}), f32({3, 3, 2})}, {}, {}},
      {"one_hot", "C2", {i32({2})}, {{"depth", INT64_MAX}}, {}},
      {"cross_entropy", "C5", {x, i32({2}), i32({3})}, mean(), {}},
      {"cross_entropy", "C5", {x, i32({2}), f32({3}), f32({3})}, mean(), {}},
      {"layer_norm", "C4", {x, f32({3}), f32({3})}, eps(nan), {}},
      {"pack", "C4", {x, x}, parts({0, 0}, 128), {}},
      {"pack", "C4", {x}, parts({-64}, 128), {}},
      {"pack", "C4", {x}, parts({0}, 5), {}},
      {"pack", "C4", {x}, parts({INT64_MAX / 64 * 64}, 64), {}},
      {"pack", "C5", {}, parts({}, -1), {}},
      {"update_slice", "C2", {x, f32({2})}, {{"offset", INT64_MAX}}, {}},
      {"linear_recurrence", "C1", {i32({2, 3}), i32({2, 3})}, {{"axis", int64_t{0}}, {"reverse", false}}, {}},
      {"write_rows", "C4", {f32({4, 9}), f32({4, 2}), i32({3})}, {{"axis", int64_t{1}}}, {}},
      {"write_rows", "C4", {f32({4, 9}), f32({2, 9}), i32({4})}, {{"axis", int64_t{0}}}, {}},
      {"rope", "C6", {f32({2, 3, 5, 8}), i32({3, 5})}, turning(), {}},
      {"associative_scan", "C1", {}, scanned(0, adding(DType::F32)), {}},
      {"associative_scan", "C3", {x}, scanned(0, "lockstep.graph"), {}},
      {"associative_scan", "C3", {x, x}, scanned(0, adding(DType::F32)), {}},
      {"associative_scan", "C3", {x}, scanned(0, summing()), {}},
      {"causal_conv1d", "C2", {f32({2, 5, 3}), f32({4, 4}), f32({3})}, {}, {}},
      {"causal_conv1d", "C4", {f32({2, 5, 3}), f32({3, 4}), f32({3}), f32({2, 3, 3}), f32({2, 3, 3})}, {}, {}},
      {"causal_conv1d", "C4", {f32({2, 5, 3}), f32({3, 1}), f32({3}), f32({2, 1, 3})}, {}, {}},
      {"update_slice", "C2", {x, f32({2})}, {{"offset", int64_t{-1}}}, {}},
  };
  for (const Broken& broken : others) {
    auto made = build(broken);
    ASSERT_FALSE(made.ok()) << broken.name();
    EXPECT_EQ(made.diagnostics().front().code, fmt::format("{}.{}", broken.op, broken.label));
  }
}

TEST(Operands, WrongNumber_IsRefused) {
  Builder builder;
  ValueId x = addInput(builder, "x", f32({2}));
  auto made = builder.tryMake(op("add"), {x});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.diagnostics().front().code, "add.operands");
}

}  // namespace
}  // namespace lockstep::graph::testing
