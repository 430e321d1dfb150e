// SPDX-License-Identifier: Apache-2.0
// What norms over rows share. A row is everything along the last axis.
#pragma once

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// The attribute eps is positive and finite.
Status checkEps(std::string_view op, std::string_view label, const Attributes& attributes);
/// The mean of each row: [..., 1].
ValueId rowMean(Builder& b, ValueId x);

/// Rows of x, as long as the gain, divided by their root mean squares and multiplied by the gain.
std::vector<double> rmsNormalised(std::vector<double> x, const std::vector<double>& gain, double eps);

struct Normalised {
  ValueId xhat, rstd;
};
/// xhat = (x - mean) rstd with rstd = 1 / sqrt(variance + eps) and the biased variance. The same nodes in the forward and in the backward
/// computation, so that common subexpressions merge.
Normalised normaliseRows(Builder& b, ValueId x, double eps);
/// The cotangent of x: rstd (dxhat - mean(dxhat) - xhat mean(dxhat xhat)).
ValueId normaliseRowsGradient(Builder& b, const Normalised& n, ValueId dxhat);

}  // namespace lockstep::graph
