// SPDX-License-Identifier: Apache-2.0
// The laws that ops claim (OpDef::algebra), on numbers: passes rewrite by them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/scalar_graph.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

bool hasLaw(const OpDef& op) {
  const Algebra& law = op.algebra;
  return law.neutral || law.commutes || law.involution || law.last_counts;
}

class Law : public ::testing::TestWithParam<NamedCase> {
 protected:
  /// The op on some values of the case.
  ValueId apply(std::vector<ValueId> operands) {
    return made_.builder.make(*op().name, std::move(operands), GetParam().op_case.attributes);
  }
  [[nodiscard]] static const OpDef& op() { return *GetParam().op; }
  /// Two values are equal, to the bit.
  void expectEqual(ValueId a, ValueId b) {
    made_.builder.output(OutputKind::Result, "a", a);
    made_.builder.output(OutputKind::Result, "b", b);
    const std::vector<Tensor> values = run(made_.builder.graph(), made_.leaves);
    EXPECT_EQ(values[0].data, values[1].data);
  }

  CaseGraph made_ = buildCase(*GetParam().op, GetParam().op_case);
};

TEST_P(Law, holds) {
  const Algebra& law = op().algebra;
  const std::vector<ValueId> operands = made_.operands;
  if (law.neutral) {
    const ValueId neutral = made_.builder.constant(*law.neutral, made_.builder.typeOf(operands[1]));
    return expectEqual(apply({operands[0], neutral}), operands[0]);
  }
  if (law.involution) return expectEqual(apply({apply({operands[0]})}), operands[0]);
  ASSERT_TRUE(law.last_counts) << "a law without a test";
  // Through a line of all elements, which any of them can come from.
  const ValueId line =
      made_.builder.make(*op().name, {operands[0]}, {{"shape", std::vector<int64_t>{made_.builder.shapeOf(operands[0]).elementCount()}}});
  expectEqual(apply({line}), apply({operands[0]}));
}

TEST_P(Law, of_commuting_holds) {
  if (!op().algebra.commutes) GTEST_SKIP() << "it does not commute";
  expectEqual(apply({made_.operands[0], made_.operands[1]}), apply({made_.operands[1], made_.operands[0]}));
}

/// What scans combine, on random tuples: lines are cut into parts because it is associative.
class Monoid : public ::testing::TestWithParam<NamedCase> {
 protected:
  void SetUp() override {
    const ScanLowering& scan = std::get<ScanLowering>(*GetParam().op->lower);
    const Node& node = made_.builder.graph().definition(made_.results[0]);
    combine_ = scan.combine(made_.builder.graph(), node);
    if (scan.identity != nullptr) identity_ = scan.identity(node);
  }
  /// Elements in a cyclic order, so that a tuple meets others.
  std::vector<ValueId> rotated(int64_t by) {
    std::vector<ValueId> tuple;
    for (const ValueId operand : made_.operands) {
      const ValueId flat = made_.builder.reshape(operand, Shape{made_.builder.shapeOf(operand).elementCount()});
      tuple.push_back(made_.builder.make("roll", {flat}, {{"axis", int64_t{0}}, {"shift", by}}));
    }
    return tuple;
  }
  std::vector<ValueId> combined(std::vector<ValueId> earlier, const std::vector<ValueId>& later) {
    earlier.insert(earlier.end(), later.begin(), later.end());
    return applyScalars(made_.builder, combine_, earlier);
  }
  void expectClose(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    for (const ValueId value : a) made_.builder.output(OutputKind::Result, "a", value);
    for (const ValueId value : b) made_.builder.output(OutputKind::Result, "b", value);
    const std::vector<Tensor> values = run(made_.builder.graph(), made_.leaves);
    for (size_t i = 0; i < a.size(); ++i) {
      const std::vector<double>&left = values[i].data, &right = values[a.size() + i].data;
      for (size_t n = 0; n < left.size(); ++n) ASSERT_NEAR(left[n], right[n], 1e-12 * std::max(1.0, std::abs(left[n])));
    }
  }

  CaseGraph made_ = buildCase(*GetParam().op, GetParam().op_case);
  Graph combine_;
  std::vector<double> identity_;
};

TEST_P(Monoid, is_associative) {
  const std::vector<ValueId> x = rotated(0), y = rotated(1), z = rotated(2);
  expectClose(combined(combined(x, y), z), combined(x, combined(y, z)));
}

TEST_P(Monoid, has_the_identity_that_it_names) {
  if (identity_.empty()) GTEST_SKIP() << "it names none";
  const std::vector<ValueId> x = rotated(0);
  std::vector<ValueId> identity;
  for (size_t i = 0; i < x.size(); ++i) identity.push_back(made_.builder.constant(identity_[i], made_.builder.typeOf(x[i])));
  expectClose(combined(identity, x), x);
}

INSTANTIATE_TEST_SUITE_P(Ops, Monoid,
                         ::testing::ValuesIn(namedCases([](const OpDef& op) { return std::holds_alternative<ScanLowering>(*op.lower); })),
                         [](const auto& info) { return info.param.name(); });

INSTANTIATE_TEST_SUITE_P(Ops, Law, ::testing::ValuesIn(namedCases([](const OpDef& op) { return hasLaw(op); })),
                         [](const auto& info) { return info.param.name(); });

/// Which passes may compute elements in another order: all of those whose operands have the shape of the result and that do not say that
/// they need an index. The mask of attention is the exception, which passes know (channels_last.cpp).
TEST(Elements, do_not_depend_on_their_position) {
  const std::vector<NamedCase> cases = namedCases([](const OpDef& op) {
    const auto* element = std::get_if<ElementLowering>(&*op.lower);
    return element != nullptr && !element->scalar_only && *op.name != "where_causal";
  });
  size_t compared = 0;
  for (const NamedCase& named : cases) {
    CaseGraph made = buildCase(*named.op, named.op_case);
    const TensorType type = made.builder.typeOf(made.results[0]);
    const auto has_shape = [&](ValueId operand) { return made.builder.shapeOf(operand) == type.shape; };
    if (made.operands.empty() || !std::ranges::all_of(made.operands, has_shape)) continue;
    ++compared;
    made.builder.output(OutputKind::Result, "y", made.results[0]);
    LeafValues turned = made.leaves;
    for (auto& [name, tensor] : turned) std::ranges::reverse(tensor.data);
    std::vector<double> got = run(made.builder.graph(), turned)[0].data;
    const std::vector<double> want = run(made.builder.graph(), made.leaves)[0].data;
    std::ranges::reverse(got);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) << named.name() << " at " << i;
  }
  EXPECT_GT(compared, 50u);
}

}  // namespace
}  // namespace lockstep::graph::testing
