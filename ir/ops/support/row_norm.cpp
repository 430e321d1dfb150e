// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/row_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

Status checkEps(std::string_view op, std::string_view label, const Attributes& attributes) {
  double eps = attributes.get<double>("eps");
  if (!(eps > 0 && std::isfinite(eps))) return violated(op, label, fmt::format("eps is {}, wanted a positive number", eps));
  return Success{};
}

std::vector<double> rmsNormalised(std::vector<double> x, const std::vector<double>& gain, double eps) {
  const size_t columns = gain.size();
  for (size_t row = 0; row < x.size(); row += columns) {
    double square = 0;
    for (size_t i = 0; i < columns; ++i) square += x[row + i] * x[row + i] / static_cast<double>(columns);
    for (size_t i = 0; i < columns; ++i) x[row + i] = x[row + i] / std::sqrt(square + eps) * gain[i];
  }
  return x;
}

ValueId rowMean(Builder& b, ValueId x) {
  int64_t columns = b.shapeOf(x).extent(b.shapeOf(x).rank() - 1);
  return b.mul(b.sum(x, -1, true), 1.0 / static_cast<double>(columns));
}

Normalised normaliseRows(Builder& b, ValueId x, double eps) {
  ValueId centred = b.sub(x, rowMean(b, x));
  ValueId variance = rowMean(b, b.mul(centred, centred));
  ValueId rstd = b.make("rsqrt", {b.add(variance, eps)});
  return {b.mul(centred, rstd), rstd};
}

ValueId normaliseRowsGradient(Builder& b, const Normalised& n, ValueId dxhat) {
  ValueId along = b.mul(n.xhat, rowMean(b, b.mul(dxhat, n.xhat)));
  ValueId centred = b.sub(dxhat, rowMean(b, dxhat));
  return b.mul(b.sub(centred, along), n.rstd);
}

}  // namespace lockstep::graph
