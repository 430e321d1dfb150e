// SPDX-License-Identifier: Apache-2.0
// What config.json says about rotary positions, and what it means.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/llm/parsed.h"

namespace lockstep::llm {
namespace {

using testing::codeOf;
using testing::configOf;
using testing::llama;
using testing::tinyJson;
using testing::windowsOf;
using testing::wrongOf;

TEST(RotarySettings, positions_are_said_by_the_keys_of_either_version) {
  const RotaryConfig older = llama(R"("rope_theta": 50000.0, "rope_scaling": null)").ropes.at(0);
  const RotaryConfig newer = llama(R"("rope_parameters": {"rope_theta": 50000.0, "rope_type": "default"})").ropes.at(0);
  EXPECT_EQ(older, newer);
  EXPECT_EQ(older.base, 50000);
  EXPECT_EQ(older.dims, 8);
  EXPECT_EQ(llama("").ropes.at(0).base, 10000);
  EXPECT_EQ(configOf(tinyJson("gemma3_text")).ropes.at(0).base, 1e6);
  EXPECT_EQ(configOf(tinyJson("phi3", R"("partial_rotary_factor": 0.5)")).ropes.at(0).dims, 4);
  EXPECT_EQ(configOf(tinyJson("phi3", R"("rope_parameters": {"partial_rotary_factor": 0.5})")).ropes.at(0).dims, 4);
  EXPECT_TRUE(configOf(tinyJson("gpt2")).ropes.empty());
}

TEST(RotarySettings, llama3_scales_by_wavelength) {
  const std::string scaling = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16)";
  const std::string older = R"("rope_scaling": {"rope_type": "llama3", )" + scaling + "}, \"rope_theta\": 10000.0";
  const std::string newer = R"("rope_parameters": {"rope_type": "llama3", "rope_theta": 10000.0, )" + scaling + "}";
  const std::vector<double> got = llama(older).ropes.at(0).frequencies;
  EXPECT_EQ(got, llama(newer).ropes.at(0).frequencies);
  // Wavelengths 2 pi, 2 pi 10, ...: the first is between 16 / 4 and 16 / 1, the others are longer.
  ASSERT_EQ(got.size(), 4u);
  const double wave = 2 * std::numbers::pi, ramp = (16 / wave - 1) / 3;
  EXPECT_NEAR(got[0], (1 - ramp) / 8 + ramp, 1e-12);
  for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(got[i], std::pow(10.0, -static_cast<double>(i)) / 8, 1e-12);
  // Short ones stay.
  const std::string long_ago = R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
      "original_max_position_embeddings": 8192})";
  EXPECT_NEAR(llama(long_ago).ropes.at(0).frequencies[0], 1, 1e-12);
  EXPECT_NEAR(llama(R"("rope_scaling": {"type": "linear", "factor": 4.0})").ropes.at(0).frequencies[1], 0.1 / 4, 1e-12);
}

TEST(RotarySettings, scalings_that_are_not_supported_are_refused) {
  for (
      const char* scaling :
      {R"("rope_scaling": {"type": "ntk", "factor": 4.0})", R"("rope_scaling": {"type": "yarn", "factor": -4.0})",
       R"("rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": 0})",
       R"("rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": 1e200})",
       R"("rope_scaling": {"type": "linear", "factor": 1e-310})",
       R"("rope_scaling": {"type": "longrope", "short_factor": [1e-310, 1, 1, 1], "long_factor": [1, 1, 1, 1]})",
       R"("rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 0})",
       R"("rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1], "long_factor": [1, 1, 1, 1]})",
       R"("rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, 0], "long_factor": [1, 1, 1, 1]})",
       R"("rope_scaling": {"type": "longrope", "short_factor": 1, "long_factor": [1, 1, 1, 1]})",
       R"("rope_scaling": {"rope_type": "linear", "factor": 0})", R"("rope_scaling": {"type": "linear"})",
       R"("rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0})",
       R"("rope_scaling": {"rope_type": "llama3", "factor": 0.5, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 16})",
       R"("rope_parameters": {"rope_theta": -1})"}) {
    EXPECT_EQ(codeOf(tinyJson("llama", scaling)), "language_config.value") << scaling;
  }
  const Diagnostic unknown = wrongOf(tinyJson("llama", R"("rope_scaling": {"type": "linear", "factor": 4.0, "beta_fast": 32})"));
  EXPECT_EQ(unknown.code, "language_config.key");
  EXPECT_NE(unknown.message.find("rope_scaling.beta_fast"), std::string::npos);
}

TEST(RotarySettings, yarn_scales_by_turns) {
  // Pairs of 1, 0.1, 0.01 and 0.001 radians turn 10185, 1018, 102 and 10 times in 64000 positions.
  const std::string scaling = R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64000)";
  const RotaryConfig whole = llama(scaling + R"(, "beta_fast": 102, "beta_slow": 1})").ropes.at(0);
  // 102 turns are at pair 1.999..., one turn at pair 4.01, so that the ramp goes from 1 to 5 or, at the most, 7.
  for (size_t i = 0; i < 4; ++i) {
    const double ramp = i < 1 ? 0 : static_cast<double>(i - 1) / 4;
    EXPECT_NEAR(whole.frequencies.at(i), std::pow(10.0, -static_cast<double>(i)) * (ramp / 4 + 1 - ramp), 1e-9) << i;
  }
  EXPECT_NEAR(whole.amplitude, 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_EQ(llama(scaling + R"(, "attention_factor": 1.25})").ropes.at(0).amplitude, 1.25);
  EXPECT_NEAR(llama(scaling + R"(, "mscale": 2, "mscale_all_dim": 1})").ropes.at(0).amplitude,
              (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1), 1e-12);
  EXPECT_NE(llama(scaling + R"(, "beta_fast": 102, "beta_slow": 1, "truncate": false})").ropes.at(0).frequencies, whole.frequencies);
  // The length is that of the model, and the factor what makes it longer.
  const std::string without = R"("rope_scaling": {"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 16})";
  EXPECT_NEAR(llama(without).ropes.at(0).amplitude, 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_EQ(llama("").longest, 0);
}

TEST(RotarySettings, longrope_is_for_the_original_length) {
  const auto phi = [](const std::string& more) {
    return configOf(
        tinyJson("phi3", R"("rope_scaling": {"type": "longrope", "short_factor": [1, 2, 4, 5], "long_factor": [1, 2, 4, 6]})" + more));
  };
  const LanguageConfig config = phi(R"(, "original_max_position_embeddings": 16)");
  EXPECT_NEAR(config.ropes.at(0).frequencies.at(1), 0.1 / 2, 1e-12);
  EXPECT_NEAR(config.ropes.at(0).frequencies.at(3), 0.001 / 5, 1e-12);
  EXPECT_NEAR(config.ropes.at(0).amplitude, std::sqrt(1 + std::log(4.0) / std::log(16.0)), 1e-12);  // 64 / 16
  EXPECT_EQ(config.longest, 16);
  EXPECT_EQ(config.context, 16);
  // An older name.
  EXPECT_EQ(configOf(tinyJson("phi3", R"("original_max_position_embeddings": 16, "rope_scaling": {"type": "su",
      "short_factor": [1, 2, 4, 5], "long_factor": [1, 2, 4, 6]})"))
                .ropes,
            config.ropes);
  EXPECT_EQ(codeOf(tinyJson("phi3", R"("rope_scaling": {"type": "longrope", "short_factor": [1, 2, 4, 5], "long_factor": [1, 2, 4, 6]})")),
            "language_config.value");  // 4096 is longer than the model
}

TEST(RotarySettings, a_part_of_a_head_may_turn_by_longrope) {
  const std::string keys =
      R"("partial_rotary_factor": 0.5, "original_max_position_embeddings": 16, "full_attn_mod": 1, "interpolate_factor": 1,
      "lm_head_bias": false, "mlp_bias": false, "rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [1, 3]})";
  const RotaryConfig rotary = configOf(tinyJson("phi3", keys)).ropes.at(0);
  EXPECT_EQ(rotary.dims, 4);
  EXPECT_NEAR(rotary.frequencies.at(1), 0.01 / 2, 1e-12);
  EXPECT_GT(rotary.amplitude, 1.1);
  EXPECT_EQ(codeOf(tinyJson("phi3", R"("lm_head_bias": true)")), "language_config.value");
}

TEST(RotarySettings, dynamic_scaling_begins_at_the_end_of_the_context) {
  const LanguageConfig config = llama(R"("rope_scaling": {"type": "dynamic", "factor": 2.0})");
  EXPECT_EQ(config.ropes, llama("").ropes);
  EXPECT_EQ(config.longest, 64);
}

TEST(RotarySettings, local_layers_of_Gemma_3_have_a_base_of_their_own) {
  const LanguageConfig older =
      configOf(tinyJson("gemma3_text", R"("sliding_window_pattern": 2, "sliding_window": 4, "rope_local_base_freq": 500.0)"));
  EXPECT_EQ(windowsOf(older), (std::vector<int64_t>{4, 0}));
  EXPECT_EQ(older.ropes.at(older.layers[0].rope).base, 500);
  EXPECT_EQ(older.ropes.at(older.layers[1].rope).base, 1e6);
  // A scaling is for the global layers.
  const LanguageConfig scaled = configOf(tinyJson("gemma3_text", R"("rope_scaling": {"rope_type": "linear", "factor": 8.0})"));
  EXPECT_FALSE(scaled.ropes.at(0).frequencies.empty());
  EXPECT_TRUE(scaled.ropes.at(1).frequencies.empty());
  const LanguageConfig newer =
      configOf(tinyJson("gemma3_text", R"("sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"],
      "rope_parameters": {"full_attention": {"rope_theta": 100.0}, "sliding_attention": {"rope_theta": 10.0}})"));
  EXPECT_EQ(newer.ropes.at(newer.layers[0].rope).base, 100);
  EXPECT_EQ(newer.ropes.at(newer.layers[1].rope).base, 10);
}

TEST(RotarySettings, a_type_of_layers_without_positions_of_its_own_has_those_of_Gemma_3) {
  const auto ropesOf = [](const std::string& more) { return configOf(tinyJson("gemma3_text", more)).ropes; };
  for (const char* sliding : {"", R"(, "sliding_attention": null)"}) {
    const std::vector<RotaryConfig> ropes =
        ropesOf(fmt::format(R"("rope_parameters": {{"full_attention": {{"rope_theta": 100.0}}{}}})", sliding));
    EXPECT_EQ(ropes.at(0).base, 100);
    EXPECT_EQ(ropes.at(1).base, 10000);
  }
  EXPECT_EQ(ropesOf(R"("rope_parameters": {"sliding_attention": {"rope_theta": 100.0}})").at(0).base, 1e6);
  EXPECT_EQ(codeOf(tinyJson("gemma3_text", R"("rope_parameters": {"full_attention": {}, "chunked_attention": {}})")),
            "language_config.key");
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_parameters": {"full_attention": {}})")), "language_config.value");
}

TEST(RotarySettings, angles_are_numbers_of_f32) {
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_theta": 1e-60)")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_scaling": {"rope_type": "linear", "factor": 1e-60})")), "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_theta": 0.5)")), "");
}

TEST(RotarySettings, scaling_is_said_in_one_place) {
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_parameters": {"rope_theta": 5e5}, "rope_scaling": {"type": "linear", "factor": 2.0})")),
            "language_config.value");
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_parameters": {"rope_theta": 5e5}, "rope_scaling": null)")), "");
  // Each of the numbers of llama3 counts, but for a length that is that of the model.
  EXPECT_EQ(codeOf(tinyJson("llama", R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 64})")),
            "language_config.value");
  const std::string scaling = R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0)";
  EXPECT_EQ(llama(scaling + "}").ropes, llama(scaling + R"(, "original_max_position_embeddings": 64})").ropes);
  EXPECT_NE(llama(scaling + "}").ropes, llama(scaling + R"(, "original_max_position_embeddings": 32})").ropes);
}

}  // namespace
}  // namespace lockstep::llm
