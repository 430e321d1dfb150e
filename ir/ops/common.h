// SPDX-License-Identifier: Apache-2.0
// What families of ops share: type rules of element-wise ops, loops of their evaluators and their usual cases.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// C1: operands have one dtype out of `allowed`; C2: one shape. Result: the same type.
Result<std::vector<TensorType>> inferSame(std::string_view op, const InferContext& context, std::initializer_list<DType> allowed);

/// Result i = function(operand elements i); operands and result have one shape.
std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double));
std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double, double));

/// Cases of a float element-wise op of `operands` operands: small, odd and four axes.
std::vector<OpCase> elementCases(size_t operands, double lo, double hi, double tolerance = 1e-6,
                                 std::string_view reason = "one rounding an element");

/// An axis attribute in [-rank, rank) as [0, rank); C-label failure otherwise.
Result<int64_t> normaliseAxis(std::string_view op, std::string_view label, int64_t axis, size_t rank);

/// The kernel scalar that holds an element; a bool is held as a bool (memory has u32).
kernel::TypeId kernelType(kernel::Builder& builder, DType dtype);

/// Row-major counting over a shape; false after the last index.
bool nextIndex(std::vector<int64_t>& index, const std::vector<int64_t>& extents);

inline TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }
inline TensorType i32(Shape shape) { return {DType::I32, std::move(shape)}; }
inline TensorType boolean(Shape shape) { return {DType::Bool, std::move(shape)}; }

}  // namespace lockstep::graph
