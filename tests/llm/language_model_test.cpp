// SPDX-License-Identifier: Apache-2.0
// Whole models beside the same written out with operations, from the formulas of their papers and of transformers.
#include "frontend/llm/language_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/llm/generator.h"
#include "frontend/lockstep.h"
#include "frontend/trace/trace.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm {
namespace {

using testing::configOf;
using testing::randomValues;
using testing::tinyJson;

/// Logits of the model and of the function, of the same ids and parameters.
void expectSame(const LanguageConfig& config, const std::function<Tensor(const LanguageModel&, Tensor)>& by_hand) {
  auto model = forward<LanguageModel>({.inputs = {{"ids", i32(2, 6)}},
                                       .forward = [&](const LanguageModel& its, const Inputs& in) -> Outputs {
                                         return {{"model", its(in["ids"])}, {"hand", by_hand(its, in["ids"])}};
                                       },
                                       .device = "reference",
                                       .seed = 0,
                                       .make = [&] { return std::make_unique<LanguageModel>(config); }});
  model.upload(randomValues(config));
  const std::vector<int32_t> ids{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
  const ForwardResult result = model.run({{"ids", ids}});
  const std::span<const float> got = result.outputs.get("model").floats(), want = result.outputs.get("hand").floats();
  ASSERT_EQ(got.size(), size_t{12} * 24);
  ASSERT_EQ(got.size(), want.size());
  double size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 2e-5) << i;
    size += std::abs(want[i]);
  }
  EXPECT_GT(size, 1);
}

/// [T, T] where a query sees a key: 0, else a large negative number.
Tensor seen(int64_t length, int64_t window) {
  std::vector<float> mask;
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) mask.push_back(j <= i && (window == 0 || i - j < window) ? 0.0F : -1e30F);
  }
  return constant(std::span<const float>(mask), {length, length});
}

Tensor capped(const Tensor& x, double cap) { return tanh(x / cap) * cap; }

TEST(LanguageModel, Gemma_2_is_its_formula) {
  const LanguageConfig config =
      configOf(tinyJson("gemma2", R"("sliding_window": 2, "query_pre_attn_scalar": 5, "attn_logit_softcapping": 1.5,
                                                               "final_logit_softcapping": 2.0, "rope_theta": 100.0)"));
  expectSame(config, [](const LanguageModel& model, Tensor ids) {
    const auto norm = [](const nn::BlockNorm& its, const Tensor& x) { return rms_norm(x, its.rms->g + 1.0, 1e-6); };
    Tensor h = model.tokens(ids) * 4.0;
    for (size_t i = 0; i < 2; ++i) {
      const LanguageLayer& layer = model.layers[i];
      const nn::MultiHeadAttention& attn = *layer.attn;
      const Tensor x = norm(layer.norm1, h);
      const Tensor q = rope(split_heads(attn.q(x), 2), {.base = 100}), k = rope(split_heads(attn.k(x), 1), {.base = 100});
      const Tensor scores = capped(matmul(q, swap_axes(k, -1, -2)) / std::sqrt(5.0), 1.5) + seen(6, i == 0 ? 2 : 0);
      const Tensor mixed = attn.o(merge_heads(matmul(softmax(scores), split_heads(attn.v(x), 1))));
      h = h + norm(*layer.after1, mixed);
      const Tensor y = norm(*layer.norm2, h);
      h = h + norm(*layer.after2, layer.mlp->down(gelu_tanh((*layer.mlp->gate)(y)) * layer.mlp->up(y)));
    }
    return capped(matmul(norm(model.norm, h), swap_axes(model.tokens.W, 0, 1)), 2.0);
  });
}

TEST(LanguageModel, GPT_2_is_its_formula) {
  expectSame(configOf(tinyJson("gpt2")), [](const LanguageModel& model, Tensor ids) {
    const auto norm = [](const nn::BlockNorm& its, const Tensor& x) { return layer_norm(x, its.layer->g, its.layer->b, 1e-5); };
    Tensor h = model.tokens(ids) + (*model.places)(arange(6));
    for (size_t i = 0; i < 2; ++i) {
      const LanguageLayer& layer = model.layers[i];
      const nn::MultiHeadAttention& attn = *layer.attn;
      const Tensor x = norm(layer.norm1, h);
      const Tensor scores = matmul(split_heads(attn.q(x), 2), swap_axes(split_heads(attn.k(x), 2), -1, -2)) / std::sqrt(8.0) + seen(6, 0);
      h = h + attn.o(merge_heads(matmul(softmax(scores), split_heads(attn.v(x), 2))));
      h = h + layer.mlp->down(gelu_tanh(layer.mlp->up(norm(*layer.norm2, h))));
    }
    return matmul(norm(model.norm, h), swap_axes(model.tokens.W, 0, 1));
  });
}

TEST(LanguageModel, Phi_3_turns_a_part_of_each_head) {
  expectSame(configOf(tinyJson("phi3", R"("partial_rotary_factor": 0.5, "sliding_window": 3)")),
             [](const LanguageModel& model, Tensor ids) {
               const auto norm = [](const nn::BlockNorm& its, const Tensor& x) { return rms_norm(x, its.rms->g, 1e-5); };
               // Columns 0 and 2, and 1 and 3, of the first four turn; the others stay.
               const auto turned = [](const Tensor& x) { return concat({rope(narrow(x, -1, 0, 4)), narrow(x, -1, 4, 4)}, -1); };
               Tensor h = model.tokens(ids);
               for (size_t i = 0; i < 2; ++i) {
                 const LanguageLayer& layer = model.layers[i];
                 const nn::MultiHeadAttention& attn = *layer.attn;
                 const Tensor x = norm(layer.norm1, h);
                 const Tensor q = turned(split_heads(attn.q(x), 2)), k = turned(split_heads(attn.k(x), 1));
                 const Tensor scores = matmul(q, swap_axes(k, -1, -2)) / std::sqrt(8.0) + seen(6, 3);
                 h = h + attn.o(merge_heads(matmul(softmax(scores), split_heads(attn.v(x), 1))));
                 const Tensor y = norm(*layer.norm2, h);
                 h = h + layer.mlp->down(silu((*layer.mlp->gate)(y)) * layer.mlp->up(y));
               }
               return (*model.untied)(norm(model.norm, h));
             });
}

TEST(LanguageModel, learned_positions_end) {
  const LanguageConfig config = configOf(tinyJson("gpt2"));
  const LanguageModel model(config);
  const auto codeFor = [&](int64_t length) -> std::string {
    try {
      detail::Trace trace;
      trace.addParameters(model);
      model(trace.addInput("ids", i32(1, length)));
      return "";
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(codeFor(64), "");
  EXPECT_EQ(codeFor(65), "language_model.room");
}

TEST(LanguageModel, a_scaling_that_changes_with_the_length_ends) {
  const LanguageConfig config = configOf(tinyJson("llama", R"("rope_scaling": {"type": "dynamic", "factor": 2.0})"));
  EXPECT_EQ(testing::codeOf([&] { (void)Generator(config, randomValues(config), {.device = "reference", .positions = 65}); }),
            "language_model.options");
  const LanguageModel model(config);
  EXPECT_EQ(testing::codeOf([&] {
              detail::Trace trace;
              trace.addParameters(model);
              model(trace.addInput("ids", i32(1, 65)));
            }),
            "language_model.room");
}

/// A model with the layers of Llama, which turn or do not.
void expectLlama(const LanguageConfig& config) {
  const double amplitude = config.ropes.at(0).amplitude;
  expectSame(config, [&](const LanguageModel& model, Tensor ids) {
    const RopeOptions turn{.dims = config.ropes[0].dims, .frequencies = config.ropes[0].radians()};
    Tensor h = model.tokens(ids);
    for (size_t i = 0; i < 2; ++i) {
      const LanguageLayer& layer = model.layers[i];
      const nn::MultiHeadAttention& attn = *layer.attn;
      const Tensor x = rms_norm(h, layer.norm1.rms->g, 1e-6);
      const auto placed = [&](const Tensor& its) {
        if (!config.layers[i].turns) return its;
        const Tensor turned = rope(its, turn);
        const int64_t rest = turned.extent(-1) - turn.dims;
        const Tensor longer = narrow(turned, -1, 0, turn.dims) * amplitude;
        return rest == 0 ? longer : concat({longer, narrow(turned, -1, turn.dims, rest)}, -1);
      };
      const Tensor q = placed(split_heads(attn.q(x), 2)), k = placed(split_heads(attn.k(x), 1));
      const Tensor scores = matmul(q, swap_axes(k, -1, -2)) / std::sqrt(8.0) + seen(6, 0);
      h = h + attn.o(merge_heads(matmul(softmax(scores), split_heads(attn.v(x), 1))));
      const Tensor y = rms_norm(h, layer.norm2->rms->g, 1e-6);
      h = h + layer.mlp->down(silu((*layer.mlp->gate)(y)) * layer.mlp->up(y));
    }
    return (*model.untied)(rms_norm(h, model.norm.rms->g, 1e-6));
  });
}

void expectMamba2(const LanguageConfig& config) {
  const double least = config.mixer.least_step, most = std::min(config.mixer.most_step, 1e9);
  expectSame(config, [least, most](const LanguageModel& model, Tensor ids) {
    Tensor h = model.tokens(ids);
    for (size_t i = 0; i < 2; ++i) {
      const nn::Mamba2& mixer = *model.layers[i].mamba2;
      const std::vector<Tensor> parts = split(mixer.in_proj(rms_norm(h, model.layers[i].norm1.rms->g, 1e-5)), {32, 40, 4}, -1);
      CausalConvOptions bias;
      if (mixer.conv_b) bias.bias = *mixer.conv_b;
      const std::vector<Tensor> mixed = split(silu(causal_conv1d(parts[1], mixer.conv_W, bias).y), {32, 4, 4}, -1);
      const Tensor dt = clamp(softplus(parts[2] + mixer.dt_bias), least, most), rate = -exp(mixer.A_log);
      // Step by step, [B, heads, width, states].
      Tensor state = zeros({2, 4, 8, 4});
      std::vector<Tensor> ys;
      for (int64_t t = 0; t < 6; ++t) {
        const auto at = [&](const Tensor& x, std::vector<int64_t> shape) { return reshape(narrow(x, 1, t, 1), std::move(shape)); };
        const Tensor step = at(dt, {2, 4, 1, 1}), u = at(mixed[0], {2, 4, 8, 1});
        state = state * exp(step * reshape(rate, {4, 1, 1})) + step * u * at(mixed[1], {2, 1, 1, 4});
        ys.push_back(reshape(sum(state * at(mixed[2], {2, 1, 1, 4}), -1) + at(mixed[0], {2, 4, 8}) * reshape(mixer.D, {4, 1}), {2, 1, 32}));
      }
      h = h + mixer.out_proj(rms_norm(concat(ys, 1) * silu(parts[0]), mixer.norm.g, 1e-5));
    }
    return (*model.untied)(rms_norm(h, model.norm.rms->g, 1e-5));
  });
}

TEST(LanguageModel, Mamba_2_has_its_gate_before_the_norm) { expectMamba2(configOf(tinyJson("mamba2"))); }

TEST(LanguageModel, Mamba_2_keeps_step_sizes_within_limits) {
  // Without them step sizes begin from 0.001 to 0.1.
  expectMamba2(configOf(tinyJson("mamba2", R"("use_conv_bias": false, "time_step_limit": [0.02, 0.05])")));
}

TEST(LanguageModel, yarn_makes_scores_larger) {
  const LanguageConfig config = configOf(tinyJson("llama", R"("rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": 1.5})"));
  ASSERT_EQ(config.ropes.at(0).amplitude, 1.5);
  expectLlama(config);
}

TEST(LanguageModel, yarn_makes_scores_of_the_part_that_turns_larger) {
  const LanguageConfig config = configOf(
      tinyJson("llama", R"("rope_parameters": {"type": "yarn", "factor": 4.0, "attention_factor": 1.5, "partial_rotary_factor": 0.5})"));
  ASSERT_EQ(config.ropes.at(0).dims, 4);
  expectLlama(config);
}

TEST(LanguageModel, layers_may_have_no_positions) {
  const LanguageConfig config = configOf(tinyJson("smollm3", R"("no_rope_layer_interval": 2, "tie_word_embeddings": false)"));
  ASSERT_FALSE(config.layers.at(1).turns);
  expectLlama(config);
}

}  // namespace
}  // namespace lockstep::llm
