// SPDX-License-Identifier: Apache-2.0
#include "tools/language/text_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "console/terminal.h"
#include "frontend/text/stop_strings.h"

namespace lockstep::tools {
namespace {

/// By AnswerEnd.
struct EndWords {
  std::string_view name, sentence;
};
constexpr std::array<EndWords, 5> kEnds{{{"end_token", "ended by its end token"},
                                         {"stop", "ended by a stop string"},
                                         {"tokens", "ended by --tokens"},
                                         {"context", "ended because there is no room for more; see --context"},
                                         {"interrupted", "interrupted"}}};

const EndWords& wordsOf(AnswerEnd end) { return kEnds[static_cast<size_t>(end)]; }

/// Seconds between two pieces of an answer that seem to be none.
constexpr double kLongestPause = 0.05;

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string_view toString(AnswerEnd end) { return wordsOf(end).name; }

Status AnswerOptions::check() const {
  if (tokens < 1) return console::usage("value", "--tokens is less than 1");
  if (std::ranges::find(stops, "") != stops.end()) return console::usage("value", "--stop is empty", "give it a text, or leave it out");
  return Success{};
}

Result<Answer> answerTo(const TextModelFiles& files, llm::Generator& generator, const llm::TokenList& prompt,
                        const AnswerOptions& options) {
  Answer answer;
  // Ids without a token are not chosen where they are beyond the last one; there may be some between others.
  text::StreamDecoder decoder(files.tokenizer, {.skip_special_tokens = !options.shows_special, .skip_unknown_ids = true});
  text::StopStrings stops(options.stops);
  const auto give = [&](const std::string& text) {
    if (text.empty()) return;
    answer.text += text;
    if (options.write) options.write(text);
  };
  const auto start = std::chrono::steady_clock::now();
  auto first = start;
  llm::TokenList now = prompt;
  const auto endOf = [&](int32_t token, bool is_last) -> std::optional<AnswerEnd> {
    if (files.end_tokens.contains(token)) return AnswerEnd::EndToken;
    if (stops.ended()) return AnswerEnd::Stop;
    if (std::ssize(answer.tokens) >= options.tokens) return AnswerEnd::Tokens;
    if (is_last && generator.length(0) >= generator.options().positions) return AnswerEnd::Context;
    if (options.interrupted != nullptr && options.interrupted->load()) return AnswerEnd::Interrupted;
    return {};
  };
  double seconds_per_token = 0;
  const auto pieceSize = [&]() -> int64_t {
    const int64_t many = generator.options().tokens_per_submission;
    const int64_t room = std::min(options.tokens - std::ssize(answer.tokens), generator.options().positions - generator.length(0));
    // What comes after a stop string must not have been fed, and text that comes in jerks is hard to read.
    const bool is_smooth = answer.tokens.size() > 1 && static_cast<double>(many) * seconds_per_token <= kLongestPause;
    return options.stops.empty() && is_smooth && many <= room ? many : 1;
  };
  for (std::optional<AnswerEnd> end; !end;) {
    const auto begin = std::chrono::steady_clock::now();
    const llm::TokenList piece = generator.extend({now}, {.tokens = pieceSize(), .sampling = options.sampling})[0];
    seconds_per_token = secondsSince(begin) / static_cast<double>(piece.size());
    for (size_t i = 0; i < piece.size() && !end; ++i) {
      const int32_t token = piece[i];
      answer.tokens.push_back(token);
      if (answer.tokens.size() == 1) {
        first = std::chrono::steady_clock::now();
        answer.first_token_seconds = std::chrono::duration<double>(first - start).count();
      }
      if (!files.end_tokens.contains(token) || options.shows_special) {
        LS_TRY(const std::string text, decoder.push(static_cast<uint32_t>(token)));
        give(stops.push(text));
      }
      end = endOf(token, i + 1 == piece.size());
    }
    answer.end = end.value_or(answer.end);
    now = {piece.back()};
  }
  const double seconds = secondsSince(first);
  if (answer.tokens.size() > 1 && seconds > 0) answer.tokens_per_second = static_cast<double>(answer.tokens.size() - 1) / seconds;
  LS_TRY(const std::string rest, decoder.finish());
  give(stops.push(rest));
  give(stops.finish());
  return answer;
}

void printPiece(std::string_view text) {
  if (console::isTerminal(stdout)) {
    fmt::print("{}", withoutControls(text));
  } else {
    fmt::print("{}", text);
  }
  std::fflush(stdout);
}

io::Json answerJson(const Answer& answer, size_t prompt_tokens, const std::string& device) {
  io::Json tokens = io::Json::array();
  for (const int32_t token : answer.tokens) tokens.add(token);
  return io::Json::object()
      .add("text", answer.text)
      .add("tokens", tokens)
      .add("prompt_tokens", uint64_t{prompt_tokens})
      .add("end", toString(answer.end))
      .add("first_token_seconds", answer.first_token_seconds)
      .add("tokens_per_second", answer.tokens_per_second ? io::Json(*answer.tokens_per_second) : io::Json())
      .add("device", device);
}

std::string summaryOf(const Answer& answer, size_t prompt_tokens, const std::string& device) {
  const std::string rate = answer.tokens_per_second ? fmt::format(", then {:.1f} tokens per second", *answer.tokens_per_second) : "";
  return fmt::format("{} tokens after {} of the prompt, {}; the first after {:.3f} s{} on {}", answer.tokens.size(), prompt_tokens,
                     wordsOf(answer.end).sentence, answer.first_token_seconds, rate, device);
}

}  // namespace lockstep::tools
