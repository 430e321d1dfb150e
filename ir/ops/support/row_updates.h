// SPDX-License-Identifier: Apache-2.0
// What ops that write rows at a place that is a value share: operands x, rows and at, attribute `axis`. The place is one for all rows, or
// each entry of the first axis has its own.
#pragma once

#include "ir/ops/support/common.h"

namespace lockstep::graph {

inline constexpr std::string_view kRowsRule =
    "x and the rows have one element type; where words hold several of them, a row is whole words";
inline constexpr std::string_view kPlaceRule =
    "places are i32, one of them or, where the axis is not the first one, one per entry of the first axis";
Result<std::vector<TensorType>> inferRowUpdate(std::string_view op, const InferContext& context);
std::vector<Tensor> evaluateRowUpdate(const EvaluateContext& context);

}  // namespace lockstep::graph
