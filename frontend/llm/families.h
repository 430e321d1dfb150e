// SPDX-License-Identifier: Apache-2.0
// Private: what is special about each family of models, as data. A row of the table is read by language_config.cpp (what the keys of
// config.json mean) and by checkpoint.cpp (where the weights are).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/llm/language_config.h"

namespace lockstep::llm {

/// How a tensor lies in a file.
enum class Layout : uint8_t {
  Same,
  Transposed,  ///< [out, in] for our [in, out]
  Taps,        ///< [channels, 1, taps] for our [channels, taps]
};
/// A parameter of LanguageModel and its tensor. Rows that name the same tensor are parts of it, side by side along our last axis in the
/// order of the rows. "{}" is the number of the layer. Parameters that a model does not have are passed over.
struct NameRow {
  std::string_view ours, theirs;
  Layout layout = Layout::Same;
};

/// The names of keys in config.json; empty where the family has none.
struct KeyNames {
  std::string_view width = "hidden_size", layers = "num_hidden_layers", heads = "num_attention_heads", kv_heads = "num_key_value_heads",
                   head_width = "head_dim", hidden = "intermediate_size", context = "max_position_embeddings", eps = "rms_norm_eps",
                   activation = "hidden_act", attention_bias = "", mlp_bias = "";
};
/// What absent keys mean. 0: kv_heads as heads, head_width width / heads, hidden 4 width.
struct Sizes {
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, kv_heads = 0, head_width = 0, hidden = 0, context = 0;
  double eps = 1e-6;
};
/// Of Mamba layers.
struct MixerSizes {
  int64_t states = 0, heads = 0, head_width = 0, groups = 1;
};

enum class Bias : uint8_t { Never, ByKey, Always };
enum class Windows : uint8_t {
  None,
  Every,        ///< sliding_window counts for all layers
  Switched,     ///< only with use_sliding_window, for the layers of layer_types or from max_window_layers on
  WithoutRope,  ///< only with use_sliding_window, for the layers of layer_types or those without positions
  ByType,       ///< for the layers of layer_types, by default all but each `period`th
};

/// A key that must have this value, or be null or absent: with another one the model computes something that is not supported.
struct FixedKey {
  std::string_view key;
  std::variant<bool, std::string_view, std::nullptr_t> value;  ///< nullptr: null or absent only
};

struct Family {
  std::string_view model_type;
  LayerKind kind = LayerKind::Attention;
  Sizes sizes = {};
  MixerSizes mixer = {};
  KeyNames keys = {};
  bool tied = false;
  std::string_view activation = "silu";
  Bias bias = Bias::Never, out_bias = Bias::Never;  ///< of q, k and v; of o
  bool qk_norm = false;
  bool layer_norm = false, gated = true, mlp_bias = false;
  bool around_one = false, norm_after = false, scaled_embedding = false;
  bool learned_positions = false;
  bool has_scale_keys = false;                    ///< scale_attn_weights and scale_attn_by_inverse_layer_idx
  int32_t end_token = -1;                         ///< eos_token_id; -1: none
  int64_t no_rope_interval = 0;                   ///< each so many-th layer has no positions; 0: all have them, and there are no such keys
  int64_t original_context = 0;                   ///< original_max_position_embeddings; 0: the family lacks the key
  double rope_base = 10000, local_rope_base = 0;  ///< the second of layers with a window; 0: they have the first
  Windows windows = Windows::None;
  int64_t window = 0, period = 0;
  double query_scalar = 0;             ///< query_pre_attn_scalar; 0: the head's width
  double soft_cap = 0, logit_cap = 0;  ///< where the family has the keys
  bool has_soft_cap = false, has_logit_cap = false;
  std::span<const FixedKey> fixed = {};
  std::span<const std::string_view> ignored = {};  ///< keys that change nothing here, besides those that all families have
  std::string_view prefix;                         ///< that the names of a whole model begin with; files of its inner part lack it
  std::vector<std::span<const NameRow>> names;
  std::span<const std::string_view> surplus = {};  ///< endings of tensors of older files that hold no weights
};

[[nodiscard]] std::span<const Family> families();
/// Null where there is none.
[[nodiscard]] const Family* findFamily(std::string_view model_type);
/// Keys that change nothing for any family.
[[nodiscard]] std::span<const std::string_view> ignoredKeys();
/// Of all families.
[[nodiscard]] std::span<const FixedKey> fixedKeys();

}  // namespace lockstep::llm
