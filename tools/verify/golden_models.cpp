// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/models/cnn.h"
#include "examples/models/mlp.h"
#include "examples/models/transformer.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "tools/verify/golden_executor.h"

namespace lockstep::tools {
namespace {

using examples::Cnn;
using examples::CnnShape;
using examples::Mlp;
using examples::Transformer;
using examples::TransformerShape;

[[noreturn]] void badFile(const std::string& message) {
  const Failure failure = fail("golden.train", message);
  throw Error(failure.diagnostics);
}

/// Extents of a parameter; flat recordings take them from the sample.
std::vector<int64_t> shapeOf(const GoldenTraining& golden, const std::string& name, const std::vector<int64_t>& flat_shape) {
  const auto found = golden.initial.find(name);
  if (found == golden.initial.end()) badFile(fmt::format("the model has no parameter '{}'", name));
  return found->second.shape.size() == 1 ? flat_shape : found->second.shape;
}

int64_t elementsOf(const GoldenTraining& golden, const std::string& input) {
  const auto found = golden.batches.front().find(input);
  if (found == golden.batches.front().end()) badFile(fmt::format("the batches have no '{}'", input));
  return static_cast<int64_t>(found->second.elementCount());
}

/// mean((mlp(x) - y)^2)
void traceSine(const GoldenTraining& golden, detail::Trace& trace) {
  constexpr int64_t kSampleWidth = 64;
  std::vector<int64_t> widths = {1};
  while (golden.initial.contains(fmt::format("l{}.W", widths.size()))) {
    const std::string name = fmt::format("l{}.W", widths.size());
    const bool last = !golden.initial.contains(fmt::format("l{}.W", widths.size() + 1));
    widths.push_back(shapeOf(golden, name, {widths.back(), last ? 1 : kSampleWidth}).back());
  }
  const Mlp model(widths);
  trace.addParameters(model);
  const int64_t batch = elementsOf(golden, "x");
  const Tensor x = trace.addInput("x", f32(batch, 1)), y = trace.addInput("y", f32(batch, 1));
  trace.output(graph::OutputKind::Loss, "loss", mean(square(model(x) - y)));
}

/// sum(cross_entropy * mask), over the batch's three result digits where the mask has one row, else as the mask is normalised.
void traceTransformer(const GoldenTraining& golden, detail::Trace& trace) {
  constexpr int64_t kSampleWidth = 64, kResultDigits = 3;
  TransformerShape shape;
  const auto rows = [&](const std::string& name) {
    const auto found = golden.initial.find(name);
    if (found == golden.initial.end()) badFile(fmt::format("the model has no parameter '{}'", name));
    const io::Array& table = found->second;
    return table.shape.size() == 2 ? table.shape[0] : static_cast<int64_t>(table.elementCount()) / kSampleWidth;
  };
  shape.vocabulary = rows("tok_emb");
  shape.sequence = rows("pos_emb");
  shape.width = shapeOf(golden, "tok_emb", {shape.vocabulary, kSampleWidth}).back();
  shape.layers = 0;
  while (golden.initial.contains(fmt::format("layers.{}.ln1.g", shape.layers))) ++shape.layers;
  if (shape.layers == 0 || shape.sequence < 2 || shape.width % shape.heads != 0) badFile("the parameters are not those of the transformer");
  const Transformer model(shape);
  trace.addParameters(model);
  const int64_t length = shape.sequence - 1;
  const int64_t batch = elementsOf(golden, "tokens") / length;
  const bool row_mask = elementsOf(golden, "mask") == length;
  const Tensor tokens = trace.addInput("tokens", i32(batch, length)), targets = trace.addInput("targets", i32(batch, length));
  const Tensor mask = trace.addInput("mask", row_mask ? f32(length) : f32(batch, length));
  const Tensor losses = cross_entropy(model(tokens), targets, {.reduction = Reduction::None}) * mask;
  const Tensor total = sum(losses);
  trace.output(graph::OutputKind::Loss, "loss", row_mask ? total * (1.0 / static_cast<double>(batch * kResultDigits)) : total);
}

/// mean(cross_entropy(cnn(x), y))
void traceCnn(const GoldenTraining& golden, detail::Trace& trace) {
  const auto elements = [&](const std::string& name) {
    const auto found = golden.initial.find(name);
    if (found == golden.initial.end()) badFile(fmt::format("the model has no parameter '{}'", name));
    return static_cast<int64_t>(found->second.elementCount());
  };
  const CnnShape shape{.channels1 = elements("conv1.b"), .channels2 = elements("conv2.b"), .hidden = elements("fc1.b")};
  const Cnn model(shape);
  trace.addParameters(model);
  const int64_t batch = elementsOf(golden, "y");
  const Tensor x = trace.addInput("x", f32(batch, 1, 28, 28)), y = trace.addInput("y", i32(batch));
  trace.output(graph::OutputKind::Loss, "loss", cross_entropy(model(x), y));
}

struct Model {
  std::string_view name;
  void (*trace)(const GoldenTraining& golden, detail::Trace& trace);
};
constexpr Model kModels[] = {
    {"cnn", traceCnn},
    {"tensorgrad_mnist_cnn", traceCnn},
    {"mlp_sin", traceSine},
    {"mlp_sin_sgd", traceSine},
    {"tensorgrad_mlp_sin", traceSine},
    {"addition_transformer", traceTransformer},
    {"tensorgrad_transformer", traceTransformer},
    {"tensorgrad_makemore", traceTransformer},
};

}  // namespace

Result<graph::Graph> traceGoldenModel(const GoldenTraining& golden) {
  const auto* model = std::ranges::find(kModels, std::string_view(golden.model), &Model::name);
  if (model == std::end(kModels)) return unsupported(fmt::format("model '{}' is not implemented", golden.model));
  try {
    detail::Trace trace;
    model->trace(golden, trace);
    graph::Graph graph = trace.take();
    for (graph::ParameterInfo& parameter : graph.parameters) parameter.decay = golden.decays(parameter.name);
    return graph;
  } catch (const Error& error) {
    return Failure{.diagnostics = error.diagnostics(), .exit_code = error.exitCode()};
  }
}

}  // namespace lockstep::tools
