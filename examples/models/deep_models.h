// SPDX-License-Identifier: Apache-2.0
// Models of any depth, for what compiling them takes: only the depth counts, tensors are small.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "examples/models/transformer.h"
#include "frontend/lockstep.h"

namespace lockstep::examples {

struct DeepLayer : Module {
  DeepLayer(Module& parent, std::string name) : Module(parent, std::move(name)) {}
  nn::Linear l{*this, "l", 64, 64};
  Tensor operator()(Tensor x) const { return relu(l(x)); }
};

struct DeepBlock : Module {
  DeepBlock(Module& parent, std::string name) : Module(parent, std::move(name)) {}
  nn::TransformerBlock block{*this, "b", 64, 4};
  Tensor operator()(Tensor x) const { return block(x); }
};

/// `size` blocks, one after the other.
template <class Part>
struct Stack : Module {
  explicit Stack(int64_t size) : parts(*this, "parts", static_cast<size_t>(size)) {}
  ModuleList<Part> parts;
  Tensor operator()(Tensor x) const {
    for (const Part& part : parts) x = part(x);
    return x;
  }
};

struct Gru : Module {
  explicit Gru(int64_t) {}
  nn::GRU gru{*this, "gru", 64, 64};
  Tensor operator()(Tensor x) const { return gru(x).h; }
};

/// The same without a loop: a copy of the cell per step.
struct GruCells : Module {
  explicit GruCells(int64_t) {}
  nn::GRUCell cell{*this, "cell", 64, 64};
  Tensor operator()(Tensor x) const {
    const Tensor shares = matmul(x, cell.W_ih) + cell.b_ih;
    const auto gate = [](const Tensor& gates, int64_t i) { return narrow(gates, -1, 64 * i, 64); };
    Tensor h = zeros({x.extent(0), 64});
    for (int64_t t = 0; t < x.extent(1); ++t) {
      const Tensor of_x = squeeze(narrow(shares, 1, t, 1), 1), of_h = matmul(h, cell.W_hh) + cell.b_hh;
      const Tensor r = sigmoid(gate(of_x, 0) + gate(of_h, 0)), z = sigmoid(gate(of_x, 1) + gate(of_h, 1));
      const Tensor n = tanh(gate(of_x, 2) + r * gate(of_h, 2));
      h = n + z * (h - n);
    }
    return h;
  }
};

/// Two convolutions with batch norm around a shortcut, which is a convolution where the shape changes.
struct ResidualBlock : Module {
  ResidualBlock(Module& parent, std::string name, int64_t in, int64_t channels)
      : Module(parent, std::move(name)),
        a(*this, "a", in, channels, 3, {.stride = channels / in, .padding = 1}),
        b(*this, "b", channels, channels, 3, {.padding = 1}),
        na(*this, "na", channels),
        nb(*this, "nb", channels) {
    if (in != channels)
      shortcut = std::make_unique<nn::Conv2d>(*this, "shortcut", in, channels, 1, nn::Conv2dOptions{.stride = channels / in});
  }
  nn::Conv2d a, b;
  nn::BatchNorm na, nb;
  std::unique_ptr<nn::Conv2d> shortcut;
  Tensor operator()(Tensor x) const {
    const Tensor beside = shortcut ? (*shortcut)(x) : x;
    return relu(beside + nb(b(relu(na(a(x))))));
  }
};

/// For pictures of 32 x 32 (He et al., 2015, section 4.2): 6n + 2 layers in three stages of 16, 32 and 64 channels.
struct ResNet : Module {
  explicit ResNet(int64_t depth) {
    const int64_t blocks = (depth - 2) / 6;
    int64_t in = 16;
    for (int64_t channels : {16, 32, 64}) {
      for (int64_t i = 0; i < blocks; ++i) {
        stages.push_back(
            std::make_unique<ResidualBlock>(*this, "stage" + std::to_string(channels) + "_" + std::to_string(i), in, channels));
        in = channels;
      }
    }
  }
  nn::Conv2d stem{*this, "stem", 3, 16, 3, {.padding = 1}};
  nn::BatchNorm norm{*this, "norm", 16};
  std::vector<std::unique_ptr<ResidualBlock>> stages;
  nn::Linear head{*this, "head", 64, 10};
  Tensor operator()(Tensor x) const {
    x = relu(norm(stem(x)));
    for (const auto& block : stages) x = (*block)(x);
    return head(mean(mean(x, 3), 2));
  }
};

/// What is compiled: a training step with this loss.
struct DeepCase {
  std::shared_ptr<const Module> model;
  std::vector<InputSpec> inputs;
  detail::ModelFunction loss;
};

template <class Model>
DeepCase squaresOf(int64_t size, TensorType type) {
  return {std::make_shared<Model>(size), {{"x", std::move(type)}}, [](const Module& model, const Inputs& in) {
            return mean(square(static_cast<const Model&>(model)(in["x"])));
          }};
}

/// The language model of the samples in the shape of a small GPT.
inline DeepCase gpt(int64_t layers) {
  constexpr int64_t kLength = 256;
  const TransformerShape shape{.vocabulary = 65, .width = 384, .layers = layers, .heads = 6, .sequence = kLength + 1};
  return {std::make_shared<Transformer>(shape),
          {{"tokens", i32(8, kLength)}, {"targets", i32(8, kLength)}},
          [](const Module& model, const Inputs& in) {
            return cross_entropy(static_cast<const Transformer&>(model)(in["tokens"]), in["targets"]);
          }};
}

/// By name: mlp, transformer, gpt (layers), gru and gru_cells (time steps), resnet (depth). Without a model when there is none of this
/// name.
inline DeepCase deepCase(const std::string& name, int64_t size) {
  if (name == "mlp") return squaresOf<Stack<DeepLayer>>(size, f32(32, 64));
  if (name == "transformer") return squaresOf<Stack<DeepBlock>>(size, f32(32, 32, 64));
  if (name == "gru") return squaresOf<Gru>(size, f32(32, size, 64));
  if (name == "gru_cells") return squaresOf<GruCells>(size, f32(32, size, 64));
  if (name == "resnet") return squaresOf<ResNet>(size, f32(32, 3, 32, 32));
  if (name == "gpt") return gpt(size);
  return {};
}

}  // namespace lockstep::examples
