// SPDX-License-Identifier: Apache-2.0
#include "frontend/optim/precision.h"

#include <fmt/format.h>

#include <cmath>

#include "frontend/optim/checks.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/throw_error.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep {

namespace {

bool isPowerOfTwo(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

}  // namespace

void detail::checkPrecision(const Precision& precision) {
  if (precision.dtype != DType::F32 && precision.dtype != DType::F16 && precision.dtype != DType::BF16) {
    reject("precision.type", fmt::format("products cannot be kept as {}", toString(precision.dtype)), "use f32, f16 or bf16");
  }
  const LossScaleOptions& scale = precision.loss_scale;
  if (!(scale.initial >= 1 && scale.initial <= passes::kLargestLossScale && isPowerOfTwo(scale.initial))) {
    reject("precision.loss_scale", fmt::format("the initial loss scale is {}", scale.initial), "give a power of two from 1 to 16777216");
  }
  if (scale.growth_interval < 1 || scale.growth_interval > static_cast<int64_t>(passes::kLargestLossScale)) {
    reject("precision.loss_scale", fmt::format("the growth interval of the loss scale is {}", scale.growth_interval),
           "give a number of updates from 1 to 16777216");
  }
}

Precision mixed(DType dtype, LossScaleOptions loss_scale, Where where) {
  const Precision precision{.dtype = dtype, .loss_scale = loss_scale};
  detail::atCall(where, [&] { detail::checkPrecision(precision); });
  return precision;
}

}  // namespace lockstep
