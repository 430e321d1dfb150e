// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "console/interrupt.h"
#include "console/terminal.h"
#include "frontend/text/chat_template.h"
#include "tools/language/sampling_choices.h"
#include "tools/language/text_answer.h"
#include "tools/language/text_input.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

using text::JsonArray;
using text::JsonObject;
using text::JsonValue;

JsonValue message(const char* role, const std::string& content) {
  return JsonValue(JsonObject{{{"role", JsonValue(std::string(role))}, {"content", JsonValue(content)}}});
}

Result<text::ChatTemplate> templateOf(const TextModelFiles& files, const std::string& file) {
  if (!file.empty()) {
    LS_TRY(const std::string text, readTextInput(file));
    return text::ChatTemplate::parse(text, file);
  }
  const auto& templates = files.tokenizer_config.chat_templates;
  const auto found = templates.find("default");
  if (found == templates.end()) {
    return fail("language_model.chat_template", fmt::format("{} has no chat template", files.folder), {},
                "use a model that was made for conversations, or name a template with --chat-template");
  }
  return text::ChatTemplate::parse(found->second, files.folder + ": chat template");
}

/// The messages so far, and the tokens of them that the model was fed.
class Conversation {
 public:
  Conversation(const TextModelFiles& files, llm::Generator& generator, text::ChatTemplate chat, const std::string& system)
      : files_(files), generator_(generator), template_(std::move(chat)) {
    if (!system.empty()) system_.push_back(message("system", system));
    reset();
  }
  /// What the model has been fed stays until it is known what the next conversation has in common with it.
  void reset() { messages_ = system_; }

  struct Turn {
    Answer answer;
    size_t prompt_tokens = 0;  ///< of the whole conversation
    size_t fed_tokens = 0;     ///< of these, those that the model did not have yet
  };
  /// A turn that fails leaves the conversation as it was before.
  Result<Turn> ask(const std::string& line, const AnswerOptions& options) {
    JsonArray messages = messages_;
    messages.push_back(message("user", line));
    LS_TRY(const std::string text, template_.render(JsonValue(messages), {.add_generation_prompt = true,
                                                                          .special_tokens = files_.tokenizer_config.special_tokens}));
    LS_TRY(const llm::TokenList all, files_.encode(text, {.add_special_tokens = false}));
    if (std::ssize(all) > generator_.options().positions) {
      return fail("language_model.room",
                  fmt::format("the conversation has {} tokens, and there is room for {}", all.size(), generator_.options().positions), {},
                  "begin a new one with /reset, or give it more room with --context");
    }
    keepCommon(all);
    const llm::TokenList fresh(all.begin() + std::ssize(fed_), all.end());
    fed_.clear();
    LS_TRY(Answer answer, answerTo(files_, generator_, fresh, options));
    fed_ = all;
    fed_.insert(fed_.end(), answer.tokens.begin(), answer.tokens.end() - 1);
    messages.push_back(message("assistant", answer.text));
    messages_ = std::move(messages);
    return Turn{.answer = std::move(answer), .prompt_tokens = all.size(), .fed_tokens = fresh.size()};
  }

 private:
  /// Of the tokens that the model has, those that these begin with; not all of these, as the last one leads to the answer. What a template
  /// makes of the earlier turns may differ from what was said, and an answer may have other tokens than its text.
  void keepCommon(const llm::TokenList& all) {
    const auto [had, wanted] = std::mismatch(fed_.begin(), fed_.end(), all.begin(), all.end() - 1);
    const llm::TokenList gone(had, fed_.end());
    const bool has_them = generator_.length(0) == std::ssize(fed_);  // an answer that failed may have fed some
    if (!has_them || (!gone.empty() && !generator_.canTakeBack())) {
      fed_.clear();
      generator_.restart();
      return;
    }
    generator_.takeBack(0, gone);
    fed_.resize(fed_.size() - gone.size());
  }
  const TextModelFiles& files_;
  llm::Generator& generator_;
  text::ChatTemplate template_;
  JsonArray system_, messages_;
  llm::TokenList fed_;
};

struct ChatChoices {
  TextModelChoices model;
  SamplingChoices sampling;
  AnswerOptions answer;
  std::string system, chat_template;
  bool json = false;
};

/// Until /exit, the end of stdin, or an interrupt.
Result<ExitCode> talk(Conversation& conversation, const ChatChoices& choices, const std::string& device) {
  const bool by_hand = console::isTerminal(stdin) && console::isTerminal(stderr);
  for (std::string line;;) {
    if (by_hand) fmt::print(stderr, "> ");
    if (choices.answer.interrupted->load()) return ExitCode::Interrupted;
    if (!std::getline(std::cin, line)) return choices.answer.interrupted->load() ? ExitCode::Interrupted : ExitCode::Ok;
    if (line.empty()) continue;
    if (line == "/exit") return ExitCode::Ok;
    if (line == "/reset") {
      conversation.reset();
      continue;
    }
    const auto turn = conversation.ask(line, choices.answer);
    if (!turn.ok()) {
      if (!by_hand) return turn.failure();
      fmt::print(stderr, "{}\n", toString(turn.diagnostics()));
      continue;
    }
    if (choices.json) {
      fmt::print("{}\n", answerJson(turn->answer, turn->prompt_tokens, device).add("fed_tokens", uint64_t{turn->fed_tokens}).text());
    } else {
      fmt::print("\n");
    }
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", summaryOf(turn->answer, turn->prompt_tokens, device));
    if (turn->answer.end == AnswerEnd::Interrupted) return ExitCode::Interrupted;
  }
}

}  // namespace

Result<ExitCode> chatVerb(Arguments arguments) {
  ChatChoices choices;
  choices.answer.tokens = 1024;
  Options options("lockstep chat",
                  "Answers each line of stdin, by a language model in a folder of Hugging Face and its chat template. /reset begins a new "
                  "conversation, /exit ends the program.");
  choices.model.addTo(options);
  options.value(choices.system, "--system", "what the model is told first, where its template knows of it");
  options.value(choices.chat_template, "--chat-template", "a file with a template in place of the model's");
  options.value(choices.answer.tokens, "--tokens", "at most so many tokens for each answer");
  options.list(choices.answer.stops, "--stop", "an answer ends before this text; may be given several times");
  choices.sampling.addTo(options);
  choices.model.addPaceTo(options);
  options.flag(choices.answer.shows_special, "--show-special", "print special tokens, too");
  options.flag(choices.json, "--json", "one JSON object for each answer");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  LS_CHECK(choices.answer.check());
  LS_CHECK(choices.model.check());

  LS_TRY(const TextModelFiles files, TextModelFiles::load(choices.model.folder));
  LS_TRY(choices.answer.sampling, choices.sampling.with(files.config));
  LS_TRY(text::ChatTemplate chat, templateOf(files, choices.chat_template));
  LS_TRY(llm::Generator generator, makeGenerator(files, choices.model, choices.answer.sampling.needsSampling()));
  choices.answer.interrupted = &console::catchInterrupts();
  if (!choices.json) choices.answer.write = printPiece;
  Conversation conversation(files, generator, std::move(chat), choices.system);
  return talk(conversation, choices, generator.device());
}

}  // namespace lockstep::tools
