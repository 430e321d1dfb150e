// SPDX-License-Identifier: Apache-2.0
// Handwritten digits: MNIST's files where there are any, else digits that are drawn here, with strokes that differ each time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/png.h"

namespace lockstep::examples {

inline constexpr size_t kDigitSide = 28, kDigitPixels = kDigitSide * kDigitSide;

struct Digits {
  std::vector<float> pixels;    ///< [count, 28, 28] in [0, 1], 0 is paper
  std::vector<int32_t> labels;  ///< [count]
  [[nodiscard]] size_t count() const { return labels.size(); }
};

/// Every digit as often as the others, give or take one; the same for the same seed.
Digits drawDigits(size_t count, uint64_t seed);

struct DigitData {
  Digits train, test;
};
/// The four IDX files of MNIST in `folder`, packed or not; 8192 and 2048 drawn digits when it is empty. Throws Error "data.digits" for
/// files that do not fit together, and those of readIdx().
DigitData loadDigits(const std::string& folder, uint64_t seed);

/// Pictures [count, 28, 28] in a grid, `columns` in a row, each pixel `scale` pixels wide.
io::Image digitGrid(std::span<const float> pixels, size_t columns, int scale = 3);

}  // namespace lockstep::examples
