// SPDX-License-Identifier: Apache-2.0
// `lockstep verify llm` on a checkpoint whose expectations were made by the evaluator; and on one whose expectations are wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/io/file.h"
#include "frontend/io/safetensors.h"
#include "frontend/llm/generator.h"
#include "tests/llm/tiny.h"
#include "tests/tools/cli/process.h"
#include "tests/tools/cli/schema.h"

namespace lockstep::llm {
namespace {

using lockstep::testing::Outcome;
using lockstep::testing::runTool;
using lockstep::testing::ScratchDirectory;

class VerifyLlm : public ::testing::Test {
 protected:
  void SetUp() override { make(testing::configOf(testing::tinyJson("mamba"))); }
  void make(const char* family) { make(testing::configOf(testing::tinyJson(family))); }
  /// A folder with the config, and the expectations of a model that is `computed`.
  void make(const LanguageConfig& config, const std::function<void(LanguageConfig&)>& computed = {}) {
    ASSERT_TRUE(saveCheckpoint(scratch_ / "model", config, testing::randomValues(config)));
    LanguageConfig its = config;
    if (computed) computed(its);
    expected_ = {};
    Generator generator(its, loadWeights(config, scratch_ / "model").orThrow(), {.device = "reference", .positions = 24});
    for (const auto& [name, ids] : {std::pair<std::string, TokenList>("p0", {1, 2, 3, 4, 5, 6, 7}), {"p1", {8}}}) {
      generator.restart();
      const std::vector<float> logits = generator.feed({ids}, true).logits[0];
      TokenList greedy = ids;
      const std::vector<TokenList> made = generator.generate({ids}, {.tokens = 6});
      greedy.insert(greedy.end(), made[0].begin(), made[0].end());
      expected_.tensors.emplace(name + "/ids", io::Array::fromInts({std::ssize(ids)}, ids));
      expected_.tensors.emplace(name + "/logits", io::Array::fromFloats({std::ssize(ids), 24}, logits));
      expected_.tensors.emplace(name + "/greedy", io::Array::fromInts({std::ssize(greedy)}, greedy));
    }
  }
  /// With the expectations as they are now.
  Outcome verify(const std::string& options) {
    EXPECT_TRUE(io::writeSafetensors(scratch_ / "model/expected.safetensors", expected_));
    return runTool(scratch_, "verify llm " + (scratch_ / "model").string() + " " + options);
  }

  ScratchDirectory scratch_{"verify-llm"};
  io::TensorFile expected_;
};

TEST_F(VerifyLlm, passes_where_all_is_as_expected) {
  for (const char* device : {"reference", "evaluate", "vulkan"}) {
    const Outcome outcome = verify(std::string("--json --device ") + device);
    if (std::string_view(device) == "vulkan" && outcome.status == 3) continue;  // there is none here
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_EQ(lockstep::testing::violation(outcome.out, lockstep::testing::readSchema("verify_llm")), "") << outcome.out;
    EXPECT_NE(outcome.out.find(R"("passed": 8, "failed": 0)"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(R"("name": "p0.chunks", "status": "pass", "tokens_equal": 6)"), std::string::npos) << outcome.out;
  }
}

TEST_F(VerifyLlm, a_folder_without_expectations_says_what_is_missing) {
  const Outcome outcome = runTool(scratch_, "verify llm " + (scratch_ / "model").string());
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("golden.file: there is no expected.safetensors"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("docs/language_models.md"), std::string::npos) << outcome.err;
}

TEST_F(VerifyLlm, takes_what_16_bit_weights_may_be_computed_with) {
  const LanguageConfig config = testing::configOf(R"({"model_type": "gemma2", "vocab_size": 24, "hidden_size": 24, "num_hidden_layers": 2,
      "num_attention_heads": 2, "head_dim": 8, "num_key_value_heads": 1, "intermediate_size": 20,
      "rope_theta": 3, "query_pre_attn_scalar": 1, "dtype": "bfloat16"})");
  const auto exact = [](LanguageConfig& its) { its.embedding_scale = std::sqrt(24.0); };
  const auto rounded = [](LanguageConfig& its) {
    for (RotaryConfig& rotary : its.ropes)
      rotary.frequencies = io::Array::from(io::ElementType::BF16, {rotary.dims / 2}, rotary.radians()).toDoubles();
  };
  make(config);
  const Outcome plain = verify("--device reference");
  EXPECT_EQ(plain.status, 0) << plain.out;
  EXPECT_EQ(plain.out.find(" with "), std::string::npos) << plain.out;
  make(config, exact);
  const Outcome wide = verify("--device reference");
  EXPECT_EQ(wide.status, 0) << wide.out;
  EXPECT_NE(wide.out.find("embeddings times a number that is not rounded"), std::string::npos) << wide.out;
  make(config, [&](LanguageConfig& its) {
    exact(its);
    rounded(its);
  });
  const Outcome both = verify("--device reference");
  EXPECT_EQ(both.status, 0) << both.out;
  EXPECT_NE(both.out.find("rotary frequencies rounded to bf16 and embeddings"), std::string::npos) << both.out;
  make(config, [](LanguageConfig& its) { its.embedding_scale = 4.5; });
  EXPECT_EQ(verify("--device reference").status, 5);
}

TEST_F(VerifyLlm, says_what_differs) {
  std::vector<float> logits = expected_.find("p0/logits")->toFloats();
  logits[3 * 24] += 0.1F;
  expected_.tensors["p0/logits"] = io::Array::fromFloats({7, 24}, logits);
  TokenList greedy = expected_.find("p1/greedy")->toInts();
  greedy[4] = (greedy[4] + 1) % 24;
  expected_.tensors["p1/greedy"] = io::Array::fromInts({7}, greedy);
  const Outcome outcome = verify("--device reference");
  EXPECT_EQ(outcome.status, 5) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("0 passed, 8 failed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("logits are further than 0.0001"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("3 of 6 tokens"), std::string::npos) << outcome.out;
}

/// Fewer bits change the logits by more than devices may differ, so the evaluator with the same bits says what is right.
TEST_F(VerifyLlm, fewer_bits_are_compared_with_the_evaluator) {
  make("qwen2");
  EXPECT_EQ(verify("--device reference").out.find("evaluator"), std::string::npos);
  for (const auto& [options, note] : {std::pair<std::string, std::string>("--device reference --cache bf16", "with a cache of bf16"),
                                      {"--device reference --cache f16", "with a cache of f16"},
                                      {"--device reference --weights int8", "with these weights"},
                                      {"--device evaluate --weights int8", "with these weights"},
                                      {"--device vulkan --weights int4 --cache bf16", "with these weights"}}) {
    const Outcome outcome = verify(options);
    if (outcome.status == 3) continue;  // there is no such device here
    EXPECT_EQ(outcome.status, 0) << options << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("8 passed, 0 failed"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("as the evaluator has it " + note), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(verify("--cache int8 --device reference").status, 2);
  // Each way is wrong on a device that is.
  for (const char* options : {"--weights int8", "--cache bf16"}) {
    const Outcome wrong = verify(std::string(options) + " --device reference:fault=mul+99999ulp");
    EXPECT_EQ(wrong.status, 5) << options << wrong.out << wrong.err;
  }
}

/// Keys and values of 16 bits need no other weights: those of the folder are compared as before.
TEST_F(VerifyLlm, a_cache_of_16_bits_leaves_the_expectations_of_whole_sequences) {
  make("qwen2");
  std::vector<float> logits = expected_.find("p0/logits")->toFloats();
  logits[3 * 24] += 0.1F;
  expected_.tensors["p0/logits"] = io::Array::fromFloats({7, 24}, logits);
  const Outcome outcome = verify("--cache bf16 --device reference");
  EXPECT_EQ(outcome.status, 5) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("7 passed, 1 failed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("fail  p0.whole"), std::string::npos) << outcome.out;
}

/// The evaluator says what is right there, so it refuses what a device would.
TEST_F(VerifyLlm, heads_of_odd_width_have_no_cache_of_16_bits) {
  make(testing::configOf(R"({"model_type": "gpt2", "vocab_size": 24, "n_embd": 14, "n_layer": 1, "n_head": 2, "n_positions": 64})"));
  EXPECT_EQ(verify("--device evaluate").status, 0);
  for (const char* options : {"--device evaluate --cache bf16", "--device reference --cache f16"}) {
    const Outcome outcome = verify(options);
    EXPECT_EQ(outcome.status, 4) << options << outcome.out;
    EXPECT_NE(outcome.err.find("language_model.options"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("for heads of width 7"), std::string::npos) << outcome.err;
  }
}

TEST_F(VerifyLlm, files_that_are_wrong_are_refused) {
  expected_.tensors["p1/greedy"] = io::Array::fromInts({2}, TokenList{9, 8});
  EXPECT_NE(verify("--device reference").err.find("golden.tensor"), std::string::npos);
  expected_.tensors.erase("p1/greedy");
  EXPECT_EQ(verify("--device reference").status, 4);
  EXPECT_EQ(runTool(scratch_, "verify llm " + (scratch_ / "none").string()).status, 4);
}

}  // namespace
}  // namespace lockstep::llm
