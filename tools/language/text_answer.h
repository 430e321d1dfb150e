// SPDX-License-Identifier: Apache-2.0
// The text that a model gives after a prompt, as it is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/jsonl.h"
#include "tools/language/text_model.h"

namespace lockstep::tools {

enum class AnswerEnd : uint8_t { EndToken, Stop, Tokens, Context, Interrupted };
/// "end_token", "stop", "tokens", "context", "interrupted".
std::string_view toString(AnswerEnd end);

struct AnswerOptions {
  int64_t tokens = 256;  ///< at most so many
  std::vector<std::string> stops = {};
  llm::SamplingOptions sampling = {};
  bool shows_special = false;                             ///< special tokens are text, too
  const std::atomic<bool>* interrupted = nullptr;         ///< looked at after each token
  std::function<void(std::string_view text)> write = {};  ///< gets the text piece by piece
  /// What a user says of them. code "usage.value"
  [[nodiscard]] Status check() const;
};

struct Answer {
  std::string text;
  llm::TokenList tokens;  ///< with the one that ended it
  AnswerEnd end = AnswerEnd::Tokens;
  double first_token_seconds = 0;           ///< from the first token of the prompt that is fed
  std::optional<double> tokens_per_second;  ///< of those after the first
};

/// Feeds a prompt to sequence 0 of a generator, after what that was fed before, and goes on from it. The last token is not fed. Errors of
/// Generator::feed() are thrown, "language_model.room" before anything is fed; code tokenizer.id
Result<Answer> answerTo(const TextModelFiles& files, llm::Generator& generator, const llm::TokenList& prompt, const AnswerOptions& options);

/// Prints a piece of an answer at once. On a terminal control characters are shown and do not act: what a model writes is not ours.
void printPiece(std::string_view text);
/// The members that all verbs print of an answer to a prompt of so many tokens.
io::Json answerJson(const Answer& answer, size_t prompt_tokens, const std::string& device);
/// One line for people.
std::string summaryOf(const Answer& answer, size_t prompt_tokens, const std::string& device);

}  // namespace lockstep::tools
