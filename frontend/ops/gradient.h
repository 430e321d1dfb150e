// SPDX-License-Identifier: Apache-2.0
// Gradients inside a program. What they give are ordinary tensors, so they may be used, and differentiated again.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// d y / d x for each x of `wrt`, with its shape; zeros where y does not depend on x. y is an f32 scalar (error "grad.C2"); each x is an
/// f32 tensor (error "grad.C4") that y was computed from: a parameter, an input or any tensor in between. Error "grad.C5" where an op
/// without a gradient is on the only way from x to y.
std::vector<Tensor> grad(Tensor y, std::vector<Tensor> wrt, Where where = Where::current());

/// What the gradient of a custom_gradient sees.
struct BackwardCall {
  std::span<const Tensor> inputs;
  std::span<const Tensor> results;
  std::span<const Tensor> cotangents;  ///< d loss / d result, one per result
};
/// Results of `forward`, whose gradient is what `backward` says: one tensor for each input, with its shape, or Tensor() where nothing flows
/// back. Inputs and results are f32. Parameters and other tensors that `forward` uses beside its inputs get no gradient from here.
/// Errors "custom_gradient.C1" to "C3".
std::vector<Tensor> custom_gradient(std::vector<Tensor> inputs, const std::function<std::vector<Tensor>(std::span<const Tensor>)>& forward,
                                    const std::function<std::vector<Tensor>(const BackwardCall&)>& backward,
                                    Where where = Where::current());

/// The results of `forward`, f32; what it makes on the way is not kept for the backward pass but computed again there: less memory for more
/// work. Whatever it uses from outside, parameters included, gets its gradient as usual.
std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& forward, Where where = Where::current());
Tensor checkpoint(const std::function<Tensor()>& forward, Where where = Where::current());

}  // namespace lockstep
