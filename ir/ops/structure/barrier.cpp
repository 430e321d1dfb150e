// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

namespace lockstep::graph::barrier_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  std::vector<ValueId> cotangents(g.operands.size());
  cotangents[0] = g.cotangents[0];
  return cotangents;
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType x, std::vector<OperandCase> after) {
    OpCase made{name, {{std::move(x)}}, {}, 0, kExactReason};
    for (OperandCase& operand : after) made.operands.push_back(std::move(operand));
    return made;
  };
  return {make("one", f32({5, 7}), {{f32({3})}}), make("two", f32({33}), {{i32({2}), 0, 9}, {f32({})}}), make("none", f32({6}), {}),
          make("integer", i32({9}), {{f32({4})}})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "barrier",
    .summary = "x itself, for use only once all other operands are computed: what recomputes from it runs then, and not before.",
    .constraints = ConstantList<Constraint>{},
    .operands = ConstantList<std::string_view>{"x", "after..."},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) -> Result<std::vector<TensorType>> { return std::vector{c.operands[0]}; },
    .gradient = GradientFn(gradient),
    .lower = StorageLowering{},
    .alias = AliasView{},
    .evaluate = [](const EvaluateContext& c) { return std::vector{Tensor{c.results[0], c.operands[0]->data}}; },
    .cases = cases,
};

}  // namespace lockstep::graph::barrier_op
