// SPDX-License-Identifier: Apache-2.0
#include "console/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lockstep::console {
namespace {

constexpr int kLabel = 10, kDotsAcross = 2, kDotsDown = 4;

/// Bits of U+2800 by row and column of the dot.
constexpr std::array<std::array<uint8_t, kDotsAcross>, kDotsDown> kDots = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

std::string braille(uint8_t dots) {
  if (dots == 0) return " ";
  return {static_cast<char>(0xe2), static_cast<char>(0xa0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3f))};
}

/// The mean of the finite values that fall on each of `count` dots, NaN where there are none.
std::vector<double> averaged(std::span<const float> values, int count) {
  std::vector<double> means(static_cast<size_t>(count), std::numeric_limits<double>::quiet_NaN());
  const size_t used = std::min(values.size(), means.size());  // few values are not stretched
  for (size_t dot = 0; dot < used; ++dot) {
    double sum = 0;
    int finite = 0;
    for (size_t i = dot * values.size() / used; i < (dot + 1) * values.size() / used; ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++finite;
    }
    if (finite > 0) means[dot] = sum / finite;
  }
  return means;
}

}  // namespace

std::vector<std::string> drawCurve(std::span<const float> values, int columns, int rows) {
  const int across = std::max(1, columns - kLabel) * kDotsAcross, down = std::max(1, rows) * kDotsDown;
  std::vector<double> heights = averaged(values, across);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double height : heights) {
    if (std::isnan(height)) continue;
    low = std::min(low, height);
    high = std::max(high, height);
  }
  if (low > high) return {};
  const bool logarithmic = low > 0 && high > 10 * low;
  auto scaled = [&](double height) { return logarithmic ? std::log(height) : height; };

  std::vector<std::vector<uint8_t>> cells(static_cast<size_t>(std::max(1, rows)),
                                          std::vector<uint8_t>(static_cast<size_t>(across / kDotsAcross), 0));
  for (int x = 0; x < across; ++x) {
    const double height = heights[static_cast<size_t>(x)];
    if (std::isnan(height)) continue;
    const double share = high > low ? (scaled(height) - scaled(low)) / (scaled(high) - scaled(low)) : 0;
    const int y = down - 1 - static_cast<int>(std::lround(share * (down - 1)));
    cells[static_cast<size_t>(y / kDotsDown)][static_cast<size_t>(x / kDotsAcross)] |=
        kDots[static_cast<size_t>(y % kDotsDown)][static_cast<size_t>(x % kDotsAcross)];
  }
  std::vector<std::string> lines;
  for (size_t row = 0; row < cells.size(); ++row) {
    const bool first = row == 0, last = row + 1 == cells.size();
    std::string line = first ? fmt::format("{:>8.3g} ", high) : last ? fmt::format("{:>8.3g} ", low) : std::string(kLabel - 1, ' ');
    line += "│";
    for (const uint8_t dots : cells[row]) line += braille(dots);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string sparkline(std::span<const double> values, size_t columns) {
  constexpr std::array<std::string_view, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.size() > columns) values = values.last(columns);
  double low = INFINITY, high = -INFINITY;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string text;
  for (const double value : values) {
    const double share = high > low ? (value - low) / (high - low) : 0;
    text += std::isfinite(value) ? kBlocks[static_cast<size_t>(std::lround(share * (kBlocks.size() - 1)))] : " ";
  }
  return text;
}

}  // namespace lockstep::console
