// SPDX-License-Identifier: Apache-2.0
// Several tokens per submission: the same as one after the other, whatever ends a text in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "frontend/llm/generator.h"
#include "frontend/lockstep.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm {
namespace {

using testing::codeOf;
using testing::configOf;
using testing::devices;
using testing::hybrid;
using testing::randomValues;
using testing::tinyJson;

GeneratorOptions optionsOn(const std::string& device, int64_t per_submission, bool samples) {
  return {.device = device, .sequences = 3, .positions = 24, .chunk = 4, .tokens_per_submission = per_submission, .samples = samples};
}

const std::vector<TokenList> kPrompts{{3, 1, 4, 1, 5, 9, 2}, {6}, {5, 3, 5, 8}};

/// What a sequence of calls leaves behind: tokens, lengths, and the logits of one more token, which come from the state.
struct Outcome {
  std::vector<TokenList> made, more;
  std::vector<int64_t> lengths;
  std::vector<std::vector<float>> logits;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcomeOf(Generator& generator, const GenerateOptions& options) {
  Outcome outcome;
  outcome.made = generator.generate(kPrompts, options);
  std::vector<TokenList> last;
  for (const TokenList& tokens : outcome.made) last.push_back({tokens.back()});
  outcome.more = generator.extend(last, {.tokens = 3, .stop_at_end = false, .sampling = options.sampling});
  for (size_t i = 0; i < kPrompts.size(); ++i) outcome.lengths.push_back(generator.length(i));
  outcome.logits = generator.feed({{1}, {2}, {3}}, true).logits;
  return outcome;
}

class Submissions : public ::testing::TestWithParam<std::string> {};

TEST_P(Submissions, make_the_tokens_of_single_steps) {
  for (const LanguageConfig& plain : {hybrid(), configOf(tinyJson("gpt2"))}) {
    LanguageConfig config = plain;
    const ParameterValues values = randomValues(config);
    for (const SamplingOptions& sampling :
         {SamplingOptions{}, SamplingOptions{.temperature = 1.5, .top_k = 12, .repetition_penalty = 1.3}}) {
      const bool samples = sampling.needsSampling();
      // Two tokens that come in the middle of some text end it.
      config.end_tokens = {};
      const std::vector<TokenList> endless =
          Generator(config, values, optionsOn(GetParam(), 1, samples)).generate(kPrompts, {.tokens = 12, .sampling = sampling});
      config.end_tokens = {endless[0][5], endless[2][2]};
      Generator single(config, values, optionsOn(GetParam(), 1, samples));
      Generator two(config, values, optionsOn(GetParam(), 2, samples)), seven(config, values, optionsOn(GetParam(), 7, samples));
      for (const bool stop : {false, true}) {
        const GenerateOptions options{.tokens = 12, .stop_at_end = stop, .sampling = sampling};
        const Outcome want = outcomeOf(single, options);
        EXPECT_EQ(std::ranges::any_of(want.made, [](const TokenList& made) { return made.size() < 12; }), stop);
        for (Generator* several : {&two, &seven}) {
          EXPECT_TRUE(outcomeOf(*several, options) == want) << config.family << config.layers.size() << (samples ? " samples " : " ")
                                                            << several->options().tokens_per_submission << (stop ? " stops" : "");
        }
      }
    }
  }
}

TEST_P(Submissions, fill_the_room_to_its_end) {
  LanguageConfig config = configOf(tinyJson("gpt2"));
  config.learned_positions = config.context = 10;  // a place beyond the last one would have no row
  const ParameterValues values = randomValues(config);
  const auto generator = [&](int64_t per_submission) {
    return Generator(config, values,
                     {.device = GetParam(), .sequences = 2, .positions = 10, .chunk = 3, .tokens_per_submission = per_submission});
  };
  Generator single = generator(1), several = generator(4);
  const std::vector<TokenList> prompts{{1, 2}, {3}};
  EXPECT_EQ(several.generate(prompts, {.tokens = 9, .stop_at_end = false}), single.generate(prompts, {.tokens = 9, .stop_at_end = false}));
  EXPECT_EQ(several.length(0), 10);
  EXPECT_EQ(codeOf([&] { (void)several.extend({{1}}); }), "language_model.room");
  EXPECT_EQ(several.extend({{}, {1}}, {.tokens = 1}), single.extend({{}, {1}}, {.tokens = 1}));
}

TEST_P(Submissions, logits_that_are_no_numbers_are_an_error) {
  const LanguageConfig config = configOf(tinyJson("gpt2"));
  ParameterValues values = randomValues(config);
  // Of the place that the third token of the first submission is fed at.
  std::vector<float>& places = values.at("places.W");
  std::fill_n(places.begin() + 4 * config.width, config.width, std::numeric_limits<float>::quiet_NaN());
  Generator generator(config, values, optionsOn(GetParam(), 4, false));
  EXPECT_EQ(generator.generate({{1, 2}}, {.tokens = 3}).front().size(), 3u);
  EXPECT_EQ(codeOf([&] { (void)generator.generate({{1, 2}}, {.tokens = 5}); }), "language_model.logits");
}

INSTANTIATE_TEST_SUITE_P(Devices, Submissions, ::testing::ValuesIn(devices()), [](const auto& info) { return info.param; });

TEST(SubmissionPrograms, are_compiled_once) {
  const LanguageConfig config = configOf(tinyJson("llama"));
  Generator generator(config, randomValues(config), optionsOn("reference", 4, true));
  EXPECT_EQ(generator.compilations(), 3u);
  for (const int64_t tokens : {1, 5, 9, 14}) (void)generator.generate({{1, 2, 3}, {4}}, {.tokens = tokens, .sampling = {.temperature = 1}});
  EXPECT_EQ(generator.compilations(), 3u);
}

TEST(SubmissionPrograms, need_at_least_one_token) {
  const LanguageConfig config = configOf(tinyJson("llama"));
  EXPECT_EQ(codeOf([&] { Generator(config, randomValues(config), optionsOn("reference", 0, false)); }), "language_model.options");
}

}  // namespace
}  // namespace lockstep::llm
