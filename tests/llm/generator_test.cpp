// SPDX-License-Identifier: Apache-2.0
// The model that trains generates: from a state as from whole sequences, in batches, forked, and with layers of several kinds.
#include "frontend/llm/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "backends/backend.h"
#include "frontend/lockstep.h"
#include "tests/frontend/io/scratch.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm {
namespace {

using testing::codeOf;
using testing::configOf;
using testing::hybrid;
using testing::randomValues;
using testing::tinyJson;

std::vector<LanguageConfig> configs() {
  std::vector<LanguageConfig> all{hybrid()};
  for (const char* family : {"llama", "gpt2", "mamba", "mamba2"}) all.push_back(configOf(tinyJson(family)));
  all.push_back(configOf(tinyJson("gemma2", R"("sliding_window": 3, "final_logit_softcapping": 2.0, "tie_word_embeddings": false)")));
  return all;
}

/// Whole sequences of up to 12 ids, without a state.
class Whole {
 public:
  Whole(const LanguageConfig& config, const ParameterValues& values)
      : ids_(config.vocabulary),
        model_(forward<LanguageModel>({.inputs = {{"ids", i32(1, kMost)}},
                                       .forward = [](const LanguageModel& model, const Inputs& in) { return model(in["ids"]); },
                                       .device = "reference",
                                       .seed = 0,
                                       .make = [&] { return std::make_unique<LanguageModel>(config); }})) {
    model_.upload(values);
  }
  /// Logits [T, ids]. What comes after a position changes nothing there.
  std::vector<float> logits(const TokenList& ids) {
    TokenList filled = ids;
    filled.resize(kMost);
    std::vector<float> all = model_.run({{"ids", filled}}).output.floats();
    all.resize(ids.size() * static_cast<size_t>(ids_));
    return all;
  }
  TokenList greedy(TokenList ids, int count) {
    TokenList made;
    for (int i = 0; i < count; ++i) {
      const std::vector<float> all = logits(ids);
      const auto last = all.end() - ids_;
      made.push_back(static_cast<int32_t>(std::max_element(last, all.end()) - last));
      ids.push_back(made.back());
    }
    return made;
  }

 private:
  static constexpr int64_t kMost = 12;
  int64_t ids_;
  ModelInference<LanguageModel> model_;
};

TEST(Generator, follows_the_whole_sequence_in_chunks_and_batches) {
  const std::vector<TokenList> prompts{{3, 1, 4, 1, 5, 9, 2}, {6}, {5, 3, 5, 8}};
  for (const LanguageConfig& config : configs()) {
    SCOPED_TRACE(config.family + std::to_string(config.layers.size()));
    const ParameterValues values = randomValues(config);
    Generator generator(config, values, {.device = "reference", .sequences = 3, .positions = 16, .chunk = 3});
    const std::vector<TokenList> made = generator.generate(prompts, {.tokens = 5, .stop_at_end = false});
    Whole whole(config, values);
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(made[i], whole.greedy(prompts[i], 5));
    // Not all are the same token, or a wrong state would not be noticed.
    EXPECT_GT(std::set<int32_t>(made[0].begin(), made[0].end()).size() + std::set<int32_t>(made[2].begin(), made[2].end()).size(), 2u);
    // What an old text has left is not seen.
    EXPECT_EQ(generator.generate(prompts, {.tokens = 5, .stop_at_end = false}), made);
  }
}

TEST(Generator, logits_of_pieces_are_those_of_the_whole) {
  const LanguageConfig config = hybrid();
  const ParameterValues values = randomValues(config);
  const TokenList ids{3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<float> whole = Whole(config, values).logits(ids);
  Generator generator(config, values, {.device = "reference", .positions = 8, .chunk = 4});
  std::vector<float> pieces;
  for (const auto& [start, count] : {std::pair<size_t, size_t>(0, 5), {5, 1}, {6, 2}}) {
    const auto begin = ids.begin() + static_cast<ptrdiff_t>(start);
    const Fed fed = generator.feed({TokenList(begin, begin + static_cast<ptrdiff_t>(count))}, true);
    pieces.insert(pieces.end(), fed.logits[0].begin(), fed.logits[0].end());
  }
  ASSERT_EQ(pieces.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(pieces[i], whole[i], 2e-5) << i;
  EXPECT_EQ(generator.length(0), 8);
}

TEST(Generator, rounds_products_over_several_rows_where_it_is_told_to) {
  const LanguageConfig config = configOf(tinyJson("llama"));
  const ParameterValues values = randomValues(config);
  const auto logits = [&](int64_t sequences, int64_t chunk, Precision precision) {
    Generator generator(config, values,
                        {.device = "reference", .sequences = sequences, .positions = 16, .chunk = chunk, .precision = precision});
    const std::vector<TokenList> tokens(static_cast<size_t>(sequences), TokenList{3, 1, 4, 1});
    return generator.feed(tokens, true).logits.front();
  };
  const auto distance = [](const std::vector<float>& a, const std::vector<float>& b) {
    double squares = 0, all = 0;
    for (size_t i = 0; i < a.size(); ++i) squares += std::pow(a[i] - b[i], 2), all += std::pow(a[i], 2);
    return std::sqrt(squares / all);
  };
  const std::vector<float> exact = logits(1, 1, {});
  EXPECT_EQ(logits(1, 1, mixed(bf16)), exact) << "one row at a time";
  for (const auto& [sequences, chunk] : {std::pair(2, 1), std::pair(1, 4)}) {
    EXPECT_LT(distance(exact, logits(sequences, chunk, {})), 1e-6);
    const double rounded = distance(exact, logits(sequences, chunk, mixed(bf16)));
    EXPECT_GT(rounded, 1e-5) << sequences << " sequences, " << chunk << " at a time";
    EXPECT_LT(rounded, 3e-2);
  }
}

TEST(LanguageModel, goes_on_from_its_state_inside_of_a_program) {
  for (const LanguageConfig& config : configs()) {
    SCOPED_TRACE(config.family + std::to_string(config.layers.size()));
    const ParameterValues values = randomValues(config);
    // A prompt of 4, one token, and then two ways on from there side by side: a state is copied and put together along the batch.
    auto model = forward<LanguageModel>({.inputs = {{"ids", i32(1, 5)}, {"ways", i32(2, 3)}},
                                         .forward = [](const LanguageModel& its, const Inputs& in) -> Outputs {
                                           LanguageState state = its.state(1, 8);
                                           const auto at = [](int64_t batch, double place) { return full({batch}, place, DType::I32); };
                                           const Tensor first = its(narrow(in["ids"], 1, 0, 4), state, at(1, 0));
                                           const Tensor next = its(narrow(in["ids"], 1, 4, 1), state, at(1, 4));
                                           for (LayerState& layer : state) {
                                             for (Tensor* tensor : tensorsOf(layer)) *tensor = concat({*tensor, *tensor}, 0);
                                           }
                                           return {{"start", concat({first, next}, 1)}, {"ways", its(in["ways"], state, at(2, 5))}};
                                         },
                                         .device = "reference",
                                         .seed = 0,
                                         .make = [&] { return std::make_unique<LanguageModel>(config); }});
    model.upload(values);
    const TokenList ids{3, 1, 4, 1, 5}, ways{9, 2, 6, 7, 7, 7};
    const ForwardResult result = model.run({{"ids", ids}, {"ways", ways}});
    const std::span<const float> start = result.outputs.get("start").floats(), branches = result.outputs.get("ways").floats();
    Whole whole(config, values);
    for (size_t way = 0; way < 2; ++way) {
      TokenList all = ids;
      all.insert(all.end(), ways.begin() + static_cast<ptrdiff_t>(3 * way), ways.begin() + static_cast<ptrdiff_t>(3 * way + 3));
      const std::vector<float> want = whole.logits(all);
      for (size_t i = 0; i < start.size(); ++i) ASSERT_NEAR(start[i], want[i], 1e-4) << i;
      for (size_t i = 0; i < size_t{3} * 24; ++i) ASSERT_NEAR(branches[way * 72 + i], want[start.size() + i], 1e-4) << i;
    }
  }
}

TEST(Generator, a_sequence_can_be_kept_and_go_on_several_ways) {
  struct Row {
    const char* device;
    LanguageConfig config;
  };
  std::vector<Row> rows{{"vulkan", hybrid()}};
  for (const LanguageConfig& config : configs()) rows.push_back({"reference", config});
  for (const auto& [device, config] : rows) {
    if (!chooseDevice(device).ok()) continue;
    const ParameterValues values = randomValues(config);
    Generator generator(config, values, {.device = device, .sequences = 2, .positions = 12, .chunk = 4});
    generator.feed({{1, 2, 3, 4, 5}, {7, 8}});
    const SequenceState kept = generator.save(0);
    EXPECT_EQ(kept.length, 5);
    const Fed there = generator.feed({{6, 7}, {}}, true);
    // In the other sequence, after other tokens of its own; and in another generator.
    generator.restore(1, kept);
    EXPECT_EQ(generator.length(1), 5);
    EXPECT_EQ(generator.feed({{}, {6, 7}}, true).logits[1], there.logits[0]);
    Generator other(config, values, {.device = device, .sequences = 1, .positions = 12, .chunk = 4});
    other.restore(0, kept);
    EXPECT_EQ(other.feed({{6, 7}}, true).logits[0], there.logits[0]);
    EXPECT_EQ(codeOf([&] { other.restore(0, {.length = 1, .tensors = {}}); }), "language_model.options");
  }
}

TEST(Generator, tokens_can_be_taken_back) {
  for (const char* device : {"reference", "vulkan"}) {
    if (!chooseDevice(device).ok()) continue;
    for (const LanguageConfig& config : configs()) {
      const bool attends = std::ranges::all_of(config.layers, [](const LayerConfig& layer) { return layer.kind == LayerKind::Attention; });
      const ParameterValues values = randomValues(config);
      Generator generator(config, values, {.device = device, .sequences = 2, .positions = 12, .chunk = 4, .samples = true});
      EXPECT_EQ(generator.canTakeBack(), attends);
      // A token that came twice stays once.
      const SamplingOptions penalty{.repetition_penalty = 1e6};
      generator.feed({{1, 2, 3}, {1, 2, 3, 20, 1, 21, 22}}, penalty);
      generator.takeBack(1, {});
      if (!attends) {
        EXPECT_EQ(codeOf([&] { generator.takeBack(1, {22}); }), "language_model.options");
        continue;
      }
      generator.takeBack(1, {20, 1, 21, 22});
      EXPECT_EQ(generator.length(0), 3);
      EXPECT_EQ(generator.length(1), 3);
      const SequenceState kept = generator.save(0);
      const Fed drawn = generator.feed({{4, 5}, {4, 5}}, penalty);
      EXPECT_EQ(drawn.next[0], drawn.next[1]);
      generator.restore(0, kept);
      generator.takeBack(1, {4, 5});
      const Fed fed = generator.feed({{4, 5}, {4, 5}}, true);
      EXPECT_EQ(fed.logits[0], fed.logits[1]);
      EXPECT_EQ(generator.save(0).tensors.back(), generator.save(1).tensors.back()) << "how often each id was there";
      EXPECT_EQ(codeOf([&] { generator.takeBack(1, TokenList(6, 1)); }), "language_model.options");
      EXPECT_EQ(codeOf([&] { generator.takeBack(1, {-1}); }), "language_model.tokens");
      EXPECT_EQ(codeOf([&] { generator.takeBack(2, {}); }), "language_model.options");
    }
  }
}

TEST(Generator, stops_at_any_of_the_end_tokens) {
  const LanguageConfig config = configOf(tinyJson("llama"));
  const ParameterValues values = randomValues(config);
  const TokenList made = Whole(config, values).greedy({3, 1, 4}, 6);
  const auto with = [&](const TokenList& ends) {
    LanguageConfig its = config;
    its.end_tokens = ends;
    return Generator(its, values, {.device = "reference", .positions = 12, .chunk = 2}).generate({{3, 1, 4}}, {.tokens = 6}).front();
  };
  EXPECT_EQ(with({}), made);
  const int32_t end = made[2];
  const auto first = std::ranges::find(made, end);
  EXPECT_EQ(with({23, end}), TokenList(made.begin(), first + 1));
}

TEST(Generator, chooses_ids_of_the_tokenizer_only) {
  const LanguageConfig config = configOf(tinyJson("llama"));
  Generator generator(config, randomValues(config), {.device = "reference", .positions = 24, .vocabulary = 5});
  const std::vector<TokenList> made = generator.generate({{3, 1, 4}}, {.tokens = 16});
  for (const int32_t id : made[0]) EXPECT_LT(id, 5);
}

TEST(Generator, misuse_is_refused) {
  const LanguageConfig config = configOf(tinyJson("gpt2"));
  const ParameterValues values = randomValues(config);
  const auto made = [&](const GeneratorOptions& options) { return codeOf([&] { Generator(config, values, options); }); };
  EXPECT_EQ(made({.device = "reference", .sequences = 0}), "language_model.options");
  EXPECT_EQ(made({.device = "reference", .tokens_per_submission = 1025}), "language_model.options");
  EXPECT_EQ(made({.device = "reference", .chunk = 0}), "language_model.options");
  EXPECT_EQ(made({.device = "reference", .positions = 65}), "language_model.options");  // the table has 64
  EXPECT_EQ(made({.device = "reference", .vocabulary = 25}), "language_model.options");
  Generator generator(config, values, {.device = "reference", .positions = 6, .chunk = 4});
  EXPECT_EQ(codeOf([&] { generator.feed({{24}}); }), "language_model.tokens");
  EXPECT_EQ(codeOf([&] { generator.feed({{-1}}); }), "language_model.tokens");
  EXPECT_EQ(codeOf([&] { generator.feed({{1}, {2}}); }), "language_model.options");
  EXPECT_EQ(codeOf([&] { generator.feed({TokenList(7)}); }), "language_model.room");
  EXPECT_EQ(codeOf([&] { generator.generate({{}}); }), "language_model.tokens");
  EXPECT_EQ(codeOf([&] { generator.generate({{1, 2, 3}}, {.tokens = 5}); }), "language_model.room");
  EXPECT_EQ(codeOf([&] { generator.generate({{1, 2, 3}}, {.tokens = std::numeric_limits<int64_t>::max()}); }), "language_model.room");
  EXPECT_EQ(codeOf([&] { generator.generate({{1, 2, 3}}, {.tokens = -1}); }), "language_model.options");
  EXPECT_EQ(generator.generate({{1, 2, 3}}, {.tokens = 4}).front().size(), 4u);  // the last one is never fed
  EXPECT_EQ(codeOf([&] { (void)generator.length(1); }), "language_model.options");
  EXPECT_EQ(codeOf([&] { (void)generator.save(1); }), "language_model.options");
  SequenceState state = generator.save(0);
  EXPECT_EQ(codeOf([&] { generator.restore(1, state); }), "language_model.options");
  for (const int64_t length : {-5, 7}) {
    state.length = length;
    EXPECT_EQ(codeOf([&] { generator.restore(0, state); }), "language_model.options") << length;
  }
}

/// A token costs the same wherever it stands.
TEST(Generator, the_state_of_a_state_space_model_has_one_size) {
  for (const char* family : {"mamba", "mamba2"}) {
    const LanguageConfig config = configOf(tinyJson(family));
    const auto sizesAfter = [&](int64_t positions, size_t tokens) {
      Generator generator(config, randomValues(config), {.device = "reference", .positions = positions, .chunk = 16});
      generator.feed({TokenList(tokens, 3)});
      std::vector<size_t> sizes;
      for (const std::vector<float>& tensor : generator.save(0).tensors) sizes.push_back(tensor.size());
      return sizes;
    };
    EXPECT_EQ(sizesAfter(20, 2), sizesAfter(3000, 300)) << family;
  }
}

TEST(Generator, what_was_trained_is_saved_loaded_and_generates) {
  for (const char* family : {"llama", "gemma2", "gpt2", "mamba", "mamba2"}) {
    SCOPED_TRACE(family);
    const LanguageConfig config = configOf(tinyJson(family));
    auto trainer = compile<LanguageModel>({
        .inputs = {{"x", i32(8, 6)}, {"y", i32(8, 6)}},
        .loss = [](const LanguageModel& model, const Inputs& in) { return cross_entropy(model(in["x"]), in["y"]); },
        .optimizer = adamw({.lr = 1e-2}),
        .seed = 1,
        .device = "reference",
        .make = [&] { return std::make_unique<LanguageModel>(config); },
    });
    // Ids that count up by two.
    TokenList x, y;
    for (int32_t row = 0; row < 8; ++row) {
      for (int32_t t = 0; t < 6; ++t) {
        x.push_back((3 * row + 2 * t) % 24);
        y.push_back((3 * row + 2 * t + 2) % 24);
      }
    }
    const float first = trainer.step({{"x", x}, {"y", y}}).loss;
    float last = first;
    for (int step = 0; step < 80; ++step) last = trainer.step({{"x", x}, {"y", y}}).loss;
    EXPECT_LT(last, 0.2F * first);
    const lockstep::testing::ScratchDirectory scratch(std::string("trained-") + family);
    ASSERT_TRUE(saveCheckpoint(scratch / "model", config, trainer.download()));
    size_t told = 0, tensors = 0;
    const auto progress = [&](size_t done, size_t all) {
      EXPECT_EQ(done, ++told);
      tensors = all;
    };
    Generator generator = Generator::load(scratch / "model", {.device = "reference", .positions = 8, .chunk = 4}, progress);
    EXPECT_GT(told, 0u);
    EXPECT_EQ(told, tensors);
    EXPECT_EQ(generator.generate({{6, 8, 10}}, {.tokens = 3}).front(), (TokenList{12, 14, 16}));
  }
}

}  // namespace
}  // namespace lockstep::llm
