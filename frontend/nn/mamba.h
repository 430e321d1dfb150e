// SPDX-License-Identifier: Apache-2.0
// Mixers of state-space models, in place of attention: h = x + mixer(norm(x)). Each runs over a whole sequence or goes on from a state, so
// that a token costs the same wherever it is. Matrices lie as in x · W.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/ops/state_space.h"

namespace lockstep::nn {

/// What a mixer goes on from: values like any other, which can be kept, copied, or put together along the batch.
struct MixerState {
  Tensor inputs;  ///< [B, conv - 1, channels], what its convolution saw last
  Tensor hidden;  ///< Mamba1: [B, inner, states]; Mamba2: [B, heads, head_width, states], and one axis of 2 more where it is complex
};

struct Mamba1Options {
  int64_t states = 16;    ///< of each channel
  int64_t conv = 4;       ///< taps, at least 2
  int64_t expand = 2;     ///< inner width in widths
  int64_t step_rank = 0;  ///< of what step sizes are made of; 0: width / 16, rounded up
  bool bias = false;      ///< of in_proj and out_proj
  bool conv_bias = true;  ///< of the convolution
  bool x_bias = false;    ///< of x_proj
  Discretisation discretisation = Discretisation::Euler;
  double least_step = 1e-3, largest_step = 0.1;  ///< that channels begin with
  int64_t chunk = 16;
  Initializer init = init::randn();
  std::optional<bool> decay = {};  ///< of matrices
  WeightFormat format = {};        ///< of in_proj, x_proj and out_proj
};

/// u, z = in_proj(x); u = silu(conv(u)); step, b, c = x_proj(u); out_proj(scan(u, softplus(step dt_W + dt_b), -exp(A_log), b, c, D)
/// silu(z)) (Gu and Dao, 2023). A_log begins as log 1, log 2, ... for each channel (S4D-real). Error "mamba.options" for extents below 1
/// or with a product above 2^32, or a convolution of one tap.
class Mamba1 : public Module {
 public:
  Mamba1(Module& parent, std::string name, int64_t width, const Mamba1Options& options = {}, Where where = Where::current());
  /// x [B, L, width].
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  /// The same after all that went into the state, which becomes that after x. One step or many at a time give the same but for rounding.
  Tensor operator()(Tensor x, MixerState& state, Where where = Where::current()) const;
  /// The same where only the first count[b] (i32 [B], 0 to L) steps of row b go into its state: rows of different lengths in one batch.
  /// Results of the other steps are meaningless.
  Tensor operator()(Tensor x, MixerState& state, Tensor count, Where where = Where::current()) const;
  /// Before the first step: zeros.
  [[nodiscard]] MixerState state(int64_t batch, Where where = Where::current()) const;

  Linear in_proj;
  Parameter conv_W;                   ///< [inner, conv], whose last tap meets the current element
  std::unique_ptr<Parameter> conv_b;  ///< [inner]; null without a bias
  Linear x_proj;
  Parameter dt_W, dt_b;  ///< [step_rank, inner] and [inner]
  Parameter A_log, D;    ///< [inner, states] and [inner]
  Linear out_proj;

 private:
  Tensor mix(const Tensor& x, MixerState* state, const Tensor* count, const Where& where) const;
  int64_t rank_, states_, chunk_;
  Discretisation discretisation_;
};

struct Mamba2Options {
  int64_t states = 128;     ///< of each head
  int64_t conv = 4;         ///< taps, at least 2
  int64_t expand = 2;       ///< inner width in widths
  int64_t head_width = 64;  ///< a divisor of the inner width
  int64_t groups = 1;       ///< of heads with b and c of their own, a divisor of their number
  bool bias = false;        ///< of in_proj and out_proj
  bool conv_bias = true;    ///< of the convolution
  bool gate = true;         ///< false: without z, and the norm applies to the result of the scan
  bool activation = true;   ///< silu after the convolution
  bool complex = false;     ///< states are complex numbers: see Mamba2
  double eps = 1e-5;        ///< of the norm
  double least_step = 1e-3, largest_step = 0.1, least_rate = 1, largest_rate = 16;  ///< that heads begin with
  std::optional<std::pair<double, double>> step_limits = {};                        ///< that step sizes are kept within
  int64_t chunk = 64;
  Initializer init = init::randn();
  std::optional<bool> decay = {};  ///< of matrices
  WeightFormat format = {};        ///< of in_proj and out_proj
};

/// z, u, dt = in_proj(x); u, b, c = silu(conv(u)); out_proj(norm(ssd(u, softplus(dt + dt_bias), -exp(A_log), b, c, D) silu(z)))
/// (Dao and Gu, 2024). With .complex, complex_scan in place of ssd: b and c are pairs, and A_log has the logarithm of the rate of each head
/// and its frequency, which begins at 2 pi h / heads. Error "mamba.options" for extents below 1, with a product above 2^32 or
/// that do not divide each other, a convolution of one tap, or step limits that are no range.
class Mamba2 : public Module {
 public:
  Mamba2(Module& parent, std::string name, int64_t width, const Mamba2Options& options = {}, Where where = Where::current());
  /// x [B, L, width].
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  /// The same after all that went into the state, which becomes that after x. One step or many at a time give the same but for rounding.
  Tensor operator()(Tensor x, MixerState& state, Where where = Where::current()) const;
  /// The same where only the first count[b] (i32 [B], 0 to L) steps of row b go into its state: rows of different lengths in one batch.
  /// Results of the other steps are meaningless.
  Tensor operator()(Tensor x, MixerState& state, Tensor count, Where where = Where::current()) const;
  /// Before the first step: zeros.
  [[nodiscard]] MixerState state(int64_t batch, Where where = Where::current()) const;

  Linear in_proj;                     ///< to z (with a gate), u, b, c and dt
  Parameter conv_W;                   ///< of u, b and c
  std::unique_ptr<Parameter> conv_b;  ///< null without a bias
  Parameter dt_bias, A_log, D;        ///< [heads]; A_log [heads, 2] where the state is complex
  RMSNorm norm;
  Linear out_proj;

 private:
  Tensor mix(const Tensor& x, MixerState* state, const Tensor* count, const Where& where) const;
  /// u [B, L, inner], dt [B, L, heads] as it is projected or, with limits, as it counts; b and c [B, L, groups states], or twice as many
  /// where they are complex.
  Tensor scan(const Tensor& u, const Tensor& dt, const Tensor& b, const Tensor& c, MixerState* state, const Where& where) const;
  int64_t inner_, heads_, groups_, states_, chunk_;
  bool gate_, activation_, complex_;
  std::optional<std::pair<double, double>> step_limits_;
};

struct Mamba3Options {
  int64_t states = 128;                          ///< of each head, an even number
  int64_t expand = 2;                            ///< inner width in widths
  int64_t head_width = 64;                       ///< a divisor of the inner width
  int64_t groups = 1;                            ///< of heads that read one b and c, a divisor of their number
  int64_t rank = 1;                              ///< inputs and outputs of a head per step (MIMO)
  bool bias = false;                             ///< of in_proj and out_proj
  double eps = 1e-5;                             ///< of the norms of b and c
  double least_step = 1e-3, largest_step = 0.1;  ///< that heads begin with
  int64_t chunk = 64;
  Initializer init = init::randn();
  std::optional<bool> decay = {};  ///< of matrices
  WeightFormat format = {};        ///< of in_proj and out_proj
};

/// z, u, b, c, dt, rate, mix, theta = in_proj(x); out_proj(scan(u, softplus(dt + dt_bias), -softplus(rate), sigmoid(mix), theta, norm_b(b)
/// + b_bias, norm_c(c) + c_bias, D) silu(z)), by trapezoidal_scan and without a convolution (Mamba-3, arXiv 2603.15569). With a rank above
/// 1 u and z are seen through rank scales of their channels each, u_W and z_W, and what they give is put together by those of y_W. Error
/// "mamba.options" for extents below 1, with a product above 2^32 or that do not come out even.
class Mamba3 : public Module {
 public:
  Mamba3(Module& parent, std::string name, int64_t width, const Mamba3Options& options = {}, Where where = Where::current());
  /// x [B, L, width].
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  /// The same after all that went into the state, which becomes that after x. One step or many at a time give the same but for rounding.
  Tensor operator()(Tensor x, TrapezoidalState& state, Where where = Where::current()) const;
  /// Before the first step: zeros.
  [[nodiscard]] TrapezoidalState state(int64_t batch, Where where = Where::current()) const;

  Linear in_proj;
  Parameter dt_bias, D;                      ///< [heads]
  RMSNorm norm_b, norm_c;                    ///< over states
  Parameter b_bias, c_bias;                  ///< [heads, rank, states], ones at first
  std::unique_ptr<Parameter> u_W, z_W, y_W;  ///< [heads, rank, head_width]; null where rank is 1
  Linear out_proj;

 private:
  Tensor mix(const Tensor& x, TrapezoidalState* state, const Where& where) const;
  int64_t inner_, heads_, groups_, rank_, states_, chunk_;
};

}  // namespace lockstep::nn
