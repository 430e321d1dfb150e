// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/recurrent.h"

#include <cmath>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"

namespace lockstep::nn {

namespace {

Initializer initializerFor(const RecurrentOptions& options, int64_t hidden) {
  if (options.init) return *options.init;
  double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return init::uniform(-bound, bound);
}

/// Gate number `index` of [B, gates · hidden].
Tensor gate(const Tensor& gates, int64_t index, int64_t hidden, const Where& where) {
  return narrow(gates, -1, index * hidden, hidden, where);
}

/// x · W_ih + b_ih, over the last axis.
Tensor inputShare(const RecurrentParameters& cell, const Tensor& x, const Where& where) {
  return add(matmul(x, cell.W_ih.tensor(where), where), cell.b_ih.tensor(where), where);
}
Tensor stateShare(const RecurrentParameters& cell, const Tensor& h, const Where& where) {
  return add(matmul(h, cell.W_hh.tensor(where), where), cell.b_hh.tensor(where), where);
}

LstmState lstmStep(const RecurrentParameters& cell, const Tensor& from_input, const LstmState& state, const Where& where) {
  Tensor gates = add(from_input, stateShare(cell, state.h, where), where);
  Tensor i = sigmoid(gate(gates, 0, cell.hidden(), where), where), f = sigmoid(gate(gates, 1, cell.hidden(), where), where);
  Tensor g = tanh(gate(gates, 2, cell.hidden(), where), where), o = sigmoid(gate(gates, 3, cell.hidden(), where), where);
  Tensor kept = mul(f, state.c, where), added = mul(i, g, where);
  Tensor c = add(kept, added, where);
  return {mul(o, tanh(c, where), where), c};
}

Tensor gruStep(const RecurrentParameters& cell, const Tensor& from_input, const Tensor& h, const Where& where) {
  Tensor from_state = stateShare(cell, h, where);
  auto both = [&](int64_t index) {
    Tensor input = gate(from_input, index, cell.hidden(), where);
    return sigmoid(add(input, gate(from_state, index, cell.hidden(), where), where), where);
  };
  Tensor r = both(0), z = both(1);
  Tensor reset = mul(r, gate(from_state, 2, cell.hidden(), where), where);
  Tensor n = tanh(add(gate(from_input, 2, cell.hidden(), where), reset, where), where);
  Tensor difference = sub(h, n, where);
  return add(n, mul(z, difference, where), where);
}

LayerAxis features(const RecurrentParameters& cell) { return {"features", cell.W_ih.type().shape.extent(0), "features"}; }

/// What comes before the first step: a row of `hidden` numbers for each row of x.
void checkState(const RecurrentParameters& cell, std::string_view kind, std::string_view operand, const Tensor& x, const Tensor& state,
                const Where& where) {
  const LayerAxis rows{"B", x.extent(0, where), "rows"}, columns{"hidden", cell.hidden(), "features"};
  checkInput(cell, state, {.kind = kind, .axes = {rows, columns}, .operand = operand}, where);
}

/// Step t of [B, T, gates · hidden].
Tensor atStep(const Tensor& x, int64_t t, const Where& where) { return squeeze(narrow(x, 1, t, 1, where), 1, where); }

}  // namespace

RecurrentParameters::RecurrentParameters(Module& parent, std::string name, int64_t in, int64_t hidden, int64_t gates,
                                         const RecurrentOptions& options, const Where& where)
    : Module(parent, std::move(name), where),
      W_ih(*this, "W_ih", {in, gates * hidden}, initializerFor(options, hidden), {.decay = options.decay}, where),
      W_hh(*this, "W_hh", {hidden, gates * hidden}, initializerFor(options, hidden), {.decay = options.decay}, where),
      b_ih(*this, "b_ih", {gates * hidden}, initializerFor(options, hidden), {.decay = false}, where),
      b_hh(*this, "b_hh", {gates * hidden}, initializerFor(options, hidden), {.decay = false}, where),
      hidden_(hidden) {}

LSTMCell::LSTMCell(Module& parent, std::string name, int64_t in, int64_t hidden, const RecurrentOptions& options, Where where)
    : RecurrentParameters(parent, std::move(name), in, hidden, 4, options, where) {}

LstmState LSTMCell::operator()(Tensor x, const LstmState& state, Where where) const {
  checkInput(*this, x, {.kind = "LSTMCell", .axes = {{"B"}, features(*this)}}, where);
  checkState(*this, "LSTMCell", "h", x, state.h, where);
  checkState(*this, "LSTMCell", "c", x, state.c, where);
  return lstmStep(*this, inputShare(*this, x, where), state, where);
}

GRUCell::GRUCell(Module& parent, std::string name, int64_t in, int64_t hidden, const RecurrentOptions& options, Where where)
    : RecurrentParameters(parent, std::move(name), in, hidden, 3, options, where) {}

Tensor GRUCell::operator()(Tensor x, Tensor h, Where where) const {
  checkInput(*this, x, {.kind = "GRUCell", .axes = {{"B"}, features(*this)}}, where);
  checkState(*this, "GRUCell", "h", x, h, where);
  return gruStep(*this, inputShare(*this, x, where), h, where);
}

LstmResult LSTM::operator()(Tensor x, const std::optional<LstmState>& state, Where where) const {
  checkInput(*this, x, {.kind = "LSTM", .axes = {{"B"}, {"T"}, features(*this)}}, where);
  if (state) {
    checkState(*this, "LSTM", "h", x, state->h, where);
    checkState(*this, "LSTM", "c", x, state->c, where);
  }
  const std::vector<int64_t> start{x.extent(0, where), hidden()};
  LstmState now = state ? *state : LstmState{zeros(start, DType::F32, where), zeros(start, DType::F32, where)};
  Tensor shares = inputShare(*this, x, where);
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < x.extent(1, where); ++t) {
    now = lstmStep(*this, atStep(shares, t, where), now, where);
    outputs.push_back(now.h);
  }
  return {stack(outputs, 1, where), now};
}

GruResult GRU::operator()(Tensor x, const std::optional<Tensor>& h, Where where) const {
  checkInput(*this, x, {.kind = "GRU", .axes = {{"B"}, {"T"}, features(*this)}}, where);
  if (h) checkState(*this, "GRU", "h", x, *h, where);
  Tensor now = h ? *h : zeros({x.extent(0, where), hidden()}, DType::F32, where);
  Tensor shares = inputShare(*this, x, where);
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < x.extent(1, where); ++t) {
    now = gruStep(*this, atStep(shares, t, where), now, where);
    outputs.push_back(now);
  }
  return {stack(outputs, 1, where), now};
}

}  // namespace lockstep::nn
