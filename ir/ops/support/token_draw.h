// SPDX-License-Identifier: Apache-2.0
// What drawing one of many logits shares: the rules, and the ranks of chunks of them by which a device follows the rules.
#pragma once

#include <string_view>
#include <vector>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

/// Elements of a line that are ranked together: a power of two, at most 1024, so that every device has the workgroup memory.
int64_t rankedChunk(int64_t length);

inline constexpr std::string_view kDrawSettings = "top_k is i32 [B]; top_p, min_p and uniform are f32 [B]";
/// The last four of `operands`: what is drawn with, for `lines` lines.
Status checkDrawSettings(std::string_view op, std::string_view label, std::span<const TensorType> operands, const Dim& lines);

/// The settings of a line; fractions are clamped to [0, 1] as a device does it. A setting that is NaN leaves nothing out; a random number
/// that is NaN draws the first.
struct DrawSettings {
  double top_k = 0, top_p = 1, min_p = 0, uniform = 0;
};
DrawSettings drawSettingsOf(const EvaluateContext& context, size_t first, size_t line);

/// Elements from the largest to the smallest.
struct Ranked {
  std::vector<double> ratios;   ///< e^(x - largest); where the largest is not finite, 1 for those that are the same and else 0
  std::vector<double> weights;  ///< the same as they are summed up
  std::vector<bool> tied;       ///< with the one before
};
/// The place of the one that the rules choose.
size_t drawRanked(const Ranked& ranked, const DrawSettings& settings);

/// The order of numbers by their bits as f32, with NaN above everything, and the number of such a key.
double orderingKey(double x);
double numberOfKey(double key);
/// Of a key beside the largest.
double drawWeight(double key, double largest);

}  // namespace lockstep::graph
