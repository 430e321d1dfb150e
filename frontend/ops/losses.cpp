// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/losses.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "frontend/ops/element.h"
#include "frontend/ops/index.h"
#include "frontend/ops/network.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::emit;
using detail::raise;

namespace {

void check(const std::string& loss, const Tensor& x, const Tensor& y, const Where& where) {
  detail::Trace::require(loss, where);
  if (x.dtype(where) != DType::F32 || y.dtype(where) != DType::F32) {
    raise(loss + ".C1", fmt::format("operands are {} and {}, wanted f32", toString(x.type(where)), toString(y.type(where))), {x, y}, where,
          "declare the input as ls::f32(...), or cast(y, ls::DType::F32)");
  }
  if (x.shape(where) != y.shape(where)) {
    raise(loss + ".C2", fmt::format("operands have shapes {} and {}", toString(x.shape(where)), toString(y.shape(where))), {x, y}, where,
          "reshape one of them, or broadcast_to");
  }
}

/// What class numbers should be like, for what was given instead.
std::string remedyForTargets(const TensorType& logits, const TensorType& targets) {
  const std::vector<int64_t> wide = logits.shape.extents(), narrow = targets.shape.extents();
  if (wide == narrow) return "targets are class numbers: argmax(targets, -1) of rows with a one or a probability for each class";
  if (narrow.size() == wide.size() && narrow.back() == 1) return "squeeze(targets, -1) takes the last axis away";
  if (targets.dtype != DType::I32) return "declare the targets as ls::i32(...), or cast(targets, ls::DType::I32)";
  // PyTorch has the classes after the batch.
  if (wide.size() > 2 && narrow.size() + 1 == wide.size()) {
    std::vector<int64_t> moved = wide;
    moved.erase(moved.begin() + 1);
    if (moved == narrow) {
      std::string order = "0";
      for (size_t axis = 2; axis < wide.size(); ++axis) order += fmt::format(", {}", axis);
      return fmt::format("classes are the last axis here: permute(logits, {{{}, 1}})", order);
    }
  }
  return "give one target for each row of classes";
}

/// The rules that cross_entropy and nll_loss share: C1 and C2 of nll_loss, C1 to C3 of cross_entropy.
void checkTargets(const std::string& loss, std::string_view scores, const Tensor& x, const Tensor& targets, const Where& where) {
  detail::Trace::require(loss, where);
  const TensorType &type = x.type(where), &given = targets.type(where);
  const bool one_code = loss == "nll_loss";
  if (type.dtype != DType::F32)
    raise(loss + ".C1", fmt::format("the {} are {}, wanted f32", scores, toString(type)), {x, targets}, where, "cast them to f32");
  if (given.dtype != DType::I32) {
    raise(loss + (one_code ? ".C1" : ".C2"), fmt::format("the targets are {}, wanted i32 class numbers", toString(given)), {x, targets},
          where, remedyForTargets(type, given));
  }
  std::vector<int64_t> rows = type.shape.extents();
  if (!rows.empty()) rows.pop_back();
  if (type.shape.rank() > 0 && Shape(rows) == given.shape) return;
  const std::string wanted = type.shape.rank() == 0 ? "a last axis of classes" : toString(TensorType{DType::I32, Shape(rows)});
  raise(loss + (one_code ? ".C2" : ".C3"),
        fmt::format("the {} are {} and the targets {}, wanted {}", scores, toString(type), toString(given), wanted), {x, targets}, where,
        remedyForTargets(type, given));
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
  if (!(delta > 0))
    raise("huber_loss.delta", fmt::format("delta is {}, wanted a positive number", delta), {x, y}, where, "1 is the usual one");
  Tensor distance = abs(sub(x, y, where), where);
  Tensor clipped = min(distance, delta, where);
  Tensor rest = sub(distance, mul(clipped, 0.5, where), where);
  return reduced(mul(clipped, rest, where), reduction, where);
}

Tensor nll_loss(Tensor log_probabilities, Tensor targets, NllOptions options, Where where) {
  checkTargets("nll_loss", "log-probabilities", log_probabilities, targets, where);
  const std::vector<int64_t> rows = targets.shape(where).extents();
  std::vector<int64_t> places = rows;
  places.push_back(1);
  // An ignored target is no place in the row.
  Tensor ignored = options.ignore_index ? equal(targets, *options.ignore_index, where) : Tensor();
  Tensor classes = options.ignore_index ? lockstep::where(ignored, 0, targets, where) : targets;
  auto ofTarget = [&](Tensor values) {
    Tensor taken = take_along_axis(values, reshape(classes, places, where), -1, where);
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
    weights = lockstep::where(ignored, 0, weights, where);
    losses = lockstep::where(ignored, 0, losses, where);
  }
  if (options.reduction != Reduction::Mean) return reduced(losses, options.reduction, where);
  Tensor total = sum(losses, {}, {}, where);
  return div(total, sum(weights, {}, {}, where), where);
}

Tensor cross_entropy(Tensor logits, Tensor targets, CrossEntropyOptions options, Where where) {
  static constexpr std::array<const char*, 3> kNames{"none", "mean", "sum"};
  checkTargets("cross_entropy", "logits", logits, targets, where);
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
