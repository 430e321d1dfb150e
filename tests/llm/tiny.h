// SPDX-License-Identifier: Apache-2.0
// Tiny checkpoints of each family with random weights.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/llm/checkpoint.h"
#include "frontend/llm/language_config.h"
#include "frontend/llm/language_model.h"

namespace lockstep::llm::testing {

/// What a function throws; "" where it throws nothing.
inline std::string codeOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  return "";
}

inline LanguageConfig configOf(const std::string& json, const std::string& generation = {}) {
  return LanguageConfig::parse(json, "config.json", generation).orThrow();
}

/// config.json of a model with two layers of width 16 and 24 ids; `more` are further members ("\"a\": 1").
inline std::string tinyJson(const std::string& family, const std::string& more = {}) {
  const std::string rest = more.empty() ? "" : ", " + more;
  if (family == "gpt2")
    return fmt::format(R"({{"model_type": "gpt2", "vocab_size": 24, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64{}}})", rest);
  if (family == "mamba")
    return fmt::format(R"({{"model_type": "mamba", "vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4{}}})",
                       rest);
  if (family == "mamba2") {
    return fmt::format(R"({{"model_type": "mamba2", "vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4,
                            "num_heads": 4, "head_dim": 8, "n_groups": 1{}}})",
                       rest);
  }
  return fmt::format(R"({{"model_type": "{}", "vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                          "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 20, "max_position_embeddings": 64{}}})",
                     family, rest);
}

/// Mamba-2, attention with a window and positions, Mamba-1: all kinds of states.
inline LanguageConfig hybrid() {
  LanguageConfig config = configOf(tinyJson("qwen3"));
  config.mixer = {.states = 4, .conv = 3, .expand = 2, .step_rank = 2, .head_width = 8, .groups = 2, .bias = true};
  config.layers = {{.kind = LayerKind::Mamba2}, {.kind = LayerKind::Attention, .window = 3}, {.kind = LayerKind::Mamba1}};
  return config;
}

/// Larger than those that a model begins with, so that tokens differ.
inline ParameterValues randomValues(const LanguageConfig& config, uint64_t seed = 5) {
  ParameterValues values;
  const LanguageModel model(config);
  uint32_t index = 0;
  for (const NamedParameter& named : model.parameters()) {
    std::vector<float> its = named.parameter->initial(seed, index);
    // What starts as a constant gets some noise, too.
    for (size_t i = 0; i < its.size(); ++i) {
      const double noise = random::normal(seed, index, i);
      its[i] = named.parameter->type().shape.rank() > 1 && !named.name.ends_with("A_log") ? static_cast<float>(0.3 * noise)
                                                                                          : its[i] + static_cast<float>(0.1 * noise);
    }
    values.emplace(named.name, std::move(its));
    ++index;
  }
  return values;
}

/// The reference, and Vulkan where there is a device.
inline std::vector<std::string> devices() {
  std::vector<std::string> all{"reference"};
  if (chooseDevice("vulkan").ok()) all.emplace_back("vulkan");
  return all;
}

}  // namespace lockstep::llm::testing
