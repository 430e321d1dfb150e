// SPDX-License-Identifier: Apache-2.0
// Recurrent cells, and layers that unroll them over a sequence. Parameters lie as in x · W, gates side by side along the last axis, each
// as wide as the state.
#pragma once

#include <optional>

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

struct LstmResult {
  Tensor y;         ///< h after every step, [B, T, hidden]
  LstmState state;  ///< after the last step
};

/// An LSTMCell over x [B, T, in]. The trace holds T copies of the cell; the products with W_ih are one for all steps.
class LSTM : public LSTMCell {
 public:
  using LSTMCell::LSTMCell;
  /// From `state`, or from zeros.
  [[nodiscard]] LstmResult operator()(Tensor x, const std::optional<LstmState>& state = {}, Where where = Where::current()) const;
};

struct GruResult {
  Tensor y;  ///< [B, T, hidden]
  Tensor h;  ///< after the last step, [B, hidden]
};

/// A GRUCell over x [B, T, in].
class GRU : public GRUCell {
 public:
  using GRUCell::GRUCell;
  [[nodiscard]] GruResult operator()(Tensor x, const std::optional<Tensor>& h = {}, Where where = Where::current()) const;
};

}  // namespace lockstep::nn
