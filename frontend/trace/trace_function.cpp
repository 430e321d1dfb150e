// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/trace_function.h"

#include <fmt/format.h>

#include <ranges>

#include "frontend/trace/trace.h"
#include "frontend/train/batch.h"
#include "ir/support/nearest.h"

namespace lockstep {

Tensor Inputs::operator[](InputName name) const {
  auto found = tensors_.find(name.name());
  if (found == tensors_.end()) {
    const std::string known = joinNames(std::views::keys(tensors_));
    throw Error({.code = "inputs.name",
                 .message = fmt::format("there is no input '{}'", name.name()),
                 .where = detail::toLocation(name.where()),
                 .notes = {},
                 .remedy = known.empty() ? "declare it in .inputs, which is empty" : "declare it in .inputs, which has " + known});
  }
  return found->second;
}

namespace detail {

void checkFunction(const Module* model, const std::vector<InputSpec>& inputs, const ModelFunction& function, const Where& where) {
  checkDeclarations(inputs, where);
  if (model != nullptr && function) return;
  throw Error({.code = "compile.function",
               .message = "there is no function to trace",
               .where = toLocation(where),
               .notes = {},
               .remedy = "set .loss or .forward, and .make for a model without a default constructor"});
}

graph::Graph traceFunction(const Module* model, const std::vector<InputSpec>& inputs, const ModelFunction& function, graph::OutputKind kind,
                           const Where& where, bool updates_buffers) {
  checkFunction(model, inputs, function, where);
  Trace trace(where);
  trace.setTraining(kind == graph::OutputKind::Loss);
  if (updates_buffers) trace.letBuffersChange();
  trace.addParameters(*model);
  std::map<std::string, Tensor, std::less<>> tensors;
  for (const InputSpec& input : inputs) tensors.emplace(input.name, trace.addInput(input.name, input.type));
  const Outputs outputs = function(*model, Inputs(std::move(tensors)));
  if (outputs.tensors().empty()) {
    throw Error({.code = "forward.output",
                 .message = "the function gives no output",
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "return a tensor, or ls::Outputs{{\"name\", tensor}, …}"});
  }
  if (kind == graph::OutputKind::Loss) {
    const Tensor& loss = outputs.tensors().front().second;
    const TensorType& type = trace.builder().typeOf(trace.value(loss, "compile", where));
    if (type != f32()) {
      Failure failure =
          fail("compile.loss", fmt::format("the loss is {}, wanted a scalar f32", toString(type)), {}, "reduce it with mean or sum");
      trace.raise(std::move(failure), std::span(&loss, 1), where);
    }
    trace.output(kind, "loss", loss, where);
    return trace.take();
  }
  for (const auto& [name, tensor] : outputs.tensors()) trace.output(kind, name, tensor, where);
  return trace.take();
}

graph::Graph withoutCaptures(graph::Graph graph) {
  std::erase_if(graph.outputs, [](const graph::Output& output) { return output.kind == graph::OutputKind::Capture; });
  return graph;
}

}  // namespace detail
}  // namespace lockstep
