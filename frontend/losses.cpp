// SPDX-License-Identifier: Apache-2.0
#include "frontend/losses.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "frontend/ops_element.h"
#include "frontend/ops_index.h"
#include "frontend/ops_network.h"
#include "frontend/ops_reduce.h"
#include "frontend/ops_shape.h"
#include "frontend/trace.h"

namespace lockstep {

using detail::emit;
using detail::raise;

namespace {

void check(const std::string& loss, const Tensor& x, const Tensor& y, const Where& where) {
  detail::Trace::require(loss, where);
  if (x.dtype(where) != DType::F32 || y.dtype(where) != DType::F32) {
    raise(loss + ".C1", fmt::format("operands are {} and {}, wanted f32", toString(x.type(where)), toString(y.type(where))), {x, y}, where);
  }
  if (x.shape(where) != y.shape(where)) {
    raise(loss + ".C2", fmt::format("operands have shapes {} and {}", toString(x.shape(where)), toString(y.shape(where))), {x, y}, where,
          "reshape one of them, or broadcast_to");
  }
}

Tensor reduced(Tensor losses, Reduction reduction, const Where& where) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Sum ? sum(losses, {}, {}, where) : mean(losses, {}, {}, where);
}

}  // namespace

Tensor mse_loss(Tensor x, Tensor y, Reduction reduction, Where where) {
  check("mse_loss", x, y, where);
  return reduced(square(sub(x, y, where), where), reduction, where);
}

Tensor l1_loss(Tensor x, Tensor y, Reduction reduction, Where where) {
  check("l1_loss", x, y, where);
  return reduced(abs(sub(x, y, where), where), reduction, where);
}

// With c = min(|d|, delta) both pieces are c (|d| - c / 2).
Tensor huber_loss(Tensor x, Tensor y, double delta, Reduction reduction, Where where) {
  check("huber_loss", x, y, where);
  if (!(delta > 0)) raise("huber_loss.delta", fmt::format("delta is {}, wanted a positive number", delta), {x, y}, where);
  Tensor distance = abs(sub(x, y, where), where);
  Tensor clipped = min(distance, delta, where);
  Tensor rest = sub(distance, mul(clipped, 0.5, where), where);
  return reduced(mul(clipped, rest, where), reduction, where);
}

Tensor nll_loss(Tensor log_probabilities, Tensor targets, NllOptions options, Where where) {
  detail::Trace::require("nll_loss", where);
  if (log_probabilities.dtype(where) != DType::F32 || targets.dtype(where) != DType::I32) {
    raise("nll_loss.C1",
          fmt::format("the log-probabilities are {} and the targets {}, wanted f32 and i32", toString(log_probabilities.type(where)),
                      toString(targets.type(where))),
          {log_probabilities, targets}, where, "cast them");
  }
  std::vector<int64_t> rows = log_probabilities.shape(where).extents();
  if (!rows.empty()) rows.pop_back();
  if (log_probabilities.shape(where).rank() == 0 || Shape(rows) != targets.shape(where)) {
    raise("nll_loss.C2",
          fmt::format("the targets {} do not have the axes of the log-probabilities {} without the last", toString(targets.type(where)),
                      toString(log_probabilities.type(where))),
          {log_probabilities, targets}, where, "give one target for each row of classes");
  }
  std::vector<int64_t> places = rows;
  places.push_back(1);
  auto ofTarget = [&](Tensor values) {
    Tensor taken = take_along_axis(values, reshape(targets, places, where), -1, where);
    return reshape(taken, rows, where);
  };
  Tensor losses = neg(ofTarget(log_probabilities), where);
  if (!options.class_weights && !options.ignore_index) return reduced(losses, options.reduction, where);
  Tensor weights = full(losses.shape(where).extents(), 1, DType::F32, where);
  if (options.class_weights) {
    Tensor repeated = detail::broadcast(*options.class_weights, log_probabilities.shape(where), where);
    weights = ofTarget(repeated);
    losses = mul(losses, weights, where);
  }
  if (options.ignore_index) {
    Tensor ignored = equal(targets, *options.ignore_index, where);
    weights = lockstep::where(ignored, 0, weights, where);
    losses = lockstep::where(ignored, 0, losses, where);
  }
  if (options.reduction != Reduction::Mean) return reduced(losses, options.reduction, where);
  Tensor total = sum(losses, {}, {}, where);
  return div(total, sum(weights, {}, {}, where), where);
}

Tensor cross_entropy(Tensor logits, Tensor targets, CrossEntropyOptions options, Where where) {
  static constexpr std::array<const char*, 3> kNames{"none", "mean", "sum"};
  graph::Attributes attributes{{"reduction", std::string(kNames.at(static_cast<size_t>(options.reduction)))}};
  if (options.ignore_index) attributes.set("ignore_index", *options.ignore_index);
  if (options.label_smoothing != 0) attributes.set("label_smoothing", options.label_smoothing);
  if (!options.class_weights) return emit("cross_entropy", {logits, targets}, std::move(attributes), where);
  return emit("cross_entropy", {logits, targets, *options.class_weights}, std::move(attributes), where);
}

// log p = -softplus(-x) and log(1 - p) = -softplus(x).
Tensor bce_with_logits(Tensor logits, Tensor targets, Reduction reduction, Where where) {
  check("bce_with_logits", logits, targets, where);
  Tensor of_ones = mul(targets, softplus(neg(logits, where), where), where);
  Tensor zeros = sub(1, targets, where);
  Tensor of_zeros = mul(zeros, softplus(logits, where), where);
  return reduced(add(of_ones, of_zeros, where), reduction, where);
}

// log p is taken of 1 where p is 0: an infinite logarithm would make gradients NaN.
Tensor kl_div(Tensor log_q, Tensor p, Reduction reduction, Where where) {
  check("kl_div", log_q, p, where);
  Tensor positive = lockstep::where(greater(p, 0, where), p, 1, where);
  Tensor difference = sub(log(positive, where), log_q, where);
  return reduced(mul(p, difference, where), reduction, where);
}

}  // namespace lockstep
