// SPDX-License-Identifier: Apache-2.0
// A language model as a module: what trains, runs whole sequences, and goes on from a state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/llm/language_config.h"
#include "frontend/llm/language_layer.h"
#include "frontend/nn/linear.h"

namespace lockstep::llm {

/// What all layers keep of the tokens so far: values like any other, which can be carried, copied, and put together along the batch.
using LanguageState = std::vector<LayerState>;

/// Tokens to logits: a table of tokens, the layers of the list, a norm, and a head.
///   auto trainer = ls::compile<ls::llm::LanguageModel>({..., .make = [=] { return std::make_unique<ls::llm::LanguageModel>(config); }});
class LanguageModel : public Module {
 public:
  explicit LanguageModel(const LanguageConfig& config, Where where = Where::current());
  LanguageModel(Module& parent, std::string name, const LanguageConfig& config, Where where = Where::current());

  /// Logits [B, T, vocabulary] of ids, i32 [B, T], at the places 0, 1, ...
  Tensor operator()(Tensor ids, Where where = Where::current()) const;
  /// The same after all that went into the state, which becomes that after these ids. `at` is the place of the first one, i32 [B]; a row at
  /// place 0 begins a new text, whatever its state has.
  Tensor operator()(Tensor ids, LanguageState& state, Tensor at, Where where = Where::current()) const;

  /// Between the layers and the head: [B, T, width], of rows of which the first places.count tokens count.
  Tensor hidden(Tensor ids, LanguageState& state, const TokenPlaces& places, Where where = Where::current()) const;
  /// Logits [..., vocabulary] of what hidden() gives.
  Tensor head(Tensor hidden, Where where = Where::current()) const;
  /// Before the first token, with room for `positions` of them in layers with attention, whose keys and values are of the type `cache`.
  [[nodiscard]] LanguageState state(int64_t batch, int64_t positions, DType cache = DType::F32, Where where = Where::current()) const;

  [[nodiscard]] const LanguageConfig& config() const { return config_; }

  nn::Embedding tokens;
  std::unique_ptr<nn::Embedding> places;  ///< null without learned positions
  LayerList layers;
  nn::BlockNorm norm;
  std::unique_ptr<nn::Linear> untied;  ///< named "head"; null where the table of tokens is the head, too

 private:
  /// `positions`: i32 [T] or [B, T].
  [[nodiscard]] Tensor embed(const Tensor& ids, const Tensor& positions, const Where& where) const;
  LanguageConfig config_;
};

}  // namespace lockstep::llm
