// SPDX-License-Identifier: Apache-2.0
// The first mistake that one makes with each layer and loss: what was expected, what came, whose layer it is, and the line of the call.
#include "frontend/nn/nn.h"
#include "frontend/ops/losses.h"
#include "frontend/trace/module.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

struct Part : Module {
  using Module::Module;
  nn::Linear linear{*this, "linear", 12, 4};
  nn::Embedding embedding{*this, "embedding", 10, 4};
  nn::Conv2d conv2d{*this, "conv2d", 3, 8, 3};
  nn::Conv2d grouped{*this, "grouped", 4, 8, 3, {.groups = 2}};
  nn::Conv1d conv1d{*this, "conv1d", 3, 8, 3};
  nn::ConvTranspose2d up{*this, "up", 3, 8, 2};
  nn::LayerNorm layer_norm{*this, "layer_norm", 12};
  nn::RMSNorm rms_norm{*this, "rms_norm", 12};
  nn::GroupNorm group_norm{*this, "group_norm", 2, 4};
  nn::BatchNorm batch_norm{*this, "batch_norm", 4};
  nn::LSTMCell lstm_cell{*this, "lstm_cell", 12, 6};
  nn::GRUCell gru_cell{*this, "gru_cell", 12, 6};
  nn::LSTM lstm{*this, "lstm", 12, 6};
  nn::GRU gru{*this, "gru", 12, 6};
  nn::MultiHeadAttention attention{*this, "attention", 12, 2};
  nn::FeedForward feed_forward{*this, "feed_forward", 12, 24};
  nn::TransformerBlock block{*this, "block", 12, 2};
  nn::Mamba1 mamba1{*this, "mamba1", 12};
  nn::Mamba2 mamba2{*this, "mamba2", 12, {.head_width = 6}};
  nn::Mamba3 mamba3{*this, "mamba3", 12, {.head_width = 6}};
};
struct Model : Module {
  Part part{*this, "part"};
};

using Inputs = std::vector<Tensor>;

struct Mistake {
  uint32_t line;
  std::vector<TensorType> inputs;
  void (*call)(const Part& p, const Inputs& in);
  const char *code, *message, *remedy;
};
#define MISTAKE(types, call, ...) {__LINE__, types, [](const Part& p, const Inputs& in) { (void)p, (void)(call); }, __VA_ARGS__}
#define TYPES(...) {__VA_ARGS__}

const char* const kLast = "channels come before the positions: permute(x, {0, 3, 1, 2}) of an image that has them last";
const char* const kPermuted = "permute(x, {0, 3, 1, 2}) puts the channels there";

void expectAll(const std::vector<Mistake>& mistakes, bool layers) {
  for (const Mistake& mistake : mistakes) {
    Model model;
    const Diagnostic diagnostic = caught([&] {
      detail::Trace trace;
      trace.addParameters(model);
      Inputs inputs;
      for (size_t i = 0; i < mistake.inputs.size(); ++i)
        inputs.push_back(trace.addInput(std::string(1, static_cast<char>('a' + i)), mistake.inputs[i]));
      mistake.call(model.part, inputs);
    });
    SCOPED_TRACE(toString(diagnostic));
    EXPECT_EQ(diagnostic.code, mistake.code);
    EXPECT_EQ(diagnostic.message, mistake.message);
    EXPECT_EQ(diagnostic.remedy, mistake.remedy);
    EXPECT_TRUE(diagnostic.where.file.ends_with("layer_errors_test.cpp"));
    EXPECT_EQ(diagnostic.where.line, mistake.line);
    ASSERT_GE(diagnostic.notes.size(), layers ? 2u : 1u);
    if (layers) {
      EXPECT_EQ(diagnostic.notes[0].message, "the layer is declared here");
      EXPECT_TRUE(diagnostic.notes[0].where.file.ends_with("layer_errors_test.cpp"));
      EXPECT_LT(diagnostic.notes[0].where.line, 40u);
    }
    EXPECT_NE(diagnostic.notes.back().message.find("the input '"), std::string::npos);
  }
}

TEST(LayerErrors, name_the_layer_what_it_expects_and_what_came) {
  expectAll(
      {
          MISTAKE(TYPES(f32(8, 11)), p.linear(in[0]), "layer.extent",
                  "Linear 'part.linear' expected [..., N, features] with 12 features, got 11 in f32[8,11]",
                  "declare the layer with 11 features, or change the shape of x"),
          MISTAKE(TYPES(f32(8, 3, 2, 2)), p.linear(in[0]), "layer.extent",
                  "Linear 'part.linear' expected [..., N, features] with 12 features, got 2 in f32[8,3,2,2]",
                  "flatten(x, 1) makes one axis of all but the first"),
          MISTAKE(TYPES(f32(12)), p.linear(in[0]), "layer.rank",
                  "Linear 'part.linear' expected [..., N, features] with 12 features, got f32[12] of rank 1",
                  "expand_dims(x, axis) adds an axis of extent 1"),
          MISTAKE(TYPES(i32(8, 12)), p.linear(in[0]), "layer.type",
                  "Linear 'part.linear' expected f32 [..., N, features] with 12 features, got i32[8,12]",
                  "declare the input as ls::f32(...), or cast(x, ls::DType::F32)"),
          MISTAKE(TYPES(f32(8, 5)), p.embedding(in[0]), "layer.type", "Embedding 'part.embedding' expected indices i32 [...], got f32[8,5]",
                  "declare the input as ls::i32(...), or cast(indices, ls::DType::I32)"),
          MISTAKE(TYPES(f32(8, 28, 28, 3)), p.conv2d(in[0]), "layer.extent",
                  "Conv2d 'part.conv2d' expected [B, C, H, W] with 3 channels, got 28 in f32[8,28,28,3]", kPermuted),
          MISTAKE(TYPES(f32(8, 28, 28)), p.conv2d(in[0]), "layer.rank",
                  "Conv2d 'part.conv2d' expected [B, C, H, W] with 3 channels, got f32[8,28,28] of rank 3",
                  "expand_dims(x, axis) adds an axis of extent 1"),
          MISTAKE(TYPES(f32(8, 1, 28, 28)), p.conv2d(in[0]), "layer.extent",
                  "Conv2d 'part.conv2d' expected [B, C, H, W] with 3 channels, got 1 in f32[8,1,28,28]",
                  "declare the layer with 1 channel, or change the shape of x"),
          MISTAKE(TYPES(i32(8, 3, 28, 28)), p.conv2d(in[0]), "layer.type",
                  "Conv2d 'part.conv2d' expected f32 [B, C, H, W] with 3 channels, got i32[8,3,28,28]",
                  "declare the input as ls::f32(...), or cast(x, ls::DType::F32)"),
          MISTAKE(TYPES(f32(8, 2, 28, 28)), p.grouped(in[0]), "layer.extent",
                  "Conv2d 'part.grouped' expected [B, C, H, W] with 4 channels, got 2 in f32[8,2,28,28]",
                  "declare the layer with 2 channels, or change the shape of x"),
          MISTAKE(TYPES(f32(8, 100, 3)), p.conv1d(in[0]), "layer.extent",
                  "Conv1d 'part.conv1d' expected [B, C, T] with 3 channels, got 100 in f32[8,100,3]",
                  "permute(x, {0, 2, 1}) puts the channels there"),
          MISTAKE(TYPES(f32(8, 9, 9, 3)), p.up(in[0]), "layer.extent",
                  "ConvTranspose2d 'part.up' expected [B, C, H, W] with 3 channels, got 9 in f32[8,9,9,3]", kPermuted),
          MISTAKE(TYPES(f32(8, 5, 7)), p.layer_norm(in[0]), "layer.extent",
                  "LayerNorm 'part.layer_norm' expected [..., features] with 12 features, got 7 in f32[8,5,7]",
                  "declare the layer with 7 features, or change the shape of x"),
          MISTAKE(TYPES(f32()), p.rms_norm(in[0]), "layer.rank",
                  "RMSNorm 'part.rms_norm' expected [..., features] with 12 features, got f32[] of rank 0",
                  "expand_dims(x, axis) adds an axis of extent 1"),
          MISTAKE(TYPES(f32(8, 5, 5, 4)), p.group_norm(in[0]), "layer.extent",
                  "GroupNorm 'part.group_norm' expected [B, C, ...] with 4 channels, got 5 in f32[8,5,5,4]", kPermuted),
          MISTAKE(TYPES(f32(4)), p.batch_norm(in[0]), "layer.rank",
                  "BatchNorm 'part.batch_norm' expected [B, C, ...] with 4 channels, got f32[4] of rank 1",
                  "expand_dims(x, axis) adds an axis of extent 1"),
          MISTAKE(TYPES(f32(8, 7, 12), f32(8, 6)), p.gru_cell(in[0], in[1]), "layer.rank",
                  "GRUCell 'part.gru_cell' expected [B, features] with 12 features, got f32[8,7,12] of rank 3",
                  "flatten(x, first, last) makes one axis of several"),
          MISTAKE(TYPES(f32(8, 12), f32(8, 5)), p.gru_cell(in[0], in[1]), "layer.extent",
                  "GRUCell 'part.gru_cell' expected h [B, hidden] with 8 rows and 6 features, got 5 in f32[8,5]",
                  "declare the layer with 5 features, or change the shape of h"),
          MISTAKE(TYPES(f32(8, 12), f32(8, 6), f32(7, 6)), p.lstm_cell(in[0], {in[1], in[2]}), "layer.extent",
                  "LSTMCell 'part.lstm_cell' expected c [B, hidden] with 8 rows and 6 features, got 7 in f32[7,6]",
                  "give c one row for each row of x"),
          MISTAKE(TYPES(f32(8, 12)), p.lstm(in[0]), "layer.rank",
                  "LSTM 'part.lstm' expected [B, T, features] with 12 features, got f32[8,12] of rank 2",
                  "expand_dims(x, axis) adds an axis of extent 1"),
          MISTAKE(TYPES(f32(8, 12)), p.gru(in[0]), "layer.rank",
                  "GRU 'part.gru' expected [B, T, features] with 12 features, got f32[8,12] of rank 2",
                  "expand_dims(x, axis) adds an axis of extent 1"),
          MISTAKE(TYPES(f32(8, 5, 12), f32(12, 6)), p.gru(in[0], in[1]), "layer.extent",
                  "GRU 'part.gru' expected h [B, hidden] with 8 rows and 6 features, got 12 in f32[12,6]",
                  "give h one row for each row of x"),
          MISTAKE(TYPES(f32(8, 5, 16)), p.attention(in[0]), "layer.extent",
                  "MultiHeadAttention 'part.attention' expected [..., T, width] with 12 features, got 16 in f32[8,5,16]",
                  "declare the layer with 16 features, or change the shape of x"),
          MISTAKE(TYPES(f32(8, 5, 12), f32(8, 7, 16)), p.attention(in[0], in[1]), "layer.extent",
                  "MultiHeadAttention 'part.attention' expected memory [..., S, width] with 12 features, got 16 in f32[8,7,16]",
                  "declare the layer with 16 features, or change the shape of memory"),
          MISTAKE(TYPES(i32(8, 5)), p.block(in[0]), "layer.type",
                  "TransformerBlock 'part.block' expected f32 [..., T, width] with 12 features, got i32[8,5]",
                  "declare the input as ls::f32(...), or cast(x, ls::DType::F32)"),
          MISTAKE(TYPES(f32(8, 5, 24)), p.feed_forward(in[0]), "layer.extent",
                  "FeedForward 'part.feed_forward' expected [..., N, width] with 12 features, got 24 in f32[8,5,24]",
                  "declare the layer with 24 features, or change the shape of x"),
          MISTAKE(TYPES(f32(8, 5, 24)), p.mamba1(in[0]), "layer.extent",
                  "Mamba1 'part.mamba1' expected [B, L, width] with 12 features, got 24 in f32[8,5,24]",
                  "declare the layer with 24 features, or change the shape of x"),
          MISTAKE(TYPES(f32(8, 5, 24)), p.mamba3(in[0]), "layer.extent",
                  "Mamba3 'part.mamba3' expected [B, L, width] with 12 features, got 24 in f32[8,5,24]",
                  "declare the layer with 24 features, or change the shape of x"),
          MISTAKE(TYPES(f32(8, 5, 24)), p.mamba2(in[0]), "layer.extent",
                  "Mamba2 'part.mamba2' expected [B, L, width] with 12 features, got 24 in f32[8,5,24]",
                  "declare the layer with 24 features, or change the shape of x"),
      },
      true);
}

TEST(LayerErrors, of_losses_and_functions_say_what_to_do) {
  expectAll(
      {
          MISTAKE(TYPES(f32(2, 5, 12)),
                  scaled_dot_product_attention(in[0], in[0], in[0], {.causal = true, .length = zeros({}, DType::I32)}), "attention.options",
                  "a length says which keys each query sees, and causal, offset or mask say so as well",
                  "give the length alone, or add -infinity to the mask where a key is hidden"),
          MISTAKE(
              TYPES(f32(8, 5, 12), f32(4, 5, 12)), p.attention(in[0], in[1]), "attention.memory",
              "MultiHeadAttention 'part.attention' expected the same axes before the last two, got x f32[8,5,12] and memory f32[4,5,12]",
              "give x and memory one batch"),
          MISTAKE(TYPES(f32(8, 3), f32(8)), cross_entropy(in[0], in[1]), "cross_entropy.C2",
                  "the targets are f32[8], wanted i32 class numbers",
                  "declare the targets as ls::i32(...), or cast(targets, ls::DType::I32)"),
          MISTAKE(TYPES(f32(8, 3), f32(8, 3)), cross_entropy(in[0], in[1]), "cross_entropy.C2",
                  "the targets are f32[8,3], wanted i32 class numbers",
                  "targets are class numbers: argmax(targets, -1) of rows with a one or a probability for each class"),
          MISTAKE(TYPES(f32(8, 3), i32(8, 3)), cross_entropy(in[0], in[1]), "cross_entropy.C3",
                  "the logits are f32[8,3] and the targets i32[8,3], wanted i32[8]",
                  "targets are class numbers: argmax(targets, -1) of rows with a one or a probability for each class"),
          MISTAKE(TYPES(f32(8, 3), i32(8, 1)), cross_entropy(in[0], in[1]), "cross_entropy.C3",
                  "the logits are f32[8,3] and the targets i32[8,1], wanted i32[8]", "squeeze(targets, -1) takes the last axis away"),
          MISTAKE(TYPES(f32(8, 3, 16, 16), i32(8, 16, 16)), cross_entropy(in[0], in[1]), "cross_entropy.C3",
                  "the logits are f32[8,3,16,16] and the targets i32[8,16,16], wanted i32[8,3,16]",
                  "classes are the last axis here: permute(logits, {0, 2, 3, 1})"),
          MISTAKE(TYPES(i32(8, 3), i32(8)), cross_entropy(in[0], in[1]), "cross_entropy.C1", "the logits are i32[8,3], wanted f32",
                  "cast them to f32"),
          MISTAKE(TYPES(f32(), i32()), cross_entropy(in[0], in[1]), "cross_entropy.C3",
                  "the logits are f32[] and the targets i32[], wanted a last axis of classes",
                  "targets are class numbers: argmax(targets, -1) of rows with a one or a probability for each class"),
          MISTAKE(TYPES(f32(8, 3), i32(7)), nll_loss(in[0], in[1]), "nll_loss.C2",
                  "the log-probabilities are f32[8,3] and the targets i32[7], wanted i32[8]", "give one target for each row of classes"),
          MISTAKE(TYPES(f32(8, 3), f32(8)), nll_loss(in[0], in[1]), "nll_loss.C1", "the targets are f32[8], wanted i32 class numbers",
                  "declare the targets as ls::i32(...), or cast(targets, ls::DType::I32)"),
          MISTAKE(TYPES(f32(8, 3), i32(8, 3)), mse_loss(in[0], in[1]), "mse_loss.C1", "operands are f32[8,3] and i32[8,3], wanted f32",
                  "declare the input as ls::f32(...), or cast(y, ls::DType::F32)"),
          MISTAKE(TYPES(f32(8, 1), f32(8)), bce_with_logits(in[0], in[1]), "bce_with_logits.C2", "operands have shapes [8,1] and [8]",
                  "reshape one of them, or broadcast_to"),
          MISTAKE(TYPES(f32(8, 28, 28, 3), f32(4, 3, 3, 3)), conv2d(in[0], in[1]), "conv.C4",
                  "expected x [B, C, S...] with 3 channels, which the weights [4,3,3,3] take in 1 group, got 28 in f32[8,28,28,3]", kLast),
          MISTAKE(TYPES(f32(8, 28, 28, 3), f32(3, 4, 3, 3)), conv_transpose2d(in[0], in[1]), "conv_transpose.C4",
                  "expected x [B, C, S...] with 3 channels, as the weights [3,4,3,3] have, got 28 in f32[8,28,28,3]", kLast),
          MISTAKE(TYPES(f32(3, 4), f32(5, 4)), matmul(in[0], in[1]), "matmul.C3",
                  "inner extents differ: [3,4] has 4 columns and [5,4] has 5 rows", "swap_axes(x, -2, -1) transposes a matrix"),
          MISTAKE(TYPES(f32(3), i32(3)), in[0] + in[1], "add.C1", "operands are f32[3] and i32[3], wanted one element type",
                  "cast one of them, for example cast(x, ls::DType::F32)"),
          MISTAKE(TYPES(i32(3)), exp(in[0]), "exp.C1", "the operand is i32[3], wanted f32",
                  "cast(x, ls::DType::F32) makes other numbers and bool f32"),
          MISTAKE(TYPES(i32(3)), mean(in[0]), "mean.C1", "operand is i32[3], wanted f32",
                  "cast(x, ls::DType::F32) makes other numbers and bool f32"),
          MISTAKE(TYPES(f32(3, 4)), sum(in[0], 2), "sum.axis", "axis 2 is outside [3,4] of rank 2",
                  "axes count from 0, and -1 is the last one"),
          MISTAKE(TYPES(f32(3, 4), f32(3)), index_select(in[0], 1, in[1]), "index_select.C1",
                  "the index is f32[3], wanted i32 with one axis", "declare the index as ls::i32(...), or cast(index, ls::DType::I32)"),
          MISTAKE(TYPES(f32(3, 4)), top_k(in[0], 9), "top_k.C3", "k is 9, wanted 1 to the 4 elements of axis 1",
                  "it must hold that k is at least 1 and at most the extent of the axis"),
      },
      false);
}

}  // namespace
}  // namespace lockstep
