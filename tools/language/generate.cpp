// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>

#include "console/interrupt.h"
#include "tools/language/sampling_choices.h"
#include "tools/language/text_answer.h"
#include "tools/language/text_input.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

struct GenerateChoices {
  TextModelChoices model;
  SamplingChoices sampling;
  AnswerOptions answer;
  std::string prompt, prompt_file;
  bool no_special_tokens = false, plain = false, json = false;
};

Result<std::string> promptOf(const GenerateChoices& choices) {
  if (!choices.prompt.empty() && !choices.prompt_file.empty())
    return usage("value", "--prompt and --prompt-file do not go together", "leave one of them out");
  if (!choices.prompt_file.empty()) return readTextInput(choices.prompt_file);
  if (choices.prompt == "-") return readTextInput("-");
  return choices.prompt;
}

}  // namespace

Result<ExitCode> generateVerb(Arguments arguments) {
  GenerateChoices choices;
  Options options("lockstep generate", "Continues a text with a language model from a Hugging Face folder.");
  choices.model.addTo(options);
  options.value(choices.prompt, "--prompt", "the text to go on with; - reads stdin");
  options.value(choices.prompt_file, "--prompt-file", "the same of a file");
  options.value(choices.answer.tokens, "--tokens", "at most so many new tokens");
  options.list(choices.answer.stops, "--stop", "ends before this text; may be given several times");
  choices.sampling.addTo(options);
  choices.model.addPaceTo(options);
  options.flag(choices.no_special_tokens, "--no-special-tokens", "add none to the prompt, such as <s> in front");
  options.flag(choices.plain, "--plain", "special tokens that are written in the prompt are text");
  options.flag(choices.answer.shows_special, "--show-special", "print special tokens, too");
  options.flag(choices.json, "--json", "one JSON object for scripts, at the end");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  LS_CHECK(choices.answer.check());
  LS_CHECK(choices.model.check());

  LS_TRY(const std::string prompt, promptOf(choices));
  LS_TRY(const TextModelFiles files, TextModelFiles::load(choices.model.folder));
  LS_TRY(choices.answer.sampling, choices.sampling.with(files.config));
  LS_TRY(const llm::TokenList tokens,
         files.encode(prompt, {.add_special_tokens = !choices.no_special_tokens, .parse_special_tokens = !choices.plain}));
  LS_TRY(llm::Generator generator, makeGenerator(files, choices.model, choices.answer.sampling.needsSampling()));
  if (const int64_t room = generator.options().positions; std::ssize(tokens) > room) {
    return fail("language_model.room", fmt::format("the prompt has {} tokens, and there is room for {}", tokens.size(), room), {},
                "shorten it, or give it more room with --context");
  }
  choices.answer.interrupted = &console::catchInterrupts();
  if (!choices.json) choices.answer.write = printPiece;
  LS_TRY(const Answer answer, answerTo(files, generator, tokens, choices.answer));
  if (choices.json) {
    fmt::print("{}\n", answerJson(answer, tokens.size(), generator.device()).text());
  } else {
    fmt::print("\n");
  }
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", summaryOf(answer, tokens.size(), generator.device()));
  return answer.end == AnswerEnd::Interrupted ? ExitCode::Interrupted : ExitCode::Ok;
}

}  // namespace lockstep::tools
