// SPDX-License-Identifier: Apache-2.0
// Sampling on the device beside the rules of transformers in f64.
#include "frontend/llm/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "backends/backend.h"
#include "frontend/llm/generator.h"
#include "frontend/llm/generator_session.h"
#include "frontend/llm/stored_weights.h"
#include "frontend/lockstep.h"
#include "frontend/nn/init.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm {
namespace {

using testing::codeOf;
using testing::configOf;
using testing::devices;
using testing::randomValues;
using testing::tinyJson;

/// Probabilities of logits; those of ids that are left out are -infinity.
std::vector<double> softmaxOf(const std::vector<double>& z) {
  const double most = *std::ranges::max_element(z);
  double all = 0;
  std::vector<double> p;
  for (const double one : z) all += p.emplace_back(std::exp(one - most));
  for (double& one : p) one /= all;
  return p;
}

/// One logits processor after the other, each in the words of its class.
int32_t expected(const std::vector<float>& logits, const TokenList& so_far, const SamplingOptions& options, uint64_t sequence) {
  constexpr double kOut = -std::numeric_limits<double>::infinity();
  std::vector<double> z(logits.begin(), logits.end());
  for (const int32_t id : std::set<int32_t>(so_far.begin(), so_far.end())) {
    double& one = z[static_cast<size_t>(id)];
    one = one < 0 ? one * options.repetition_penalty : one / options.repetition_penalty;
  }
  if (options.temperature == 0) return static_cast<int32_t>(std::ranges::max_element(z) - z.begin());
  for (double& one : z) one /= options.temperature;
  if (options.top_k > 0) {
    std::vector<double> falling = z;
    std::ranges::sort(falling, std::greater());
    const double kth = falling[std::min<size_t>(static_cast<size_t>(options.top_k), z.size()) - 1];
    for (double& one : z) one = one < kth ? kOut : one;
  }
  std::vector<size_t> order(z.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return z[a] != z[b] ? z[a] > z[b] : a < b; });
  if (options.top_p < 1) {
    const std::vector<double> p = softmaxOf(z);
    double sum = 0;
    for (size_t i = order.size(); i-- > 1;) {
      sum += p[order[i]];
      if (sum <= 1 - options.top_p) z[order[i]] = kOut;
    }
  }
  const std::vector<double> p = softmaxOf(z);
  for (size_t i = 0; i < z.size(); ++i) {
    if (p[i] < options.min_p * p[order[0]]) z[i] = kOut;
  }
  const std::vector<double> rest = softmaxOf(z);
  const double u = random::uniform(options.seed, static_cast<uint32_t>(sequence), so_far.size());
  double sum = 0;
  for (const size_t id : order) {
    sum += rest[id];
    if (sum > u) return static_cast<int32_t>(id);
  }
  return static_cast<int32_t>(order[0]);
}

const std::vector<SamplingOptions> kSettings{
    {},
    {.repetition_penalty = 1.7},
    {.temperature = 1},
    {.temperature = 0.6, .seed = 3},
    {.temperature = 2.5, .top_k = 5},
    {.temperature = 2.5, .top_k = 1000, .seed = 1},
    {.temperature = 2, .top_p = 0.7},
    {.temperature = 2, .top_p = 0.01},
    {.temperature = 2, .top_p = 0},
    {.temperature = 2, .min_p = 0.2},
    {.temperature = 1.5, .top_k = 12, .top_p = 0.9, .min_p = 0.05, .repetition_penalty = 1.4, .seed = 9},
};

class Sampling : public ::testing::Test {
 protected:
  LanguageConfig config_ = configOf(tinyJson("llama"));
  ParameterValues values_ = randomValues(config_);
};

TEST_F(Sampling, tokens_are_those_of_the_rules) {
  Generator plain(config_, values_, {.device = "reference", .sequences = 2, .positions = 48, .chunk = 4});
  for (const std::string& device : devices()) {
    Generator generator(config_, values_, {.device = device, .sequences = 2, .positions = 48, .chunk = 4, .samples = true});
    (void)generator.generate({{1, 2, 3, 4, 5, 6}, {7}}, {.tokens = 1});
    const uint64_t compilations = generator.compilations();
    for (const SamplingOptions& options : kSettings) {
      const std::vector<TokenList> prompts{{1, 2, 3, 4, 5, 6}, {7}};
      const std::vector<TokenList> made = generator.generate(prompts, {.tokens = 20, .sampling = options});
      for (size_t i = 0; i < 2; ++i) {
        TokenList all = prompts[i];
        all.insert(all.end(), made[i].begin(), made[i].end());
        plain.restart();
        std::vector<TokenList> fed(2);
        fed[i] = all;
        const std::vector<float> logits = plain.feed(fed, true).logits[i];
        for (size_t t = prompts[i].size(); t < all.size(); ++t) {
          const auto row = logits.begin() + static_cast<ptrdiff_t>((t - 1) * 24);
          const TokenList so_far(all.begin(), all.begin() + static_cast<ptrdiff_t>(t));
          EXPECT_EQ(all[t], expected({row, row + 24}, so_far, options, i)) << device << ", token " << t << " of sequence " << i;
        }
      }
    }
    EXPECT_EQ(generator.compilations(), compilations);
  }
}

TEST_F(Sampling, the_seed_alone_says_which_tokens) {
  Generator generator(config_, values_, {.device = "reference", .positions = 48, .chunk = 4, .samples = true});
  const auto made = [&](uint64_t seed) {
    return generator.generate({{1, 2, 3, 4, 5, 6}}, {.tokens = 16, .sampling = {.temperature = 1.5, .seed = seed}})[0];
  };
  const TokenList first = made(1);
  EXPECT_NE(first, made(2));
  EXPECT_EQ(first, made(1));
  // Fed token by token, the prompt leads to the same ones.
  generator.restart();
  const SamplingOptions options{.temperature = 1.5, .seed = 1};
  int32_t next = 0;
  for (const int32_t id : {1, 2, 3, 4, 5, 6}) next = generator.feed({{id}}, options).next[0];
  TokenList again{next};
  while (again.size() < first.size()) again.push_back(generator.feed({{again.back()}}, options).next[0]);
  EXPECT_EQ(again, first);
}

TEST_F(Sampling, a_penalty_knows_what_a_restored_sequence_was_fed) {
  Generator generator(config_, values_, {.device = "reference", .positions = 48, .chunk = 4, .samples = true});
  const SamplingOptions options{.repetition_penalty = 1e6};
  (void)generator.feed({{1, 2, 3}}, options);
  const SequenceState state = generator.save(0);
  const int32_t want = generator.feed({{4}}, options).next[0];
  generator.restart();
  (void)generator.feed({{9, 8, want, 7}}, options);
  generator.restore(0, state);
  EXPECT_EQ(generator.feed({{4}}, options).next[0], want);
}

TEST_F(Sampling, ids_beyond_the_tokenizer_are_not_drawn) {
  Generator generator(config_, values_, {.device = "reference", .positions = 48, .vocabulary = 3, .samples = true});
  const TokenList made = generator.generate({{20, 21}}, {.tokens = 30, .sampling = {.temperature = 100}})[0];
  EXPECT_EQ(std::set<int32_t>(made.begin(), made.end()), (std::set<int32_t>{0, 1, 2}));
}

TEST_F(Sampling, a_token_and_a_number_come_back_for_each_sequence) {
  const GeneratorOptions options{.device = "reference", .sequences = 2, .positions = 16, .chunk = 4, .samples = true};
  ModelInference<GeneratorSession> step = makeStep(config_, options, Where::current());
  writeWeights(step, storeWeights(config_, values_).orThrow(), Where::current());
  Batch batch;
  for (const InputSpec& input : inputsOf(options, 1)) {
    if (input.type.dtype == DType::I32) batch.emplace_back(input.name, TokenList(2, 1));
    if (input.type.dtype == DType::F32) batch.emplace_back(input.name, std::vector<float>(2, 0.5F));
  }
  const ForwardResult result = step.run(batch);
  EXPECT_EQ(result.outputs.names(), (std::vector<std::string>{"largest", "next"}));
  EXPECT_EQ(result.outputs.get("next").ints().size(), 2u);
  EXPECT_EQ(result.outputs.get("largest").floats().size(), 2u);
  EXPECT_TRUE(result.captures.names().empty());
}

TEST_F(Sampling, what_is_wrong_is_refused) {
  Generator plain(config_, values_, {.device = "reference", .positions = 16});
  EXPECT_EQ(codeOf([&] { (void)plain.feed({{1}}, SamplingOptions{.temperature = 1}); }), "language_model.sampling");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SamplingOptions& wrong : {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = nan},
                                       SamplingOptions{.top_k = -1}, SamplingOptions{.top_p = -0.1}, SamplingOptions{.top_p = 1.5},
                                       SamplingOptions{.min_p = -0.1}, SamplingOptions{.repetition_penalty = 0}})
    EXPECT_FALSE(wrong.check().ok()) << wrong.temperature << " " << wrong.top_p;
  for (const SamplingOptions& right : kSettings) EXPECT_TRUE(right.check().ok());
}

TEST_F(Sampling, logits_that_are_no_numbers_are_an_error) {
  values_.at("norm.g")[2] = std::numeric_limits<float>::quiet_NaN();
  for (const std::string& device : devices()) {
    for (const bool samples : {false, true}) {
      Generator generator(config_, values_, {.device = device, .positions = 16, .samples = samples});
      EXPECT_EQ(codeOf([&] { (void)generator.feed({{1, 2}}); }), "language_model.logits") << device << samples;
    }
  }
}

TEST(SamplingDefaults, are_those_of_generation_config_json) {
  const auto of = [](const std::string& json, bool sampled = false) { return samplingOf(configOf(tinyJson("llama"), json), sampled); };
  EXPECT_EQ(*of(""), SamplingOptions{});
  EXPECT_EQ(*of("", true), (SamplingOptions{.temperature = 1, .top_k = 50}));
  EXPECT_EQ(*of(R"({"temperature": 0.5, "repetition_penalty": 1.1})"), (SamplingOptions{.repetition_penalty = 1.1}));
  EXPECT_EQ(*of(R"({"do_sample": true, "temperature": 0.5, "top_k": 20, "top_p": 0.8, "min_p": 0.1})"),
            (SamplingOptions{.temperature = 0.5, .top_k = 20, .top_p = 0.8, .min_p = 0.1}));
  EXPECT_EQ(of(R"({"do_sample": true, "top_p": 2})").diagnostics()[0].code, "language_config.value");
}

TEST(SamplingDefaults, rules_that_are_not_applied_are_named) {
  using Keys = std::vector<std::string>;
  const auto of = [](const std::string& json, double temperature = 0) {
    return rulesNotApplied(configOf(tinyJson("llama"), json), {.temperature = temperature}).orThrow();
  };
  EXPECT_EQ(of(""), Keys{});
  EXPECT_EQ(of(R"({"no_repeat_ngram_size": 3, "suppress_tokens": [5], "num_beams": 4})"),
            (Keys{"no_repeat_ngram_size", "num_beams", "suppress_tokens"}));
  EXPECT_EQ(of(R"({"no_repeat_ngram_size": 0, "suppress_tokens": [], "num_beams": 1, "bad_words_ids": null, "typical_p": 1.0})", 1),
            Keys{});
  EXPECT_EQ(of(R"({"typical_p": 0.5})"), Keys{});
  EXPECT_EQ(of(R"({"typical_p": 0.5})", 1), Keys{"typical_p"});
}

}  // namespace
}  // namespace lockstep::llm
