// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/row_updates.h"

#include <fmt/format.h>

namespace lockstep::graph {

Result<std::vector<TensorType>> inferRowUpdate(std::string_view op, const InferContext& c) {
  const TensorType &x = c.operands[0], &rows = c.operands[1], &at = c.operands[2];
  if (x.dtype != rows.dtype) return violated(op, "C1", fmt::format("operands are {} and {}, wanted one type", toString(x), toString(rows)));
  const auto axis = c.attributes.get<int64_t>("axis");
  LS_CHECK(checkAxis(op, "C2", axis, x.shape.rank()));
  const int64_t row = x.shape.strides()[static_cast<size_t>(axis)], per_word = elementsPerWord(x.dtype);
  if (row % per_word != 0)
    return violated(op, "C1", fmt::format("a row of {} has {} elements, wanted a multiple of {}", toString(x), row, per_word));
  bool fits = rows.shape.rank() == x.shape.rank();
  for (size_t i = 0; fits && i < x.shape.rank(); ++i) {
    const bool along = static_cast<int64_t>(i) == axis;
    fits = along ? rows.shape.extent(i) <= x.shape.extent(i) : rows.shape.extent(i) == x.shape.extent(i);
  }
  if (!fits) return violated(op, "C3", fmt::format("{} are no rows of {} along axis {}", toString(rows), toString(x), axis));
  const bool is_own = axis > 0 && at == i32({x.shape.extent(0)});
  if (at != i32({}) && !is_own) {
    const std::string own = axis > 0 ? " or " + toString(i32({x.shape.extent(0)})) : "";
    return violated(op, "C4", fmt::format("the place is {}, wanted {}{}", toString(at), toString(i32({})), own));
  }
  return std::vector{x};
}

std::vector<Tensor> evaluateRowUpdate(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  const auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  const Tensor& at = *c.operands[2];
  const std::vector<int64_t> strides = out.type.shape.strides(), extents = c.operands[1]->type.shape.extents();
  std::vector<int64_t> index(extents.size(), 0);
  size_t flat = 0;
  do {
    const double element = c.operands[1]->data[flat++];
    const int64_t row = static_cast<int64_t>(at.data[at.type.shape.rank() == 0 ? 0 : static_cast<size_t>(index[0])]) + index[axis];
    if (row < 0 || row >= out.type.shape.extent(axis)) continue;
    int64_t place = 0;
    for (size_t i = 0; i < index.size(); ++i) place += (i == axis ? row : index[i]) * strides[i];
    out.data[static_cast<size_t>(place)] = element;
  } while (nextIndex(index, extents));
  return {std::move(out)};
}

}  // namespace lockstep::graph
