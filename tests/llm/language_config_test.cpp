// SPDX-License-Identifier: Apache-2.0
// What keys of config.json mean, and what their absence means: defaults are those of transformers' classes.
#include "frontend/llm/language_config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"
#include "tests/llm/parsed.h"

namespace lockstep::llm {
namespace {

using testing::codeOf;
using testing::configOf;
using testing::llama;
using testing::tinyJson;
using testing::windowsOf;
using testing::wrongOf;

TEST(LanguageConfig, absent_keys_mean_what_they_mean_for_the_family) {
  struct Row {
    const char* family;
    bool tied;
    double eps;
    int64_t head_width, kv_heads;
  };
  for (const Row& row : {Row{"llama", false, 1e-6, 128, 32}, Row{"mistral", false, 1e-6, 128, 8}, Row{"qwen2", false, 1e-6, 128, 32},
                         Row{"qwen3", false, 1e-6, 128, 32}, Row{"gpt2", true, 1e-5, 64, 12}, Row{"gemma2", true, 1e-6, 256, 4},
                         Row{"gemma3_text", true, 1e-6, 256, 4}, Row{"phi3", false, 1e-5, 96, 32}, Row{"smollm3", true, 1e-6, 128, 4}}) {
    SCOPED_TRACE(row.family);
    const LanguageConfig config = configOf(fmt::format(R"({{"model_type": "{}"}})", row.family));
    EXPECT_EQ(config.tied_head, row.tied);
    EXPECT_EQ(config.norm.eps, row.eps);
    EXPECT_EQ(config.attention.head_width, row.head_width);
    EXPECT_EQ(config.attention.kv_heads, row.kv_heads);
  }
  const LanguageConfig first = configOf(R"({"model_type": "mamba"})"), second = configOf(R"({"model_type": "mamba2"})");
  EXPECT_TRUE(first.tied_head && first.norm.eps == 1e-5 && first.mixer.step_rank == 48);
  EXPECT_TRUE(!second.tied_head && second.mixer.groups == 8 && second.mixer.head_width == 64 && second.mixer.states == 128);
}

TEST(LanguageConfig, width_of_heads_may_differ_or_be_null) {
  EXPECT_EQ(llama("").attention.head_width, 8);
  const std::string without = R"({"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4)";
  EXPECT_EQ(configOf(without + "}").attention.head_width, 128);  // not 16
  EXPECT_EQ(configOf(without + R"(, "head_dim": null})").attention.head_width, 16);
  EXPECT_EQ(configOf(without + R"(, "head_dim": 48})").attention.head_width, 48);
  EXPECT_EQ(configOf(R"({"model_type": "llama", "num_key_value_heads": null})").attention.kv_heads, 32);
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "num_attention_heads": 6, "num_key_value_heads": 4, "hidden_size": 48})"),
            "language_config.value");
}

TEST(LanguageConfig, windows_are_those_of_the_family) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(windowsOf(configOf(tinyJson("mistral"))), (List{4096, 4096}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("mistral", R"("sliding_window": 8)"))), (List{8, 8}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("mistral", R"("sliding_window": null)"))), (List{0, 0}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("phi3"))), (List{0, 0}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("qwen2", R"("sliding_window": 8)"))), (List{0, 0}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("qwen2", R"("sliding_window": 8, "use_sliding_window": true)"))),
            (List{0, 0}));  // 28 layers have none
  EXPECT_EQ(windowsOf(configOf(tinyJson("qwen3", R"("sliding_window": 8, "use_sliding_window": true, "max_window_layers": 1)"))),
            (List{0, 8}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("qwen3", R"("sliding_window": 8, "use_sliding_window": true, "max_window_layers": 1,
                                        "layer_types": ["sliding_attention", "full_attention"])"))),
            (List{8, 0}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("gemma2"))), (List{4096, 0}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("gemma3_text"))), (List{4096, 4096}));
  EXPECT_EQ(codeOf(tinyJson("gemma2", R"("layer_types": ["full_attention"])")), "language_config.value");
  // Where no layer has a window, none is missing.
  for (const char* family : {"gemma2", "gemma3_text"}) {
    EXPECT_EQ(codeOf(tinyJson(family, R"("sliding_window": null)")), "language_config.value") << family;
    EXPECT_EQ(windowsOf(configOf(tinyJson(family, R"("sliding_window": null, "layer_types": ["full_attention", "full_attention"])"))),
              (List{0, 0}));
  }
  EXPECT_EQ(codeOf(tinyJson("mistral", R"("sliding_window": 0)")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("qwen2", R"("sliding_window": 0, "use_sliding_window": true)")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("qwen2", R"("sliding_window": 0)")), "");
  EXPECT_EQ(codeOf(tinyJson("gemma2", R"("layer_types": ["full_attention", "chunked_attention"])")), "language_config.value");
}

TEST(LanguageConfig, some_layers_of_SmolLM3_have_no_positions) {
  const auto turnsOf = [](const std::string& more) {
    std::vector<bool> turns;
    for (const LayerConfig& layer : configOf(tinyJson("smollm3", more)).layers) turns.push_back(layer.turns);
    return turns;
  };
  EXPECT_EQ(turnsOf(""), (std::vector{true, true}));  // each fourth has none
  EXPECT_EQ(turnsOf(R"("no_rope_layer_interval": 2)"), (std::vector{true, false}));
  EXPECT_EQ(turnsOf(R"("no_rope_layer_interval": 2, "no_rope_layers": [0, 1, 1])"), (std::vector{false, true}));
  EXPECT_EQ(turnsOf(R"("no_rope_layer_interval": 1, "no_rope_layers": null)"), (std::vector{false, false}));
  EXPECT_EQ(codeOf(tinyJson("smollm3", R"("no_rope_layers": [1])")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("smollm3", R"("no_rope_layer_interval": 0)")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("llama", R"("no_rope_layers": [1, 0])")), "language_config.key");
  using List = std::vector<int64_t>;
  const std::string window = R"("sliding_window": 8, "no_rope_layers": [1, 0])";
  EXPECT_EQ(windowsOf(configOf(tinyJson("smollm3", window))), (List{0, 0}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("smollm3", window + R"(, "use_sliding_window": true)"))), (List{0, 8}));
  EXPECT_EQ(windowsOf(configOf(tinyJson("smollm3", window + R"(, "use_sliding_window": true,
                                        "layer_types": ["sliding_attention", "full_attention"])"))),
            (List{8, 0}));
  const LanguageConfig config = configOf(tinyJson("smollm3"));
  EXPECT_TRUE(config.tied_head);
  EXPECT_EQ(config.ropes.at(0).base, 2e6);
}

TEST(LanguageConfig, scores_and_logits_of_Gemma) {
  const LanguageConfig second = configOf(tinyJson("gemma2"));
  EXPECT_EQ(second.attention.scale, 1 / 16.0);  // of query_pre_attn_scalar, not of the heads' width
  EXPECT_EQ(second.attention.soft_cap, 50);
  EXPECT_EQ(second.logit_cap, 30);
  EXPECT_TRUE(second.norm.around_one && second.norm.after && !second.attention.qk_norm);
  const LanguageConfig none = configOf(tinyJson("gemma2", R"("attn_logit_softcapping": null, "final_logit_softcapping": null)"));
  EXPECT_EQ(none.attention.soft_cap, 0);
  EXPECT_EQ(none.logit_cap, 0);
  const LanguageConfig third = configOf(tinyJson("gemma3_text"));
  EXPECT_EQ(third.attention.soft_cap, 0);
  EXPECT_TRUE(third.attention.qk_norm);
  // transformers reads this key of Gemma 3 and applies no cap, other than that of the logits.
  const Diagnostic capped = wrongOf(tinyJson("gemma3_text", R"("attn_logit_softcapping": 20.0)"));
  EXPECT_EQ(capped.code, "language_config.value");
  EXPECT_NE(capped.message.find("attn_logit_softcapping is not null"), std::string::npos) << capped.message;
  EXPECT_EQ(configOf(tinyJson("gemma3_text", R"("attn_logit_softcapping": null, "final_logit_softcapping": 5.0)")).logit_cap, 5);
  EXPECT_EQ(llama("").attention.scale, 1 / std::sqrt(8.0));
}

TEST(LanguageConfig, scores_of_GPT_2_are_scaled_as_keys_say) {
  const auto scaleOf = [](const std::string& more) {
    const LanguageConfig config = configOf(tinyJson("gpt2", more));
    return std::pair(config.attention.scale, config.layers.at(1).scale);
  };
  EXPECT_EQ(scaleOf(""), std::pair(1 / std::sqrt(8.0), 1.0));
  EXPECT_EQ(scaleOf(R"("scale_attn_weights": false)"), std::pair(1.0, 1.0));
  EXPECT_EQ(scaleOf(R"("scale_attn_by_inverse_layer_idx": true)"), std::pair(1 / std::sqrt(8.0), 0.5));
}

TEST(LanguageConfig, embeddings_are_scaled_by_a_number_of_the_weights_type) {
  const std::string wide = R"({"model_type": "gemma2", "hidden_size": 3584, "dtype": ")";
  EXPECT_EQ(configOf(wide + "bfloat16\"}").embedding_scale, 59.75);  // the square root is 59.867
  EXPECT_EQ(configOf(wide + "float32\"}").embedding_scale, static_cast<double>(std::sqrt(3584.0F)));
  EXPECT_EQ(llama("").embedding_scale, 1);
}

TEST(LanguageConfig, type_of_weights_has_two_keys) {
  EXPECT_EQ(llama(R"("torch_dtype": "bfloat16")").dtype, io::ElementType::BF16);
  EXPECT_EQ(llama(R"("dtype": "float16")").dtype, io::ElementType::F16);
  EXPECT_EQ(llama(R"("dtype": "float16", "torch_dtype": "bfloat16")").dtype, io::ElementType::F16);
  EXPECT_EQ(llama("").dtype, io::ElementType::F32);
  EXPECT_EQ(llama(R"("dtype": null, "torch_dtype": "bfloat16")").dtype, io::ElementType::BF16);
  EXPECT_EQ(llama(R"("torch_dtype": null)").dtype, io::ElementType::F32);
  EXPECT_EQ(codeOf(tinyJson("llama", R"("dtype": "int8")")), "language_config.value");
}

TEST(LanguageConfig, biases_follow_keys_or_the_family) {
  EXPECT_FALSE(llama("").attention.bias);
  const AttentionConfig both = llama(R"("attention_bias": true)").attention;
  EXPECT_TRUE(both.bias && both.out_bias);
  EXPECT_TRUE(llama(R"("mlp_bias": true)").feed_forward.bias);
  const AttentionConfig qwen = configOf(tinyJson("qwen2")).attention;  // without a key
  EXPECT_TRUE(qwen.bias && !qwen.out_bias);
  EXPECT_FALSE(configOf(tinyJson("qwen3")).attention.bias);
  const LanguageConfig gpt = configOf(tinyJson("gpt2"));
  EXPECT_TRUE(gpt.attention.bias && gpt.attention.out_bias && gpt.feed_forward.bias && !gpt.feed_forward.gated && !gpt.norm.rms);
  EXPECT_EQ(gpt.feed_forward.hidden, 64);  // n_inner: 4 n_embd
  EXPECT_EQ(gpt.learned_positions, 64);
}

TEST(LanguageConfig, activations_have_the_names_of_transformers) {
  const auto of = [](const std::string& family, const std::string& more) {
    return configOf(tinyJson(family, more)).feed_forward.activation;
  };
  EXPECT_EQ(of("llama", ""), nn::Activation::Silu);
  EXPECT_EQ(of("llama", R"("hidden_act": "gelu")"), nn::Activation::Gelu);
  EXPECT_EQ(of("llama", R"("hidden_act": "gelu_python")"), nn::Activation::Gelu);
  EXPECT_EQ(of("llama", R"("hidden_act": "gelu_accurate")"), nn::Activation::GeluTanh);
  EXPECT_EQ(of("gpt2", ""), nn::Activation::GeluTanh);
  EXPECT_EQ(of("gpt2", R"("activation_function": "relu")"), nn::Activation::Relu);
  EXPECT_EQ(of("gpt2", R"("activation_function": "tanh")"), nn::Activation::Tanh);
  EXPECT_EQ(of("gemma2", R"("hidden_act": "gelu")"), nn::Activation::GeluTanh);  // a key that Gemma does not read
  EXPECT_EQ(of("gemma2", R"("hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu")"), nn::Activation::Gelu);
  const Diagnostic wrong = wrongOf(tinyJson("llama", R"("hidden_act": "silo")"));
  EXPECT_EQ(wrong.code, "language_config.value");
  EXPECT_EQ(wrong.remedy, "did you mean 'silu'?");
}

TEST(LanguageConfig, texts_end_with_one_token_or_several_from_either_file) {
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(llama("").end_tokens, Ids{2});
  EXPECT_EQ(configOf(tinyJson("gpt2")).end_tokens, Ids{50256});
  EXPECT_EQ(configOf(tinyJson("qwen2")).end_tokens, Ids{});
  EXPECT_EQ(llama(R"("eos_token_id": null)").end_tokens, Ids{});
  EXPECT_EQ(llama(R"("eos_token_id": 2)").end_tokens, Ids{2});
  EXPECT_EQ(llama(R"("eos_token_id": [2, 3])").end_tokens, (Ids{2, 3}));
  const std::string json = tinyJson("llama", R"("eos_token_id": 2)");
  EXPECT_EQ(configOf(json, R"({"eos_token_id": [4, 5], "temperature": 0.6})").end_tokens, (Ids{4, 5}));
  EXPECT_EQ(configOf(json, R"({"temperature": 0.6})").end_tokens, Ids{2});
  EXPECT_EQ(codeOf(tinyJson("llama", R"("eos_token_id": "</s>")")), "language_config.value");
}

TEST(LanguageConfig, numbers_may_be_infinite_as_Python_writes_them) {
  for (const char* limit : {"[0.0, Infinity]", R"([0.0, {"__float__": "Infinity"}])"})
    EXPECT_EQ(codeOf(tinyJson("mamba2", fmt::format("\"time_step_limit\": {}", limit))), "") << limit;
  const MixerConfig limited = configOf(tinyJson("mamba2", R"("time_step_limit": [0.001, 0.1])")).mixer;
  EXPECT_EQ(limited.least_step, 0.001);
  EXPECT_EQ(limited.most_step, 0.1);
  EXPECT_EQ(configOf(tinyJson("mamba2", R"("time_step_limit": [0.001, Infinity])")).mixer.most_step, kAnyStep);
  for (const char* limit : {"[0.2, 0.1]", "[-0.1, Infinity]", "[Infinity, Infinity]", "[0.0, -Infinity]", "[0.0, NaN]", "[0.0]", "0.1",
                            R"([0.0, {"__float__": "Inf"}])"})
    EXPECT_EQ(codeOf(tinyJson("mamba2", fmt::format("\"time_step_limit\": {}", limit))), "language_config.value") << limit;
  // Not inside of a text.
  EXPECT_EQ(llama(R"("_name_or_path": "to Infinity \" and NaN")").width, 16);
}

TEST(LanguageConfig, matrices_begin_with_the_deviation_that_is_said) {
  EXPECT_EQ(llama("").init_scale, 0.02);
  const LanguageConfig config = llama(R"("initializer_range": 0.5)");
  const LanguageModel model(config);
  double squares = 0;
  const std::vector<float> values = model.layers[0].mlp->up.W.initial(1, 3);
  for (const float value : values) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 0.5, 0.1);
  EXPECT_EQ(codeOf(tinyJson("llama", R"("initializer_range": -1)")), "language_config.value");
}

TEST(LanguageConfig, mixers_have_their_sizes) {
  EXPECT_EQ(configOf(tinyJson("mamba")).mixer.step_rank, 1);
  EXPECT_EQ(configOf(tinyJson("mamba", R"("time_step_rank": "auto")")).mixer.step_rank, 1);
  EXPECT_EQ(configOf(tinyJson("mamba", R"("time_step_rank": 3)")).mixer.step_rank, 3);
  EXPECT_EQ(configOf(tinyJson("mamba", R"("expand": 4)")).mixer.expand, 4);
  EXPECT_EQ(codeOf(tinyJson("mamba", R"("intermediate_size": 48)")), "language_config.value");
  EXPECT_TRUE(configOf(tinyJson("mamba")).mixer.conv_bias);
  EXPECT_FALSE(configOf(tinyJson("mamba", R"("use_conv_bias": false)")).mixer.conv_bias);
  EXPECT_EQ(codeOf(tinyJson("mamba", R"("hidden_act": "swish")")), "");
  EXPECT_EQ(codeOf(tinyJson("mamba", R"("hidden_act": "gelu")")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("mamba", R"("conv_kernel": 1)")), "language_config.value");
  EXPECT_EQ(codeOf(R"({"model_type": "mamba2", "hidden_size": 16, "num_heads": 3, "head_dim": 8})"), "language_config.value");
}

TEST(LanguageConfig, a_key_that_is_not_known_is_refused_with_its_place) {
  const Diagnostic unknown = wrongOf(tinyJson("llama", R"("hidden_sise": 32)"));
  EXPECT_EQ(unknown.code, "language_config.key");
  EXPECT_EQ(unknown.where.file, "here/config.json");
  EXPECT_NE(unknown.message.find("hidden_sise"), std::string::npos);
  EXPECT_NE(unknown.remedy.find("hidden_size"), std::string::npos);
  EXPECT_EQ(codeOf(tinyJson("llama", R"("quantization_config": {"bits": 4})")), "language_config.value");
  // What another family has means nothing here.
  EXPECT_EQ(codeOf(tinyJson("llama", R"("sliding_window": 8)")), "language_config.key");
  // Nor does the length that early files of Llama 1 have: transformers does not read it.
  EXPECT_EQ(llama(R"("max_sequence_length": 32)").context, 64);
  const Diagnostic interleaved = wrongOf(tinyJson("llama", R"("rope_interleaved": true)"));
  EXPECT_EQ(interleaved.code, "language_config.value");
  EXPECT_NE(interleaved.remedy.find("set it to false if"), std::string::npos) << interleaved.remedy;
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_interleaved": false)")), "");
}

TEST(LanguageConfig, values_of_a_wrong_kind_are_refused) {
  for (const char* more : {R"("rms_norm_eps": "small")", R"("tie_word_embeddings": 1)", R"("rope_parameters": 3)", R"("mlp_bias": "no")"})
    EXPECT_EQ(codeOf(tinyJson("llama", more)), "language_config.value") << more;
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "hidden_size": 0})"), "language_config.value");
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "hidden_size": -3})"), "language_config.value");
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "hidden_size": 4096.0})"), "language_config.value");
  EXPECT_EQ(codeOf("[]"), "language_config.value");
  EXPECT_EQ(codeOf("{"), "json.text");
}

TEST(LanguageConfig, numbers_beyond_all_sense_are_refused) {
  for (const auto& [family, more] : {std::pair{"gemma2", R"("final_logit_softcapping": Infinity)"},
                                     {"gemma2", R"("attn_logit_softcapping": -5)"},
                                     {"gemma2", R"("query_pre_attn_scalar": NaN)"},
                                     {"gemma2", R"("final_logit_softcapping": 1e300)"},
                                     {"gemma2", R"("attn_logit_softcapping": 1e-300)"},
                                     {"gemma3_text", R"("sliding_window_pattern": 0)"},
                                     {"gemma3_text", R"("_sliding_window_pattern": 0)"},
                                     {"llama", R"("rms_norm_eps": 1e300)"},
                                     {"llama", R"("rms_norm_eps": 0)"},
                                     {"llama", R"("rms_norm_eps": NaN)"},
                                     {"llama", R"("rope_theta": Infinity)"},
                                     {"llama", R"("partial_rotary_factor": NaN)"},
                                     {"llama", R"("partial_rotary_factor": 1e300)"},
                                     {"mamba", R"("expand": 2147483647)"}})
    EXPECT_EQ(codeOf(tinyJson(family, more)), "language_config.value") << more;
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "num_hidden_layers": 2147483647})"), "language_config.value");
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "num_hidden_layers": 100000})"), "language_config.value");
  EXPECT_EQ(codeOf(R"({"model_type": "mamba", "state_size": 10000000})"), "language_config.value");
  EXPECT_EQ(codeOf(R"({"model_type": "gpt2", "n_embd": 10, "n_head": 4})"), "language_config.value");
  for (const char* more :
       {R"("vocab_size": 16777216)", R"("intermediate_size": 16777216)", R"("num_attention_heads": 16777216, "head_dim": 8)",
        R"("num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 1048576)"}) {
    const Diagnostic wrong = wrongOf(fmt::format(R"({{"model_type": "llama", "hidden_size": 4096, {}}})", more));
    EXPECT_EQ(wrong.code, "language_config.value") << more;
    EXPECT_EQ(wrong.where.file, "here/config.json");
    EXPECT_NE(wrong.message.find("wanted fewer than 2^32"), std::string::npos) << wrong.message;
  }
  EXPECT_EQ(codeOf(R"({"model_type": "llama", "hidden_size": 255, "num_attention_heads": 5, "head_dim": 8, "vocab_size": 16777216})"), "");
}

TEST(LanguageConfig, families_that_are_not_known_are_listed) {
  const Diagnostic unknown = wrongOf(R"({"model_type": "gemma3"})");
  EXPECT_EQ(unknown.code, "language_config.family");
  EXPECT_NE(unknown.remedy.find("gemma3_text"), std::string::npos);
  EXPECT_EQ(codeOf("{}"), "language_config.family");
}

TEST(LanguageConfig, a_folder_has_two_files_or_one) {
  const lockstep::testing::ScratchDirectory scratch("language-config");
  EXPECT_EQ(LanguageConfig::load(scratch / "none").diagnostics()[0].code, "file.read");
  ASSERT_TRUE(io::writeFileAtomically(scratch / "config.json", std::string_view(tinyJson("llama", R"("eos_token_id": 2)"))));
  EXPECT_EQ(LanguageConfig::load(scratch / "").orThrow().end_tokens, std::vector<int32_t>{2});
  // What waits for ever is not read.
  ASSERT_EQ(::mkfifo((scratch / "generation_config.json").c_str(), 0600), 0);
  EXPECT_EQ(LanguageConfig::load(scratch / "").diagnostics()[0].code, "file.read");
  std::filesystem::remove(scratch / "generation_config.json");
  ASSERT_TRUE(io::writeFileAtomically(scratch / "generation_config.json", std::string_view(R"({"eos_token_id": 7})")));
  EXPECT_EQ(LanguageConfig::load(scratch / "").orThrow().end_tokens, std::vector<int32_t>{7});
}

}  // namespace
}  // namespace lockstep::llm
