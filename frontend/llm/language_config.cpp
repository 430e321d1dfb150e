// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/language_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "frontend/llm/config_reader.h"
#include "frontend/llm/families.h"
#include "frontend/llm/rotary_settings.h"
#include "ir/support/nearest.h"

namespace lockstep::llm {
namespace {

namespace fs = std::filesystem;

struct ActivationName {
  std::string_view name;
  nn::Activation activation;
};
// As ACT2FN of transformers.
constexpr std::array kActivations{
    ActivationName{"silu", nn::Activation::Silu},          ActivationName{"swish", nn::Activation::Silu},
    ActivationName{"gelu", nn::Activation::Gelu},          ActivationName{"gelu_python", nn::Activation::Gelu},
    ActivationName{"gelu_new", nn::Activation::GeluTanh},  ActivationName{"gelu_accurate", nn::Activation::GeluTanh},
    ActivationName{"relu", nn::Activation::Relu},          ActivationName{"tanh", nn::Activation::Tanh},
    ActivationName{"gelu_fast", nn::Activation::GeluTanh}, ActivationName{"gelu_pytorch_tanh", nn::Activation::GeluTanh}};
struct TypeName {
  std::string_view name;
  io::ElementType type;
};
constexpr std::array kTypes{TypeName{"float32", io::ElementType::F32}, TypeName{"float16", io::ElementType::F16},
                            TypeName{"bfloat16", io::ElementType::BF16}};

constexpr std::string_view kSliding = "sliding_attention", kFull = "full_attention";
constexpr std::array kLayerTypes{kFull, kSliding};
constexpr int64_t kMostLayers = 10000, kMostRates = int64_t{1} << 28, kTooManyElements = int64_t{1} << 32;

/// Reads the keys of one file into a config, as the row of the family says.
class ConfigBuilder {
 public:
  ConfigBuilder(const Family& family, ConfigReader reader) : family_(family), reader_(std::move(reader)) {}

  Result<LanguageConfig> run() {
    made_.family = family_.model_type;
    for (const std::string_view key : ignoredKeys()) reader_.ignore(key);
    for (const std::string_view key : family_.ignored) reader_.ignore(key);
    for (const FixedKey& fixed : fixedKeys()) LS_CHECK(checkFixed(fixed));
    for (const FixedKey& fixed : family_.fixed) LS_CHECK(checkFixed(fixed));
    LS_TRY(made_.vocabulary, positive("vocab_size", family_.sizes.vocabulary));
    LS_TRY(made_.width, positive(family_.keys.width, family_.sizes.width));
    LS_TRY(const int64_t layers, positive(family_.keys.layers, family_.sizes.layers));
    if (layers > kMostLayers)
      return reader_.wrong(fmt::format("{} is {}, wanted at most {}", family_.keys.layers, layers, kMostLayers),
                           "write as many as the weights have");
    made_.layers.assign(static_cast<size_t>(layers), LayerConfig{.kind = family_.kind});
    LS_TRY(made_.norm.eps, amount(family_.keys.eps, family_.sizes.eps));
    if (made_.norm.eps == 0)
      return reader_.wrong(fmt::format("{} is 0, wanted a positive number", family_.keys.eps),
                           fmt::format("models of this family mostly have {}", family_.sizes.eps));
    LS_TRY(made_.tied_head, reader_.boolean("tie_word_embeddings", family_.tied));
    LS_TRY(made_.end_tokens, reader_.integers("eos_token_id"));
    if (reader_.find("eos_token_id") == nullptr && family_.end_token >= 0) made_.end_tokens = {family_.end_token};
    LS_TRY(made_.init_scale, amount("initializer_range", 0.02));
    LS_CHECK(readType());
    LS_CHECK(readFormat());
    LS_CHECK(family_.kind == LayerKind::Attention ? readTransformer() : readMixer());
    LS_CHECK(reader_.onlyThese());
    LS_CHECK(checkMatrices());
    return std::move(made_);
  }

 private:
  Result<int64_t> positive(std::string_view key, int64_t if_missing, std::optional<int64_t> if_null = {}) {
    LS_TRY(const int64_t value, reader_.integer(key, if_missing, if_null));
    if (value < 1) return reader_.wrong(fmt::format("{} is {}, wanted at least 1", key, value), "write the size that the weights have");
    return value;
  }

  /// A finite number that is not negative.
  Result<double> amount(std::string_view key, double if_missing, std::optional<double> if_null = {}) {
    LS_TRY(const double value, reader_.number(key, if_missing, if_null));
    if (!(value >= 0 && std::isfinite(value)))
      return reader_.wrong(fmt::format("{} is {}, wanted a number that is not negative", key, value),
                           fmt::format("write a finite number; without the key it is {}", if_missing));
    // It is computed with in f32, some as 1 / value.
    constexpr double kLeast = 1e-37, kMost = 1e37;
    if (value != 0 && !(value >= kLeast && value <= kMost))
      return reader_.wrong(fmt::format("{} is {}, wanted {} to {}, or 0", key, value, kLeast, kMost),
                           fmt::format("write such a number; without the key it is {}", if_missing));
    return value;
  }

  /// Before anything is made of them.
  Status checkMatrices() const {
    const auto width = static_cast<double>(made_.width);
    const AttentionConfig& attention = made_.attention;
    const double heads = static_cast<double>(attention.heads) * static_cast<double>(attention.head_width);
    const double inner = width * static_cast<double>(made_.mixer.expand);
    for (const auto& [what, rows] : {std::pair("the embeddings", static_cast<double>(made_.vocabulary)),
                                     {"the heads", heads},
                                     {"the feed-forward part", static_cast<double>(made_.feed_forward.hidden)},
                                     {"the positions", static_cast<double>(made_.learned_positions)},
                                     {"the mixer", 2 * inner + 2 * static_cast<double>(made_.mixer.groups * made_.mixer.states)}}) {
      // As of parameters, which know nothing of this file.
      if (rows * width >= static_cast<double>(kTooManyElements))
        return reader_.wrong(fmt::format("a matrix of {} has {} by {} elements, wanted fewer than 2^32", what, rows, width),
                             "compare the sizes with the shapes of the weights; no device holds such a matrix");
    }
    return Success{};
  }

  Status checkFixed(const FixedKey& fixed) {
    const text::JsonValue* value = reader_.find(fixed.key);
    if (value == nullptr || value->isNull()) return Success{};
    const auto same = [&](const auto& wanted) {
      using Wanted = std::decay_t<decltype(wanted)>;
      if constexpr (std::is_same_v<Wanted, bool>) return value->boolean() != nullptr && *value->boolean() == wanted;
      if constexpr (std::is_same_v<Wanted, std::string_view>) return value->string() != nullptr && *value->string() == wanted;
      return false;
    };
    if (std::visit(same, fixed.value)) return Success{};
    const auto name = [](const auto& one) {
      if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::nullptr_t>)
        return std::string("null");
      else
        return fmt::format("{}", one);
    };
    const std::string wanted = std::visit(name, fixed.value);
    return reader_.wrong(fmt::format("{} is not {}, and nothing else is supported for {}", fixed.key, wanted, family_.model_type),
                         fmt::format("set it to {} if the model was trained with that; else run it with another program", wanted));
  }

  Status readType() {
    // transformers 5 writes dtype, 4 wrote torch_dtype.
    std::string name = "float32";
    for (const char* key : {"torch_dtype", "dtype"}) {
      const text::JsonValue* value = reader_.find(key);
      if (value == nullptr || value->isNull()) continue;
      LS_TRY(name, reader_.text(key, name));
    }
    const auto* found = std::ranges::find(kTypes, std::string_view(name), &TypeName::name);
    if (found == kTypes.end()) return reader_.wrong(fmt::format("weights of type '{}'", name), suggest(name, namesOf(kTypes)));
    made_.dtype = found->type;
    return Success{};
  }

  /// What transformers and others write there is of other formats; that of `lockstep quantize` is one they refuse.
  Status readFormat() {
    const text::JsonValue* value = reader_.find("quantization_config");
    if (value == nullptr || value->isNull()) return Success{};
    LS_TRY(ConfigReader keys, ConfigReader::of(*value, reader_.file(), "quantization_config"));
    LS_TRY(const std::string method, keys.text("quant_method", ""));
    if (method != "lockstep") {
      return reader_.wrong(fmt::format("the weights are quantised by '{}', which is not supported", method),
                           "get the model without quantisation; 'lockstep quantize' makes it small");
    }
    LS_TRY(const std::string name, keys.text("weights", ""));
    LS_CHECK(keys.onlyThese());
    const Result<nn::WeightFormat> format = nn::WeightFormat::parse(name);
    if (!format.ok() || format->isF32()) return reader_.wrong(fmt::format("weights kept as '{}'", name), "quantise the model again");
    made_.weights = *format;
    return Success{};
  }

  template <class Rows>
  static std::vector<std::string_view> namesOf(const Rows& rows) {
    std::vector<std::string_view> names;
    for (const auto& row : rows) names.push_back(row.name);
    return names;
  }

  Result<bool> bias(Bias kind, std::string_view key) {
    LS_TRY(const bool by_key, key.empty() ? Result<bool>(false) : reader_.boolean(key, false));
    return kind == Bias::Always || (kind == Bias::ByKey && by_key);
  }

  Status readTransformer() {
    const KeyNames& keys = family_.keys;
    const Sizes& sizes = family_.sizes;
    AttentionConfig& attention = made_.attention;
    LS_TRY(made_.context, positive(keys.context, sizes.context));
    LS_TRY(attention.heads, positive(keys.heads, sizes.heads));
    const int64_t all = sizes.kv_heads > 0 ? sizes.kv_heads : attention.heads;
    LS_TRY(attention.kv_heads, keys.kv_heads.empty() ? Result(attention.heads) : positive(keys.kv_heads, all, attention.heads));
    if (attention.heads % attention.kv_heads != 0)
      return reader_.wrong(fmt::format("{} heads cannot share {} heads of keys", attention.heads, attention.kv_heads),
                           fmt::format("{} must divide {}", keys.kv_heads, keys.heads));
    const text::JsonValue* head_width = keys.head_width.empty() ? nullptr : reader_.find(keys.head_width);
    if ((head_width == nullptr || head_width->isNull()) && sizes.head_width == 0 && made_.width % attention.heads != 0)
      return reader_.wrong(fmt::format("{} columns cannot be split into {} heads", made_.width, attention.heads),
                           fmt::format("{} must divide {}", keys.heads, keys.width));
    const int64_t even = made_.width / attention.heads, of_family = sizes.head_width > 0 ? sizes.head_width : even;
    LS_TRY(attention.head_width, keys.head_width.empty() ? Result(even) : positive(keys.head_width, of_family, even));
    LS_TRY(attention.bias, bias(family_.bias, keys.attention_bias));
    LS_TRY(attention.out_bias, bias(family_.out_bias, keys.attention_bias));
    attention.qk_norm = family_.qk_norm;
    const auto width = static_cast<double>(attention.head_width);
    double scalar = width;
    if (family_.query_scalar > 0) {
      LS_TRY(scalar, amount("query_pre_attn_scalar", family_.query_scalar));
    }
    if (scalar == 0)
      return reader_.wrong(fmt::format("query_pre_attn_scalar is {}, wanted a positive number", scalar),
                           fmt::format("without the key it is {}; scores are divided by its root", family_.query_scalar));
    attention.scale = 1 / std::sqrt(scalar);
    LS_CHECK(readScales());
    if (family_.has_soft_cap) {
      LS_TRY(attention.soft_cap, amount("attn_logit_softcapping", family_.soft_cap, 0.0));
    }
    if (family_.has_logit_cap) {
      LS_TRY(made_.logit_cap, amount("final_logit_softcapping", family_.logit_cap, 0.0));
    }
    made_.norm = {.rms = !family_.layer_norm, .around_one = family_.around_one, .after = family_.norm_after, .eps = made_.norm.eps};
    if (family_.scaled_embedding) {
      const double root = std::sqrt(static_cast<double>(made_.width));
      made_.embedding_scale = io::Array::from(made_.dtype, {1}, std::span(&root, 1)).at(0);
    }
    LS_CHECK(readFeedForward());
    LS_CHECK(readLayersWithoutRope());
    LS_CHECK(readWindows());
    if (family_.learned_positions) {
      made_.learned_positions = made_.context;
      return Success{};
    }
    int64_t original = 0;
    if (family_.original_context > 0) {
      LS_TRY(original, positive("original_max_position_embeddings", family_.original_context));
    }
    LS_TRY(const RotarySettings rotary, readRotary(reader_, {.base = family_.rope_base,
                                                             .local_base = family_.local_rope_base,
                                                             .head_width = attention.head_width,
                                                             .context = made_.context,
                                                             .original = original,
                                                             .yarn_is_longrope = family_.original_context > 0}));
    made_.ropes = rotary.ropes;
    made_.longest = rotary.longest;
    if (made_.longest > 0) made_.context = std::min(made_.context, made_.longest);
    if (made_.ropes.size() > 1) {
      for (LayerConfig& layer : made_.layers) layer.rope = layer.window > 0 ? 1 : 0;
    }
    return Success{};
  }

  Status readScales() {
    if (!family_.has_scale_keys) return Success{};
    LS_TRY(const bool by_width, reader_.boolean("scale_attn_weights", true));
    LS_TRY(const bool by_layer, reader_.boolean("scale_attn_by_inverse_layer_idx", false));
    if (!by_width) made_.attention.scale = 1;
    for (size_t i = 0; by_layer && i < made_.layers.size(); ++i) made_.layers[i].scale = 1 / static_cast<double>(i + 1);
    return Success{};
  }

  Status readFeedForward() {
    FeedForwardConfig& part = made_.feed_forward;
    const int64_t wide = 4 * made_.width;
    LS_TRY(part.hidden, positive(family_.keys.hidden, family_.sizes.hidden > 0 ? family_.sizes.hidden : wide, wide));
    part.gated = family_.gated;
    part.bias = family_.mlp_bias;
    if (!family_.keys.mlp_bias.empty()) {
      LS_TRY(part.bias, reader_.boolean(family_.keys.mlp_bias, family_.mlp_bias));
    }
    const text::JsonValue* given = reader_.find(family_.keys.activation);
    std::string name(family_.activation);
    if (given != nullptr && !given->isNull()) {
      LS_TRY(name, reader_.text(family_.keys.activation, family_.activation));
    }
    const auto* found = std::ranges::find(kActivations, std::string_view(name), &ActivationName::name);
    if (found == kActivations.end())
      return reader_.wrong(fmt::format("{} is '{}', which is not known", family_.keys.activation, name),
                           suggest(name, namesOf(kActivations)));
    part.activation = found->activation;
    return Success{};
  }

  /// Of a list with a 1 for each layer that turns, or else all but each so many-th.
  Status readLayersWithoutRope() {
    if (family_.no_rope_interval == 0) return Success{};
    LS_TRY(const int64_t interval, positive("no_rope_layer_interval", family_.no_rope_interval));
    LS_TRY(const std::vector<int32_t> listed, reader_.integers("no_rope_layers"));
    const text::JsonValue* list = reader_.find("no_rope_layers");
    const bool has_list = list != nullptr && !list->isNull();
    if (has_list && listed.size() < made_.layers.size())
      return reader_.wrong(fmt::format("no_rope_layers has {} numbers for {} layers", listed.size(), made_.layers.size()),
                           "write a 1 for each layer with rotary positions and a 0 for each without, or leave the key out");
    for (size_t i = 0; i < made_.layers.size(); ++i)
      made_.layers[i].turns = has_list ? listed[i] != 0 : static_cast<int64_t>(i + 1) % interval != 0;
    return Success{};
  }

  Status readWindows() {
    if (family_.windows == Windows::None) return Success{};
    LS_TRY(int64_t window, reader_.integer("sliding_window", family_.window, 0));
    const text::JsonValue* said = reader_.find("sliding_window");
    int64_t first = 0, period = 0;
    bool counts = true;
    if (family_.windows == Windows::Switched || family_.windows == Windows::WithoutRope) {
      LS_TRY(counts, reader_.boolean("use_sliding_window", false));
    }
    if (family_.windows == Windows::Switched) {
      LS_TRY(first, reader_.integer("max_window_layers", 28, 0));
    }
    if (!counts) window = 0;
    // Where a window of none is meant, there is a null; with 0 positions nothing would be seen.
    if (counts && window == 0 && said != nullptr && !said->isNull())
      return reader_.wrong("sliding_window is 0, wanted at least 1", "null is for none");
    if (family_.windows == Windows::ByType) {
      LS_TRY(const int64_t newer, reader_.integer("_sliding_window_pattern", family_.period, family_.period));
      LS_TRY(period, reader_.integer("sliding_window_pattern", newer, newer));
      if (period == 0) return reader_.wrong("sliding_window_pattern is 0, wanted at least 1", "1 is for no layers with a window");
    }
    std::vector<std::string> types;
    if (family_.windows != Windows::Every) {
      LS_TRY(types, reader_.texts("layer_types"));
    }
    if (!types.empty() && types.size() != made_.layers.size())
      return reader_.wrong(fmt::format("layer_types has {} texts for {} layers", types.size(), made_.layers.size()),
                           fmt::format("write a type for each of the {}, or leave layer_types out", family_.keys.layers));
    for (size_t i = 0; i < made_.layers.size(); ++i) {
      bool slides = static_cast<int64_t>(i) >= first && (period == 0 || static_cast<int64_t>(i + 1) % period != 0);
      if (family_.windows == Windows::WithoutRope) slides = !made_.layers[i].turns;
      if (!types.empty()) {
        slides = types[i] == kSliding;
        if (!slides && types[i] != kFull)
          return reader_.wrong(fmt::format("layer {} is of type '{}' in layer_types", i, types[i]), suggest(types[i], kLayerTypes));
      }
      // Such a layer may have positions of its own, so it is not the same as one that sees all.
      if (family_.windows == Windows::ByType && slides && window == 0)
        return reader_.wrong(fmt::format("sliding_window is null, and layer {} has a window", i),
                             "say how many positions it has, or that the layer is of full_attention in layer_types");
      made_.layers[i].window = slides ? window : 0;
    }
    return Success{};
  }

  Status readMixer() {
    MixerConfig& mixer = made_.mixer;
    const MixerSizes& sizes = family_.mixer;
    LS_TRY(mixer.states, positive("state_size", sizes.states));
    LS_TRY(mixer.conv, positive("conv_kernel", 4));
    LS_TRY(mixer.expand, positive("expand", 2));
    LS_TRY(mixer.bias, reader_.boolean("use_bias", false));
    LS_TRY(mixer.conv_bias, reader_.boolean("use_conv_bias", true));
    LS_TRY(const std::string activation, reader_.text("hidden_act", "silu"));
    if (activation != "silu" && activation != "swish")
      return reader_.wrong(fmt::format("hidden_act is '{}', and nothing but silu is supported for {}", activation, family_.model_type),
                           "take a model with silu, which is what published ones have");
    const int64_t inner = mixer.expand * made_.width;
    LS_TRY(const int64_t said, reader_.integer("intermediate_size", inner, inner));
    if (said != inner)
      return reader_.wrong(fmt::format("intermediate_size is {}, but expand times hidden_size is {}", said, inner),
                           "leave it out, or make the three agree with the shapes of the weights");
    // Rates begin as a list of numbers, which is made before any file of weights is read.
    if (mixer.states > kMostRates / inner / std::ssize(made_.layers))
      return reader_.wrong(
          fmt::format("state_size is {} for {} channels in {} layers", mixer.states, inner, made_.layers.size()),
          fmt::format("the product of the three is at most {}; compare the sizes with the shapes of the weights", kMostRates));
    if (mixer.conv < 2)
      return reader_.wrong("conv_kernel is 1, wanted two taps or more",
                           "take a model whose convolutions have two taps or more; published ones have 4");
    if (family_.kind == LayerKind::Mamba1) return readStepRank();
    LS_TRY(const int64_t heads, positive("num_heads", sizes.heads));
    LS_TRY(mixer.head_width, positive("head_dim", sizes.head_width));
    LS_TRY(mixer.groups, positive("n_groups", sizes.groups));
    if (heads * mixer.head_width != inner || heads % mixer.groups != 0)
      return reader_.wrong(fmt::format("{} heads of {} in {} groups do not make {} channels", heads, mixer.head_width, mixer.groups, inner),
                           "num_heads times head_dim is expand times hidden_size, and n_groups divides num_heads");
    return readStepLimits();
  }

  Status readStepRank() {
    const int64_t automatic = (made_.width + 15) / 16;
    const text::JsonValue* rank = reader_.find("time_step_rank");
    made_.mixer.step_rank = automatic;
    if (rank == nullptr || (rank->string() != nullptr && *rank->string() == "auto")) return Success{};
    LS_TRY(made_.mixer.step_rank, positive("time_step_rank", automatic));
    return Success{};
  }

  Status readStepLimits() {
    const text::JsonValue* limit = reader_.find("time_step_limit");
    if (limit == nullptr || limit->isNull()) return Success{};
    const text::JsonArray* ends = limit->array();
    const std::optional<double> least = ends != nullptr && ends->size() == 2 ? numberOf((*ends)[0]) : std::nullopt;
    const std::optional<double> most = least ? numberOf((*ends)[1]) : std::nullopt;
    if (!most || !(*least >= 0 && *most >= *least && std::isfinite(*least)))
      return reader_.wrong("time_step_limit is not the least and the largest step size", "[0, Infinity] is without limits");
    made_.mixer.least_step = *least;
    made_.mixer.most_step = *most;
    return Success{};
  }

  const Family& family_;
  ConfigReader reader_;
  LanguageConfig made_;
};

}  // namespace

Result<LanguageConfig> LanguageConfig::parse(std::string_view config_json, const std::string& file, std::string_view generation_json) {
  LS_TRY(const text::JsonValue value, parsePythonJson(config_json, file));
  LS_TRY(ConfigReader reader, ConfigReader::of(value, file));
  LS_TRY(const std::string type, reader.text("model_type", ""));
  const Family* family = findFamily(type);
  if (family == nullptr) {
    return fail("language_config.family",
                type.empty() ? "there is no model_type" : fmt::format("models of type '{}' are not supported", type), {.file = file},
                "it is one of " + joinNames(families(), [](const Family& one) { return one.model_type; }));
  }
  LS_TRY(LanguageConfig config, ConfigBuilder(*family, std::move(reader)).run());
  config.config_json = config_json;
  config.generation_json = generation_json;
  if (!generation_json.empty()) {
    const std::string other = (fs::path(file).parent_path() / "generation_config.json").string();
    LS_TRY(const text::JsonValue generation, parsePythonJson(generation_json, other));
    LS_TRY(ConfigReader keys, ConfigReader::of(generation, other));
    // What ends a text is a matter of generation: where both say so, that file counts.
    LS_TRY(const std::vector<int32_t> ends, keys.integers("eos_token_id"));
    if (!ends.empty()) config.end_tokens = ends;
  }
  return config;
}

}  // namespace lockstep::llm
