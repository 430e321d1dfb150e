// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/png.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>

#include "frontend/io/file.h"

namespace lockstep::io {

Image::Image(int width, int height, Color background, Where where) : width_(width), height_(height) {
  if (width < 1 || height < 1) {
    throw Error({.code = "image.size",
                 .message = fmt::format("a picture of {} x {} has no pixels", width, height),
                 .where = {where.file_name(), where.line(), where.column()},
                 .notes = {},
                 .remedy = "make it at least 1 x 1"});
  }
  pixels_.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  fillRectangle(0, 0, width, height, background);
}

Color Image::at(int x, int y) const {
  const size_t base = (static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3;
  return {pixels_.at(base), pixels_.at(base + 1), pixels_.at(base + 2)};
}

void Image::set(int x, int y, Color color) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  const size_t base = (static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3;
  std::ranges::copy(color, pixels_.begin() + static_cast<ptrdiff_t>(base));
}

void Image::fillRectangle(int x, int y, int width, int height, Color color) {
  for (int row = y; row < y + height; ++row) {
    for (int column = x; column < x + width; ++column) set(column, row, color);
  }
}

void Image::drawLine(double x0, double y0, double x1, double y1, Color color, double width) {
  // Pixels whose centre is nearer than half the width, blended over one pixel at the edge.
  const double reach = width / 2 + 1;
  const double dx = x1 - x0, dy = y1 - y0;
  const double length2 = dx * dx + dy * dy;
  const int left = std::max(0, static_cast<int>(std::floor(std::min(x0, x1) - reach)));
  const int right = std::min(width_ - 1, static_cast<int>(std::ceil(std::max(x0, x1) + reach)));
  const int top = std::max(0, static_cast<int>(std::floor(std::min(y0, y1) - reach)));
  const int bottom = std::min(height_ - 1, static_cast<int>(std::ceil(std::max(y0, y1) + reach)));
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const double t = length2 == 0 ? 0 : std::clamp(((x - x0) * dx + (y - y0) * dy) / length2, 0.0, 1.0);
      const double distance = std::hypot(x - x0 - t * dx, y - y0 - t * dy);
      const double cover = std::clamp(width / 2 + 0.5 - distance, 0.0, 1.0);
      if (cover <= 0) continue;
      const Color below = at(x, y);
      Color mixed{};
      for (size_t c = 0; c < 3; ++c) mixed[c] = static_cast<uint8_t>(std::lround(color[c] * cover + below[c] * (1 - cover)));
      set(x, y, mixed);
    }
  }
}

Result<std::vector<std::byte>> formatPng(const Image& image) {
  // libpng's simplified interface reports errors in the structure and never longjmps through our frames.
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width());
  header.height = static_cast<png_uint_32>(image.height());
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> bytes(size);
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.pixels().data(), 0, nullptr) == 0) {
    return fail("png.encode", std::string("the picture cannot be encoded: ") + header.message);
  }
  bytes.resize(size);
  return bytes;
}

Status writePng(const std::filesystem::path& path, const Image& image) {
  LS_TRY(const std::vector<std::byte> bytes, formatPng(image));
  return writeFileAtomically(path, bytes);
}

}  // namespace lockstep::io
