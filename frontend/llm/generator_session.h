// SPDX-License-Identifier: Apache-2.0
// Private: the programs of a generator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "frontend/llm/checkpoint.h"
#include "frontend/llm/generator.h"
#include "frontend/llm/language_model.h"
#include "frontend/train/inference.h"

namespace lockstep::llm {

/// The model, and the state of all sequences between two runs.
struct GeneratorSession : Module {
  GeneratorSession(const LanguageConfig& config, const GeneratorOptions& options);
  [[nodiscard]] LanguageState state() const;
  void keep(LanguageState state) const;

  LanguageModel model;
  /// Those of the layers, then `seen`.
  std::vector<std::unique_ptr<Buffer>> kept;
  const Buffer* seen = nullptr;  ///< f32 [B, V]: how often each id was fed; null without sampling
};

/// For runs of so many tokens per sequence: "ids" [B, T], "at" and "count" [B], and samplingInputs() where options.samples.
std::vector<InputSpec> inputsOf(const GeneratorOptions& options, int64_t tokens);
/// ids at their places: "next", the token to follow of each sequence, i32 [B], and "largest" of its logits, f32 [B]. Captures "logits" of
/// all of them.
Outputs advance(const GeneratorSession& session, const Inputs& in, const GeneratorOptions& options);
/// For runs of options.tokens_per_submission tokens per sequence: those of a step; "uniform" has a row per token; and "stops" i32 [B]: 1
/// where a sequence gets no more after an end token.
std::vector<InputSpec> inputsOfSeveral(const GeneratorOptions& options);
/// So many steps, each from the token that the one before it gave; those of sequences that have stopped count as if `count` were 0. "next"
/// and "largest" have a row per step.
Outputs advanceSeveral(const GeneratorSession& session, const Inputs& in, const GeneratorOptions& options);
/// Of the products of a program that feeds one token to each sequence.
Precision precisionOfTokens(const GeneratorOptions& options);
/// The program of one token per sequence, with zeros as the state and as the weights.
ModelInference<GeneratorSession> makeStep(const LanguageConfig& config, const GeneratorOptions& options, const Where& where);
/// Sets parameters and buffers of its LanguageModel.
void writeWeights(ModelInference<GeneratorSession>& step, io::TensorFile stored, const Where& where);

}  // namespace lockstep::llm
