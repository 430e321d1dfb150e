// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/loss_scale.h"

#include <string>
#include <utility>

namespace lockstep::passes {

using namespace graph;

namespace {

ValueId scalarState(Builder& b, std::string_view name, double initial) {
  const ValueId leaf =
      b.make("state", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{1}}, {"init", initial}});
  b.name(leaf, std::string(name));
  return leaf;
}

void writeNext(Builder& b, std::string_view name, ValueId leaf, ValueId next) {
  const ValueId updated = b.make("update_slice", {leaf, b.reshape(next, Shape{1})}, {{"offset", int64_t{0}}});
  b.output(OutputKind::NextState, std::string(name), updated);
}

}  // namespace

ValueId lossScale(Builder& b, double initial) { return b.reshape(scalarState(b, kLossScaleState, initial), Shape{}); }

void updateLossScale(Builder& b, const LossScaling& config, const ScaleFacts& facts) {
  const auto number = [&](double value) { return b.constant(value, Shape{}); };
  const auto choose = [&](ValueId condition, ValueId yes, ValueId no) { return b.make("where", {condition, yes, no}); };
  const ValueId steps_leaf = scalarState(b, kGoodStepsState, 0);
  const ValueId scale = b.reshape(facts.leaf, Shape{}), steps = b.reshape(steps_leaf, Shape{});

  const ValueId counted = b.add(steps, 1.0);
  const ValueId reached = b.make("greater_equal", {counted, number(static_cast<double>(config.growth_interval))});
  const ValueId grown = b.make("min", {b.mul(scale, 2.0), number(kLargestLossScale)});
  const ValueId halved = b.make("max", {b.mul(scale, 0.5), number(1)});
  // A step that is left out for another reason, such as a label outside of its range, says nothing of the scale.
  ValueId next_scale = choose(facts.open, choose(reached, grown, scale), scale);
  ValueId next_steps = choose(facts.open, choose(reached, number(0), counted), steps);
  const ValueId finite = b.make("is_finite", {facts.norm});
  next_scale = choose(finite, next_scale, halved);
  next_steps = choose(finite, next_steps, number(0));
  if (facts.count.valid()) {
    next_scale = choose(facts.count, next_scale, scale);
    next_steps = choose(facts.count, next_steps, steps);
  }
  b.output(OutputKind::Result, std::string(kLossScale), scale);
  writeNext(b, kLossScaleState, facts.leaf, next_scale);
  writeNext(b, kGoodStepsState, steps_leaf, next_steps);
}

}  // namespace lockstep::passes
