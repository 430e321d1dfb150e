// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/io/font.h"

namespace lockstep::io {
namespace {

constexpr Color kWhite = {255, 255, 255};
constexpr Color kInk = {40, 44, 52};
constexpr Color kGrid = {226, 229, 234};
constexpr std::array<Color, 6> kPalette = {
    {{31, 111, 235}, {217, 95, 2}, {27, 158, 119}, {117, 112, 179}, {231, 41, 138}, {102, 102, 102}}};
constexpr int kScale = 2;
constexpr int kLeft = 110, kRight = 30, kTop = 50, kBottom = 70;

/// Maps data to pixels along one axis.
struct Axis {
  double low = 0, high = 1;  // after the logarithm
  double start = 0, end = 1;
  bool log = false;
  [[nodiscard]] double scaled(double value) const { return log ? std::log10(value) : value; }
  [[nodiscard]] double pixel(double value) const { return start + (scaled(value) - low) / (high - low) * (end - start); }
  [[nodiscard]] bool drawable(double value) const { return std::isfinite(value) && (!log || value > 0); }
};

struct Bounds {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// A range of positive length whatever was included.
  void makeUsable() {
    if (!(low <= high)) {
      low = 0;
      high = 1;
    }
    if (low == high) {
      const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
      low -= margin;
      high += margin;
    }
  }
};

std::string tickText(double value) {
  const double magnitude = std::abs(value);
  if (magnitude != 0 && (magnitude < 1e-3 || magnitude >= 1e6)) return fmt::format("{:.0e}", value);
  return fmt::format("{:.6g}", value);
}

/// Powers of ten inside the axis, with 2 and 5 times them when there are few.
std::vector<double> logTicks(double low, double high) {
  const bool dense = high - low < 2.5;
  std::vector<double> ticks;
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= static_cast<int>(std::ceil(high)); ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor != 1 && !dense) continue;
      const double tick = factor * std::pow(10.0, exponent);
      if (std::log10(tick) >= low - 1e-9 && std::log10(tick) <= high + 1e-9) ticks.push_back(tick);
    }
  }
  // Very long axes would print over each other.
  while (ticks.size() > 14) {
    std::vector<double> half;
    for (size_t i = 0; i < ticks.size(); i += 2) half.push_back(ticks[i]);
    ticks = std::move(half);
  }
  if (ticks.size() < 2) {
    ticks.clear();
    for (const double tick : linearTicks(std::pow(10.0, low), std::pow(10.0, high), 5)) {
      if (tick > 0) ticks.push_back(tick);
    }
  }
  return ticks;
}

void drawCurve(Image& image, const Series& series, const Axis& x_axis, const Axis& y_axis, Color color) {
  bool pen_down = false;
  double last_x = 0, last_y = 0;
  for (size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
    if (!x_axis.drawable(series.x[i]) || !y_axis.drawable(series.y[i])) {
      pen_down = false;
      continue;
    }
    const double x = x_axis.pixel(series.x[i]), y = y_axis.pixel(series.y[i]);
    image.drawLine(pen_down ? last_x : x, pen_down ? last_y : y, x, y, color, 2);
    last_x = x;
    last_y = y;
    pen_down = true;
  }
}

}  // namespace

std::vector<double> linearTicks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double fraction = rough / power;
  const double step = power * (fraction <= 1.0 + 1e-9 ? 1 : fraction <= 2.0 + 1e-9 ? 2 : fraction <= 5.0 + 1e-9 ? 5 : 10);
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double k = first; k * step <= high + step * 1e-9; ++k) ticks.push_back(k == 0 ? 0.0 : k * step);
  return ticks;
}

int textWidth(std::string_view text, int scale) {
  return text.empty() ? 0 : static_cast<int>(text.size()) * (kGlyphWidth + 1) * scale - scale;
}

void drawText(Image& image, int x, int y, std::string_view text, Color color, int scale) {
  for (const char c : text) {
    const Glyph& glyph = glyphOf(c);
    for (int row = 0; row < kGlyphHeight; ++row) {
      for (int column = 0; column < kGlyphWidth; ++column) {
        if ((glyph[static_cast<size_t>(row)] >> (kGlyphWidth - 1 - column)) & 1) {
          image.fillRectangle(x + column * scale, y + row * scale, scale, scale, color);
        }
      }
    }
    x += (kGlyphWidth + 1) * scale;
  }
}

Image plot(const std::vector<Series>& series, const PlotOptions& options) {
  const int width = std::max(options.width, 320), height = std::max(options.height, 240);
  Image image(width, height, kWhite);
  Axis x_axis{.start = kLeft, .end = static_cast<double>(width - kRight), .log = false};
  Axis y_axis{.start = static_cast<double>(height - kBottom), .end = kTop, .log = options.log_y};
  Bounds x_bounds, y_bounds;
  for (const Series& one : series) {
    for (size_t i = 0; i < std::min(one.x.size(), one.y.size()); ++i) {
      if (!x_axis.drawable(one.x[i]) || !y_axis.drawable(one.y[i])) continue;
      x_bounds.include(one.x[i]);
      y_bounds.include(y_axis.scaled(one.y[i]));
    }
  }
  x_bounds.makeUsable();
  y_bounds.makeUsable();
  const double margin = (y_bounds.high - y_bounds.low) * 0.04;
  x_axis.low = x_bounds.low;
  x_axis.high = x_bounds.high;
  y_axis.low = y_bounds.low - margin;
  y_axis.high = y_bounds.high + margin;

  const int bottom = height - kBottom, right = width - kRight;
  for (const double tick : linearTicks(x_axis.low, x_axis.high, 8)) {
    const int x = static_cast<int>(std::lround(x_axis.pixel(tick)));
    const std::string text = tickText(tick);
    image.fillRectangle(x, kTop, 1, bottom - kTop, kGrid);
    image.fillRectangle(x, bottom, 1, 6, kInk);
    drawText(image, x - textWidth(text, kScale) / 2, bottom + 12, text, kInk, kScale);
  }
  for (const double tick : options.log_y ? logTicks(y_axis.low, y_axis.high) : linearTicks(y_axis.low, y_axis.high, 8)) {
    const int y = static_cast<int>(std::lround(y_axis.pixel(tick)));
    const std::string text = tickText(tick);
    image.fillRectangle(kLeft, y, right - kLeft, 1, kGrid);
    image.fillRectangle(kLeft - 6, y, 6, 1, kInk);
    drawText(image, kLeft - 12 - textWidth(text, kScale), y - kGlyphHeight * kScale / 2, text, kInk, kScale);
  }
  for (size_t i = 0; i < series.size(); ++i) drawCurve(image, series[i], x_axis, y_axis, kPalette[i % kPalette.size()]);
  image.fillRectangle(kLeft, kTop, 2, bottom - kTop, kInk);
  image.fillRectangle(kLeft, bottom, right - kLeft, 2, kInk);

  drawText(image, (width - textWidth(options.title, kScale)) / 2, 18, options.title, kInk, kScale);
  drawText(image, (kLeft + right - textWidth(options.x_label, kScale)) / 2, height - 30, options.x_label, kInk, kScale);
  drawText(image, 12, 18, options.y_label, kInk, kScale);
  if (series.size() > 1) {
    int y = kTop + 12;
    for (size_t i = 0; i < series.size(); ++i, y += 22) {
      const int x = right - 40 - textWidth(series[i].name, kScale);
      image.fillRectangle(x, y + 5, 24, 4, kPalette[i % kPalette.size()]);
      drawText(image, x + 32, y, series[i].name, kInk, kScale);
    }
  }
  return image;
}

}  // namespace lockstep::io
