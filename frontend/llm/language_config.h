// SPDX-License-Identifier: Apache-2.0
// What a language model is, as the config.json of a Hugging Face checkpoint says it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/array.h"
#include "frontend/nn/attention.h"
#include "ir/support/result.h"

namespace lockstep::llm {

enum class LayerKind : uint8_t { Attention, Mamba1, Mamba2 };

/// One layer of the list: attention and a feed-forward part, or a mixer.
struct LayerConfig {
  LayerKind kind = LayerKind::Attention;
  int64_t window = 0;  ///< Attention: position i sees positions j with i - j < window; 0: all before it
  size_t rope = 0;     ///< Attention: which of LanguageConfig::ropes; none where that is empty
  bool turns = true;   ///< Attention: false where it has no positions, though others have a rope
  double scale = 1;    ///< Attention: of the scores, besides that of AttentionConfig
  friend bool operator==(const LayerConfig&, const LayerConfig&) = default;
};

/// Rotary positions of pairs (i, i + dims / 2).
struct RotaryConfig {
  double base = 10000;
  int64_t dims = 0;                      ///< columns of a head that turn
  std::vector<double> frequencies = {};  ///< radians per position of each pair, where they are scaled; else base^(-2 i / dims)
  double amplitude = 1;                  ///< of cosines and sines
  /// The frequencies, also where they are not scaled.
  [[nodiscard]] std::vector<double> radians() const;
  friend bool operator==(const RotaryConfig&, const RotaryConfig&) = default;
};

struct AttentionConfig {
  int64_t heads = 0, kv_heads = 0, head_width = 0;
  double scale = 1;                     ///< of the scores
  double soft_cap = 0;                  ///< of the scores; 0: none
  bool bias = false, out_bias = false;  ///< of q, k and v; of o
  bool qk_norm = false;                 ///< RMSNorm of each head of q and k, before it turns
  friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

struct NormConfig {
  bool rms = true;          ///< RMSNorm, else LayerNorm
  bool around_one = false;  ///< gains are 1 + weight (Gemma)
  bool after = false;       ///< of what each part gives, too: four per layer (Gemma)
  double eps = 1e-6;
  friend bool operator==(const NormConfig&, const NormConfig&) = default;
};

struct FeedForwardConfig {
  int64_t hidden = 0;
  nn::Activation activation = nn::Activation::Silu;
  bool gated = true, bias = false;
  friend bool operator==(const FeedForwardConfig&, const FeedForwardConfig&) = default;
};

constexpr double kAnyStep = std::numeric_limits<double>::infinity();

/// Of Mamba-1 and Mamba-2, as the options of nn::Mamba1 and nn::Mamba2.
struct MixerConfig {
  int64_t states = 0, conv = 0, expand = 0;
  int64_t step_rank = 0;               ///< Mamba-1
  int64_t head_width = 0, groups = 0;  ///< Mamba-2
  bool bias = false, conv_bias = true;
  double least_step = 0, most_step = kAnyStep;  ///< Mamba-2: step sizes are kept within; these are no limits
  friend bool operator==(const MixerConfig&, const MixerConfig&) = default;
};

/// A value. Every combination of its parts is a model; load() and parse() make those of the families of docs/language_models.md.
struct LanguageConfig {
  std::string family;      ///< model_type: "llama"; it names the weights in files
  int64_t vocabulary = 0;  ///< ids; there may be more than the tokenizer has
  int64_t width = 0;
  int64_t context = 0;            ///< positions that the model was made for; 0: any number
  int64_t learned_positions = 0;  ///< rows of a table of positions (GPT-2); 0: none
  int64_t longest = 0;            ///< positions beyond which rotary scaling would be another one; 0: any number
  std::vector<LayerConfig> layers = {};
  std::vector<RotaryConfig> ropes = {};
  AttentionConfig attention = {};
  FeedForwardConfig feed_forward = {};
  MixerConfig mixer = {};
  NormConfig norm = {};
  double embedding_scale = 1;
  double logit_cap = 0;                                ///< logits become cap tanh(logits / cap); 0: as they are
  bool tied_head = false;                              ///< the table of tokens is the head, too
  io::ElementType dtype = io::ElementType::F32;        ///< of the weights in files: F32, F16 or BF16
  nn::WeightFormat weights = {};                       ///< how a device keeps matrices; not f32 in a folder of `lockstep quantize`
  double init_scale = 0.02;                            ///< standard deviation that matrices begin with; 0: zeros, where values are loaded
  std::vector<int32_t> end_tokens = {};                ///< a text ends with any of them
  std::string config_json = {}, generation_json = {};  ///< the files as they were read; the second may be empty

  /// Of a config.json of transformers 4 or 5, and the text of generation_config.json or "". A key that is absent means what it means for
  /// the family. `file` stands for config.json in messages. Codes: json.text, language_config.family for a model_type that is not known,
  /// language_config.key for a key that is not known (it may change what the others mean), language_config.value for a value of a wrong
  /// type, one that is not supported, or that does not go with the others.
  static Result<LanguageConfig> parse(std::string_view config_json, const std::string& file, std::string_view generation_json = {});
  /// Of a folder with config.json and perhaps generation_config.json. Further code: file.read.
  static Result<LanguageConfig> load(const std::filesystem::path& folder);

  friend bool operator==(const LanguageConfig&, const LanguageConfig&) = default;
};

}  // namespace lockstep::llm
