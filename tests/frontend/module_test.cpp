// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/module.h"

#include <cmath>

#include "frontend/nn/nn.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

struct Attention : Module {
  Attention(Module& parent, std::string name, int64_t width)
      : Module(parent, std::move(name)), q(*this, "q", width, width, {.bias = false}) {}
  nn::Linear q;
};
struct Block : Module {
  Block(Module& parent, std::string name, int64_t width)
      : Module(parent, std::move(name)), ln1(*this, "ln1", width), attn(*this, "attn", width) {}
  nn::LayerNorm ln1;
  Attention attn;
};
struct Model : Module {
  Parameter tok_emb{*this, "tok_emb", {12, 8}};
  ModuleList<Block> layers{*this, "layers", 2, 8};
  nn::Linear head{*this, "head", 8, 3};
};

TEST(Module, parameters_have_path_names_in_declaration_order) {
  Model model;
  std::vector<std::string> names;
  for (const NamedParameter& named : model.parameters()) names.push_back(named.name);
  EXPECT_EQ(names, (std::vector<std::string>{"tok_emb", "layers.0.ln1.g", "layers.0.ln1.b", "layers.0.attn.q.W", "layers.1.ln1.g",
                                             "layers.1.ln1.b", "layers.1.attn.q.W", "head.W", "head.b"}));
  EXPECT_EQ(model.layers[1].attn.q.W.path(), "layers.1.attn.q.W");
}

TEST(Module, decay_follows_the_initializer_unless_stated) {
  Model model;
  EXPECT_TRUE(model.tok_emb.decay());
  EXPECT_FALSE(model.layers[0].ln1.g.decay());
  EXPECT_TRUE(model.head.W.decay());
  EXPECT_FALSE(model.head.b->decay());
  struct Stated : Module {
    Parameter p{*this, "p", {2}, init::zeros(), {.decay = true}};
  } stated;
  EXPECT_TRUE(stated.p.decay());
}

TEST(Module, names_are_unique_and_plain) {
  struct Twice : Module {
    nn::Linear a{*this, "l", 1, 1}, b{*this, "l", 1, 1};
  };
  EXPECT_EQ(caught([] { Twice twice; }).code, "module.name");
  struct Mixed : Module {
    nn::Linear a{*this, "x", 1, 1};
    Parameter b{*this, "x", {1}};
  };
  Diagnostic error = caught([] { Mixed mixed; });
  EXPECT_EQ(error.code, "module.name");
  EXPECT_TRUE(error.where.file.ends_with("module_test.cpp"));
  struct Dotted : Module {
    Parameter b{*this, "a.b", {1}};
  };
  EXPECT_EQ(caught([] { Dotted dotted; }).code, "module.name");
}

TEST(Module, shape_and_literal_are_checked) {
  struct Zero : Module {
    Parameter p{*this, "p", {3, 0}};
  };
  EXPECT_EQ(caught([] { Zero zero; }).code, "parameter.shape");
  struct Large : Module {
    Parameter p{*this, "p", {1 << 16, 1 << 16}};
  };
  EXPECT_EQ(caught([] { Large large; }).message, "parameter 'p' has shape [65536,65536], which is 2^32 elements or more");
  struct Short : Module {
    Parameter p{*this, "p", {3}, init::literal({1, 2})};
  };
  EXPECT_EQ(caught([] { Short short_one; }).code, "parameter.literal");
}

TEST(Module, parameter_outside_of_a_trace_or_of_another_model_is_rejected) {
  Model model, other;
  EXPECT_EQ(caught([&] { (void)Tensor(model.tok_emb); }).code, "trace.inactive");
  detail::Trace trace;
  trace.addParameters(model);
  EXPECT_EQ(Tensor(model.tok_emb).extent(0), 12);
  EXPECT_EQ(caught([&] { (void)Tensor(other.tok_emb); }).code, "trace.parameter");
}

TEST(Module, child_that_dies_early_leaves_the_tree) {
  Module root;
  {
    nn::Linear gone(root, "gone", 1, 1);
    EXPECT_EQ(root.parameters().size(), 2u);
  }
  EXPECT_TRUE(root.parameters().empty());
}

TEST(Layers, compute_what_they_say) {
  struct Tiny : Module {
    nn::Linear l{*this, "l", 2, 2};
    nn::LayerNorm n{*this, "n", 2};
    nn::Embedding e{*this, "e", 3, 2};
  } model;
  detail::Trace trace;
  trace.addParameters(model);
  Tensor x = trace.addInput("x", f32(1, 2));
  trace.output(graph::OutputKind::Result, "linear", model.l(x));
  trace.output(graph::OutputKind::Result, "norm", model.n(x));
  trace.output(graph::OutputKind::Result, "row", model.e(trace.addInput("i", i32(1))));
  graph::Graph graph = trace.take();
  graph::LeafValues leaves{
      {"x", {f32(1, 2), {1, 3}}}, {"i", {i32(1), {2}}},      {"l.W", {f32(2, 2), {1, 2, 3, 4}}},      {"l.b", {f32(2), {10, 20}}},
      {"n.g", {f32(2), {2, 2}}},  {"n.b", {f32(2), {5, 5}}}, {"e.W", {f32(3, 2), {1, 2, 3, 4, 5, 6}}}};
  std::vector<graph::Tensor> out = graph::evaluate(graph, leaves).orThrow();
  EXPECT_EQ(out[0].data, (std::vector<double>{20, 34}));
  double normal = 1 / std::sqrt(1 + 1e-5);
  EXPECT_NEAR(out[1].data[0], 5 - 2 * normal, 1e-12);
  EXPECT_NEAR(out[1].data[1], 5 + 2 * normal, 1e-12);
  EXPECT_EQ(out[2].data, (std::vector<double>{5, 6}));
}

TEST(Layers, error_inside_a_layer_points_at_its_call) {
  struct Tiny : Module {
    nn::Linear l{*this, "l", 2, 2};
  } model;
  detail::Trace trace;
  trace.addParameters(model);
  Tensor x = trace.addInput("x", f32(1, 3));
  Diagnostic error = caught([&] { model.l(x); });
  EXPECT_EQ(error.code, "layer.extent");
  EXPECT_TRUE(error.where.file.ends_with("module_test.cpp")) << toString(error);
  EXPECT_EQ(error.where.line, __LINE__ - 3u);
}

// Known answers of Random123 (kat_vectors) for philox4x32-10.
TEST(Random, philox_gives_the_published_blocks) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox::words({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox::words({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox::words({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, normal_draws_have_mean_and_variance) {
  double sum = 0, squares = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    double x = random::normal(7, 3, static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.03);
  EXPECT_NEAR(squares / kCount, 1, 0.04);
}

TEST(Random, uniform_draws_fill_their_range) {
  double sum = 0, least = 1, most = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    double x = random::uniform(7, 3, static_cast<uint64_t>(i));
    sum += x;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.01);
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 1e-3);
  EXPECT_LT(most, 1);
  EXPECT_GT(most, 1 - 1e-3);
}

TEST(Initializer, values_follow_kind_seed_and_index) {
  Shape shape{30, 40};
  EXPECT_EQ(initialValues(init::ones(), Shape{3}, {}, 1, 0), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(initialValues(init::literal({4, 5}), Shape{2}, {}, 1, 0), (std::vector<float>{4, 5}));
  std::vector<float> base = initialValues(init::randn(), shape, {}, 1, 0);
  EXPECT_EQ(base, initialValues(init::randn(), shape, {}, 1, 0));
  EXPECT_NE(base, initialValues(init::randn(), shape, {}, 2, 0));
  EXPECT_NE(base, initialValues(init::randn(), shape, {}, 1, 1));
  // A parameter of another shape shares the leading values: they are keyed by the element.
  EXPECT_EQ(initialValues(init::randn(), Shape{5}, {}, 1, 0), std::vector<float>(base.begin(), base.begin() + 5));
}

struct Statistics {
  double mean = 0, deviation = 0, least = 0, most = 0;
};
Statistics statisticsOf(const Initializer& initializer, Fans fans = {}) {
  std::vector<float> values = initialValues(initializer, Shape{100, 200}, fans, 3, 0);
  Statistics out{0, 0, values[0], values[0]};
  for (float value : values) {
    double x = value;
    out.mean += x / static_cast<double>(values.size());
    out.deviation += x * x / static_cast<double>(values.size());
    out.least = std::min(out.least, x);
    out.most = std::max(out.most, x);
  }
  out.deviation = std::sqrt(out.deviation - out.mean * out.mean);
  return out;
}

TEST(Initializer, kinds_have_their_moments_and_ends) {
  struct Row {
    const char* name;
    Initializer initializer;
    double deviation, end;  // 0: no end
  };
  const Fans fans{.in = 8, .out = 24};
  const double third = std::sqrt(1.0 / 3);
  const Row rows[] = {
      {"randn", init::randn(0.5), 0.5, 0},
      {"uniform", init::uniform(-2, 2), 2 * third, 2},
      {"kaiming_normal", init::kaiming_normal(), std::sqrt(2.0 / 8), 0},
      {"kaiming_uniform", init::kaiming_uniform(), std::sqrt(2.0 / 8), std::sqrt(2.0) * std::sqrt(3.0 / 8)},
      {"xavier_normal", init::xavier_normal(2), 2 * std::sqrt(2.0 / 32), 0},
      {"xavier_uniform", init::xavier_uniform(), std::sqrt(2.0 / 32), std::sqrt(6.0 / 32)},
      // A normal number within two deviations has the variance 1 - 4 φ(2) / (2 Φ(2) - 1) = 0.7737.
      {"truncated_normal", init::truncated_normal(0.1), 0.1 * std::sqrt(0.7737), 0.2},
  };
  for (const Row& row : rows) {
    Statistics got = statisticsOf(row.initializer, fans);
    EXPECT_NEAR(got.mean, 0, 0.03 * row.deviation) << row.name;
    EXPECT_NEAR(got.deviation, row.deviation, 0.02 * row.deviation) << row.name;
    if (row.end == 0) continue;
    EXPECT_GE(got.least, -1.000001 * row.end) << row.name;
    EXPECT_LE(got.most, 1.000001 * row.end) << row.name;
    EXPECT_GT(got.most, 0.99 * row.end) << row.name;
  }
}

TEST(Initializer, orthogonal_rows_or_columns_are_orthonormal) {
  for (auto [height, width] : {std::pair<size_t, size_t>{4, 12}, {12, 4}, {5, 5}}) {
    std::vector<float> q = initialValues(init::orthogonal(3), Shape{static_cast<int64_t>(height), static_cast<int64_t>(width)}, {}, 1, 0);
    size_t count = std::min(height, width), length = std::max(height, width);
    auto at = [&](size_t vector, size_t i) { return static_cast<double>(height <= width ? q[vector * width + i] : q[i * width + vector]); };
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (size_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
        EXPECT_NEAR(dot, a == b ? 9 : 0, 1e-5);
      }
    }
  }
  struct Flat : Module {
    Parameter p{*this, "p", {3}, init::orthogonal()};
  };
  EXPECT_EQ(caught([] { Flat flat; }).code, "parameter.shape");
}

TEST(Initializer, fans_are_known_to_the_layer) {
  struct Convolution : Module {
    Parameter w{*this, "w", {8, 3, 3, 3}, init::kaiming_normal(1), {.fans = Fans{.in = 27, .out = 72}}};
    Parameter v{*this, "v", {8, 3, 3, 3}, init::randn(1)};
    Parameter matrix{*this, "matrix", {16, 4}, init::kaiming_normal(1)};
  } model;
  EXPECT_NEAR(model.w.initial(1, 0)[5], model.v.initial(1, 0)[5] / std::sqrt(27.0), 1e-6);
  EXPECT_NEAR(model.matrix.initial(1, 0)[5], model.v.initial(1, 0)[5] / std::sqrt(16.0), 1e-6);
}

TEST(Initializer, bad_numbers_are_rejected) {
  EXPECT_EQ(caught([] { init::randn(-1); }).code, "init.number");
  EXPECT_EQ(caught([] { init::kaiming_normal(NAN); }).code, "init.number");
  EXPECT_EQ(caught([] { init::uniform(1, 1); }).code, "init.range");
  EXPECT_EQ(caught([] { init::truncated_normal(1, 0); }).code, "init.range");
}

struct TiedHead : Module {
  TiedHead(Module& parent, std::string name, const nn::Embedding& shared) : Module(parent, std::move(name)), tokens(shared) {}
  Tensor operator()(Tensor x) const { return matmul(x, swap_axes(tokens.W, 0, 1)); }
  const nn::Embedding& tokens;
};

TEST(Module, part_that_others_refer_to_is_one_set_of_parameters) {
  struct Tied : Module {
    nn::Embedding tokens{*this, "tokens", 5, 3};
    TiedHead head{*this, "head", tokens};
  } model;
  ASSERT_EQ(model.parameters().size(), 1u);
  EXPECT_EQ(model.parameters()[0].name, "tokens.W");
  detail::Trace trace;
  trace.addParameters(model);
  Tensor indices = trace.addInput("i", i32(2));
  trace.output(graph::OutputKind::Result, "y", model.head(model.tokens(indices)));
  graph::Graph graph = trace.take();
  graph::LeafValues leaves{{"i", {i32(2), {0, 4}}}, {"tokens.W", {f32(5, 3), {1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 0, 1, 0}}}};
  EXPECT_EQ(graph::evaluate(graph, leaves).orThrow().front().data, (std::vector<double>{1, 2, 3, 4, 0, 0, 0, 0, 0, 1}));
}

struct Counting : Module {
  struct Inner : Module {
    using Module::Module;
    Buffer total{*this, "total", {2}, 1.5};
  };
  Parameter w{*this, "w", {2}};
  Inner inner{*this, "inner"};
  Buffer calls{*this, "calls", {}};
};

TEST(Buffer, is_a_state_that_training_updates) {
  Counting model;
  ASSERT_EQ(model.buffers().size(), 2u);
  EXPECT_EQ(model.buffers()[0].name, "inner.total");
  EXPECT_EQ(model.inner.total.path(), "inner.total");
  EXPECT_EQ(model.parameters().size(), 1u);
  detail::Trace trace;
  trace.setTraining(true);
  trace.addParameters(model);
  EXPECT_TRUE(is_training());
  model.calls.update(model.calls + 1.0);
  model.calls.update(model.calls * 2.0);  // of the value that was just set
  trace.output(graph::OutputKind::Result, "y", model.inner.total + model.calls);
  graph::Graph graph = trace.take();
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.outputs[1].kind, graph::OutputKind::NextState);
  EXPECT_EQ(graph.outputs[1].name, "buffer.calls");
  graph::LeafValues leaves{{"w", {f32(2), {0, 0}}}, {"buffer.inner.total", {f32(2), {10, 20}}}, {"buffer.calls", {f32(), {3}}}};
  std::vector<graph::Tensor> out = graph::evaluate(graph, leaves).orThrow();
  EXPECT_EQ(out[0].data, (std::vector<double>{18, 28}));
  EXPECT_EQ(out[1].data, (std::vector<double>{8}));
}

TEST(Buffer, mistakes_are_named) {
  Counting model, other;
  EXPECT_EQ(caught([&] { (void)Tensor(model.calls); }).code, "trace.inactive");
  EXPECT_EQ(caught([&] { (void)is_training(); }).code, "trace.inactive");
  detail::Trace trace;
  trace.addParameters(model);
  EXPECT_FALSE(is_training());
  EXPECT_EQ(caught([&] { (void)Tensor(other.calls); }).code, "trace.buffer");
  EXPECT_EQ(caught([&] { model.calls.update(model.calls); }).code, "buffer.training");
  trace.setTraining(true);
  EXPECT_EQ(caught([&] { model.calls.update(model.inner.total); }).code, "buffer.type");
  struct Zero : Module {
    Buffer b{*this, "b", {0}};
  };
  EXPECT_EQ(caught([] { Zero zero; }).code, "parameter.shape");
  struct Flag : Module {
    Buffer b{*this, "b", {}, 0, DType::Bool};
  };
  EXPECT_EQ(caught([] { Flag flag; }).code, "buffer.type");
  struct Half : Module {
    Buffer b{*this, "b", {}, 0.5, DType::I32};
  };
  EXPECT_EQ(caught([] { Half half; }).code, "buffer.initial");
  struct Large : Module {
    explicit Large(double initial, DType dtype) : b(*this, "b", {}, initial, dtype) {}
    Buffer b;
  };
  for (const auto& [initial, dtype] : {std::pair(256.0, DType::U8), std::pair(-129.0, DType::I8), std::pair(65520.0, DType::F16)})
    EXPECT_EQ(caught([&] { Large large(initial, dtype); }).code, "buffer.initial") << toString(dtype);
  EXPECT_EQ(Large(65519, DType::F16).b.initial(), 65504);
  EXPECT_EQ(Large(-128, DType::I8).b.initial(), -128);
  EXPECT_EQ(Large(0.1, DType::F32).b.initial(), 0.1);
}

}  // namespace
}  // namespace lockstep
