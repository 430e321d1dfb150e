// SPDX-License-Identifier: Apache-2.0
#include "frontend/module.h"

#include <cmath>

#include "frontend/nn.h"
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
  EXPECT_EQ(error.code, "matmul.C3");
  EXPECT_TRUE(error.where.file.ends_with("module_test.cpp")) << toString(error);
  EXPECT_EQ(error.where.line, __LINE__ - 3u);
}

// Known answers of Random123 (kat_vectors) for philox4x32-10.
TEST(Random, philox_gives_the_published_blocks) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(random::words({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(random::words({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(random::words({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
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

TEST(Initializer, values_follow_kind_seed_and_index) {
  Shape shape{30, 40};
  EXPECT_EQ(initialValues(init::ones(), Shape{3}, 1, 1, 0), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(initialValues(init::literal({4, 5}), Shape{2}, 1, 1, 0), (std::vector<float>{4, 5}));
  std::vector<float> base = initialValues(init::randn(), shape, 30, 1, 0);
  EXPECT_EQ(base, initialValues(init::randn(), shape, 30, 1, 0));
  EXPECT_NE(base, initialValues(init::randn(), shape, 30, 2, 0));
  EXPECT_NE(base, initialValues(init::randn(), shape, 30, 1, 1));
  // A parameter of another shape shares the leading values: they are keyed by the element.
  EXPECT_EQ(initialValues(init::randn(), Shape{5}, 5, 1, 0), std::vector<float>(base.begin(), base.begin() + 5));
  std::vector<float> kaiming = initialValues(init::kaiming(), shape, 50, 1, 0);
  EXPECT_NEAR(kaiming[7] / base[7], std::sqrt(2.0 / 50) / 0.02, 1e-4);
}

TEST(Initializer, fan_in_is_known_to_the_layer) {
  struct Convolution : Module {
    Parameter w{*this, "w", {8, 3, 3, 3}, init::kaiming(1), {.fan_in = 27}};
    Parameter v{*this, "v", {8, 3, 3, 3}, init::randn(1)};
  } model;
  EXPECT_NEAR(model.w.initial(1, 0)[5], model.v.initial(1, 0)[5] / std::sqrt(27.0), 1e-6);
}

}  // namespace
}  // namespace lockstep
