// SPDX-License-Identifier: Apache-2.0
// Every case of every op with floats of 16 bits in memory, forward and gradient: inputs are widened, and results rounded. Without
// LOCKSTEP_NIGHTLY two cases of each op run, the first one in one type and the last one in the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/differential/packed_case.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::OpDef;
using graph::testing::buildCase;
using graph::testing::CaseGraph;

bool hasFloats(const graph::OpCase& op_case) {
  return std::ranges::any_of(op_case.operands, [](const graph::OperandCase& x) { return x.type.dtype == DType::F32; });
}

std::vector<graph::OpCase> casesOf(const OpDef& op) {
  std::vector<graph::OpCase> cases = (*op.cases)();
  std::erase_if(cases, [](const graph::OpCase& one) { return !hasFloats(one); });
  return cases;
}

/// Ops that compute, with a float among the operands.
std::vector<const OpDef*> opsOfFloats() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : graph::allOps()) {
    if (!std::holds_alternative<graph::StorageLowering>(*op->lower) && !casesOf(*op).empty()) ops.push_back(op);
  }
  return ops;
}

PackedCase makeCase(const OpDef& op, const graph::OpCase& op_case, DType dtype) {
  CaseGraph made = buildCase(op, op_case, 1, dtype);
  for (size_t i = 0; i < made.results.size(); ++i) made.builder.output(graph::OutputKind::Result, "y" + std::to_string(i), made.results[i]);
  return {made.builder.take(), std::move(made.leaves), op_case.tolerance, fmt::format("{}_{}", *op.name, op_case.name)};
}

class Packed : public testing::TestWithParam<const OpDef*> {
 protected:
  /// Calls check(case, dtype) for those that are run.
  void forEachCase(const auto& check) const {
    const std::vector<graph::OpCase> cases = casesOf(*GetParam());
    const bool all = std::getenv("LOCKSTEP_NIGHTLY") != nullptr;
    for (size_t i = 0; i < cases.size(); ++i) {
      for (const DType dtype : {DType::BF16, DType::F16}) {
        const bool is_sample = i == (dtype == DType::BF16 ? 0 : cases.size() - 1);
        if (all || is_sample) check(cases[i], dtype);
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ops, Packed, testing::ValuesIn(opsOfFloats()), [](const auto& info) { return std::string(*info.param->name); });

TEST_P(Packed, results_are_those_of_f32_rounded) {
  forEachCase([&](const graph::OpCase& op_case, DType dtype) { expectRounded(makeCase(*GetParam(), op_case, dtype), dtype); });
}

TEST_P(Packed, gradients_are_those_of_f32_rounded) {
  if (std::holds_alternative<graph::NotDifferentiable>(*GetParam()->gradient)) GTEST_SKIP() << "not differentiable";
  forEachCase([&](const graph::OpCase& op_case, DType dtype) {
    PackedCase made = makeCase(*GetParam(), op_case, dtype);
    if (!graph::isFloat(made.graph.typeOf(made.graph.outputs.front().value).dtype)) return;
    std::vector<std::string> wrt;
    for (size_t i = 0; i < op_case.operands.size(); ++i) {
      if (op_case.operands[i].type.dtype == DType::F32) wrt.push_back("operand" + std::to_string(i));
    }
    expectRounded(gradientsOf(std::move(made), wrt, dtype), dtype);
  });
}

}  // namespace
}  // namespace lockstep
