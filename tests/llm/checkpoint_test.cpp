// SPDX-License-Identifier: Apache-2.0
// Weights in the files of Hugging Face: names, layouts, types, shards, and what is said where they are wrong.
#include "frontend/llm/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm {
namespace {

using lockstep::testing::ScratchDirectory;
using testing::configOf;
using testing::randomValues;
using testing::tinyJson;

constexpr const char* kFamilies[] = {"llama",  "smollm3",     "mistral", "qwen2", "qwen3", "gpt2",
                                     "gemma2", "gemma3_text", "phi3",    "mamba", "mamba2"};

Diagnostic wrongOf(const Result<ParameterValues>& result) { return result ? Diagnostic{} : result.diagnostics()[0]; }

/// A checkpoint of a tiny model and its tensors.
struct Saved {
  explicit Saved(const std::string& family, const std::string& more = {})
      : config(configOf(tinyJson(family, more))), values(randomValues(config)), file(formatWeights(config, values).orThrow()) {}
  LanguageConfig config;
  ParameterValues values;
  io::TensorFile file;
};

float elementOf(const io::TensorFile& file, const std::string& name, size_t index) { return file.find(name)->toFloats().at(index); }

TEST(Checkpoint, every_family_reads_back_what_it_wrote) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const Saved saved(family, R"("eos_token_id": 2)");
    EXPECT_EQ(readWeights(saved.config, saved.file, "memory").orThrow(), saved.values);
    const ScratchDirectory scratch(std::string("checkpoint-") + family);
    ASSERT_TRUE(saveCheckpoint(scratch / "model", saved.config, saved.values));
    const LanguageConfig config = LanguageConfig::load(scratch / "model").orThrow();
    EXPECT_EQ(config, saved.config);
    EXPECT_EQ(loadWeights(config, scratch / "model").orThrow(), saved.values);
  }
}

TEST(Checkpoint, matrices_lie_as_PyTorch_has_them) {
  const Saved saved("llama");
  // up: ours [16, 20].
  EXPECT_EQ(saved.file.find("model.layers.1.mlp.up_proj.weight")->shape, (std::vector<int64_t>{20, 16}));
  EXPECT_EQ(elementOf(saved.file, "model.layers.1.mlp.up_proj.weight", 3 * 16 + 5), saved.values.at("layers.1.mlp.up.W")[5 * 20 + 3]);
  EXPECT_EQ(elementOf(saved.file, "model.embed_tokens.weight", 7), saved.values.at("tokens.W")[7]);
  EXPECT_EQ(elementOf(saved.file, "lm_head.weight", 2 * 16 + 9), saved.values.at("head.W")[9 * 24 + 2]);
  EXPECT_EQ(saved.file.metadata.at("format"), "pt");
}

TEST(Checkpoint, fused_projections_are_parts_of_one_tensor) {
  const Saved phi("phi3");
  const io::Array* fused = phi.file.find("model.layers.0.self_attn.qkv_proj.weight");
  EXPECT_EQ(fused->shape, (std::vector<int64_t>{16 + 8 + 8, 16}));
  const std::vector<float> rows = fused->toFloats();
  EXPECT_EQ(rows[3 * 16 + 2], phi.values.at("layers.0.attn.q.W")[2 * 16 + 3]);
  EXPECT_EQ(rows[(16 + 3) * 16 + 2], phi.values.at("layers.0.attn.k.W")[2 * 8 + 3]);
  EXPECT_EQ(rows[(24 + 3) * 16 + 2], phi.values.at("layers.0.attn.v.W")[2 * 8 + 3]);
  EXPECT_EQ(elementOf(phi.file, "model.layers.0.mlp.gate_up_proj.weight", (20 + 3) * 16 + 2),
            phi.values.at("layers.0.mlp.up.W")[2 * 20 + 3]);
  // GPT-2 keeps [in, out], and its parts lie side by side.
  const Saved gpt("gpt2");
  EXPECT_EQ(gpt.file.find("transformer.h.0.attn.c_attn.weight")->shape, (std::vector<int64_t>{16, 48}));
  EXPECT_EQ(elementOf(gpt.file, "transformer.h.0.attn.c_attn.weight", 2 * 48 + 16 + 3), gpt.values.at("layers.0.attn.k.W")[2 * 16 + 3]);
  EXPECT_EQ(elementOf(gpt.file, "transformer.h.0.attn.c_attn.bias", 32 + 3), gpt.values.at("layers.0.attn.v.b")[3]);
}

TEST(Checkpoint, taps_of_Mamba_keep_their_order) {
  for (const char* family : {"mamba", "mamba2"}) {
    const Saved saved(family);
    const io::Array* taps = saved.file.find("backbone.layers.0.mixer.conv1d.weight");
    EXPECT_EQ(taps->shape[1], 1);
    EXPECT_EQ(taps->shape[2], 4);
    EXPECT_EQ(taps->toFloats(), saved.values.at("layers.0.mixer.conv_W"));
  }
}

TEST(Checkpoint, weights_of_16_bits_are_rounded_once) {
  for (const auto& [name, type] : {std::pair("bfloat16", io::ElementType::BF16), std::pair("float16", io::ElementType::F16)}) {
    const Saved saved("llama", fmt::format("\"dtype\": \"{}\"", name));
    EXPECT_EQ(saved.file.find("model.norm.weight")->type, type);
    const ParameterValues once = readWeights(saved.config, saved.file, "memory").orThrow();
    EXPECT_NE(once, saved.values);
    EXPECT_EQ(formatWeights(saved.config, once).orThrow(), saved.file);
  }
}

TEST(Checkpoint, a_tied_head_is_written_once_and_may_be_there_twice) {
  Saved saved("llama", R"("tie_word_embeddings": true)");
  EXPECT_EQ(saved.file.find("lm_head.weight"), nullptr);
  saved.file.tensors.emplace("lm_head.weight", *saved.file.find("model.embed_tokens.weight"));
  EXPECT_EQ(readWeights(saved.config, saved.file, "memory").orThrow(), saved.values);
  // One that differs: programs do not agree on which of the two it is.
  std::vector<float> other = saved.file.find("lm_head.weight")->toFloats();
  other[5] += 1;
  saved.file.tensors["lm_head.weight"] = io::Array::fromFloats({24, 16}, other);
  const Diagnostic wrong = wrongOf(readWeights(saved.config, saved.file, "memory"));
  EXPECT_EQ(wrong.code, "language_weights.unexpected");
  EXPECT_NE(wrong.message.find("tie_word_embeddings"), std::string::npos) << wrong.message;
}

TEST(Checkpoint, names_of_the_inner_model_and_old_buffers_are_understood) {
  const Saved saved("gpt2");
  io::TensorFile inner;
  for (const auto& [name, array] : saved.file.tensors) inner.tensors.emplace(name.substr(std::string("transformer.").size()), array);
  inner.tensors.emplace("h.0.attn.bias", io::Array::zeros(io::ElementType::F32, {1, 1, 64, 64}));
  EXPECT_EQ(readWeights(saved.config, inner, "memory").orThrow(), saved.values);
}

TEST(Checkpoint, what_is_wrong_with_a_tensor_is_said_with_its_name) {
  const Saved saved("llama");
  const auto changed = [&](const std::function<void(io::TensorFile&)>& change) {
    io::TensorFile file = saved.file;
    change(file);
    return wrongOf(readWeights(saved.config, file, "weights"));
  };
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  const Diagnostic missing = changed([&](io::TensorFile& file) { file.tensors.erase(name); });
  EXPECT_EQ(missing.code, "language_weights.missing");
  EXPECT_NE(missing.message.find(name), std::string::npos);
  EXPECT_EQ(missing.where.file, "weights");
  const Diagnostic shape = changed([&](io::TensorFile& file) { file.tensors[name] = io::Array::zeros(io::ElementType::F32, {20, 16}); });
  EXPECT_EQ(shape.code, "language_weights.shape");
  EXPECT_NE(shape.message.find(name), std::string::npos);
  EXPECT_NE(shape.message.find("[16,20]"), std::string::npos) << shape.message;
  const Diagnostic more = changed(
      [&](io::TensorFile& file) { file.tensors["model.layers.0.self_attn.q_proj.bias"] = io::Array::zeros(io::ElementType::F32, {16}); });
  EXPECT_EQ(more.code, "language_weights.unexpected");
  EXPECT_NE(more.message.find("q_proj.bias"), std::string::npos);
  const Diagnostic type = changed([&](io::TensorFile& file) { file.tensors[name] = io::Array::zeros(io::ElementType::I8, {16, 20}); });
  EXPECT_EQ(type.code, "language_weights.type");
}

/// Half of the tensors in each of two files.
void writeShards(const ScratchDirectory& scratch, const io::TensorFile& file) {
  io::TensorFile shards[2];
  std::string map;
  size_t index = 0;
  for (const auto& [name, array] : file.tensors) {
    const size_t shard = index++ % 2;
    shards[shard].tensors.emplace(name, array);
    map += fmt::format("{}\"{}\": \"model-0000{}-of-00002.safetensors\"", map.empty() ? "" : ", ", name, shard + 1);
  }
  for (size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(io::writeSafetensors(scratch / fmt::format("model-0000{}-of-00002.safetensors", i + 1), shards[i]));
  ASSERT_TRUE(io::writeFileAtomically(scratch / "model.safetensors.index.json",
                                      std::string_view("{\"metadata\": {\"total_size\": 1}, \"weight_map\": {" + map + "}}")));
}

TEST(Checkpoint, shards_are_put_together) {
  const Saved saved("qwen2");
  const ScratchDirectory scratch("shards");
  writeShards(scratch, saved.file);
  EXPECT_EQ(loadWeights(saved.config, scratch / "").orThrow(), saved.values);
}

TEST(Checkpoint, what_is_wrong_with_files_is_said_with_their_names) {
  const Saved saved("qwen2");
  const ScratchDirectory scratch("shards-wrong");
  EXPECT_EQ(wrongOf(loadWeights(saved.config, scratch / "")).code, "language_weights.file");
  writeShards(scratch, saved.file);
  const std::string second = "model-00002-of-00002.safetensors";
  const std::vector<std::byte> whole = io::readFile(scratch / second).orThrow();
  // A part of it.
  ASSERT_TRUE(io::writeFileAtomically(scratch / second, std::span(whole).first(whole.size() - 5)));
  const Diagnostic cut = wrongOf(loadWeights(saved.config, scratch / ""));
  EXPECT_TRUE(cut.code.starts_with("safetensors.")) << cut.code;
  EXPECT_NE(cut.where.file.find(second), std::string::npos);
  // None of it.
  std::filesystem::remove(scratch / second);
  const Diagnostic missing = wrongOf(loadWeights(saved.config, scratch / ""));
  EXPECT_EQ(missing.code, "language_weights.file");
  EXPECT_NE(missing.message.find(second), std::string::npos);
  // Another file with its name.
  ASSERT_TRUE(io::writeSafetensors(scratch / second, io::TensorFile{}));
  EXPECT_EQ(wrongOf(loadWeights(saved.config, scratch / "")).code, "language_weights.file");
  // An index that leads elsewhere.
  ASSERT_TRUE(io::writeFileAtomically(scratch / "model.safetensors.index.json",
                                      std::string_view(R"({"weight_map": {"model.norm.weight": "../model.safetensors"}})")));
  EXPECT_EQ(wrongOf(loadWeights(saved.config, scratch / "")).code, "language_weights.file");
}

TEST(Checkpoint, a_weight_that_the_type_does_not_hold_is_not_written) {
  const LanguageConfig config = configOf(tinyJson("llama", R"("dtype": "float16")"));
  ParameterValues values = randomValues(config);
  values.at("norm.g")[1] = 70000;
  const Diagnostic wrong = formatWeights(config, values).failure().diagnostics[0];
  EXPECT_EQ(wrong.code, "language_weights.value");
  EXPECT_NE(wrong.message.find("model.norm.weight"), std::string::npos) << wrong.message;
}

TEST(Checkpoint, sizes_that_no_tensor_has_are_an_error) {
  LanguageConfig config = configOf(tinyJson("llama"));
  config.width = config.feed_forward.hidden = 16000000;
  EXPECT_EQ(wrongOf(readWeights(config, io::TensorFile{}, "model.safetensors")).code, "parameter.shape");
}

TEST(Checkpoint, a_config_that_was_changed_is_not_written) {
  Saved saved("mamba2");
  LanguageConfig longer = saved.config;
  longer.layers.push_back(longer.layers.front());
  EXPECT_EQ(formatWeights(longer, randomValues(longer)).failure().diagnostics[0].code, "language_weights.config");
  saved.values.erase("norm.g");
  const Diagnostic missing = formatWeights(saved.config, saved.values).failure().diagnostics[0];
  EXPECT_EQ(missing.code, "language_weights.missing");
  EXPECT_NE(missing.message.find("norm.g"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::llm
