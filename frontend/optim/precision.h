// SPDX-License-Identifier: Apache-2.0
// Mixed precision: .precision = ls::mixed(ls::bf16) of a CompileSpec. docs/training.md has the rules.
#pragma once

#include <cstdint>

#include "frontend/trace/tensor.h"
#include "ir/support/where.h"

namespace lockstep {

/// Of f16, whose smallest number is too large for many gradients: the loss counts `initial` times as much while gradients are computed, and
/// they are divided by it before anything else looks at them. A step in which they are not finite changes nothing but the scale, which is
/// halved, down to 1; after growth_interval updates in a row it is doubled, up to 2^24.
struct LossScaleOptions {
  double initial = 65536;          ///< a power of two from 1 to 2^24
  int64_t growth_interval = 2000;  ///< from 1 to 2^24
};

/// How products of tensors (matmul, einsum, convolutions, attention) are kept: f32, or rounded to f16 or bf16. Parameters, moments, norms,
/// softmax, losses and sums are f32 in any case. Products of f32 may be made by matrix units from two parts of f16 each, with errors below
/// those of plain f32 (docs/numerics.md), unless they are `strict`.
struct Precision {
  DType dtype = DType::F32;
  LossScaleOptions loss_scale = {};  ///< with f16 only
  bool strict = false;               ///< products of f32 are f32 multiplications and additions
};

/// Products of f32 in plain f32, also on devices with matrix units: .precision = ls::strict_f32.
inline constexpr Precision strict_f32{.dtype = DType::F32, .loss_scale = {}, .strict = true};

/// Error "precision.type" for a type other than f32, f16 and bf16, "precision.loss_scale" for numbers out of their ranges.
Precision mixed(DType dtype, LossScaleOptions loss_scale = {}, Where where = Where::current());

}  // namespace lockstep
