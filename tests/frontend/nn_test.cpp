// SPDX-License-Identifier: Apache-2.0
// Layers against PyTorch 1.13 in f64. Parameter k of a model holds 0.5 sin(i + 10 k + 1), an input the same with k = 20.
#include <cmath>
#include <map>

#include "frontend/nn/nn.h"
#include "frontend/trace/module.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

graph::Tensor filled(const TensorType& type, size_t k) {
  graph::Tensor out{type, {}};
  for (int64_t i = 0; i < type.shape.elementCount(); ++i)
    out.data.push_back(0.5 * std::sin(static_cast<double>(i) + 10.0 * static_cast<double>(k) + 1));
  return out;
}

/// What the function makes of the input x, by evaluation: its results, then the next versions of buffers.
std::vector<std::vector<double>> computed(const Module& model, const TensorType& x, bool training,
                                          const std::function<std::vector<Tensor>(Tensor)>& function) {
  detail::Trace trace;
  trace.setTraining(training);
  trace.addParameters(model);
  std::vector<Tensor> results = function(trace.addInput("x", x));
  for (size_t i = 0; i < results.size(); ++i) trace.output(graph::OutputKind::Result, "y" + std::to_string(i), results[i]);
  graph::Graph graph = trace.take();
  EXPECT_TRUE(graph::validate(graph).ok());
  graph::LeafValues leaves{{"x", filled(x, 20)}};
  std::vector<NamedParameter> parameters = model.parameters();
  for (size_t k = 0; k < parameters.size(); ++k) leaves[parameters[k].name] = filled(parameters[k].parameter->type(), k);
  for (const NamedBuffer& buffer : model.buffers()) {
    std::vector<double> values(static_cast<size_t>(buffer.buffer->type().shape.elementCount()), buffer.buffer->initial());
    leaves[detail::bufferState(buffer.name)] = {buffer.buffer->type(), std::move(values)};
  }
  std::vector<std::vector<double>> values;
  for (graph::Tensor& tensor : graph::evaluate(graph, leaves).orThrow()) values.push_back(std::move(tensor.data));
  return values;
}

void expectNear(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-8) << i;
}

TEST(Convolutions, equal_pytorch) {
  struct Model : Module {
    nn::Conv2d c{*this, "c", 4, 2, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}};
  } model;
  EXPECT_EQ(model.c.W.type(), f32(2, 2, 3, 2));
  expectNear(computed(model, f32(1, 4, 5, 4), false, [&](Tensor x) { return std::vector{model.c(x)}; })[0],
             {-0.183721141, -0.356896102, -0.661635625, -1.151243116, -0.937134006, -0.321121405, -0.049207511, 0.119944837, -0.280872737,
              -0.709443973, -0.976923676, -0.592885590, -0.329606165, 0.258959290, 0.362777435, -0.199120336, -0.397925313, -0.477540926});
  struct Model1d : Module {
    nn::Conv1d c{*this, "c", 2, 3, 3, {.stride = 2, .padding = 1}};
  } signal;
  expectNear(computed(signal, f32(1, 2, 5), false, [&](Tensor x) { return std::vector{signal.c(x)}; })[0],
             {-0.228329960, -0.262667886, -0.920647885, 0.088530035, -0.124089617, -0.664364510, 0.623627566, 0.249663348, -0.129868451});
  struct Transposed : Module {
    nn::ConvTranspose2d c{*this, "c", 2, 3, 2, {.stride = 2, .padding = 1, .output_padding = 1}};
  } transposed;
  expectNear(computed(transposed, f32(1, 2, 2, 2), false, [&](Tensor x) { return std::vector{transposed.c(x)}; })[0],
             {-0.436830088, -0.629994105, -0.582419310, -0.371612938, -0.393497932, -0.303211430, -0.652228096, -0.393846929, -0.582074571,
              -0.446759938, -0.172354090, -0.291275958, -0.269966067, -0.463130084, -0.396755911, -0.114655539, -0.212267517, -0.079282679,
              0.380234605,  0.214671357,  0.322561604,  0.083897084,  0.358302932,  0.181246321,  0.161476769,  0.030702496,  0.045080756});
}

TEST(Convolutions, scale_of_the_initial_values_follows_the_fan_in) {
  struct Model : Module {
    nn::Conv2d c{*this, "c", 64, 64, 3, {.groups = 2, .bias = false, .init = init::kaiming_normal(1)}};
  } model;
  EXPECT_EQ(model.parameters().size(), 1u);
  std::vector<float> values = model.c.W.initial(1, 0);
  double squares = 0;
  for (float value : values) squares += static_cast<double>(value) * value / static_cast<double>(values.size());
  EXPECT_NEAR(std::sqrt(squares) * std::sqrt(32.0 * 9), 1, 0.02);
}

TEST(Convolutions, groups_divide_the_channels) {
  struct Input : Module {
    nn::Conv2d c{*this, "c", 3, 4, 3, {.groups = 2}};
  };
  EXPECT_EQ(caught([] { Input model; }).code, "conv.groups");
  struct Output : Module {
    nn::ConvTranspose2d c{*this, "c", 4, 3, 3, {.groups = 2}};
  };
  EXPECT_EQ(caught([] { Output model; }).code, "conv.groups");
  struct None : Module {
    nn::Conv1d c{*this, "c", 4, 3, 3, {.groups = 0}};
  };
  EXPECT_EQ(caught([] { None model; }).code, "conv.groups");
}

TEST(Recurrent, lstm_equals_pytorch) {
  struct Model : Module {
    nn::LSTM lstm{*this, "lstm", 2, 3};
  } model;
  auto got = computed(model, f32(2, 3, 2), false, [&](Tensor x) {
    nn::LstmResult result = model.lstm(x);
    return std::vector{result.y, result.state.c};
  });
  expectNear(got[0], {0.046891699, 0.099656646, 0.068051083, 0.084389412, 0.134939558, 0.085189832, 0.030466472, 0.054335970, 0.013221556,
                      0.032613026, 0.079203918, 0.055257227, 0.087197678, 0.135915186, 0.088738601, 0.039011809, 0.068489404, 0.022435602});
  expectNear(got[1], {0.059389353, 0.097273099, 0.023967577, 0.077190635, 0.125509987, 0.041106469});
}

TEST(Recurrent, gru_equals_pytorch) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 2, 3};
  } model;
  auto got = computed(model, f32(2, 3, 2), false, [&](Tensor x) {
    nn::GruResult result = model.gru(x);
    return std::vector{result.y, result.h};
  });
  expectNear(got[0],
             {0.123926027, 0.001278039, -0.122432593, 0.275807881, 0.244044532, -0.050009872, 0.253853294, 0.274782219, 0.028639391,
              0.108024079, -0.009707984, -0.118260495, 0.265507238, 0.208185445, -0.076632248, 0.265380793, 0.296425594, 0.035975053});
  expectNear(got[1], {0.253853294, 0.274782219, 0.028639391, 0.265380793, 0.296425594, 0.035975053});
}

TEST(Recurrent, cells_step_by_step_equal_the_layer) {
  struct Model : Module {
    nn::LSTM lstm{*this, "lstm", 2, 3};
    nn::GRU gru{*this, "gru", 2, 3};
  } model;
  auto got = computed(model, f32(2, 3, 2), false, [&](Tensor x) {
    const nn::LSTMCell& lstm = model.lstm;
    const nn::GRUCell& gru = model.gru;
    nn::LstmState state{zeros({2, 3}), zeros({2, 3})};
    Tensor h = zeros({2, 3});
    for (int64_t t = 0; t < 3; ++t) {
      Tensor step = squeeze(narrow(x, 1, t, 1), 1);
      state = lstm(step, state);
      h = gru(step, h);
    }
    // From a state that is given, the layers continue.
    nn::LstmResult first = model.lstm(narrow(x, 1, 0, 2));
    return std::vector{state.h, model.lstm(x).state.h, h, model.gru(x).h, model.lstm(narrow(x, 1, 2, 1), first.state).state.h};
  });
  expectNear(got[0], got[1]);
  expectNear(got[2], got[3]);
  expectNear(got[4], got[1]);
}

/// Both layers with two layers and both directions: one cell after the other, by hand.
TEST(Recurrent, several_layers_equal_their_cells) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 2, 3, {.layers = 2, .bidirectional = true}};
    nn::LSTM lstm{*this, "lstm", 2, 3, {.layers = 2, .bidirectional = true}};
  } model;
  const auto at = [](const Tensor& x, int64_t t) { return squeeze(narrow(x, 1, t, 1), 1); };
  auto got = computed(model, f32(2, 4, 2), false, [&](Tensor x) {
    std::vector<Tensor> results{model.gru(x).y, model.lstm(x).y};
    std::vector<Tensor> ends;
    Tensor of_gru = x, of_lstm = x;
    for (int64_t layer = 0; layer < 2; ++layer) {
      std::vector<Tensor> gru_sides, lstm_sides;
      for (const bool backwards : {false, true}) {
        std::vector<Tensor> gru_steps(4, x), lstm_steps(4, x);
        Tensor h = zeros({2, 3});
        nn::LstmState state{zeros({2, 3}), zeros({2, 3})};
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t t = backwards ? 3 - i : i;
          gru_steps[static_cast<size_t>(t)] = h = model.gru.cell(layer, backwards)(at(of_gru, t), h);
          state = model.lstm.cell(layer, backwards)(at(of_lstm, t), state);
          lstm_steps[static_cast<size_t>(t)] = state.h;
        }
        gru_sides.push_back(stack(gru_steps, 1));
        lstm_sides.push_back(stack(lstm_steps, 1));
        ends.push_back(h);
      }
      of_gru = concat(gru_sides, -1);
      of_lstm = concat(lstm_sides, -1);
    }
    results.insert(results.end(), {of_gru, of_lstm, model.gru(x).h, stack(ends, 0)});
    return results;
  });
  expectNear(got[0], got[2]);
  expectNear(got[1], got[3]);
  expectNear(got[4], got[5]);
}

/// Rows with fewer steps are as if they were alone, in both directions.
TEST(Recurrent, lengths_of_rows) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 2, 3, {.layers = 2, .bidirectional = true}};
    nn::LSTM lstm{*this, "lstm", 2, 3, {.bidirectional = true}};
  } model;
  auto got = computed(model, f32(2, 4, 2), false, [&](Tensor x) {
    const Tensor lengths = cast(arange(2) * 2 + 2, DType::I32);  // 2 and 4
    const nn::GruResult gru = model.gru(x, {}, lengths);
    const nn::LstmResult lstm = model.lstm(x, {}, lengths);
    const Tensor alone = narrow(narrow(x, 0, 0, 1), 1, 0, 2), whole = narrow(x, 0, 1, 1);
    const auto row = [](const Tensor& y, int64_t number) { return narrow(y, 0, number, 1); };
    return std::vector{narrow(row(gru.y, 0), 1, 0, 2),
                       model.gru(alone).y,
                       row(gru.y, 1),
                       model.gru(whole).y,
                       narrow(gru.h, 1, 0, 1),
                       model.gru(alone).h,
                       narrow(row(lstm.y, 0), 1, 0, 2),
                       model.lstm(alone).y,
                       narrow(lstm.state.c, 1, 0, 1),
                       model.lstm(alone).state.c,
                       narrow(row(gru.y, 0), 1, 2, 2),
                       zeros({1, 2, 6})};
  });
  for (size_t i = 0; i < got.size(); i += 2) expectNear(got[i], got[i + 1]);
}

TEST(Recurrent, no_layers_are_refused) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 2, 3, {.layers = 0}};
  };
  try {
    Model model;
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "recurrent.layers");
  }
}

TEST(Norms, batch_norm_equals_pytorch) {
  struct Model : Module {
    nn::BatchNorm bn{*this, "bn", 3};
  } model;
  auto layer = [&](Tensor x) { return std::vector{model.bn(x)}; };
  auto training = computed(model, f32(4, 3), true, layer);
  ASSERT_EQ(training.size(), 3u);  // the result and two buffers
  expectNear(training[0], {-0.681364693, 0.248143757, 0.278338009, -0.311039326, -0.793791193, 0.140402949, -1.069089277, 0.112980273,
                           0.282903930, 0.061512883, -0.640478672, 0.138689186});
  expectNear(training[1], {0.003370545, 0.002619262, -0.000540158});
  expectNear(training[2], {0.902997642, 0.914687533, 0.931751414});
  auto forward = computed(model, f32(4, 3), false, layer);
  ASSERT_EQ(forward.size(), 1u);  // with running statistics 0 and 1
  for (size_t i = 0; i < 12; ++i) {
    double x = filled(f32(4, 3), 20).data[i], g = filled(f32(3), 0).data[i % 3], b = filled(f32(3), 1).data[i % 3];
    EXPECT_NEAR(forward[0][i], x / std::sqrt(1 + 1e-5) * g + b, 1e-12);
  }
}

TEST(Norms, batch_norm_needs_more_than_one_element) {
  struct Model : Module {
    nn::BatchNorm bn{*this, "bn", 3};
  } model;
  EXPECT_EQ(caught([&] { computed(model, f32(1, 3), true, [&](Tensor x) { return std::vector{model.bn(x)}; }); }).code, "batch_norm.batch");
}

TEST(Norms, layers_normalise_what_they_say) {
  struct Model : Module {
    nn::LayerNorm layer{*this, "layer", 6};
    nn::RMSNorm rms{*this, "rms", 6};
    nn::GroupNorm group{*this, "group", 2, 4};
  } model;
  EXPECT_FALSE(model.layer.g.decay());
  auto got = computed(model, f32(2, 4, 6), false, [&](Tensor x) {
    return std::vector{model.layer(x), model.rms(x), model.group(x), layer_norm(x, model.layer.g, model.layer.b)};
  });
  expectNear(got[0], got[3]);
  std::vector<double> x = filled(f32(2, 4, 6), 20).data, gain = filled(f32(6), 2).data;
  double squares = 0;
  for (size_t i = 0; i < 6; ++i) squares += x[i] * x[i] / 6;
  EXPECT_NEAR(got[1][3], x[3] / std::sqrt(squares + 1e-6) * gain[3], 1e-12);
  double mean = 0, variance = 0;
  for (size_t i = 0; i < 12; ++i) mean += x[i] / 12;
  for (size_t i = 0; i < 12; ++i) variance += (x[i] - mean) * (x[i] - mean) / 12;
  double g = filled(f32(4), 3).data[1], b = filled(f32(4), 4).data[1];
  EXPECT_NEAR(got[2][8], (x[8] - mean) / std::sqrt(variance + 1e-5) * g + b, 1e-12);
}

TEST(Attention, equals_pytorch) {
  struct Model : Module {
    nn::MultiHeadAttention attn{*this, "attn", 4, 2};
  } model;
  expectNear(computed(model, f32(1, 3, 4), false, [&](Tensor x) { return std::vector{model.attn(x)}; })[0],
             {0.605563459, 0.215639659, -0.372542248, -0.618210531, 0.604941158, 0.215218323, -0.372375246, -0.617608731, 0.605320196,
              0.215814903, -0.372109617, -0.617918271});
  struct Causal : Module {
    nn::MultiHeadAttention attn{*this, "attn", 4, 2, {.causal = true}};
  } causal;
  expectNear(computed(causal, f32(1, 3, 4), false, [&](Tensor x) { return std::vector{causal.attn(x)}; })[0],
             {0.633872725, 0.251458314, -0.362145711, -0.642794639, 0.601900874, 0.218002217, -0.366326673, -0.613856509, 0.605320196,
              0.215814903, -0.372109617, -0.617918271});
}

TEST(Attention, queries_of_a_group_share_keys_and_turn_with_them) {
  struct Model : Module {
    nn::MultiHeadAttention attn{*this, "attn", 8, 4, {.kv_heads = 2, .bias = false, .rope = RopeOptions{}}};
  } model;
  EXPECT_EQ(model.attn.k.W.type(), f32(8, 4));
  EXPECT_EQ(model.parameters().size(), 4u);
  auto got = computed(model, f32(2, 3, 8), false, [&](Tensor x) {
    Tensor q = rope(split_heads(model.attn.q(x), 4)), k = rope(split_heads(model.attn.k(x), 2));
    Tensor mixed = scaled_dot_product_attention(q, k, split_heads(model.attn.v(x), 2));
    return std::vector{model.attn(x), model.attn.o(merge_heads(mixed))};
  });
  expectNear(got[0], got[1]);
  struct Uneven : Module {
    nn::MultiHeadAttention attn{*this, "attn", 8, 3};
  };
  EXPECT_EQ(caught([] { Uneven uneven; }).code, "attention.heads");
  struct Shared : Module {
    nn::MultiHeadAttention attn{*this, "attn", 8, 4, {.kv_heads = 3}};
  };
  EXPECT_EQ(caught([] { Shared shared; }).code, "attention.heads");
}

TEST(Attention, block_adds_attention_and_feed_forward) {
  struct Model : Module {
    nn::TransformerBlock plain{*this, "plain", 8, 2};
    nn::TransformerBlock gated{
        *this,
        "gated",
        8,
        2,
        {.hidden = 6, .rms_norm = true, .feed_forward = {.activation = nn::Activation::Silu, .gated = true, .bias = false}}};
  } model;
  EXPECT_EQ(model.plain.mlp.up.W.type(), f32(8, 32));
  auto got = computed(model, f32(1, 3, 8), false, [&](Tensor x) {
    Tensor a = x + model.plain.attn(model.plain.ln1(x, Where::current()));
    Tensor b = a + model.plain.mlp.down(gelu(model.plain.mlp.up((*model.plain.ln2.layer)(a))));
    Tensor c = x + model.gated.attn((*model.gated.ln1.rms)(x));
    Tensor n = (*model.gated.ln2.rms)(c);
    Tensor d = c + model.gated.mlp.down(silu((*model.gated.mlp.gate)(n)) * model.gated.mlp.up(n));
    return std::vector{model.plain(x), b, model.gated(x), d};
  });
  expectNear(got[0], got[1]);
  expectNear(got[2], got[3]);
}

TEST(Dropout, acts_in_training_only) {
  struct Model : Module {
    nn::Dropout drop{0.5};
  } model;
  auto nodes = [&](bool training) {
    detail::Trace trace;
    trace.setTraining(training);
    trace.output(graph::OutputKind::Result, "y", model.drop(trace.addInput("x", f32(4))));
    return trace.take().nodes.size();
  };
  EXPECT_EQ(nodes(false), 1u);
  EXPECT_GT(nodes(true), 1u);
  EXPECT_EQ(caught([] { nn::Dropout always(1); }).code, "dropout.probability");
}

}  // namespace
}  // namespace lockstep
