// SPDX-License-Identifier: Apache-2.0
// Windows, soft caps, scaled positions and norms of heads, compared with loops over numbers. Values are those of the f64 evaluator.
#include <cmath>
#include <limits>

#include "frontend/nn/nn.h"
#include "frontend/trace/module.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;
using In = std::vector<Tensor>;

constexpr int64_t kBatch = 2, kHeads = 4, kShared = 2, kLength = 7, kWidth = 3;

double wave(int64_t i, double speed) { return std::sin(speed * static_cast<double>(i + 1)); }

struct Rule {
  double scale = 1, cap = 0;
  int64_t window = 0;
};

/// Query t of row b at position first[b] + t of its keys, written out.
Values attended(int64_t queries, const std::vector<int64_t>& first, const Rule& rule) {
  Values out;
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t t = 0; t < queries; ++t) {
        const int64_t kv = b * kShared + h / (kHeads / kShared), position = first[static_cast<size_t>(b)] + t;
        Values weights(kLength);
        double total = 0;
        for (int64_t s = 0; s <= position; ++s) {
          if (rule.window > 0 && position - s >= rule.window) continue;
          double score = 0;
          for (int64_t d = 0; d < kWidth; ++d)
            score += wave(((b * kHeads + h) * queries + t) * kWidth + d, 0.9) * wave((kv * kLength + s) * kWidth + d, 1.3);
          score *= rule.scale;
          if (rule.cap > 0) score = rule.cap * std::tanh(score / rule.cap);
          total += weights[static_cast<size_t>(s)] = std::exp(score);
        }
        for (int64_t d = 0; d < kWidth; ++d) {
          double sum = 0;
          for (int64_t s = 0; s < kLength; ++s) sum += weights[static_cast<size_t>(s)] / total * wave((kv * kLength + s) * kWidth + d, 1.7);
          out.push_back(sum);
        }
      }
    }
  }
  return out;
}

Values computed(int64_t queries, const std::function<AttentionOptions()>& options) {
  const TensorType q = f32(kBatch, kHeads, queries, kWidth), k = f32(kBatch, kShared, kLength, kWidth);
  return counted(
             {q, k, k},
             [&](const In& in) { return scaled_dot_product_attention(sin(in[0] * 0.9), sin(in[1] * 1.3), sin(in[2] * 1.7), options()); })
      .data;
}

void expectClose(const Values& got, const Values& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(AttentionOptions, windows_and_caps_are_those_of_the_formula) {
  for (const Rule& rule :
       {Rule{.window = 3}, Rule{.window = 1}, Rule{.window = 100}, Rule{.cap = 0.7}, Rule{.scale = 2, .cap = 0.5, .window = 2}}) {
    SCOPED_TRACE(rule.window);
    expectClose(
        computed(kLength,
                 [&] { return AttentionOptions{.causal = true, .scale = rule.scale, .window = rule.window, .soft_cap = rule.cap}; }),
        attended(kLength, {0, 0}, rule));
    // The last queries of sequences of 4 and 7 keys.
    expectClose(computed(2,
                         [&] {
                           const std::vector<int32_t> lengths{4, 7};
                           return AttentionOptions{.scale = rule.scale,
                                                   .length = constant(std::span<const int32_t>(lengths), {2}),
                                                   .window = rule.window,
                                                   .soft_cap = rule.cap};
                         }),
                attended(2, {2, 5}, rule));
    // More keys than there are count as all of them.
    expectClose(computed(2,
                         [&] {
                           const std::vector<int32_t> lengths{7, 12};
                           return AttentionOptions{.scale = rule.scale,
                                                   .length = constant(std::span<const int32_t>(lengths), {2}),
                                                   .window = rule.window,
                                                   .soft_cap = rule.cap};
                         }),
                attended(2, {5, 5}, rule));
    expectClose(computed(2,
                         [&] {
                           return AttentionOptions{
                               .causal = true, .offset = 3, .scale = rule.scale, .window = rule.window, .soft_cap = rule.cap};
                         }),
                attended(2, {3, 3}, rule));
  }
}

TEST(AttentionOptions, a_mask_is_added_after_the_cap) {
  const auto masked = [](double hidden) {
    return computed(kLength, [&] {
      const Tensor all = full({kLength, kLength}, hidden);
      return AttentionOptions{.scale = 1.0, .mask = triu(all, 1), .soft_cap = 0.7};
    });
  };
  expectClose(masked(-1e30), attended(kLength, {0, 0}, {.cap = 0.7}));
}

TEST(AttentionOptions, wrong_ones_are_refused) {
  const auto refusal = [](const AttentionOptions& options) { return caught([&] { computed(kLength, [&] { return options; }); }).code; };
  EXPECT_EQ(refusal({.window = 3}), "attention.options");
  EXPECT_EQ(refusal({.causal = true, .window = -1}), "attention.options");
  EXPECT_EQ(refusal({.causal = true, .soft_cap = -1}), "attention.options");
  EXPECT_EQ(refusal({.causal = true, .soft_cap = std::numeric_limits<double>::quiet_NaN()}), "attention.options");
  struct Layer : Module {
    nn::MultiHeadAttention attn{*this, "attn", 8, 2, {.window = 3}};
  };
  EXPECT_EQ(caught([] { Layer{}; }).code, "attention.options");
}

TEST(RopeFrequencies, are_those_of_a_base_when_they_say_so) {
  const std::vector<double> frequencies{1, std::pow(50.0, -0.5)};
  for (const int64_t dims : {0, 4}) {
    const int64_t width = dims == 0 ? 4 : 6;
    const auto turned = [&](const RopeOptions& options, bool placed) {
      return counted({f32(2, 3, 5, width)},
                     [&](const In& in) {
                       const std::vector<int32_t> places{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
                       const Tensor x = sin(in[0]);
                       return placed ? rope(x, constant(std::span<const int32_t>(places), {2, 5}), options) : rope(x, options);
                     })
          .data;
    };
    for (const bool placed : {false, true}) {
      expectClose(turned({.offset = 2, .dims = dims, .frequencies = frequencies}, placed),
                  turned({.base = 50, .offset = 2, .dims = dims}, placed), 1e-6);
    }
  }
}

TEST(RopeFrequencies, wrong_ones_are_refused) {
  const auto refusal = [](const RopeOptions& options) {
    return caught([&] { traced({f32(2, 3, 4)}, [&](const In& in) { return rope(in[0], options); }); }).code;
  };
  EXPECT_EQ(refusal({.frequencies = {1}}), "rope.frequencies");
  EXPECT_EQ(refusal({.dims = 8, .frequencies = {1, 1, 1, 1}}), "rope.frequencies");
  EXPECT_EQ(refusal({.frequencies = {1, std::numeric_limits<double>::infinity()}}), "rope.frequencies");
  EXPECT_EQ(refusal({.layout = RopeLayout::Interleaved, .frequencies = {1, 1}}), "rope.frequencies");
}

TEST(MultiHeadAttention, norms_of_queries_and_keys_come_before_positions) {
  struct Model : Module {
    nn::MultiHeadAttention attn{*this,
                                "attn",
                                6,
                                2,
                                {.kv_heads = 1,
                                 .head_width = 4,
                                 .causal = true,
                                 .bias = true,
                                 .out_bias = false,
                                 .rope = RopeOptions{},
                                 .qk_norm = nn::RMSNormOptions{.eps = 1e-3},
                                 .scale = 0.5}};
  };
  const Model model;
  ASSERT_NE(model.attn.q_norm, nullptr);
  EXPECT_EQ(model.attn.o.b, nullptr);
  ASSERT_NE(model.attn.q.b, nullptr);
  const auto results = [&](const std::function<Tensor(Tensor)>& function) {
    detail::Trace trace;
    trace.addParameters(model);
    const TensorType type = f32(1, 5, 6);
    trace.output(graph::OutputKind::Result, "y", function(sin(trace.addInput("x", type))));
    graph::LeafValues leaves{{"x", {type, {}}}};
    for (int64_t i = 0; i < 30; ++i) leaves.at("x").data.push_back(static_cast<double>(i));
    uint32_t index = 0;
    for (const NamedParameter& one : model.parameters()) {
      graph::Tensor value{one.parameter->type(), {}};
      for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) value.data.push_back(wave(i, 0.3 + 0.1 * ++index));
      leaves[one.name] = std::move(value);
    }
    return graph::evaluate(trace.take(), leaves).orThrow().front().data;
  };
  const nn::MultiHeadAttention& attn = model.attn;
  expectClose(results([&](Tensor x) { return attn(x); }), results([&](Tensor x) {
                const Tensor q = rope(rms_norm(split_heads(attn.q(x), 2), attn.q_norm->g, 1e-3)),
                             k = rope(rms_norm(split_heads(attn.k(x), 1), attn.k_norm->g, 1e-3));
                return attn.o(merge_heads(scaled_dot_product_attention(q, k, split_heads(attn.v(x), 1), {.causal = true, .scale = 0.5})));
              }));
  // The same from a cache, in two parts.
  expectClose(results([&](Tensor x) {
                nn::KvCache cache = attn.cache({1}, 6);
                const Tensor first = attn(narrow(x, 1, 0, 3), cache, zeros({}, DType::I32));
                return concat({first, attn(narrow(x, 1, 3, 2), cache, full({}, 3, DType::I32))}, 1);
              }),
              results([&](Tensor x) { return attn(x); }), 1e-6);
}

TEST(RMSNorm, may_have_its_gain_around_one) {
  struct Model : Module {
    nn::RMSNorm norm{*this, "norm", 3, {.eps = 1e-14, .around_one = true}};
  };
  const Model model;
  EXPECT_EQ(model.norm.g.initial(1, 0), std::vector<float>(3, 0));
  detail::Trace trace;
  trace.addParameters(model);
  trace.output(graph::OutputKind::Result, "y", model.norm(trace.addInput("x", f32(1, 3))));
  const graph::LeafValues leaves{{"x", {f32(1, 3), {1, 1, 1}}}, {"norm.g", {f32(3), {0, 0.5, -1}}}};
  expectClose(graph::evaluate(trace.take(), leaves).orThrow().front().data, {1, 1.5, 0});
}

}  // namespace
}  // namespace lockstep
