// SPDX-License-Identifier: Apache-2.0
// RGB pictures and their PNG files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "ir/support/result.h"
#include "ir/support/where.h"

namespace lockstep::io {

using Color = std::array<uint8_t, 3>;  ///< red, green, blue

/// Rows from the top, 3 bytes per pixel.
class Image {
 public:
  /// Error "image.size" for one without pixels.
  Image(int width, int height, Color background, Where where = Where::current());
  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Color at(int x, int y) const;
  /// Outside the picture nothing happens.
  void set(int x, int y, Color color);
  void fillRectangle(int x, int y, int width, int height, Color color);
  /// A straight line of the given width in pixels.
  void drawLine(double x0, double y0, double x1, double y1, Color color, double width);
  [[nodiscard]] const std::vector<uint8_t>& pixels() const { return pixels_; }

 private:
  int width_, height_;
  std::vector<uint8_t> pixels_;
};

/// code "png.encode".
Result<std::vector<std::byte>> formatPng(const Image& image);
/// Writes atomically.
Status writePng(const std::filesystem::path& path, const Image& image);

}  // namespace lockstep::io
