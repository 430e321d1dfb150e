// SPDX-License-Identifier: Apache-2.0
// State-space models: recurrences whose coefficients depend on the input, and the short convolution before them.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/trace/tensor.h"

namespace lockstep {

struct CausalConvOptions {
  std::optional<Tensor> bias = {};  ///< [D]; none: 0
  std::optional<Tensor> tail = {};  ///< [B, K-1, D], the inputs before x, as the last call gave them; none: zeros
};
struct CausalConv {
  Tensor y;                    ///< [B, L, D]
  std::optional<Tensor> tail;  ///< [B, K-1, D], for the call that goes on after x; none where K is 1
};
/// y[b, t, d] = bias[d] + sum over k of w[d, k] x[b, t + k - (K - 1), d] for x [B, L, D] and w [D, K] (Gu and Dao 2023, Mamba; spec of
/// causal-conv1d). The last tap meets the current element, as PyTorch stores a padded depthwise Conv1d. x, w, bias and tail are f32, f16 or
/// bf16; sums and results are f32. Errors "causal_conv1d.C1" to ".C5" as in docs/ops.md.
CausalConv causal_conv1d(Tensor x, Tensor w, CausalConvOptions options = {}, Where where = Where::current());

}  // namespace lockstep
