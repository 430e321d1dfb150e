// SPDX-License-Identifier: Apache-2.0
// Parameters of models as MBJS files have them.
#include "frontend/train/mbjs_weights.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

/// x + mixer(norm(x)).
template <class Mixer, class Options>
struct MbjsBlock : Module {
  MbjsBlock(Module& parent, std::string name, const Options& options)
      : Module(parent, std::move(name)), norm(*this, "norm", 4, {.eps = 1e-6}), mixer(*this, "mixer", 4, options) {}
  Tensor operator()(Tensor x) const { return x + mixer(norm(x)); }
  nn::RMSNorm norm;
  Mixer mixer;
};

struct MbjsAttention : Module {
  MbjsAttention(Module& parent, std::string name, bool bias)
      : Module(parent, std::move(name)),
        norm(*this, "norm", 4, {.eps = 1e-6}),
        mixer(*this, "mixer", 4, 2, {.causal = true, .bias = bias}),
        mlp(*this, "mlp", 4, 16, {.activation = nn::Activation::Silu}) {}
  Tensor operator()(Tensor x) const {
    x = x + mixer(norm(x));
    return x + mlp(x);
  }
  nn::RMSNorm norm;
  nn::MultiHeadAttention mixer;
  nn::FeedForward mlp;
};

struct MbjsModel : Module {
  explicit MbjsModel(bool bias = true)
      : first(*this, "first",
              {.states = 3, .conv = 3, .step_rank = 2, .bias = bias, .x_bias = bias, .discretisation = Discretisation::ZeroOrderHold}),
        second(*this, "second", {.states = 3, .conv = 2, .head_width = 4, .gate = false, .activation = false, .eps = 1e-6}),
        turning(*this, "turning",
                {.states = 3, .conv = 2, .head_width = 4, .gate = false, .activation = false, .complex = true, .eps = 1e-6}),
        third(*this, "third", bias) {}
  Tensor operator()(Tensor ids) const { return matmul(norm(third(turning(second(first(tokens(ids)))))), swap_axes(tokens.W, 0, 1)); }
  nn::Embedding tokens{*this, "tokens", 5, 4};
  MbjsBlock<nn::Mamba1, nn::Mamba1Options> first;
  MbjsBlock<nn::Mamba2, nn::Mamba2Options> second, turning;
  MbjsAttention third;
  nn::RMSNorm norm{*this, "norm", 4, {.eps = 1e-6}};
};

/// A number of its own for every element, from -0.5 to 0.5.
ParameterValues numbered(const Module& model) {
  ParameterValues values;
  double at = 0;
  for (const NamedParameter& named : model.parameters()) {
    std::vector<float>& made = values[named.name];
    for (int64_t i = 0; i < named.parameter->type().shape.elementCount(); ++i)
      made.push_back(static_cast<float>(0.5 * std::sin(at += 0.7)));
  }
  return values;
}

TEST(MbjsWeights, values_come_back_from_a_file) {
  const MbjsModel model;
  const ParameterValues values = numbered(model);
  const io::MbjsFile file = formatMbjsWeights(model, values, 2);
  EXPECT_EQ(file.layers, (std::vector{io::MbjsLayer::Mamba1, io::MbjsLayer::Mamba2, io::MbjsLayer::Mamba3, io::MbjsLayer::Attention}));
  const io::MbjsFile read = io::parseMbjs(io::formatMbjs(file).orThrow(), "model.bin").orThrow();
  EXPECT_EQ(read, file);
  EXPECT_EQ(readMbjsWeights(model, read), values);
}

/// The blocks in plain loops, from the tensors of a file: each matrix [out, in], each tap by its distance from the current element.
struct Loops {
  const io::MbjsFile& file;
  std::string prefix = {};
  using Rows = std::vector<std::vector<double>>;  // [length][channels]

  [[nodiscard]] std::vector<double> at(const std::string& name) const { return file.tensors.at(prefix + name).toDoubles(); }
  [[nodiscard]] Rows linear(const Rows& x, const std::string& w, const std::string& b = "") const {
    const std::vector<double> matrix = at(w), bias = b.empty() ? std::vector<double>() : at(b);
    const size_t in = x[0].size(), out = matrix.size() / in;
    Rows y(x.size(), std::vector<double>(out));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t o = 0; o < out; ++o) {
        y[t][o] = bias.empty() ? 0 : bias[o];
        for (size_t i = 0; i < in; ++i) y[t][o] += matrix[o * in + i] * x[t][i];
      }
    }
    return y;
  }
  [[nodiscard]] Rows norm(Rows x, const std::string& weight) const {
    const std::vector<double> w = at(weight);
    for (auto& row : x) {
      double squares = 0;
      for (const double v : row) squares += v * v / static_cast<double>(row.size());
      for (size_t i = 0; i < row.size(); ++i) row[i] *= w[i] / std::sqrt(squares + 1e-6);
    }
    return x;
  }
  [[nodiscard]] Rows conv(const Rows& x) const {
    const std::vector<double> w = at("wConv"), b = at("bConv");
    const size_t channels = x[0].size(), taps = w.size() / channels;
    Rows y(x.size(), b);
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t d = 0; d < channels; ++d) {
        for (size_t k = 0; k < taps && k <= t; ++k) y[t][d] += w[d * taps + k] * x[t - k][d];
      }
    }
    return y;
  }
  static Rows part(const Rows& x, size_t first, size_t count) {
    Rows y;
    for (const auto& row : x)
      y.emplace_back(row.begin() + static_cast<ptrdiff_t>(first), row.begin() + static_cast<ptrdiff_t>(first + count));
    return y;
  }
  static double silu(double v) { return v / (1 + std::exp(-v)); }
  static double softplus(double v) { return std::log1p(std::exp(v)); }
  static Rows plus(Rows a, const Rows& b) {
    for (size_t t = 0; t < a.size(); ++t) {
      for (size_t i = 0; i < a[t].size(); ++i) a[t][i] += b[t][i];
    }
    return a;
  }
  static Rows silu(Rows x) {
    for (auto& row : x) std::ranges::transform(row, row.begin(), [](double v) { return silu(v); });
    return x;
  }

  [[nodiscard]] Rows mamba1(const Rows& x, size_t inner, size_t rank, size_t states) const {
    const Rows both = linear(norm(x, "normWeight"), "wInProj", "bInProj");
    const Rows u = silu(conv(part(both, 0, inner))), z = part(both, inner, inner), p = linear(u, "wXProj", "bXProj");
    const Rows dt = linear(part(p, 0, rank), "wDtProj", "bDtProj");
    const std::vector<double> logs = at("A_log"), skip = at("D_vec");
    Rows y(x.size(), std::vector<double>(inner)), h(inner, std::vector<double>(states));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t d = 0; d < inner; ++d) {
        y[t][d] = skip[d] * u[t][d];
        for (size_t n = 0; n < states; ++n) {
          const double a = -std::exp(logs[d * states + n]), step = softplus(dt[t][d]);
          h[d][n] = std::exp(step * a) * h[d][n] + std::expm1(step * a) / a * p[t][rank + n] * u[t][d];
          y[t][d] += p[t][rank + states + n] * h[d][n];
        }
        y[t][d] *= silu(z[t][d]);
      }
    }
    return plus(linear(y, "wOutProj", "bOutProj"), x);
  }
  [[nodiscard]] Rows mamba2(const Rows& x, size_t inner, size_t heads, size_t states) const {
    const Rows p = linear(norm(x, "preNormWeight"), "wInProj"), mixed = conv(part(p, 0, inner + 2 * states));
    const std::vector<double> logs = at("A_log"), bias = at("dt_bias"), skip = at("D_vec");
    Rows y(x.size(), std::vector<double>(inner)), s(inner, std::vector<double>(states));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < inner; ++i) {
        const size_t head = i / (inner / heads);
        const double step = softplus(p[t][inner + 2 * states + head] + bias[head]);
        y[t][i] = skip[head] * mixed[t][i];
        for (size_t n = 0; n < states; ++n) {
          s[i][n] = std::exp(-step * std::exp(logs[head])) * s[i][n] + step * mixed[t][inner + n] * mixed[t][i];
          y[t][i] += mixed[t][inner + states + n] * s[i][n];
        }
      }
    }
    return plus(linear(norm(y, "normWeight"), "wOutProj"), x);
  }
  /// With complex states: lambda = -e^rate + i frequency, h <- e^(step lambda) h + (e^(step lambda) - 1) / lambda b x, y = Re(sum of c h).
  [[nodiscard]] Rows mamba3(const Rows& x, size_t inner, size_t heads, size_t states) const {
    using Complex = std::complex<double>;
    const Rows p = linear(norm(x, "preNormWeight"), "wInProj"), mixed = conv(part(p, 0, inner + 4 * states));
    const std::vector<double> logs = at("A_log"), bias = at("dt_bias"), skip = at("D_vec");
    Rows y(x.size(), std::vector<double>(inner));
    std::vector<std::vector<Complex>> h(inner, std::vector<Complex>(states));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < inner; ++i) {
        const size_t head = i / (inner / heads);
        const Complex lambda(-std::exp(logs[2 * head]), logs[2 * head + 1]);
        const Complex decay = std::exp(softplus(p[t][inner + 4 * states + head] + bias[head]) * lambda);
        const auto number = [&](size_t place) { return Complex(mixed[t][place], mixed[t][place + 1]); };
        y[t][i] = skip[head] * mixed[t][i];
        for (size_t n = 0; n < states; ++n) {
          h[i][n] = decay * h[i][n] + (decay - 1.0) / lambda * number(inner + 2 * n) * mixed[t][i];
          y[t][i] += (number(inner + 2 * states + 2 * n) * h[i][n]).real();
        }
      }
    }
    return plus(linear(norm(y, "normWeight"), "wOutProj"), x);
  }
  [[nodiscard]] Rows attention(const Rows& x, size_t heads) const {
    const size_t width = x[0].size(), of_head = width / heads;
    const Rows p = linear(norm(x, "normWeight"), "wQKV", "bQKV");
    Rows y(x.size(), std::vector<double>(width));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t head = 0; head < heads; ++head) {
        double total = 0;
        std::vector<double> weights;
        for (size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (size_t i = head * of_head; i < (head + 1) * of_head; ++i) score += p[t][i] * p[s][width + i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(of_head))));
          total += weights.back();
        }
        for (size_t s = 0; s <= t; ++s) {
          for (size_t i = head * of_head; i < (head + 1) * of_head; ++i) y[t][i] += weights[s] / total * p[s][2 * width + i];
        }
      }
    }
    const Rows h = plus(linear(y, "wO", "bO"), x);
    return plus(linear(silu(linear(h, "wFfn1", "bFfn1")), "wFfn2", "bFfn2"), h);
  }
};

TEST(MbjsWeights, a_model_computes_what_the_tensors_of_its_file_mean) {
  const std::vector<int32_t> ids{3, 0, 4, 4, 1, 2};
  auto trainer = compile<MbjsModel>({.inputs = {{"ids", i32(1, 6)}},
                                     .loss = [](const MbjsModel& m, const Inputs& in) { return mean(square(m(in["ids"]))); },
                                     .seed = 1,
                                     .device = "reference"});
  Forward logits =
      trainer.attach({.inputs = {{"ids", i32(1, 6)}}, .forward = [](const MbjsModel& m, const Inputs& in) { return m(in["ids"]); }});
  const io::MbjsFile file = formatMbjsWeights(trainer.model(), numbered(trainer.model()), 2);
  trainer.upload(readMbjsWeights(trainer.model(), file));
  const std::vector<double> got = logits.run({{"ids", ids}}).output.doubles();

  Loops loops{file};
  const std::vector<double> table = loops.at("embedding");
  Loops::Rows x;
  for (const int32_t id : ids) x.emplace_back(table.begin() + 4 * id, table.begin() + 4 * id + 4);
  loops.prefix = "layers.0.";
  x = loops.mamba1(x, 8, 2, 3);
  loops.prefix = "layers.1.";
  x = loops.mamba2(x, 8, 2, 3);
  loops.prefix = "layers.2.";
  x = loops.mamba3(x, 8, 2, 3);
  loops.prefix = "layers.3.";
  x = loops.attention(x, 2);
  loops.prefix = "";
  x = loops.linear(loops.norm(x, "final_norm"), "embedding");
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], x[i / 5][i % 5], 1e-5) << i;
}

TEST(MbjsWeights, biases_may_be_left_out_where_they_are_zero) {
  const MbjsModel with, without(false);
  ParameterValues values = numbered(with);
  for (const char* bias : {"first.mixer.in_proj.b", "first.mixer.x_proj.b", "first.mixer.out_proj.b", "third.mixer.q.b", "third.mixer.k.b",
                           "third.mixer.v.b", "third.mixer.o.b"})
    std::ranges::fill(values.at(bias), 0.0F);
  const io::MbjsFile file = formatMbjsWeights(with, values, 2);
  const ParameterValues fewer = readMbjsWeights(without, file);
  EXPECT_EQ(fewer.size(), values.size() - 7);
  for (const auto& [name, numbers] : fewer) EXPECT_EQ(numbers, values.at(name)) << name;
  EXPECT_EQ(formatMbjsWeights(without, fewer, 2), file);
  values.at("first.mixer.x_proj.b")[3] = 1;
  const Error error = caught([&] { (void)readMbjsWeights(without, formatMbjsWeights(with, values, 2)); });
  EXPECT_EQ(error.diagnostics()[0].code, "mbjs.bias");
  EXPECT_NE(std::string(error.what()).find("layers.0.bXProj"), std::string::npos) << error.what();
}

std::string codeOfModel(const Module& model, const io::MbjsFile& file) {
  return caught([&] { (void)readMbjsWeights(model, file); }).diagnostics()[0].code;
}

TEST(MbjsWeights, models_and_files_that_do_not_fit_say_why) {
  const MbjsModel model;
  io::MbjsFile file = formatMbjsWeights(model, numbered(model), 2);
  file.layers[0] = io::MbjsLayer::Mamba2;
  EXPECT_EQ(codeOfModel(model, file), "mbjs.model");

  struct Untied : MbjsModel {
    nn::Linear head{*this, "head", 4, 5};
  };
  const Error head = caught([&] { (void)formatMbjsWeights(Untied(), {}, 2); });
  EXPECT_EQ(head.diagnostics()[0].message, "MBJS files have no place for head.W, head.b");

  struct Gated : Module {
    nn::Embedding tokens{*this, "tokens", 5, 4};
    MbjsBlock<nn::Mamba2, nn::Mamba2Options> one{*this, "one", {.states = 3, .conv = 2, .head_width = 4}};
    nn::RMSNorm norm{*this, "norm", 4};
  };
  struct Plain : Module {
    nn::Embedding tokens{*this, "tokens", 5, 4};
    MbjsBlock<nn::Mamba2, nn::Mamba2Options> one{*this, "one", {.states = 3, .conv = 2, .head_width = 4, .gate = false}};
    nn::RMSNorm norm{*this, "norm", 4};
  };
  const Plain plain;
  EXPECT_EQ(codeOfModel(Gated(), formatMbjsWeights(plain, numbered(plain), 2)), "mbjs.shape");

  struct Third : Module {
    nn::Embedding tokens{*this, "tokens", 5, 4};
    MbjsBlock<nn::Mamba3, nn::Mamba3Options> one{*this, "one", {.states = 4, .head_width = 4}};
    nn::RMSNorm norm{*this, "norm", 4};
  };
  EXPECT_EQ(codeOfModel(Third(), file), "mbjs.model");

  struct TwoNorms : Plain {
    nn::RMSNorm other{*this, "other", 4};
  };
  const Error norms = caught([&] { (void)formatMbjsWeights(TwoNorms(), {}, 2); });
  EXPECT_EQ(norms.diagnostics()[0].message, "the last norm may be any of norm, other");

  struct AroundOne : Module {
    nn::Embedding tokens{*this, "tokens", 5, 4};
    MbjsBlock<nn::Mamba2, nn::Mamba2Options> one{*this, "one", {.states = 3, .conv = 2, .head_width = 4, .gate = false}};
    nn::RMSNorm norm{*this, "norm", 4, {.around_one = true}};
  };
  EXPECT_EQ(codeOfModel(AroundOne(), formatMbjsWeights(plain, numbered(plain), 2)), "mbjs.model");
  EXPECT_EQ(caught([&] { (void)formatMbjsWeights(AroundOne(), numbered(plain), 2); }).diagnostics()[0].message,
            "'norm' has its gain around one, and MBJS files have gains themselves");

  ParameterValues values = numbered(plain);
  values.erase("one.mixer.D");
  EXPECT_EQ(caught([&] { (void)formatMbjsWeights(plain, values, 2); }).diagnostics()[0].code, "parameters.missing");
  values = numbered(plain);
  values.at("one.mixer.D").push_back(1);
  EXPECT_EQ(caught([&] { (void)formatMbjsWeights(plain, values, 2); }).diagnostics()[0].code, "mbjs.shape");
}

}  // namespace
}  // namespace lockstep
