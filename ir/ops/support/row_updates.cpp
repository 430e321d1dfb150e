// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/row_updates.h"

#include <fmt/format.h>

namespace lockstep::graph {

Result<std::vector<TensorType>> inferRowUpdate(std::string_view op, const InferContext& c) {
  const TensorType &x = c.operands[0], &rows = c.operands[1], &at = c.operands[2];
  if (x.dtype != rows.dtype || byteSize(x.dtype) != 4)
    return violated(op, "C1", fmt::format("operands are {} and {}, wanted one type of 32 bits", toString(x), toString(rows)));
  const auto axis = c.attributes.get<int64_t>("axis");
  LS_CHECK(checkAxis(op, "C2", axis, x.shape.rank()));
  bool fits = rows.shape.rank() == x.shape.rank();
  for (size_t i = 0; fits && i < x.shape.rank(); ++i) {
    const bool along = static_cast<int64_t>(i) == axis;
    fits = along ? rows.shape.extent(i) <= x.shape.extent(i) : rows.shape.extent(i) == x.shape.extent(i);
  }
  if (!fits) return violated(op, "C3", fmt::format("{} are no rows of {} along axis {}", toString(rows), toString(x), axis));
  if (at != i32({})) return violated(op, "C4", fmt::format("the place is {}, wanted a scalar i32", toString(at)));
  return std::vector{x};
}

std::vector<Tensor> evaluateRowUpdate(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  const auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  const auto at = static_cast<int64_t>(c.operands[2]->data[0]);
  const std::vector<int64_t> strides = out.type.shape.strides(), extents = c.operands[1]->type.shape.extents();
  std::vector<int64_t> index(extents.size(), 0);
  size_t flat = 0;
  do {
    const double element = c.operands[1]->data[flat++];
    const int64_t row = at + index[axis];
    if (row < 0 || row >= out.type.shape.extent(axis)) continue;
    int64_t place = 0;
    for (size_t i = 0; i < index.size(); ++i) place += (i == axis ? row : index[i]) * strides[i];
    out.data[static_cast<size_t>(place)] = element;
  } while (nextIndex(index, extents));
  return {std::move(out)};
}

}  // namespace lockstep::graph
