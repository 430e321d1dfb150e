// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::mul_op {
namespace {

std::vector<Tensor> evaluateMul(const EvaluateContext& c) {
  if (c.results[0].dtype == DType::F32) return evaluateEach(c, [](double a, double b) { return a * b; });
  // The low 32 bits of the exact product; a double would lose them above 2^53.
  return evaluateEach(c, [](double a, double b) {
    uint64_t product = static_cast<uint64_t>(static_cast<int64_t>(a)) * static_cast<uint64_t>(static_cast<int64_t>(b));
    return static_cast<double>(product & UINT32_MAX);
  });
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "mul",
    .summary = "Product of two tensors, element by element.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, f32, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("mul", c, {DType::F32, DType::I32, DType::U32}); },
    .gradient = GradientFn([](const GradientContext& g) {
      ValueId dy = g.cotangents[0];
      return std::vector{g.builder.mul(dy, g.operands[1]), g.builder.mul(dy, g.operands[0])};
    }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Mul, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = evaluateMul,
    .cases = [] { return elementCases(2, -2, 2, kOneRounding, kOneRoundingReason); },
    .algebra = {.neutral = 1, .commutes = true},
    .range =
        [](const RangeContext& c) {
          return combinedRange(c, [](IntegerRange a, IntegerRange b) {
            if (a.hi > INT32_MAX || b.hi > INT32_MAX) return IntegerRange{0, INT64_MAX};  // of u32: products may be beyond 64 bits
            const auto [lo, hi] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
            return IntegerRange{lo, hi};
          });
        },
};

}  // namespace lockstep::graph::mul_op
