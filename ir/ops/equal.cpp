// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(std::vector<TensorType> types, inferSame("equal", c, {DType::F32, DType::I32, DType::U32, DType::Bool}));
  types.front().dtype = DType::Bool;
  return types;
}

}  // namespace

extern const OpDef kEqualOp;
const OpDef kEqualOp{
    .name = "equal",
    .summary = "Whether a = b, element by element.",
    .constraints = std::vector<Constraint>{{"C1", "operands have the same element type"}, {"C2", "operands have the same shape"}},
    .operands = std::vector<std::string_view>{"a", "b"},
    .attributes = std::vector<AttributeDef>{},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is a truth value, which is constant almost everywhere"},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Eq, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return a == b ? 1.0 : 0.0; }); },
    .cases =
        [] {
          std::vector<OpCase> cases = elementCases(2, -2, 2, 0, "a comparison has no rounding");
          cases.push_back({"integer_ties", {{i32({6, 11}), -2, 2}, {i32({6, 11}), -2, 2}}, {}, 0, "a comparison has no rounding"});
          cases.push_back({"bool", {{boolean({5, 7}), 0, 1}, {boolean({5, 7}), 0, 1}}, {}, 0, "a comparison has no rounding"});
          return cases;
        },
};

}  // namespace lockstep::graph
