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
/// bf16; sums and results are f32. Errors "causal_conv1d.C1" to ".C6" as in docs/ops.md.
CausalConv causal_conv1d(Tensor x, Tensor w, CausalConvOptions options = {}, Where where = Where::current());

enum class Discretisation : uint8_t {
  Euler,         ///< beta is delta, as in the released Mamba-1 and Mamba-2
  ZeroOrderHold  ///< beta is expm1(delta a) / a, or delta where a is 0
};
struct SelectiveScanOptions {
  std::optional<Tensor> skip = {};  ///< [D], times u, added to y; none: 0 (the paper's D)
  std::optional<Tensor> gate = {};  ///< [B, L, D]: y, with the skip, times silu(gate) (the paper's z)
  bool softplus = false;            ///< delta becomes softplus(delta)
  Discretisation discretisation = Discretisation::Euler;
  std::optional<Tensor> initial = {};  ///< [B, D, N], the state before the first step; none: 0
  int64_t chunk = 16;                  ///< steps of which one state is kept: fewer take more memory, more take longer
};
struct SelectiveScan {
  Tensor y;      ///< [B, L, D]
  Tensor state;  ///< [B, D, N], after the last step
};
/// h_t = exp(delta_t a) h_(t-1) + beta_t b_t u_t and y_t = sum over n of c_t h_t + skip u_t, for u, delta [B, L, D], a [D, N] and b, c
/// [B, L, N] (Gu and Dao 2023, Mamba, equations 2 to 4). a is negative where states decay; models keep log(-a). Of the states [B, L, D, N]
/// only one per chunk is kept, also for gradients, which flow to all operands. Operands are f32, f16 or bf16, results f32.
/// Errors "selective_scan.C1" to ".C7" as in docs/ops.md, "selective_scan.options" for a skip or a gate of another shape.
SelectiveScan selective_scan(Tensor u, Tensor delta, Tensor a, Tensor b, Tensor c, SelectiveScanOptions options = {},
                             Where where = Where::current());

struct SsdOptions {
  std::optional<Tensor> skip = {};     ///< [H], times x, added to y; none: 0 (the paper's D)
  std::optional<Tensor> dt_bias = {};  ///< [H], added to dt before softplus; none: 0
  bool softplus = false;               ///< dt becomes softplus(dt)
  std::optional<Tensor> initial = {};  ///< [B, H, P, N], the state before the first step; none: 0
  int64_t chunk = 64;                  ///< steps that are computed by one product
};
struct Ssd {
  Tensor y;      ///< [B, L, H, P]
  Tensor state;  ///< [B, H, P, N], after the last step
};
/// S_t = exp(dt_t a) S_(t-1) + dt_t x_t b_t^T and y_t = S_t c_t + skip x_t, for x [B, L, H, P], dt [B, L, H], a [H] and b, c [B, L, G, N],
/// where head h reads those of group floor(h G / H) (Dao and Gu 2024, Transformers are SSMs; Mamba-2). a is negative where states decay.
/// Any length and any chunk give the same numbers but for rounding. Gradients flow to all operands. Operands are f32, f16 or bf16, results
/// f32. Errors "ssd.operands" and "ssd.options" for shapes that do not fit, "ssd.C4" to ".C6" as in docs/ops.md.
Ssd ssd(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, SsdOptions options = {}, Where where = Where::current());

/// What a trapezoidal scan goes on from.
struct TrapezoidalState {
  Tensor state;  ///< [B, H, P, N]
  Tensor x;      ///< [B, H, R, P], of the last step
  Tensor b;      ///< [B, H, R, N], of the last step, turned
  Tensor angle;  ///< [B, H, N / 2]
};
struct TrapezoidalOptions {
  std::optional<Tensor> skip = {};               ///< [H], times x, added to y; none: 0
  std::optional<TrapezoidalState> initial = {};  ///< none: zeros
  int64_t chunk = 64;
};
struct TrapezoidalScan {
  Tensor y;  ///< as x
  TrapezoidalState last;
};
/// S_t = alpha_t S_(t-1) + beta_t x_(t-1) b'_(t-1)^T + gamma_t x_t b'_t^T and y_t = S_t c'_t + skip x_t with alpha = exp(dt a), beta =
/// (1 - mix) dt alpha and gamma = mix dt, where b' and c' are b and c with each pair (2 k, 2 k + 1) of states turned by minus the sum of
/// dt theta up to t (Mamba-3, arXiv 2603.15569). mix 1 is the rule of ssd, 1/2 the trapezoid. x [B, L, H, P], dt > 0, a < 0 and mix
/// [B, L, H], theta [B, L, H, N / 2], b and c [B, L, G, N]. With several inputs and outputs per step x is [B, L, H, R, P] and b, c
/// [B, L, G, R, N]: their R products are added up in one state (MIMO). Errors "trapezoidal_scan.operands" and ".options".
TrapezoidalScan trapezoidal_scan(Tensor x, Tensor dt, Tensor a, Tensor mix, Tensor theta, Tensor b, Tensor c,
                                 TrapezoidalOptions options = {}, Where where = Where::current());

struct ComplexScanOptions {
  std::optional<Tensor> skip = {};     ///< [H], times x, added to y; none: 0
  std::optional<Tensor> initial = {};  ///< [B, H, P, N, 2], the state before the first step; none: 0
  int64_t chunk = 64;
};
struct ComplexScan {
  Tensor y;      ///< [B, L, H, P]
  Tensor state;  ///< [B, H, P, N, 2], after the last step
};
/// h_t = e^(dt_t lambda) h_(t-1) + (e^(dt_t lambda) - 1) / lambda x_t b_t and y_t = Re(sum over n of c_t h_t) + skip x_t with complex
/// states and lambda = -e^log_rate + i frequency of each head (S4D, Gu and others 2022, with b and c that depend on the input). x [B, L, H,
/// P], dt [B, L, H], log_rate and frequency [H], b and c [B, L, G, N, 2]: real and imaginary parts lie side by side. Errors
/// "complex_scan.operands" and ".options".
ComplexScan complex_scan(Tensor x, Tensor dt, Tensor log_rate, Tensor frequency, Tensor b, Tensor c, ComplexScanOptions options = {},
                         Where where = Where::current());

}  // namespace lockstep
