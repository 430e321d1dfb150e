// SPDX-License-Identifier: Apache-2.0
#include "examples/data/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "frontend/data/random.h"
#include "frontend/io/idx.h"

namespace lockstep::examples {
namespace {

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

/// From angle to angle in degrees; 0 is right, 90 down.
Stroke arc(Point centre, double rx, double ry, double from, double to) {
  constexpr int kParts = 14;
  Stroke stroke;
  for (int i = 0; i <= kParts; ++i) {
    const double angle = (from + (to - from) * i / kParts) * std::numbers::pi / 180;
    stroke.push_back({centre.x + rx * std::cos(angle), centre.y + ry * std::sin(angle)});
  }
  return stroke;
}

Stroke joined(Stroke a, const Stroke& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// In a box from (0, 0) at the top left to (1, 1); some digits are written in two ways.
std::vector<Stroke> strokesOf(int digit, bool other) {
  switch (digit) {
    case 0:
      return {arc({0.5, 0.5}, 0.27, 0.4, -90, 270)};
    case 1:
      return other ? std::vector<Stroke>{{{0.5, 0.1}, {0.5, 0.9}}} : std::vector<Stroke>{{{0.36, 0.26}, {0.53, 0.1}, {0.53, 0.9}}};
    case 2:
      return {joined(arc({0.48, 0.32}, 0.25, 0.22, -170, 30), {{0.26, 0.88}, {0.78, 0.88}})};
    case 3:
      return {joined(arc({0.46, 0.3}, 0.24, 0.2, -150, 85), arc({0.46, 0.69}, 0.28, 0.21, -85, 150))};
    case 4:
      return {{{0.58, 0.1}, {0.2, 0.6}, {0.82, 0.6}}, {{0.64, 0.36}, {0.62, 0.92}}};
    case 5:
      return {joined({{0.74, 0.1}, {0.34, 0.1}, {0.3, 0.46}}, arc({0.47, 0.66}, 0.27, 0.24, -115, 145))};
    case 6:
      return {joined({{0.66, 0.1}, {0.42, 0.3}, {0.29, 0.55}}, arc({0.51, 0.68}, 0.22, 0.21, 190, 550))};
    case 7:
      return other ? std::vector<Stroke>{{{0.22, 0.12}, {0.78, 0.12}, {0.42, 0.9}}, {{0.36, 0.5}, {0.72, 0.5}}}
                   : std::vector<Stroke>{{{0.22, 0.12}, {0.78, 0.12}, {0.42, 0.9}}};
    case 8:
      return {arc({0.5, 0.3}, 0.2, 0.19, -90, 270), arc({0.5, 0.69}, 0.25, 0.21, -90, 270)};
    default:
      return {joined(arc({0.49, 0.32}, 0.22, 0.21, 0, 360), {{0.69, 0.6}, {0.6, 0.9}})};
  }
}

/// Ink of a line of `radius` pixels: 1 within it, falling to 0 over one pixel.
void drawLine(std::span<float> pixels, Point a, Point b, double radius) {
  const auto low = [&](double from) { return std::max(0, static_cast<int>(std::floor(from - radius - 1))); };
  const auto high = [&](double to) { return std::min(static_cast<int>(kDigitSide) - 1, static_cast<int>(std::ceil(to + radius + 1))); };
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  for (int y = low(std::min(a.y, b.y)); y <= high(std::max(a.y, b.y)); ++y) {
    for (int x = low(std::min(a.x, b.x)); x <= high(std::max(a.x, b.x)); ++x) {
      const double along = length > 0 ? std::clamp(((x - a.x) * dx + (y - a.y) * dy) / length, 0.0, 1.0) : 0;
      const double distance = std::hypot(x - a.x - along * dx, y - a.y - along * dy);
      float& pixel = pixels[static_cast<size_t>(y) * kDigitSide + static_cast<size_t>(x)];
      pixel = std::max(pixel, static_cast<float>(std::clamp(radius + 0.5 - distance, 0.0, 1.0)));
    }
  }
}

void drawDigit(std::span<float> pixels, int digit, Random& random) {
  const double angle = random.uniform(-0.25, 0.25), slant = random.uniform(-0.25, 0.15), radius = random.uniform(0.7, 1.6);
  const double width = random.uniform(17, 23), height = random.uniform(18, 23);
  const Point centre{13.5 + random.uniform(-2, 2), 13.5 + random.uniform(-2, 2)};
  const double wobble = random.uniform(0, 0.06), phase = random.uniform(0, 6.3), waves = random.uniform(2, 5);
  const auto place = [&](Point p) {
    const double x = (p.x - 0.5 + wobble * std::sin(waves * p.y + phase)) * width,
                 y = (p.y - 0.5 + wobble * std::cos(waves * p.x + phase)) * height;
    const double slanted = x - slant * y;
    return Point{centre.x + slanted * std::cos(angle) - y * std::sin(angle), centre.y + slanted * std::sin(angle) + y * std::cos(angle)};
  };
  for (const Stroke& stroke : strokesOf(digit, random.below(2) == 0)) {
    for (size_t i = 0; i + 1 < stroke.size(); ++i) drawLine(pixels, place(stroke[i]), place(stroke[i + 1]), radius);
  }
  for (float& pixel : pixels)
    pixel = static_cast<float>(std::clamp(pixel * random.uniform(0.85, 1.0) + random.uniform(0, 0.05) - 0.02, 0.0, 1.0));
}

/// The first of the spellings of a file that exists.
std::filesystem::path findFile(const std::filesystem::path& folder, const std::string& stem, const std::string& kind) {
  std::error_code ignored;
  for (const std::string& name : {stem + "-" + kind, stem + "." + kind}) {
    for (const char* ending : {"", ".gz"}) {
      if (auto path = folder / (name + ending); std::filesystem::exists(path, ignored)) return path;
    }
  }
  throw Error(fail("data.digits", fmt::format("'{}' has no file {}-{}", folder.string(), stem, kind), {},
                   "--data names a folder with the four files of MNIST, packed (.gz) or not")
                  .diagnostics);
}

Digits readDigits(const std::filesystem::path& folder, const std::string& name) {
  const io::ByteArray images = io::readIdx(findFile(folder, name + "-images", "idx3-ubyte")).orThrow();
  const io::ByteArray labels = io::readIdx(findFile(folder, name + "-labels", "idx1-ubyte")).orThrow();
  const bool fits = images.shape.size() == 3 && images.shape[1] == kDigitSide && images.shape[2] == kDigitSide &&
                    labels.shape.size() == 1 && labels.shape[0] == images.shape[0] &&
                    std::ranges::all_of(labels.data, [](uint8_t label) { return label < 10; });
  if (!fits) {
    throw Error(fail("data.digits",
                     fmt::format("the files of '{}' in '{}' are not pictures of 28 x 28 with a digit each", name, folder.string()), {},
                     "--data names a folder with the four files of MNIST")
                    .diagnostics);
  }
  Digits digits{.pixels = {}, .labels = {labels.data.begin(), labels.data.end()}};
  for (const uint8_t pixel : images.data) digits.pixels.push_back(static_cast<float>(pixel) / 255);
  return digits;
}

}  // namespace

Digits drawDigits(size_t count, uint64_t seed) {
  Digits digits{.pixels = std::vector<float>(count * kDigitPixels, 0.0f), .labels = {}};
  for (size_t i = 0; i < count; ++i) {
    Random random(seed, i);
    digits.labels.push_back(static_cast<int32_t>(i % 10));
    drawDigit(std::span(digits.pixels).subspan(i * kDigitPixels, kDigitPixels), digits.labels.back(), random);
  }
  return digits;
}

DigitData loadDigits(const std::string& folder, uint64_t seed) {
  if (!folder.empty()) return {readDigits(folder, "train"), readDigits(folder, "t10k")};
  return {drawDigits(8192, seed), drawDigits(2048, seed + 0x9E3779B97F4A7C15u)};
}

io::Image digitGrid(std::span<const float> pixels, size_t columns, int scale) {
  const size_t count = pixels.size() / kDigitPixels, rows = (count + columns - 1) / columns;
  const int cell = static_cast<int>(kDigitSide + 1) * scale;
  io::Image image(static_cast<int>(columns) * cell + scale, static_cast<int>(rows) * cell + scale, {64, 64, 72});
  for (size_t i = 0; i < count * kDigitPixels; ++i) {
    const size_t digit = i / kDigitPixels, y = i % kDigitPixels / kDigitSide, x = i % kDigitSide;
    const auto grey = static_cast<uint8_t>(std::lround(std::clamp(pixels[i], 0.0f, 1.0f) * 255));
    image.fillRectangle(scale + static_cast<int>(digit % columns) * cell + static_cast<int>(x) * scale,
                        scale + static_cast<int>(digit / columns) * cell + static_cast<int>(y) * scale, scale, scale, {grey, grey, grey});
  }
  return image;
}

}  // namespace lockstep::examples
