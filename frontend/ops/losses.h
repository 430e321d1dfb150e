// SPDX-License-Identifier: Apache-2.0
// Losses. Definitions and names follow PyTorch's; the mean over all elements is the default reduction. Operands are f32 unless said, and
// have one shape: a loss does not broadcast, since [N] against [N, 1] would silently compare everything with everything.
// Errors: "<loss>.C1" for an element type, "<loss>.C2" for shapes that differ, those of the op where one is named.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/trace/tensor.h"

namespace lockstep {

enum class Reduction : uint8_t { None, Mean, Sum };

/// (x - y)^2
Tensor mse_loss(Tensor x, Tensor y, Reduction reduction = Reduction::Mean, Where where = Where::current());
/// |x - y|
Tensor l1_loss(Tensor x, Tensor y, Reduction reduction = Reduction::Mean, Where where = Where::current());
/// d^2 / 2 where |d| <= delta and else delta (|d| - delta / 2), with d = x - y. Error "huber_loss.delta" unless delta > 0.
Tensor huber_loss(Tensor x, Tensor y, double delta = 1, Reduction reduction = Reduction::Mean, Where where = Where::current());

struct NllOptions {
  Reduction reduction = Reduction::Mean;
  std::optional<int64_t> ignore_index = {};  ///< rows with this target add 0 and do not count in the mean; none unless set
  std::optional<Tensor> class_weights = {};  ///< f32 [classes]: a row counts as much as its class; the mean divides by their sum
};
struct CrossEntropyOptions {
  Reduction reduction = Reduction::Mean;
  std::optional<int64_t> ignore_index = {};  ///< as in NllOptions
  std::optional<Tensor> class_weights = {};  ///< as in NllOptions
  double label_smoothing = 0;                ///< the part of the loss that is the (weighted) mean over all classes instead
};
/// -log_probabilities[target], for [..., classes] and i32 targets [...]. A target that is no class adds 0 but counts in the mean (with
/// class weights it has none and does not). Error "nll_loss.C2" unless there is one target for each row of classes.
Tensor nll_loss(Tensor log_probabilities, Tensor targets, NllOptions options = {}, Where where = Where::current());
/// nll_loss of log_softmax(logits): the op cross_entropy.
Tensor cross_entropy(Tensor logits, Tensor targets, CrossEntropyOptions options = {}, Where where = Where::current());

/// -(t log p + (1 - t) log(1 - p)) with p = sigmoid(logits) and t in [0, 1], without overflow or cancellation.
Tensor bce_with_logits(Tensor logits, Tensor targets, Reduction reduction = Reduction::Mean, Where where = Where::current());
/// p (log p - log q): the divergence of q from p. As in PyTorch the first operand is log q, the second p, an element with p = 0 adds 0, and
/// the mean is over all elements; the divergence itself is Reduction::Sum over the number of distributions.
Tensor kl_div(Tensor log_q, Tensor p, Reduction reduction = Reduction::Mean, Where where = Where::current());

}  // namespace lockstep
