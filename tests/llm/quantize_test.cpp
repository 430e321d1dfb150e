// SPDX-License-Identifier: Apache-2.0
// `lockstep quantize` and what reads its folders: the bits are those that a generator makes of the model itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "frontend/io/file.h"
#include "frontend/llm/generator.h"
#include "frontend/llm/stored_weights.h"
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
using testing::codeOf;

class Quantize : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = testing::configOf(
        R"({"model_type": "llama", "vocab_size": 258, "hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 36, "max_position_embeddings": 32, "tie_word_embeddings": true, "eos_token_id": 257})",
        R"({"eos_token_id": 257})");
    values_ = testing::randomValues(config_);
    ASSERT_TRUE(saveCheckpoint(model(), config_, values_));
    put("model/tokenizer.json", text::trainByteLevelBpe("", {.vocabulary_size = 258, .special_tokens = {"<|a|>", "<|b|>"}}).orThrow());
    put("model/tokenizer_config.json", R"({"eos_token": "<|b|>", "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})");
    put("model/notes.txt", "not of the tokenizer");
  }
  [[nodiscard]] std::filesystem::path model() const { return scratch_ / "model"; }
  [[nodiscard]] std::filesystem::path out() const { return scratch_ / "out"; }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::writeFileAtomically(scratch_ / name, std::string_view(text)));
  }
  Outcome quantize(const std::string& options) {
    return runTool(scratch_, fmt::format("quantize {} --out {} {}", model().string(), out().string(), options));
  }
  Outcome run(const std::string& verb, const std::filesystem::path& folder, const std::string& options) {
    return runTool(scratch_, fmt::format("{} {} --device reference --json {}", verb, folder.string(), options));
  }
  void expectFailure(const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    // With --json errors are on stdout.
    EXPECT_NE((outcome.out + outcome.err).find(words), std::string::npos) << outcome.out << outcome.err;
  }
  LanguageConfig with(const std::string& format) { return withFormat(config_, nn::WeightFormat::parse(format).orThrow()).orThrow(); }

  ScratchDirectory scratch_{"quantize"};
  LanguageConfig config_;
  ParameterValues values_;
};

TEST_F(Quantize, a_folder_has_the_bits_of_the_model) {
  for (const std::string format : {"f16", "bf16", "int8", "int4", "int4:128"}) {
    const Outcome outcome = quantize("--replace --json --weights " + format);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(violation(outcome.out, readSchema("quantize")), "") << outcome.out;
    EXPECT_EQ(json::parse(outcome.out)["weights"], format);
    EXPECT_EQ(json::parse(outcome.out)["parameters"], parameterCount(config_));
    const LanguageConfig read = LanguageConfig::load(out()).orThrow();
    EXPECT_EQ(toString(read.weights), format);
    EXPECT_EQ(read.end_tokens, config_.end_tokens);
    const io::TensorFile file = loadStoredWeights(read, out()).orThrow();
    EXPECT_EQ(file, storeWeights(with(format), values_).orThrow()) << format;
    EXPECT_EQ(file, loadStoredWeights(with(format), model()).orThrow()) << format;
    EXPECT_EQ(byteCount(file), json::parse(outcome.out)["bytes"]);
    const std::vector<TokenList> prompts{{1, 2, 3}};
    Generator small = Generator::load(out(), {.device = "reference"});
    EXPECT_EQ(toString(*small.options().weights), format);
    Generator whole(config_, values_, {.device = "reference", .weights = read.weights});
    EXPECT_EQ(small.feed(prompts, true).logits, whole.feed(prompts, true).logits) << format;
  }
  const std::vector<std::filesystem::path> files = io::listFolder(out()).orThrow();
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                             "tokenizer_config.json"}));
  // Nothing is left beside it.
  for (const auto& path : io::listFolder(scratch_ / ".").orThrow()) EXPECT_NE(path.filename().string()[0], '.') << path;
}

TEST_F(Quantize, the_verbs_take_the_folder_like_the_model) {
  ASSERT_EQ(quantize("--weights int4").status, 0);
  put("text", "some text to foretell");
  const std::string prompt = "--prompt some --tokens 6", text = "--text " + (scratch_ / "text").string();
  const auto tokens = [&](const std::filesystem::path& folder, const std::string& options) {
    const Outcome outcome = run("generate", folder, prompt + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out)["tokens"];
  };
  EXPECT_EQ(tokens(out(), ""), tokens(model(), " --weights int4"));
  EXPECT_EQ(tokens(out(), " --weights int4 --cache bf16"), tokens(model(), " --weights int4 --cache bf16"));
  const auto entropy = [&](const std::filesystem::path& folder, const std::string& options) {
    const Outcome outcome = run("eval", folder, text + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out)["cross_entropy"].get<double>();
  };
  const double exact = entropy(model(), "");
  EXPECT_EQ(entropy(out(), ""), entropy(model(), " --weights int4"));
  EXPECT_NE(entropy(out(), ""), exact);
  EXPECT_NEAR(entropy(model(), " --weights bf16 --cache f16"), exact, 0.05);
  put("lines", "ab\n");
  const Outcome chat =
      runTool(scratch_, fmt::format("chat {} --device reference --json --tokens 3", out().string()), (scratch_ / "lines").string());
  EXPECT_EQ(chat.status, 0) << chat.err;
}

TEST_F(Quantize, its_folder_can_be_verified) {
  put("model/expected.safetensors", "of other weights");
  ASSERT_EQ(quantize("--weights int8").status, 0);
  EXPECT_FALSE(std::filesystem::exists(out() / "expected.safetensors"));
  const Outcome missing = runTool(scratch_, fmt::format("verify llm {} --device reference", out().string()));
  expectFailure(missing, 4, "golden.file: there is no expected.safetensors");
  expectFailure(missing, 4, "give the folder that it read, with --weights int8");
  Generator generator = Generator::load(out(), {.device = "reference", .positions = 24});
  const TokenList ids{1, 2, 3, 4, 5, 6};
  io::TensorFile expected;
  expected.tensors.emplace("p0/ids", io::Array::fromInts({std::ssize(ids)}, ids));
  expected.tensors.emplace("p0/logits", io::Array::fromFloats({std::ssize(ids), 258}, generator.feed({ids}, true).logits[0]));
  TokenList greedy = ids;
  std::ranges::copy(generator.generate({ids}, {.tokens = 4, .stop_at_end = false})[0], std::back_inserter(greedy));
  expected.tensors.emplace("p0/greedy", io::Array::fromInts({std::ssize(greedy)}, greedy));
  for (const std::filesystem::path& folder : {out(), model()}) ASSERT_TRUE(io::writeSafetensors(folder / "expected.safetensors", expected));
  for (const char* device : {"reference", "evaluate"}) {
    for (const std::string& what : {out().string(), model().string() + " --weights int8"}) {
      const Outcome outcome = runTool(scratch_, fmt::format("verify llm {} --device {}", what, device));
      EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    }
  }
  // Those of the model itself are other numbers.
  EXPECT_EQ(runTool(scratch_, fmt::format("verify llm {} --device reference", model().string())).status, 5);
}

TEST_F(Quantize, what_is_wrong_is_said_and_nothing_is_overwritten) {
  for (const char* options : {"--weights f32", "--weights int3", "--weights int4:64"}) EXPECT_EQ(quantize(options).status, 2) << options;
  expectFailure(runTool(scratch_, "quantize " + model().string()), 2, "--out");
  EXPECT_EQ(runTool(scratch_, fmt::format("quantize {} --out {}", (scratch_ / "none").string(), out().string())).status, 4);
  put("file", "");
  for (const std::string there : {"model", "file", "."}) {
    const std::string to = (scratch_ / there).string();
    expectFailure(runTool(scratch_, fmt::format("quantize {} --out {} --replace", model().string(), to)), 4, "quantize.exists");
  }
  ASSERT_EQ(quantize("--weights int8").status, 0);
  expectFailure(quantize("--weights int4"), 4, "quantize.exists");
  EXPECT_EQ(toString(LanguageConfig::load(out()).orThrow().weights), "int8");
  // Its weights are what they are.
  expectFailure(runTool(scratch_, fmt::format("quantize {} --out {}", out().string(), (scratch_ / "more").string())), 4,
                "language_model.weights");
  expectFailure(run("generate", out(), "--prompt a --weights int4"), 4, "language_model.weights");
  expectFailure(run("generate", out(), "--prompt a --weights f32"), 4, "language_model.weights");
  expectFailure(run("generate", model(), "--prompt a --weights int5"), 2, "weight_format.name");
  expectFailure(run("generate", model(), "--prompt a --cache int8"), 2, "--cache");
  const LanguageConfig read = LanguageConfig::load(out()).orThrow();
  EXPECT_EQ(codeOf([&] { (void)loadWeights(read, out()).orThrow(); }), "language_weights.type");
  EXPECT_EQ(codeOf([&] { (void)saveCheckpoint(scratch_ / "again", read, values_).orThrow(); }), "language_weights.config");
  io::TensorFile file = loadStoredWeights(read, out()).orThrow();
  EXPECT_EQ(codeOf([&] { (void)saveStoredWeights(scratch_ / "again", read, file).orThrow(); }), "language_weights.config");
  file.tensors.erase("layers.0.attn.q.W_scales");
  ASSERT_TRUE(io::writeSafetensors(out() / "model.safetensors", file));
  expectFailure(run("generate", out(), "--prompt a"), 4, "language_weights.stored");
  file.tensors.emplace("layers.0.attn.q.W_scales", io::Array::zeros(io::ElementType::BF16, {40, 1}));
  EXPECT_EQ(codeOf([&] { (void)Generator(read, file, {.device = "reference"}); }), "language_weights.stored");
}

/// Of a square matrix the shape would not tell.
TEST_F(Quantize, a_matrix_is_not_taken_for_its_transpose) {
  ASSERT_EQ(quantize("--weights bf16").status, 0);
  io::TensorFile file = io::readSafetensors(out() / "model.safetensors").orThrow();
  auto matrix = file.tensors.extract("layers.0.attn.q.W_transposed");
  ASSERT_FALSE(matrix.empty());
  EXPECT_EQ(matrix.mapped().shape, (std::vector<int64_t>{config_.attention.heads * config_.attention.head_width, config_.width}));
  matrix.key() = "layers.0.attn.q.W";
  file.tensors.insert(std::move(matrix));
  ASSERT_TRUE(io::writeSafetensors(out() / "model.safetensors", file));
  expectFailure(run("generate", out(), "--prompt a"), 4, "'layers.0.attn.q.W_transposed'");
}

TEST_F(Quantize, a_config_may_say_that_there_is_no_quantisation) {
  std::string text = config_.config_json;
  text.insert(text.rfind('}'), R"(, "quantization_config" : null)");
  put("model/config.json", text);
  ASSERT_EQ(quantize("--weights bf16").status, 0);
  EXPECT_EQ(toString(LanguageConfig::load(out()).orThrow().weights), "bf16");
}

TEST_F(Quantize, a_failure_leaves_nothing) {
  values_.at("layers.0.mlp.up.W")[7] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(saveCheckpoint(model(), config_, values_));
  const Outcome outcome = quantize("--weights int8");
  expectFailure(outcome, 4, "'layers.0.mlp.up.W' has inf at [0, 7]");
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST(QuantizedConfig, other_formats_are_refused_by_name) {
  const auto parse = [](const std::string& value) {
    return LanguageConfig::parse(testing::tinyJson("llama", "\"quantization_config\": " + value), "config.json");
  };
  EXPECT_TRUE(parse("null").ok());
  EXPECT_EQ(toString(parse(R"({"quant_method": "lockstep", "weights": "int4:128"})").orThrow().weights), "int4:128");
  for (const char* value : {R"({"quant_method": "gptq", "bits": 4})", R"({"bits": 4})", R"({"quant_method": "lockstep"})",
                            R"({"quant_method": "lockstep", "weights": "f32"})", R"([])"}) {
    const auto read = parse(value);
    ASSERT_FALSE(read.ok()) << value;
    EXPECT_EQ(read.diagnostics()[0].code, "language_config.value") << value;
  }
  EXPECT_EQ(parse(R"({"quant_method": "lockstep", "weights": "int8", "more": 1})").diagnostics()[0].code, "language_config.key");
}

}  // namespace
}  // namespace lockstep::llm
