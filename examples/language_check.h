// SPDX-License-Identifier: Apache-2.0
// What a language model makes of text that it was not trained on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "examples/language_start.h"
#include "experiment/experiment.h"
#include "frontend/io/safetensors.h"
#include "frontend/llm/language_model.h"

namespace lockstep::examples {

class LanguageCheck {
 public:
  /// In windows of `length` tokens, as `lockstep eval --context` cuts a text.
  LanguageCheck(ModelTrainer<llm::LanguageModel>& trainer, const LanguageStart& start, std::vector<int32_t> tokens, int64_t length);

  /// "heldout_loss" in nats per token, and "perplexity", of each token but the first of a window. Where the text has conversations also
  /// "answers": the share of answers of which each token is the likeliest one, of those whose document is in one window.
  Metrics measure();
  /// What the model writes after the beginning of a text, and what it answers.
  std::vector<Exhibit> exhibits();
  /// The logits of two short prompts and the likeliest tokens after them, as `lockstep verify llm` reads them.
  io::TensorFile expectations();

 private:
  struct Answer {
    size_t document, begin, end;  ///< tokens; the end is after that of the turn
  };
  void findAnswers();
  [[nodiscard]] std::span<const int32_t> windowAt(size_t begin) const;
  /// The likeliest tokens after these, at most 32, until the window is full or a turn or document ends.
  std::vector<int32_t> goOn(std::span<const int32_t> prompt);
  [[nodiscard]] std::string textOf(std::span<const int32_t> tokens) const;

  ModelTrainer<llm::LanguageModel>& trainer_;
  text::Tokenizer tokenizer_;
  int64_t vocabulary_;
  std::vector<int32_t> tokens_;
  size_t length_;
  std::vector<int32_t> ends_;  ///< tokens that end a document or a turn
  std::vector<Answer> answers_;
  Forward loss_, next_;
};

}  // namespace lockstep::examples
