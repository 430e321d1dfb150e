// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/families.h"

#include <algorithm>
#include <array>

namespace lockstep::llm {
namespace {

constexpr NameRow kOuterNames[] = {
    {"tokens.W", "model.embed_tokens.weight"},
    {"norm.g", "model.norm.weight"},
    {"head.W", "lm_head.weight", Layout::Transposed},
    {"layers.{}.norm1.g", "model.layers.{}.input_layernorm.weight"},
    {"layers.{}.attn.o.W", "model.layers.{}.self_attn.o_proj.weight", Layout::Transposed},
    {"layers.{}.attn.o.b", "model.layers.{}.self_attn.o_proj.bias"},
    {"layers.{}.mlp.down.W", "model.layers.{}.mlp.down_proj.weight", Layout::Transposed},
    {"layers.{}.mlp.down.b", "model.layers.{}.mlp.down_proj.bias"},
};
constexpr NameRow kSeparateProjections[] = {
    {"layers.{}.attn.q.W", "model.layers.{}.self_attn.q_proj.weight", Layout::Transposed},
    {"layers.{}.attn.k.W", "model.layers.{}.self_attn.k_proj.weight", Layout::Transposed},
    {"layers.{}.attn.v.W", "model.layers.{}.self_attn.v_proj.weight", Layout::Transposed},
    {"layers.{}.attn.q.b", "model.layers.{}.self_attn.q_proj.bias"},
    {"layers.{}.attn.k.b", "model.layers.{}.self_attn.k_proj.bias"},
    {"layers.{}.attn.v.b", "model.layers.{}.self_attn.v_proj.bias"},
    {"layers.{}.attn.q_norm.g", "model.layers.{}.self_attn.q_norm.weight"},
    {"layers.{}.attn.k_norm.g", "model.layers.{}.self_attn.k_norm.weight"},
    {"layers.{}.mlp.gate.W", "model.layers.{}.mlp.gate_proj.weight", Layout::Transposed},
    {"layers.{}.mlp.up.W", "model.layers.{}.mlp.up_proj.weight", Layout::Transposed},
    {"layers.{}.mlp.gate.b", "model.layers.{}.mlp.gate_proj.bias"},
    {"layers.{}.mlp.up.b", "model.layers.{}.mlp.up_proj.bias"},
};
constexpr NameRow kFusedProjections[] = {
    {"layers.{}.attn.q.W", "model.layers.{}.self_attn.qkv_proj.weight", Layout::Transposed},
    {"layers.{}.attn.k.W", "model.layers.{}.self_attn.qkv_proj.weight", Layout::Transposed},
    {"layers.{}.attn.v.W", "model.layers.{}.self_attn.qkv_proj.weight", Layout::Transposed},
    {"layers.{}.mlp.gate.W", "model.layers.{}.mlp.gate_up_proj.weight", Layout::Transposed},
    {"layers.{}.mlp.up.W", "model.layers.{}.mlp.gate_up_proj.weight", Layout::Transposed},
};
constexpr NameRow kTwoNorms[] = {{"layers.{}.norm2.g", "model.layers.{}.post_attention_layernorm.weight"}};
constexpr NameRow kFourNorms[] = {
    {"layers.{}.after1.g", "model.layers.{}.post_attention_layernorm.weight"},
    {"layers.{}.norm2.g", "model.layers.{}.pre_feedforward_layernorm.weight"},
    {"layers.{}.after2.g", "model.layers.{}.post_feedforward_layernorm.weight"},
};
// Conv1D of GPT-2 keeps matrices as [in, out].
constexpr NameRow kGpt2Names[] = {
    {"tokens.W", "transformer.wte.weight"},
    {"places.W", "transformer.wpe.weight"},
    {"norm.g", "transformer.ln_f.weight"},
    {"norm.b", "transformer.ln_f.bias"},
    {"head.W", "lm_head.weight", Layout::Transposed},
    {"layers.{}.norm1.g", "transformer.h.{}.ln_1.weight"},
    {"layers.{}.norm1.b", "transformer.h.{}.ln_1.bias"},
    {"layers.{}.attn.q.W", "transformer.h.{}.attn.c_attn.weight"},
    {"layers.{}.attn.k.W", "transformer.h.{}.attn.c_attn.weight"},
    {"layers.{}.attn.v.W", "transformer.h.{}.attn.c_attn.weight"},
    {"layers.{}.attn.q.b", "transformer.h.{}.attn.c_attn.bias"},
    {"layers.{}.attn.k.b", "transformer.h.{}.attn.c_attn.bias"},
    {"layers.{}.attn.v.b", "transformer.h.{}.attn.c_attn.bias"},
    {"layers.{}.attn.o.W", "transformer.h.{}.attn.c_proj.weight"},
    {"layers.{}.attn.o.b", "transformer.h.{}.attn.c_proj.bias"},
    {"layers.{}.norm2.g", "transformer.h.{}.ln_2.weight"},
    {"layers.{}.norm2.b", "transformer.h.{}.ln_2.bias"},
    {"layers.{}.mlp.up.W", "transformer.h.{}.mlp.c_fc.weight"},
    {"layers.{}.mlp.up.b", "transformer.h.{}.mlp.c_fc.bias"},
    {"layers.{}.mlp.down.W", "transformer.h.{}.mlp.c_proj.weight"},
    {"layers.{}.mlp.down.b", "transformer.h.{}.mlp.c_proj.bias"},
};
constexpr NameRow kMambaNames[] = {
    {"tokens.W", "backbone.embeddings.weight"},
    {"norm.g", "backbone.norm_f.weight"},
    {"head.W", "lm_head.weight", Layout::Transposed},
    {"layers.{}.norm1.g", "backbone.layers.{}.norm.weight"},
    {"layers.{}.mixer.in_proj.W", "backbone.layers.{}.mixer.in_proj.weight", Layout::Transposed},
    {"layers.{}.mixer.in_proj.b", "backbone.layers.{}.mixer.in_proj.bias"},
    {"layers.{}.mixer.conv_W", "backbone.layers.{}.mixer.conv1d.weight", Layout::Taps},
    {"layers.{}.mixer.conv_b", "backbone.layers.{}.mixer.conv1d.bias"},
    {"layers.{}.mixer.A_log", "backbone.layers.{}.mixer.A_log"},
    {"layers.{}.mixer.D", "backbone.layers.{}.mixer.D"},
    {"layers.{}.mixer.out_proj.W", "backbone.layers.{}.mixer.out_proj.weight", Layout::Transposed},
    {"layers.{}.mixer.out_proj.b", "backbone.layers.{}.mixer.out_proj.bias"},
    // Mamba-1
    {"layers.{}.mixer.x_proj.W", "backbone.layers.{}.mixer.x_proj.weight", Layout::Transposed},
    {"layers.{}.mixer.dt_W", "backbone.layers.{}.mixer.dt_proj.weight", Layout::Transposed},
    {"layers.{}.mixer.dt_b", "backbone.layers.{}.mixer.dt_proj.bias"},
    // Mamba-2
    {"layers.{}.mixer.dt_bias", "backbone.layers.{}.mixer.dt_bias"},
    {"layers.{}.mixer.norm.g", "backbone.layers.{}.mixer.norm.weight"},
};

/// Keys that every config of transformers may have: how the model is stored, trained, called, or started.
constexpr std::string_view kIgnored[] = {
    "architectures", "model_type", "transformers_version", "_name_or_path", "auto_map", "bos_token_id", "pad_token_id", "sep_token_id",
    "decoder_start_token_id", "use_cache", "attention_dropout", "hidden_dropout", "hidden_dropout_prob", "output_attentions",
    "output_hidden_states", "return_dict", "_attn_implementation", "_attn_implementation_autoset", "attn_implementation", "pretraining_tp",
    "transformers.js_config", "_from_model_config", "torchscript", "use_bfloat16", "tf_legacy_loss", "chunk_size_feed_forward",
    "tokenizer_class",
    // of other tasks
    "task_specific_params", "finetuning_task", "problem_type", "id2label", "label2id", "_num_labels", "prefix",
    // of generation, which generation_config.json has today
    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k",
    "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
    "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"};
/// Keys that every config may have and that would make it another model.
constexpr FixedKey kFixed[] = {{"is_encoder_decoder", false}, {"tie_encoder_decoder", false}};
constexpr std::string_view kLlamaIgnored[] = {"is_llama_config",
                                              // of early conversions of Llama 1, which transformers does not read
                                              "max_sequence_length"};
constexpr std::string_view kSmolLm3Ignored[] = {"max_window_layers"};
constexpr std::string_view kGpt2Ignored[] = {"output_past",
                                             "n_special",
                                             "predict_special_tokens",
                                             "gradient_checkpointing",
                                             "attn_pdrop",
                                             "embd_pdrop",
                                             "resid_pdrop",
                                             "n_ctx",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj",
                                             "reorder_and_upcast_attn"};
constexpr std::string_view kGemmaIgnored[] = {"cache_implementation", "hidden_act"};
constexpr FixedKey kPhi3Fixed[] = {{"attention_bias", false}, {"mlp_bias", false}, {"lm_head_bias", false}};
constexpr std::string_view kPhi3Ignored[] = {"embd_pdrop", "resid_pdrop",
                                             // of Phi-4-mini, which transformers does not read
                                             "full_attn_mod", "interpolate_factor"};
constexpr std::string_view kMambaIgnored[] = {"rescale_prenorm_residual",
                                              "residual_in_fp32",
                                              "time_step_floor",
                                              "time_step_init_scheme",
                                              "time_step_max",
                                              "time_step_min",
                                              "time_step_scale",
                                              "use_associative_scan",
                                              "use_mambapy",
                                              "fused_add_norm",
                                              "pad_vocab_size_multiple",
                                              "ssm_cfg",
                                              "d_model",
                                              "d_inner",
                                              "n_layer"};
constexpr std::string_view kMamba2Ignored[] = {
    "rescale_prenorm_residual", "residual_in_fp32", "time_step_floor",         "time_step_max", "time_step_min",   "time_step_rank",
    "time_step_init_scheme",    "time_step_scale",  "pad_vocab_size_multiple", "chunk_size",    "norm_before_gate"};

constexpr FixedKey kLlamaFixed[] = {{"rope_interleaved", false}};
constexpr FixedKey kPlainFixed[] = {{"attention_bias", false}};
constexpr FixedKey kQwenFixed[] = {{"use_mrope", false}};
constexpr FixedKey kGpt2Fixed[] = {{"add_cross_attention", false}};
constexpr FixedKey kGemmaFixed[] = {{"use_bidirectional_attention", false}};
// In Gemma 3 transformers reads the soft cap of scores but does not apply it. Other programs may, so a number there has no clear meaning.
constexpr FixedKey kGemma3Fixed[] = {{"use_bidirectional_attention", false}, {"attn_logit_softcapping", nullptr}};
constexpr FixedKey kMambaFixed[] = {{"rms_norm", true}};

// Masks and tables that older versions wrote beside the weights.
constexpr std::string_view kGpt2Surplus[] = {".attn.bias", ".attn.masked_bias"};
constexpr std::string_view kRopeSurplus[] = {".rotary_emb.inv_freq"};

std::vector<Family> makeFamilies() {
  return {
      {.model_type = "llama",
       .sizes = {.vocabulary = 32000, .width = 4096, .layers = 32, .heads = 32, .hidden = 11008, .context = 2048},
       .keys = {.attention_bias = "attention_bias", .mlp_bias = "mlp_bias"},
       .bias = Bias::ByKey,
       .out_bias = Bias::ByKey,
       .end_token = 2,
       .fixed = kLlamaFixed,
       .ignored = kLlamaIgnored,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kTwoNorms},
       .surplus = kRopeSurplus},
      {.model_type = "smollm3",
       .sizes = {.vocabulary = 128256, .width = 2048, .layers = 36, .heads = 16, .kv_heads = 4, .hidden = 11008, .context = 32768},
       .keys = {.attention_bias = "attention_bias", .mlp_bias = "mlp_bias"},
       .tied = true,
       .bias = Bias::ByKey,
       .out_bias = Bias::ByKey,
       .end_token = 128001,
       .no_rope_interval = 4,
       .rope_base = 2e6,
       .windows = Windows::WithoutRope,
       .ignored = kSmolLm3Ignored,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kTwoNorms}},
      {.model_type = "mistral",
       .sizes = {.vocabulary = 32000, .width = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .hidden = 14336, .context = 131072},
       .end_token = 2,
       .windows = Windows::Every,
       .window = 4096,
       .fixed = kPlainFixed,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kTwoNorms},
       .surplus = kRopeSurplus},
      {.model_type = "qwen2",
       .sizes = {.vocabulary = 151936, .width = 4096, .layers = 32, .heads = 32, .kv_heads = 32, .hidden = 22016, .context = 32768},
       .bias = Bias::Always,
       .windows = Windows::Switched,
       .window = 4096,
       .fixed = kQwenFixed,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kTwoNorms},
       .surplus = kRopeSurplus},
      {.model_type = "qwen3",
       .sizes = {.vocabulary = 151936,
                 .width = 4096,
                 .layers = 32,
                 .heads = 32,
                 .kv_heads = 32,
                 .head_width = 128,
                 .hidden = 22016,
                 .context = 32768},
       .keys = {.attention_bias = "attention_bias"},
       .bias = Bias::ByKey,
       .out_bias = Bias::ByKey,
       .qk_norm = true,
       .windows = Windows::Switched,
       .window = 4096,
       .fixed = kQwenFixed,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kTwoNorms}},
      {.model_type = "gpt2",
       .sizes = {.vocabulary = 50257, .width = 768, .layers = 12, .heads = 12, .context = 1024, .eps = 1e-5},
       .keys = {.width = "n_embd",
                .layers = "n_layer",
                .heads = "n_head",
                .kv_heads = "",
                .head_width = "",
                .hidden = "n_inner",
                .context = "n_positions",
                .eps = "layer_norm_epsilon",
                .activation = "activation_function"},
       .tied = true,
       .activation = "gelu_new",
       .bias = Bias::Always,
       .out_bias = Bias::Always,
       .layer_norm = true,
       .gated = false,
       .mlp_bias = true,
       .learned_positions = true,
       .has_scale_keys = true,
       .end_token = 50256,
       .fixed = kGpt2Fixed,
       .ignored = kGpt2Ignored,
       .prefix = "transformer.",
       .names = {kGpt2Names},
       .surplus = kGpt2Surplus},
      {.model_type = "gemma2",
       .sizes = {.vocabulary = 256000,
                 .width = 2304,
                 .layers = 26,
                 .heads = 8,
                 .kv_heads = 4,
                 .head_width = 256,
                 .hidden = 9216,
                 .context = 8192},
       .keys = {.activation = "hidden_activation", .attention_bias = "attention_bias"},
       .tied = true,
       .activation = "gelu_pytorch_tanh",
       .bias = Bias::ByKey,
       .out_bias = Bias::ByKey,
       .around_one = true,
       .norm_after = true,
       .scaled_embedding = true,
       .end_token = 1,
       .windows = Windows::ByType,
       .window = 4096,
       .period = 2,
       .query_scalar = 256,
       .soft_cap = 50,
       .logit_cap = 30,
       .has_soft_cap = true,
       .has_logit_cap = true,
       .fixed = kGemmaFixed,
       .ignored = kGemmaIgnored,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kFourNorms}},
      {.model_type = "gemma3_text",
       .sizes = {.vocabulary = 262208,
                 .width = 2304,
                 .layers = 26,
                 .heads = 8,
                 .kv_heads = 4,
                 .head_width = 256,
                 .hidden = 9216,
                 .context = 131072},
       .keys = {.activation = "hidden_activation", .attention_bias = "attention_bias"},
       .tied = true,
       .activation = "gelu_pytorch_tanh",
       .bias = Bias::ByKey,
       .out_bias = Bias::ByKey,
       .qk_norm = true,
       .around_one = true,
       .norm_after = true,
       .scaled_embedding = true,
       .end_token = 1,
       .rope_base = 1e6,
       .local_rope_base = 10000,
       .windows = Windows::ByType,
       .window = 4096,
       .period = 6,
       .query_scalar = 256,
       .has_logit_cap = true,
       .fixed = kGemma3Fixed,
       .ignored = kGemmaIgnored,
       .prefix = "model.",
       .names = {kOuterNames, kSeparateProjections, kFourNorms}},
      {.model_type = "phi3",
       .sizes = {.vocabulary = 32064, .width = 3072, .layers = 32, .heads = 32, .hidden = 8192, .context = 4096, .eps = 1e-5},
       .end_token = 32000,
       .original_context = 4096,
       .windows = Windows::Every,
       .fixed = kPhi3Fixed,
       .ignored = kPhi3Ignored,
       .prefix = "model.",
       .names = {kOuterNames, kFusedProjections, kTwoNorms},
       .surplus = kRopeSurplus},
      {.model_type = "mamba",
       .kind = LayerKind::Mamba1,
       .sizes = {.vocabulary = 50280, .width = 768, .layers = 32, .eps = 1e-5},
       .mixer = {.states = 16},
       .keys = {.eps = "layer_norm_epsilon"},
       .tied = true,
       .end_token = 0,
       .fixed = kMambaFixed,
       .ignored = kMambaIgnored,
       .prefix = "backbone.",
       .names = {kMambaNames}},
      {.model_type = "mamba2",
       .kind = LayerKind::Mamba2,
       .sizes = {.vocabulary = 32768, .width = 4096, .layers = 64, .eps = 1e-5},
       .mixer = {.states = 128, .heads = 128, .head_width = 64, .groups = 8},
       .keys = {.eps = "layer_norm_epsilon"},
       .end_token = 2,
       .fixed = kMambaFixed,
       .ignored = kMamba2Ignored,
       .prefix = "backbone.",
       .names = {kMambaNames}},
  };
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> made = makeFamilies();
  return made;
}

const Family* findFamily(std::string_view model_type) {
  const auto found = std::ranges::find(families(), model_type, &Family::model_type);
  return found == families().end() ? nullptr : &*found;
}

std::span<const std::string_view> ignoredKeys() { return kIgnored; }
std::span<const FixedKey> fixedKeys() { return kFixed; }

}  // namespace lockstep::llm
