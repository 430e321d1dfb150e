// SPDX-License-Identifier: Apache-2.0
// Every case of every op with floats of 16 bits in memory, forward and gradient: inputs are widened, and results rounded. What may come out
// is what the f32 results of any device are rounded to.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::testing::buildCase;
using graph::testing::CaseGraph;
using graph::testing::NamedCase;
using graph::testing::namedCases;
using graph::testing::weightedSum;

/// Of ops that compute, those with a float among the operands.
std::vector<NamedCase> casesOfFloats() {
  std::vector<NamedCase> cases =
      namedCases([](const graph::OpDef& op) { return !std::holds_alternative<graph::StorageLowering>(*op.lower); });
  std::erase_if(cases, [](const NamedCase& named) {
    return std::ranges::none_of(named.op_case.operands, [](const graph::OperandCase& x) { return x.type.dtype == DType::F32; });
  });
  return cases;
}

class Packed : public testing::TestWithParam<std::tuple<NamedCase, DType>> {
 protected:
  [[nodiscard]] const NamedCase& named() const { return std::get<0>(GetParam()); }
  [[nodiscard]] DType dtype() const { return std::get<1>(GetParam()); }
  [[nodiscard]] CaseGraph made() const { return buildCase(*named().op, named().op_case, 1, dtype()); }

  /// Each element is one that a number within the bound of `wide`, the results before they were rounded, is rounded to.
  void expectRounded(const std::vector<graph::Tensor>& got, const std::vector<graph::Tensor>& want, const std::vector<RoundingBounds>& wide,
                     double tolerance, const std::string& device) const {
    ASSERT_EQ(got.size(), want.size());
    ASSERT_EQ(wide.size(), want.size());
    for (size_t output = 0; output < want.size(); ++output) {
      ASSERT_EQ(got[output].type, want[output].type);
      if (want[output].type.dtype != dtype()) continue;
      double largest = 0;
      for (const double value : want[output].data) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
      for (size_t i = 0; i < want[output].data.size(); ++i) {
        const double exact = want[output].data[i], value = got[output].data[i];
        if (!std::isfinite(exact)) {
          EXPECT_TRUE(value == exact || (std::isnan(value) && std::isnan(exact))) << i;
          continue;
        }
        const bool is_known = i < wide[output].values.size() && !std::isnan(wide[output].values[i]);
        const double centre = is_known ? wide[output].values[i] : exact;
        const double bound = (is_known ? static_cast<double>(wide[output].bounds[i]) : 0) + tolerance * (std::abs(exact) + largest);
        EXPECT_GE(value, graph::roundedTo(dtype(), centre - bound))
            << fmt::format("{}: output {}, element {} on {}", named().name(), output, i, device);
        EXPECT_LE(value, graph::roundedTo(dtype(), centre + bound))
            << fmt::format("{}: output {}, element {} on {}", named().name(), output, i, device);
        if (HasFailure()) return;
      }
    }
  }
};

/// A case's results as outputs, rounded or as they are.
void addResults(CaseGraph& made, DType dtype, bool is_rounded) {
  for (size_t i = 0; i < made.results.size(); ++i) {
    const bool rounds = is_rounded && made.builder.typeOf(made.results[i]).dtype == DType::F32;
    const graph::ValueId result = rounds ? made.builder.make("cast", {made.results[i]}, {{"dtype", dtype}}) : made.results[i];
    made.builder.output(graph::OutputKind::Result, "y" + std::to_string(i), result);
  }
}

TEST_P(Packed, results_are_those_of_f32_rounded) {
  CaseGraph rounded = made(), wide = made();
  addResults(rounded, dtype(), true);
  addResults(wide, dtype(), false);
  const std::vector<graph::Tensor> want = runGraph(rounded.builder.graph(), rounded.leaves);
  for (const std::string& device : devicesUnderTest()) {
    const GraphRunOptions options{.device = device};
    expectRounded(runGraph(rounded.builder.graph(), rounded.leaves, options), want, boundGraph(wide.builder.graph(), wide.leaves, options),
                  named().op_case.tolerance, device);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Packed, testing::Combine(testing::ValuesIn(casesOfFloats()), testing::Values(DType::BF16, DType::F16)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name() + "_" + std::string(graph::toString(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace lockstep
