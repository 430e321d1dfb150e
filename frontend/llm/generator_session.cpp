// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/generator_session.h"

#include <fmt/format.h>

#include "frontend/ops/ops.h"

namespace lockstep::llm {

namespace {

/// Its values will be loaded.
LanguageConfig withoutRandomValues(LanguageConfig config) {
  config.init_scale = 0;
  return config;
}

}  // namespace

GeneratorSession::GeneratorSession(const LanguageConfig& config, const GeneratorOptions& options)
    : model(*this, "model", withoutRandomValues(config)) {
  // Tokens that fill up the last chunk are written, too.
  const int64_t room = options.positions + options.chunk;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    for (const std::vector<int64_t>& shape : stateShapes(config, config.layers[i], options.sequences, room))
      kept.push_back(std::make_unique<Buffer>(*this, fmt::format("state_{}", kept.size()), shape));
  }
}

LanguageState GeneratorSession::state() const {
  LanguageState made;
  auto next = kept.begin();
  for (const LayerConfig& layer : model.config().layers) {
    LayerState one = emptyState(layer.kind);
    for (Tensor* tensor : tensorsOf(one)) *tensor = **next++;
    made.push_back(one);
  }
  return made;
}

void GeneratorSession::keep(LanguageState state) const {
  auto next = kept.begin();
  for (LayerState& layer : state) {
    for (const Tensor* tensor : tensorsOf(layer)) (*next++)->update(*tensor);
  }
}

Outputs advance(const GeneratorSession& session, const Inputs& in, const GeneratorOptions& options) {
  LanguageState state = session.state();
  const Tensor hidden = session.model.hidden(in["ids"], state, {.at = in["at"], .count = in["count"]});
  session.keep(std::move(state));
  // In a program without captures only the last token that counts goes through the head.
  (void)capture("logits", session.model.head(hidden));
  const Tensor last = narrow(hidden, 1, max(in["count"] - 1, 0), 1);
  Tensor logits = session.model.head(last);
  if (options.vocabulary > 0) logits = narrow(logits, -1, 0, options.vocabulary);
  return squeeze(argmax(logits, -1), 1);
}

std::vector<InputSpec> inputsOf(const GeneratorOptions& options, int64_t tokens) {
  return {{"ids", i32(options.sequences, tokens)}, {"at", i32(options.sequences)}, {"count", i32(options.sequences)}};
}

ModelInference<GeneratorSession> makeStep(const LanguageConfig& config, ParameterValues values, const GeneratorOptions& options,
                                          const Where& where) {
  InferenceSpec<GeneratorSession> spec{
      .inputs = inputsOf(options, 1),
      .forward = [options](const GeneratorSession& session, const Inputs& in) { return advance(session, in, options); },
      .device = options.device,
      .seed = 0,
      .updates_buffers = true,
      .make = [&] { return std::make_unique<GeneratorSession>(config, options); }};
  ModelInference<GeneratorSession> step = forward<GeneratorSession>(std::move(spec), where);
  ParameterValues all;
  // They may be most of the machine's memory, so they move.
  while (!values.empty()) {
    auto one = values.extract(values.begin());
    one.key() = "model." + one.key();
    all.insert(std::move(one));
  }
  for (const auto& buffer : step.model().kept)
    all.emplace(buffer->path(), std::vector<float>(static_cast<size_t>(buffer->type().shape.elementCount())));
  step.upload(all, where);
  return step;
}

}  // namespace lockstep::llm
