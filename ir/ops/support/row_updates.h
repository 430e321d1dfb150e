// SPDX-License-Identifier: Apache-2.0
// What ops that write rows at a place that is a value share: operands x, rows and at, attribute `axis`.
#pragma once

#include "ir/ops/support/common.h"

namespace lockstep::graph {

Result<std::vector<TensorType>> inferRowUpdate(std::string_view op, const InferContext& context);
std::vector<Tensor> evaluateRowUpdate(const EvaluateContext& context);

}  // namespace lockstep::graph
