// SPDX-License-Identifier: Apache-2.0
// `lockstep train tiny-llm` from end to end: what it saves is what the other verbs take, and what it goes on from.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "examples/data/conversations.h"
#include "examples/recipes.h"
#include "frontend/text/tokenizer.h"
#include "frontend/text/train_bpe.h"
#include "tests/llm/tiny.h"
#include "tests/tools/cli/process.h"
#include "tests/tools/cli/schema.h"

namespace lockstep::llm {
namespace {

using lockstep::testing::Outcome;
using lockstep::testing::readSchema;
using lockstep::testing::runTool;
using lockstep::testing::ScratchDirectory;
using lockstep::testing::violation;
using nlohmann::json;

class TinyLlm : public ::testing::Test {
 protected:
  TinyLlm() { put("text", examples::madeUpText(40)); }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::writeFileAtomically(scratch_ / name, std::string_view(text)));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_ / name; }
  Outcome run(const std::string& command) { return runTool(scratch_, command + " --device reference"); }
  /// The lines of a training run.
  std::vector<json> train(const std::string& options) {
    const Outcome outcome = run("train tiny-llm --json --text " + path("text") + " " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<json> lines;
    std::istringstream stream(outcome.out);
    for (std::string line; std::getline(stream, line);) {
      EXPECT_EQ(violation(line, readSchema("train")), "") << line;
      lines.push_back(json::parse(line));
    }
    return lines;
  }
  json answerOf(const std::string& command) {
    const Outcome outcome = run(command + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? json::parse(outcome.out) : json();
  }
  void expectError(const std::string& options, int status, const std::string& code) {
    const Outcome outcome = run("train " + options + " --steps 1 --no-out");
    EXPECT_EQ(outcome.status, status) << options << outcome.err;
    EXPECT_NE(outcome.err.find(code), std::string::npos) << options << outcome.err;
  }
  /// A model of another program: tiny, with random weights and its own tokenizer.
  LanguageConfig putModel(const std::string& name, const std::string& family, const std::string& more = {}) {
    std::string json = testing::tinyJson(family, more);
    json.replace(json.find("24"), 2, "300");
    const LanguageConfig config = testing::configOf(json);
    EXPECT_TRUE(saveCheckpoint(scratch_ / name, config, testing::randomValues(config)));
    put(name + "/tokenizer.json", text::trainByteLevelBpe(examples::madeUpText(9), {.vocabulary_size = 290}).orThrow());
    put(name + "/tokenizer_config.json", R"({"eos_token": "!", "chat_template": "{{ messages }}"})");
    return config;
  }

  ScratchDirectory scratch_{"tiny-llm"};
};

TEST_F(TinyLlm, what_is_trained_is_generated_from_measured_and_trained_on) {
  const std::vector<json> first = train("--steps 2 --out " + path("run"));
  ASSERT_GE(first.size(), 2u);
  EXPECT_GT(first.front()["loss"], 5.5);
  EXPECT_LT(first.back()["loss"], 6);
  const std::string model = first.back()["model"], heldout = model + "/heldout.txt";
  EXPECT_EQ(model, path("run/model"));

  const json measured = answerOf("eval " + model + " --text " + heldout);
  EXPECT_NEAR(measured["cross_entropy"], first.back()["metrics"]["heldout_loss"], 1e-5);
  EXPECT_NEAR(measured["perplexity"], first.back()["metrics"]["perplexity"], 1e-3);
  EXPECT_GT(answerOf("generate " + model + " --prompt 'Anna has a' --tokens 5 --seed 1")["tokens"].size(), 0u);
  EXPECT_EQ(run("verify llm " + model).status, 0);
  put("said", "Hello!\n");
  EXPECT_EQ(runTool(scratch_, "chat " + model + " --tokens 3 --device reference", path("said")).status, 0);

  const auto tokenizer = text::Tokenizer::load(model + "/tokenizer.json").orThrow();
  const std::string text = *io::readTextFile(heldout);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text).orThrow(), {.skip_special_tokens = false}).orThrow(), text);
  EXPECT_TRUE(io::readTextFile(path("text"))->ends_with(text));

  const std::vector<json> second = train("--steps 1 --no-out --from " + model + " --save " + path("second"));
  EXPECT_NEAR(second.front()["loss"], first.back()["loss"], 0.4);
  EXPECT_LT(second.back()["metrics"]["heldout_loss"], first.back()["metrics"]["heldout_loss"]);
  EXPECT_EQ(*io::readTextFile(path("second/tokenizer.json")), *io::readTextFile(model + "/tokenizer.json"));
  const json again = answerOf("eval " + path("second") + " --text " + heldout);
  EXPECT_NEAR(again["cross_entropy"], second.back()["metrics"]["heldout_loss"], 1e-5);
}

TEST_F(TinyLlm, begins_with_the_weights_of_a_model_and_saves_what_was_in_its_folder) {
  for (const char* family : {"llama", "qwen3", "gpt2", "mamba"}) {
    SCOPED_TRACE(family);
    const std::string folder = path(family);
    const LanguageConfig config = putModel(family, family, R"("eos_token_id": 3)");
    const auto experiment = examples::tiny_llm().make({.steps = 4, .seed = 1, .data = path("text"), .from = folder, .device = "reference"});
    EXPECT_EQ(experiment->trainer().download(), loadWeights(config, folder).orThrow());
    (void)experiment->trainer().step(experiment->batch(1)).or_throw();
    const std::string saved = folder + "-saved";
    ASSERT_TRUE(experiment->saveModel(saved).ok());
    EXPECT_EQ(LanguageConfig::load(saved).orThrow(), config);
    EXPECT_EQ(loadWeights(config, saved).orThrow(), experiment->trainer().download());
    for (const char* file : {"tokenizer.json", "tokenizer_config.json", "config.json"})
      EXPECT_EQ(*io::readTextFile(saved + "/" + file), *io::readTextFile(folder + "/" + file));
  }
}

TEST_F(TinyLlm, resumes_from_the_model_that_it_began_with) {
  putModel("model", "llama");
  const std::string options = "--from " + path("model") + " --out " + path("run");
  (void)train("--steps 1 " + options);
  const Outcome other = run("train --resume --steps 2 --from " + path("other") + " --out " + path("run"));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("the run began with '" + path("model")), std::string::npos) << other.err;
  EXPECT_EQ(run("train --resume --steps 2 --quiet --out " + path("run")).status, 0);
  EXPECT_EQ(violation(*io::readTextFile(path("run/config.json")), readSchema("config")), "");
}

TEST_F(TinyLlm, what_is_wrong_is_said_before_it_trains) {
  const std::string tiny = "tiny-llm --text " + path("text");
  expectError(tiny + " --from " + path("nowhere"), 4, "there is no folder '" + path("nowhere"));
  putModel("model", "llama");
  expectError(tiny + " --from " + path("model") + " --save " + path("model"), 4, "folder.exists");
  expectError("sine --from " + path("model"), 2, "usage.model: 'sine' takes no --from");
  expectError("sine --save x", 2, "these take it: tiny-llm");
  put("short", "Once upon a time.");
  expectError("tiny-llm --text " + path("short"), 4, "data.text");
  put("short", "Once.");
  expectError("tiny-llm --text " + path("short"), 4, "data.text");
  put("short", "\xff\xfe is no UTF-8, and long enough to be a text");
  expectError("tiny-llm --text " + path("short"), 4, "not UTF-8 at byte 0");
  expectError("tiny-llm --text " + path("nothing"), 4, "file.read");
  // The ids of letters are beyond those of the model.
  std::vector<std::string> special(300, "");
  for (size_t i = 0; i < special.size(); ++i) special[i] = fmt::format("<{}>", i);
  put("model/tokenizer.json", text::trainByteLevelBpe("", {.vocabulary_size = 256 + special.size(), .special_tokens = special}).orThrow());
  expectError(tiny + " --from " + path("model"), 4, "language_model.tokens");
  std::filesystem::remove(path("model/tokenizer.json"));
  expectError(tiny + " --from " + path("model"), 4, "language_model.tokenizer");
}

}  // namespace
}  // namespace lockstep::llm
