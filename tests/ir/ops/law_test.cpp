// SPDX-License-Identifier: Apache-2.0
// The laws that ops claim (OpDef::algebra), on numbers: passes rewrite by them.
#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Ops, Law, ::testing::ValuesIn(namedCases([](const OpDef& op) { return hasLaw(op); })),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace lockstep::graph::testing
