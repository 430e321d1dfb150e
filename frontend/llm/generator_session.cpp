// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/generator_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "frontend/llm/stored_weights.h"
#include "frontend/ops/loop.h"
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
    for (const graph::TensorType& type : stateTypes(config, config.layers[i], options.sequences, room, options.cache))
      kept.push_back(std::make_unique<Buffer>(*this, fmt::format("state_{}", kept.size()), type.shape.extents(), 0, type.dtype));
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

namespace {

/// What goes from token to token.
struct Going {
  LanguageState layers;
  std::optional<Tensor> seen;
};

struct Chosen {
  Tensor next, largest;
};

Tensor hiddenOf(const GeneratorSession& session, const Inputs& in, Going& going) {
  return session.model.hidden(in["ids"], going.layers, {.at = in["at"], .count = in["count"]});
}

/// What follows the last token that counts. Of hidden [B, T, width].
Chosen choose(const GeneratorSession& session, const Tensor& hidden, const Inputs& in, Going& going, const GeneratorOptions& options) {
  const Tensor last = hidden.extent(1) == 1 ? hidden : narrow(hidden, 1, max(in["count"] - 1, 0), 1);
  Tensor logits = squeeze(session.model.head(last), 1);
  const int64_t ids = options.vocabulary > 0 ? options.vocabulary : logits.extent(1);
  logits = narrow(logits, 1, 0, ids);
  // A NaN among them is the largest.
  const Tensor largest = reduce_max(logits, 1);
  if (!going.seen) return {argmax(logits, 1), largest};
  going.seen = withTokens(*going.seen, in);
  return {sampleTokens(logits, narrow(*going.seen, 1, 0, ids), in), largest};
}

Going begin(const GeneratorSession& session) {
  Going going{.layers = session.state(), .seen = {}};
  if (session.seen != nullptr) going.seen = *session.seen;
  return going;
}

void keep(const GeneratorSession& session, const Going& going) {
  session.keep(going.layers);
  if (going.seen) session.seen->update(*going.seen);
}

std::vector<Tensor*> tensorsOf(Going& going) {
  std::vector<Tensor*> all;
  for (LayerState& layer : going.layers) std::ranges::copy(llm::tensorsOf(layer), std::back_inserter(all));
  if (going.seen) all.push_back(&*going.seen);
  return all;
}

/// i32 [B]: 1 where the token ends a text.
Tensor endsWith(const Tensor& next, const std::vector<int32_t>& end_tokens) {
  Tensor ends = zeros({next.extent(0)}, DType::I32);
  for (const int32_t end : end_tokens) ends = max(ends, cast(equal(next, end), DType::I32));
  return ends;
}

}  // namespace

Outputs advance(const GeneratorSession& session, const Inputs& in, const GeneratorOptions& options) {
  Going going = begin(session);
  const Tensor hidden = hiddenOf(session, in, going);
  // In a program without captures only the last token that counts goes through the head.
  (void)capture("logits", session.model.head(hidden));
  const Chosen chosen = choose(session, hidden, in, going, options);
  keep(session, going);
  return {{"next", chosen.next}, {"largest", chosen.largest}};
}

Outputs advanceSeveral(const GeneratorSession& session, const Inputs& in, const GeneratorOptions& options) {
  Going going = begin(session);
  std::vector<Tensor> carry{in["ids"], in["at"], in["count"]};
  for (const Tensor* tensor : tensorsOf(going)) carry.push_back(*tensor);
  constexpr size_t kFirstOfState = 3;
  const auto restore = [&](const std::vector<Tensor>& from) {
    const std::vector<Tensor*> to = tensorsOf(going);
    for (size_t i = 0; i < to.size(); ++i) *to[i] = from[kFirstOfState + i];
  };
  const auto step = [&](const std::vector<Tensor>& now, const std::vector<Tensor>& slices) -> LoopStep {
    std::map<std::string, Tensor, std::less<>> inside{{"ids", now[0]}, {"at", now[1]}, {"count", now[2]}};
    if (options.samples) {
      for (const InputSpec& input : samplingInputs(options.sequences)) inside.emplace(input.name, in[input.name]);
      inside.insert_or_assign("uniform", slices[0]);
    }
    const Inputs its(std::move(inside));
    restore(now);
    const Tensor hidden = hiddenOf(session, its, going);
    const Chosen chosen = choose(session, hidden, its, going, options);
    const Tensor stops = in["stops"] * endsWith(chosen.next, session.model.config().end_tokens);
    LoopStep made{.carry = {expand_dims(chosen.next, 1), now[1] + now[2], now[2] * (1 - stops)}, .results = {chosen.next, chosen.largest}};
    for (const Tensor* tensor : tensorsOf(going)) made.carry.push_back(*tensor);
    return made;
  };
  std::vector<Tensor> sliced;
  if (options.samples) sliced.push_back(in["uniform"]);
  const LoopResult made = scan(step, carry, sliced, {.steps = options.tokens_per_submission});
  restore(made.carry);
  keep(session, going);
  return {{"next", made.results[0]}, {"largest", made.results[1]}};
}

std::vector<InputSpec> inputsOf(const GeneratorOptions& options, int64_t tokens) {
  std::vector<InputSpec> inputs{{"ids", i32(options.sequences, tokens)}, {"at", i32(options.sequences)}, {"count", i32(options.sequences)}};
  if (options.samples) std::ranges::copy(samplingInputs(options.sequences), std::back_inserter(inputs));
  return inputs;
}

std::vector<InputSpec> inputsOfSeveral(const GeneratorOptions& options) {
  std::vector<InputSpec> inputs = inputsOf(options, 1);
  for (InputSpec& input : inputs) {
    if (input.name == "uniform") input.type = f32(options.tokens_per_submission, options.sequences);
  }
  inputs.push_back({"stops", i32(options.sequences)});
  return inputs;
}

Precision precisionOfTokens(const GeneratorOptions& options) { return options.sequences > 1 ? options.precision : Precision{}; }

ModelInference<GeneratorSession> makeStep(const LanguageConfig& config, const GeneratorOptions& options, const Where& where) {
  InferenceSpec<GeneratorSession> spec{
      .inputs = inputsOf(options, 1),
      .forward = [options](const GeneratorSession& session, const Inputs& in) { return advance(session, in, options); },
      .device = options.device,
      .seed = 0,
      .dump_ir = options.dump_ir,
      .updates_buffers = true,
      .precision = precisionOfTokens(options),
      .make = [&] { return std::make_unique<GeneratorSession>(config, options); }};
  return forward<GeneratorSession>(std::move(spec), where);
}

void writeWeights(ModelInference<GeneratorSession>& step, io::TensorFile stored, const Where& where) {
  io::TensorFile all;
  // They may be most of the machine's memory, so they move.
  while (!stored.tensors.empty()) {
    auto one = stored.tensors.extract(stored.tensors.begin());
    one.key() = "model." + one.key();
    all.tensors.insert(std::move(one));
  }
  step.write(all, where);
}

}  // namespace lockstep::llm
