// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/non_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/graph/autocast.h"
#include "passes/graph/grad.h"

namespace lockstep::detail {

using graph::DType;
using graph::OutputKind;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

namespace {

/// How many elements of an f32 value are NaN or infinite, as a scalar.
ValueId countNonFinite(graph::Builder& b, ValueId x) {
  const Shape shape = b.shapeOf(x);
  const ValueId finite = b.make("is_finite", {x});
  const ValueId zero = b.constant(0.0, shape);
  const ValueId one = b.constant(1.0, shape);
  const ValueId flags = b.make("where", {finite, zero, one});
  if (shape.rank() == 0) return flags;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < shape.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  return b.make("sum", {flags}, {{"axes", std::move(axes)}, {"keep_dims", false}});
}

std::string nameOf(const graph::Graph& graph, ValueId value) {
  const std::string& name = graph[value].name;
  return name.empty() ? fmt::format("%{}", value.index()) : name;
}

/// An item that owns its elements. Where there is no value they are zeros.
template <class T>
BatchItem itemOf(const InputSpec& input, const HostTensor* value) {
  std::vector<T> elements(static_cast<size_t>(input.type.shape.elementCount()));
  if (value != nullptr) std::ranges::transform(value->doubles(), elements.begin(), [](double element) { return static_cast<T>(element); });
  return {input.name, std::move(elements)};
}

Batch batchFor(const std::vector<InputSpec>& inputs, const std::vector<HostTensor>& values) {
  Batch batch;
  for (const InputSpec& input : inputs) {
    const auto found = std::ranges::find(values, input.name, &HostTensor::name);
    const HostTensor* value = found == values.end() ? nullptr : &*found;
    switch (input.type.dtype) {
      case DType::F32:
      case DType::F16:
      case DType::BF16:
        batch.push_back(itemOf<float>(input, value));
        break;
      case DType::I32:
        batch.push_back(itemOf<int32_t>(input, value));
        break;
      case DType::U32:
      case DType::Bool:
        batch.push_back(itemOf<uint32_t>(input, value));
        break;
      case DType::I8:
        batch.push_back(itemOf<int8_t>(input, value));
        break;
      case DType::U8:
        batch.push_back(itemOf<uint8_t>(input, value));
        break;
      case DType::U16:
        batch.push_back(itemOf<uint16_t>(input, value));
        break;
    }
  }
  return batch;
}

std::string describe(const NonFiniteOrigin::Value& value) {
  const std::string amount =
      value.non_finite == 0 ? "all finite" : fmt::format("{} of {} elements not finite", value.non_finite, value.type.shape.elementCount());
  return fmt::format("{} '{}' {}: {}", value.op, value.name, toString(value.type), amount);
}

}  // namespace

NonFiniteProbe::NonFiniteProbe(const graph::Graph& traced, passes::CompileOptions options, std::shared_ptr<States> states,
                               std::vector<InputSpec> inputs)
    : inputs_(std::move(inputs)) {
  options.optimizer.reset();
  options.keep_gradients = false;
  options.check_indices = false;
  options.dump_directory.clear();
  graph::Graph probing = addProbes(options.low ? passes::autocast(traced, *options.low) : traced, options.wrt);
  options.wrt.clear();
  options.low.reset();
  session_ = std::make_unique<Session>(std::move(probing), std::move(options), std::move(states), inputs_);
}

graph::Graph NonFiniteProbe::addProbes(const graph::Graph& traced, const std::vector<std::string>& wrt) {
  graph::Graph graph = passes::grad(traced, {.wrt = wrt, .refuses_stops = false}).orThrow();
  graph.outputs.clear();
  const std::vector<graph::NodeId> nodes = graph.body().nodes;
  graph::Builder b(std::move(graph));
  std::map<uint32_t, size_t> probes;  // index in probed_ by value
  for (const graph::NodeId id : nodes) {
    const graph::Node node = b.graph()[id];
    // A probe must leave the states as they are.
    if (std::holds_alternative<graph::AliasUpdate>(*node.op->alias)) continue;
    for (const ValueId result : node.results) {
      const TensorType type = b.typeOf(result);
      if (type.dtype != DType::F32) continue;
      Probed probed{.value = {.name = nameOf(b.graph(), result),
                              .op = std::string(*node.op->name),
                              .type = type,
                              .non_finite = 0,
                              .where = node.location == 0 ? Location{} : b.graph().locations[node.location - 1]},
                    .operands = {},
                    .in_gradient = id.index() >= traced.nodes.size()};
      for (const ValueId operand : node.operands) {
        if (auto known = probes.find(operand.value); known != probes.end()) probed.operands.push_back(known->second);
      }
      probes.emplace(result.value, probed_.size());
      b.output(OutputKind::Result, fmt::format("probe.{}", probed_.size()), countNonFinite(b, result));
      probed_.push_back(std::move(probed));
    }
  }
  return b.take();
}

std::optional<NonFiniteOrigin> NonFiniteProbe::find(const std::vector<HostTensor>& inputs) {
  const Batch batch = batchFor(inputs_, inputs);
  StepValues own;  // the key of the random numbers
  for (const HostTensor& value : inputs) {
    if (value.name() != graph::kRandomKeyInput) continue;
    own.push_back({graph::kRandomKeyInput, value.type(), {value.uints().begin(), value.uints().end()}});
  }
  const std::vector<HostTensor> counts = session_->outputs(session_->run(session_->encode(batch, own)), OutputKind::Result);
  std::vector<Probed> probed = probed_;
  for (const HostTensor& count : counts) {
    const size_t index = std::stoul(count.name().substr(count.name().find('.') + 1));
    probed.at(index).value.non_finite = static_cast<int64_t>(count.floats().front());
  }
  auto first = std::ranges::find_if(probed, [](const Probed& one) { return one.value.non_finite > 0; });
  if (first == probed.end()) return std::nullopt;
  NonFiniteOrigin origin{.value = first->value, .operands = {}, .in_gradient = first->in_gradient};
  for (const size_t operand : first->operands) origin.operands.push_back(probed[operand].value);
  return origin;
}

namespace {

/// Without the sign that a NaN has by chance.
float shown(float value) { return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value; }

}  // namespace

Diagnostic describeNonFinite(const StepResult& result, const std::optional<NonFiniteOrigin>& origin) {
  const bool by_loss = !std::isfinite(result.loss);
  Diagnostic diagnostic{.code = "step.non_finite",
                        .message = by_loss ? fmt::format("the loss of step {} is {}", result.step, shown(result.loss))
                                           : fmt::format("the gradient norm of step {} is {} (the loss is {})", result.step,
                                                         shown(result.grad_norm.value_or(0)), shown(result.loss)),
                        .where = {},
                        .notes = {},
                        .remedy = "lower the learning rate, clip the gradients, or guard the op"};
  if (!origin) return diagnostic;
  diagnostic.message += fmt::format("; the first value that is not finite is {}{}", describe(origin->value),
                                    origin->in_gradient ? ", in the backward pass" : "");
  diagnostic.where = origin->value.where;
  for (const NonFiniteOrigin::Value& operand : origin->operands)
    diagnostic.notes.push_back({"operand " + describe(operand), operand.where});
  if (origin->value.op == "input") diagnostic.remedy = "look at the data of this step";
  if (origin->value.op == "parameter" || origin->value.op == "state")
    diagnostic.remedy = "an earlier step made it so: lower the learning rate or clip the gradients";
  return diagnostic;
}

}  // namespace lockstep::detail
