// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/throw_error.h"

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

template <class Cell>
RecurrentLayer<Cell>::RecurrentLayer(Module& parent, std::string name, int64_t in, int64_t hidden, const RecurrentLayerOptions& options,
                                     Where where)
    : Cell(parent, std::move(name), in, hidden, RecurrentOptions{.init = options.init, .decay = options.decay}, where),
      layers_(options.layers),
      directions_(options.bidirectional ? 2 : 1),
      dropout_(options.dropout, where) {
  if (layers_ < 1)
    detail::rejectAt(where, "recurrent.layers", fmt::format("'{}' has {} layers", this->path(), layers_), "give it at least one");
  for (int64_t number = 1; number < layers_ * directions_; ++number) {
    const int64_t layer = number / directions_, width = layer == 0 ? in : directions_ * hidden;
    const std::string cell = fmt::format("l{}{}", layer, number % directions_ == 0 ? "" : "_reverse");
    further_.push_back(
        std::make_unique<Cell>(*this, cell, width, hidden, RecurrentOptions{.init = options.init, .decay = options.decay}, where));
  }
}

template <class Cell>
const Cell& RecurrentLayer<Cell>::cell(int64_t layer, bool backwards) const {
  const int64_t number = layer * directions_ + (backwards ? 1 : 0);
  if (number == 0) return *this;
  return *further_[static_cast<size_t>(number - 1)];
}

template class RecurrentLayer<LSTMCell>;
template class RecurrentLayer<GRUCell>;

namespace {

/// The tensors of a state: h, or h and c.
using State = std::vector<Tensor>;
using Step = State (*)(const RecurrentParameters& cell, const Tensor& from_input, const State& state, const Where& where);

struct Sequence {
  Tensor y;
  State state;
};

/// One cell over x [B, T, in], by a loop over T.
Sequence overSteps(const RecurrentParameters& cell, Step step, const Tensor& x, State now, const std::optional<Tensor>& lengths,
                   bool backwards, const Where& where) {
  const Tensor shares = inputShare(cell, permute(x, {1, 0, 2}, where), where);
  std::vector<Tensor> sliced{shares};
  if (lengths) sliced.push_back(arange(x.extent(1, where), DType::I32, where));
  const auto body = [&](const State& state, const std::vector<Tensor>& slices) -> LoopStep {
    State next = step(cell, slices[0], state, where);
    if (!lengths) return {next};
    // Where a row still has this step.
    const Tensor within = expand_dims(less(slices[1], *lengths, where), -1, where);
    const Tensor y = lockstep::where(within, next.front(), 0.0, where);
    for (size_t part = 0; part < next.size(); ++part) next[part] = lockstep::where(within, next[part], state[part], where);
    return {next, {y}};
  };
  LoopResult made = scan(body, std::move(now), sliced, {.reverse = backwards}, where);
  const Tensor y = lengths ? made.results.front() : made.history.front();
  return {permute(y, {1, 0, 2}, where), std::move(made.carry)};
}

/// All cells, one layer after the other. `initial`: of each cell; empty: zeros.
template <class Cell>
struct Stack {
  const RecurrentLayer<Cell>& layer;
  std::string_view kind;
  Step step;
  std::vector<std::string_view> parts;  ///< of a state: "h", "c"
  const Where& where;

  [[nodiscard]] int64_t cells() const { return layer.layers() * layer.directions(); }

  /// Part `part` of the state of one cell: of [cells, B, hidden], or all of it where there is one.
  [[nodiscard]] Tensor pick(const Tensor& all, int64_t cell) const {
    return cells() == 1 ? all : squeeze(narrow(all, 0, cell, 1, where), 0, where);
  }

  [[nodiscard]] Sequence run(Tensor x, const State& initial, const std::optional<Tensor>& lengths) const {
    checkInput(layer, x, {.kind = kind, .axes = {{"B"}, {"T"}, features(layer)}}, where);
    const LayerAxis rows{"B", x.extent(0, where), "rows"};
    if (lengths) checkInput(layer, *lengths, {.kind = kind, .axes = {rows}, .dtype = DType::I32, .operand = "lengths"}, where);
    for (size_t part = 0; part < initial.size(); ++part) checkInitial(parts[part], x, initial[part]);
    const std::vector<int64_t> start{x.extent(0, where), layer.hidden()};
    std::vector<std::vector<Tensor>> ends(parts.size());
    for (int64_t number = 0; number < cells(); number += layer.directions()) {
      std::vector<Tensor> sides;
      for (int64_t side = 0; side < layer.directions(); ++side) {
        State begin;
        for (size_t part = 0; part < parts.size(); ++part)
          begin.push_back(initial.empty() ? zeros(start, DType::F32, where) : pick(initial[part], number + side));
        const Sequence sequence =
            overSteps(layer.cell(number / layer.directions(), side == 1), step, x, std::move(begin), lengths, side == 1, where);
        sides.push_back(sequence.y);
        for (size_t part = 0; part < parts.size(); ++part) ends[part].push_back(sequence.state[part]);
      }
      x = sides.size() == 1 ? sides.front() : concat(sides, -1, where);
      if (number + layer.directions() < cells()) x = layer.between(x, where);
    }
    Sequence result{x, {}};
    for (const std::vector<Tensor>& end : ends) result.state.push_back(end.size() == 1 ? end.front() : stack(end, 0, where));
    return result;
  }

  void checkInitial(std::string_view operand, const Tensor& x, const Tensor& state) const {
    if (cells() == 1) return checkState(layer, kind, operand, x, state, where);
    const LayerAxis count{"cells", cells(), "cells"}, rows{"B", x.extent(0, where), "rows"}, columns{"hidden", layer.hidden(), "features"};
    checkInput(layer, state, {.kind = kind, .axes = {count, rows, columns}, .operand = operand}, where);
  }
};

State lstmStepOf(const RecurrentParameters& cell, const Tensor& from_input, const State& state, const Where& where) {
  const LstmState next = lstmStep(cell, from_input, {state[0], state[1]}, where);
  return {next.h, next.c};
}
State gruStepOf(const RecurrentParameters& cell, const Tensor& from_input, const State& state, const Where& where) {
  return {gruStep(cell, from_input, state[0], where)};
}

}  // namespace

LstmResult LSTM::operator()(Tensor x, const std::optional<LstmState>& state, const std::optional<Tensor>& lengths, Where where) const {
  const State initial = state ? State{state->h, state->c} : State{};
  const Sequence made = Stack<LSTMCell>{*this, "LSTM", lstmStepOf, {"h", "c"}, where}.run(x, initial, lengths);
  return {made.y, {made.state[0], made.state[1]}};
}

GruResult GRU::operator()(Tensor x, const std::optional<Tensor>& h, const std::optional<Tensor>& lengths, Where where) const {
  const Sequence made = Stack<GRUCell>{*this, "GRU", gruStepOf, {"h"}, where}.run(x, h ? State{*h} : State{}, lengths);
  return {made.y, made.state[0]};
}

}  // namespace lockstep::nn
