// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::arange_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  int64_t n = c.attributes.get<int64_t>("n");
  DType dtype = c.attributes.get<DType>("dtype");
  if (n < 1) return violated("arange", "C1", fmt::format("n is {}, wanted at least 1", n));
  if (!isNumber(dtype)) return violated("arange", "C2", fmt::format("the element type is {}, wanted f32, i32 or u32", toString(dtype)));
  int64_t limit = dtype == DType::F32 ? int64_t{1} << 24 : int64_t{1} << 31;
  if (n > limit) return violated("arange", "C3", fmt::format("{} counts exactly up to {}, not to {}", toString(dtype), limit, n));
  return std::vector{TensorType{dtype, Shape{n}}};
}

kernel::ValueId emit(ElementEmitter& e) {
  kernel::ValueId index = laneIndex(e);
  DType dtype = e.graph().typeOf(e.node().results[0]).dtype;
  if (dtype == DType::U32) return index;
  kernel::TypeTable& types = e.builder().types();
  return e.builder().convert(types.scalarOrVector(registerScalar(dtype), e.width()), index);
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, int64_t n, DType dtype) {
    return OpCase{name, {}, {{"n", n}, {"dtype", dtype}}, 0, "small whole numbers are exact"};
  };
  return {make("integer", 257, DType::I32), make("unsigned", 12, DType::U32), make("float", 1000, DType::F32), make("one", 1, DType::I32)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "arange",
    .summary = "The numbers 0, 1, ..., n - 1.",
    .constraints = ConstantList<Constraint>{{"C1", "n is at least 1"},
                                            {"C2", "the element type is f32, i32 or u32"},
                                            {"C3", "every number is exact: n is at most 2^24 for f32 and 2^31 for integers"}},
    .operands = ConstantList<std::string_view>{},
    .attributes = ConstantList<AttributeDef>{{"n", AttributeKind::Integer, "how many"}, {"dtype", AttributeKind::DType, "element type"}},
    .infer = infer,
    .gradient = NotDifferentiable{"a leaf: gradients end here"},
    .lower = ElementLowering{.emit = emit, .cheap = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateByIndex(c, [](const std::vector<int64_t>& index) { return static_cast<double>(index[0]); });
        },
    .cases = cases,
    .range = [](const RangeContext& c) -> std::vector<KnownRange> { return {IntegerRange{0, c.node.attributes.get<int64_t>("n") - 1}}; },
};

}  // namespace lockstep::graph::arange_op
