// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/generator_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "frontend/ops/ops.h"

namespace lockstep::llm {

namespace {

/// Its values will be loaded.
LanguageConfig withoutRandomValues(LanguageConfig config) {
  config.init_scale = 0;
  return config;
}

/// How often each id was fed, with the tokens of this run; a row at place 0 begins anew.
Tensor withTokens(const Tensor& seen, const Inputs& in) {
  const Tensor ids = in["ids"];
  const Tensor counts = less(expand_dims(arange(ids.extent(1)), 0), expand_dims(in["count"], 1));
  const Tensor before = where(greater(expand_dims(in["at"], 1), 0), seen, 0);
  return scatter_add(before, 1, ids, cast(counts, DType::F32));
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
  if (!options.samples) return;
  kept.push_back(std::make_unique<Buffer>(*this, "seen", std::vector<int64_t>{options.sequences, config.vocabulary}));
  seen = kept.back().get();
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
  Tensor logits = squeeze(session.model.head(last), 1);
  const int64_t ids = options.vocabulary > 0 ? options.vocabulary : logits.extent(1);
  logits = narrow(logits, 1, 0, ids);
  // A NaN among them is the largest.
  const Tensor largest = reduce_max(logits, 1);
  if (session.seen == nullptr) return {{"next", argmax(logits, 1)}, {"largest", largest}};
  const Tensor seen = withTokens(*session.seen, in);
  session.seen->update(seen);
  return {{"next", sampleTokens(logits, narrow(seen, 1, 0, ids), in)}, {"largest", largest}};
}

std::vector<InputSpec> inputsOf(const GeneratorOptions& options, int64_t tokens) {
  std::vector<InputSpec> inputs{{"ids", i32(options.sequences, tokens)}, {"at", i32(options.sequences)}, {"count", i32(options.sequences)}};
  if (options.samples) std::ranges::copy(samplingInputs(options.sequences), std::back_inserter(inputs));
  return inputs;
}

ModelInference<GeneratorSession> makeStep(const LanguageConfig& config, const GeneratorOptions& options, const Where& where) {
  InferenceSpec<GeneratorSession> spec{
      .inputs = inputsOf(options, 1),
      .forward = [options](const GeneratorSession& session, const Inputs& in) { return advance(session, in, options); },
      .device = options.device,
      .seed = 0,
      .updates_buffers = true,
      .make = [&] { return std::make_unique<GeneratorSession>(config, options); }};
  return forward<GeneratorSession>(std::move(spec), where);
}

namespace {

constexpr const char* kModel = "model.";

}  // namespace

void uploadAll(ModelInference<GeneratorSession>& step, ParameterValues values, const Where& where) {
  ParameterValues all;
  // They may be most of the machine's memory, so they move.
  while (!values.empty()) {
    auto one = values.extract(values.begin());
    one.key() = kModel + one.key();
    all.insert(std::move(one));
  }
  for (const auto& buffer : step.model().kept)
    all.emplace(buffer->path(), std::vector<float>(static_cast<size_t>(buffer->type().shape.elementCount())));
  step.upload(all, where);
}

Status uploadFrom(ModelInference<GeneratorSession>& step, const std::filesystem::path& folder, const ReadProgress& progress,
                  const Where& where) {
  const auto take = [&](const std::string& parameter, const std::vector<float>& values) -> Status {
    step.upload(kModel + parameter, values, where);
    return Success{};
  };
  return streamWeights(step.model().model.config(), folder, take, progress);
}

}  // namespace lockstep::llm
