// SPDX-License-Identifier: Apache-2.0
// Recurrent cells, and layers that run them over a sequence: one after the other, in both directions, over rows of different lengths.
// Parameters lie as in x · W, gates side by side along the last axis, each as wide as the state.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontend/nn/linear.h"
#include "frontend/trace/module.h"

namespace lockstep::nn {

struct RecurrentOptions {
  std::optional<Initializer> init = {};  ///< of all parameters; by default U(-1/√hidden, 1/√hidden)
  std::optional<bool> decay = {};        ///< of the matrices; biases never decay
};

/// W_ih [in, gates · hidden], W_hh [hidden, gates · hidden], b_ih and b_hh [gates · hidden].
class RecurrentParameters : public Module {
 public:
  RecurrentParameters(Module& parent, std::string name, int64_t in, int64_t hidden, int64_t gates, const RecurrentOptions& options,
                      const Where& where);
  [[nodiscard]] int64_t hidden() const { return hidden_; }

  Parameter W_ih, W_hh, b_ih, b_hh;

 private:
  int64_t hidden_;
};

struct LstmState {
  Tensor h, c;  ///< f32[B, hidden]
};

/// Gates i, f, g, o of x · W_ih + b_ih + h · W_hh + b_hh: c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c') (Hochreiter and Schmidhuber, 1997,
/// with the forget gate of Gers et al., 2000).
class LSTMCell : public RecurrentParameters {
 public:
  LSTMCell(Module& parent, std::string name, int64_t in, int64_t hidden, const RecurrentOptions& options = {},
           Where where = Where::current());
  /// x [B, in].
  [[nodiscard]] LstmState operator()(Tensor x, const LstmState& state, Where where = Where::current()) const;
};

/// Gates r, z, n: n = tanh(x_n + r h_n), h' = (1 - σ(z)) n + σ(z) h, where x_n and h_n are the shares of x and h with their biases (Cho et
/// al., 2014, as PyTorch has it).
class GRUCell : public RecurrentParameters {
 public:
  GRUCell(Module& parent, std::string name, int64_t in, int64_t hidden, const RecurrentOptions& options = {},
          Where where = Where::current());
  /// x [B, in], h [B, hidden].
  [[nodiscard]] Tensor operator()(Tensor x, Tensor h, Where where = Where::current()) const;
};

struct RecurrentLayerOptions {
  int64_t layers = 1;                    ///< each reads what the one before it gives
  bool bidirectional = false;            ///< a second cell per layer goes over the steps backwards; what both give lies side by side
  double dropout = 0;                    ///< of what each layer but the last gives, in training
  std::optional<Initializer> init = {};  ///< as of RecurrentOptions
  std::optional<bool> decay = {};
};

/// The cells of a layer, in the order of PyTorch: "l0", "l0_reverse", "l1", ... The first one is the layer itself, the others are modules
/// of these names. Error "recurrent.layers" unless there is at least one.
template <class Cell>
class RecurrentLayer : public Cell {
 public:
  RecurrentLayer(Module& parent, std::string name, int64_t in, int64_t hidden, const RecurrentLayerOptions& options = {},
                 Where where = Where::current());
  [[nodiscard]] int64_t layers() const { return layers_; }
  [[nodiscard]] int64_t directions() const { return directions_; }
  [[nodiscard]] const Cell& cell(int64_t layer, bool backwards = false) const;
  /// What a layer gives as the next one reads it: with dropout.
  [[nodiscard]] Tensor between(const Tensor& y, const Where& where) const { return dropout_(y, where); }

 private:
  int64_t layers_, directions_;
  std::vector<std::unique_ptr<Cell>> further_;
  Dropout dropout_;
};

struct LstmResult {
  Tensor y;         ///< h after every step, [B, T, directions · hidden]
  LstmState state;  ///< after the last step; with several cells [cells, B, hidden], in their order
};

/// LSTMCells over x [B, T, in], by a loop over T (scan); the products with W_ih are one for all steps.
class LSTM : public RecurrentLayer<LSTMCell> {
 public:
  using RecurrentLayer::RecurrentLayer;
  /// From `state`, or from zeros. With `lengths`, i32 [B], row b has lengths[b] steps: past them its state stays as it is, and y is 0;
  /// backwards it begins at its own last step.
  [[nodiscard]] LstmResult operator()(Tensor x, const std::optional<LstmState>& state = {}, const std::optional<Tensor>& lengths = {},
                                      Where where = Where::current()) const;
};

struct GruResult {
  Tensor y;  ///< [B, T, directions · hidden]
  Tensor h;  ///< after the last step, [B, hidden]; with several cells [cells, B, hidden], in their order
};

/// GRUCells over x [B, T, in].
class GRU : public RecurrentLayer<GRUCell> {
 public:
  using RecurrentLayer::RecurrentLayer;
  /// As LSTM.
  [[nodiscard]] GruResult operator()(Tensor x, const std::optional<Tensor>& h = {}, const std::optional<Tensor>& lengths = {},
                                     Where where = Where::current()) const;
};

}  // namespace lockstep::nn
