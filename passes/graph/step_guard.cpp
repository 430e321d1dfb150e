// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/step_guard.h"

#include <limits>

#include "passes/graph/check_indices.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr double kSpoiled = std::numeric_limits<float>::max();

}  // namespace

ValueId StepGuard::watch(ValueId loss) {
  loss_ = loss;
  if (!config_.skip_non_finite) return loss_;
  ValueId right;
  for (const Output& output : in_.outputs) {
    if (output.kind != OutputKind::Check || !isIndexRow(output.name)) continue;
    const ValueId row = rewriter_[output.value];
    const ValueId none = b().make("equal", {row, b().constant(kNoRow, b().typeOf(row))});
    right = both(right, none);
  }
  loss_ = chosen(right, loss, b().constant(std::numeric_limits<double>::infinity(), Shape{}));
  return loss_;
}

ValueId StepGuard::isLossFinite(const Shape& shape) {
  if (!config_.skip_non_finite || !loss_.valid()) return {};
  return b().make("is_finite", {b().broadcastTo(loss_, shape)});
}

ValueId StepGuard::isFinite(ValueId norm, const Shape& shape) {
  const ValueId finite = isLossFinite(shape);
  if (!config_.skip_non_finite || !norm.valid()) return finite;
  return both(finite, b().make("is_finite", {b().broadcastTo(norm, shape)}));
}

ValueId StepGuard::closedScale(ValueId norm, ValueId scale) {
  const ValueId finite = isFinite(norm, Shape{});
  return finite.valid() ? chosen(finite, scale, b().constant(0, Shape{})) : scale;
}

ValueId StepGuard::spoiledSum(ValueId sum_before, ValueId sum) {
  const Shape shape = b().shapeOf(sum);
  const ValueId finite = isLossFinite(shape);
  if (!finite.valid()) return sum;
  const ValueId counts = both(isSound(sum_before), finite);
  return chosen(counts, sum, b().constant(kSpoiled, shape));
}

ValueId StepGuard::isSound(ValueId sum) { return b().make("less", {sum, b().constant(kSpoiled, b().shapeOf(sum))}); }

ValueId StepGuard::both(ValueId a, ValueId c) {
  if (!a.valid() || !c.valid()) return a.valid() ? a : c;
  return b().make("logical_and", {a, c});
}

ValueId StepGuard::chosen(ValueId condition, ValueId now, ValueId before) {
  return condition.valid() ? b().make("where", {condition, now, before}) : now;
}

}  // namespace lockstep::passes
