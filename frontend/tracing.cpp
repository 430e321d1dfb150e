// SPDX-License-Identifier: Apache-2.0
#include "frontend/tracing.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/trace.h"

namespace lockstep {

Tensor Inputs::operator[](std::string_view name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    std::string known;
    for (const auto& [input, tensor] : tensors_) known += (known.empty() ? "" : ", ") + input;
    std::string remedy = known.empty() ? "declare it in .inputs" : "declared: " + known;
    throw Error({.code = "inputs.name",
                 .message = fmt::format("there is no input '{}'", name),
                 .where = {},
                 .notes = {},
                 .remedy = std::move(remedy)});
  }
  return found->second;
}

namespace detail {

namespace {

void checkInputs(const std::vector<InputSpec>& inputs, const std::source_location& where) {
  auto reject = [&](std::string message, std::string remedy) {
    throw Error(
        {.code = "compile.input", .message = std::move(message), .where = toLocation(where), .notes = {}, .remedy = std::move(remedy)});
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& input = inputs[i];
    if (input.name.empty()) reject("an input has no name", "");
    // The optimizer's scalars live in the same space of names.
    if (input.name.starts_with("step.")) reject(fmt::format("the input name '{}' is reserved", input.name), "do not begin with 'step.'");
    if (input.type.dtype == DType::Bool) {
      reject(fmt::format("input '{}' is bool, which the host cannot give", input.name), "use i32 and compare in the function");
    }
    bool twice = std::any_of(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(i),
                             [&](const InputSpec& other) { return other.name == input.name; });
    if (twice) reject(fmt::format("input '{}' is declared twice", input.name), "");
  }
}

}  // namespace

graph::Graph traceFunction(const Module* model, const std::vector<InputSpec>& inputs, const std::function<Tensor(const Inputs&)>& function,
                           graph::OutputKind kind, const std::source_location& where) {
  checkInputs(inputs, where);
  if (!function) {
    throw Error({.code = "compile.function",
                 .message = "there is no function to trace",
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "set .loss or .forward, and .make for a model without a default constructor"});
  }
  Trace trace(where);
  trace.setTraining(kind == graph::OutputKind::Loss);
  if (model != nullptr) trace.addParameters(*model);
  std::map<std::string, Tensor, std::less<>> tensors;
  for (const InputSpec& input : inputs) tensors.emplace(input.name, trace.addInput(input.name, input.type));
  Tensor result = function(Inputs(std::move(tensors)));
  const TensorType& type = trace.builder().typeOf(trace.value(result, "compile", where));
  if (kind == graph::OutputKind::Loss && type != f32()) {
    Failure failure =
        fail("compile.loss", fmt::format("the loss is {}, wanted a scalar f32", toString(type)), {}, "reduce it with mean or sum");
    trace.raise(std::move(failure), std::span(&result, 1), where);
  }
  trace.output(kind, kind == graph::OutputKind::Loss ? "loss" : "output", result);
  return trace.take();
}

}  // namespace detail
}  // namespace lockstep
