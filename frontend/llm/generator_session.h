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
/// The program of one token per sequence, with zeros as the parameters and the state.
ModelInference<GeneratorSession> makeStep(const LanguageConfig& config, const GeneratorOptions& options, const Where& where);
/// Sets the parameters of its LanguageModel.
void uploadAll(ModelInference<GeneratorSession>& step, ParameterValues values, const Where& where);
/// Likewise, from the files of a folder, one tensor after the other.
Status uploadFrom(ModelInference<GeneratorSession>& step, const std::filesystem::path& folder, const ReadProgress& progress,
                  const Where& where);

}  // namespace lockstep::llm
