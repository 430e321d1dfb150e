// SPDX-License-Identifier: Apache-2.0
// What leaves share: their type is stated by their attributes, and the evaluator supplies their value.
#pragma once

#include "ir/graph/op_def.h"

namespace lockstep::graph {

inline constexpr Constraint kLeafExtents{"C1", "every extent is at least 1 and the element count fits in 32 bits"};
/// name, dtype and shape; `name_text` explains the name.
constexpr ConstantList<AttributeDef> leafAttributes(std::string_view name_text) {
  return {{"name", AttributeKind::String, name_text},
          {"dtype", AttributeKind::DType, "element type"},
          {"shape", AttributeKind::Integers, "shape"}};
}
/// C1: every extent of `shape` is at least 1 and the element count fits in 32 bits. Result: dtype[shape].
Result<std::vector<TensorType>> inferLeaf(std::string_view op, const InferContext& context);
/// A dense node; a constant that the graph has already is used again, so that equal tables of several layers become one.
ValueId makeDense(Builder& b, Constant constant);
/// For leaves whose value comes from outside; an InternalError when called.
std::vector<Tensor> evaluateNoLeaf(const EvaluateContext& context);
/// For ops that are tested through whole programs only (leaves, group).
std::vector<OpCase> noCases();

}  // namespace lockstep::graph
