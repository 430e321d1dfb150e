// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::graph {

Result<std::vector<TensorType>> inferSame(std::string_view op, const InferContext& context, std::initializer_list<DType> allowed) {
  const TensorType& first = context.operands.front();
  for (const TensorType& type : context.operands) {
    if (std::find(allowed.begin(), allowed.end(), type.dtype) == allowed.end() || type.dtype != first.dtype) {
      std::string wanted;
      for (DType dtype : allowed) wanted += fmt::format("{}{}", wanted.empty() ? "" : " or ", toString(dtype));
      return violated(op, "C1", fmt::format("operands are {} and {}, wanted one type out of {}", toString(first), toString(type), wanted));
    }
    if (type.shape != first.shape)
      return violated(op, "C2", fmt::format("operands have shapes {} and {}", toString(first.shape), toString(type.shape)));
  }
  return std::vector{first};
}

std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double)) {
  Tensor out{context.results.front(), context.operands[0]->data};
  for (double& value : out.data) value = function(value);
  return {std::move(out)};
}

std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double, double)) {
  Tensor out{context.results.front(), context.operands[0]->data};
  const std::vector<double>& b = context.operands[1]->data;
  for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = function(out.data[i], b[i]);
  return {std::move(out)};
}

std::vector<OpCase> elementCases(size_t operands, double lo, double hi, double tolerance, std::string_view reason) {
  std::vector<OpCase> cases;
  for (const auto& [name, shape] : std::initializer_list<std::pair<std::string_view, Shape>>{
           {"small", {3, 5}}, {"odd", {257}}, {"four", {2, 3, 4, 5}}, {"scalar", {}}}) {
    cases.push_back({name, std::vector<OperandCase>(operands, OperandCase{f32(shape), lo, hi}), {}, tolerance, reason});
  }
  return cases;
}

Result<int64_t> normaliseAxis(std::string_view op, std::string_view label, int64_t axis, size_t rank) {
  int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return violated(op, label, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + r : axis;
}

kernel::TypeId kernelType(kernel::Builder& builder, DType dtype) {
  static constexpr std::array kScalars{kernel::Scalar::F32, kernel::Scalar::I32, kernel::Scalar::U32, kernel::Scalar::Bool};
  return builder.types().scalar(kScalars[static_cast<size_t>(dtype)]);
}

bool nextIndex(std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace lockstep::graph
