// SPDX-License-Identifier: Apache-2.0
// A line plot as a picture, enough for loss curves: axes, ticks with numbers, a logarithmic y axis, a legend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/png.h"

namespace lockstep::io {

struct Series {
  std::string name;
  std::vector<double> x, y;  ///< equal lengths; points that are not finite (or not positive on a logarithmic axis) leave a gap
};

struct PlotOptions {
  std::string title = {};
  std::string x_label = "step";
  std::string y_label = "loss";
  bool log_y = true;
  int width = 960, height = 600;
};

Image plot(const std::vector<Series>& series, const PlotOptions& options);

/// Draws text in a 5x7 bitmap font; `scale` pixels a dot. Letters without a glyph become a box; small letters show as capitals.
void drawText(Image& image, int x, int y, std::string_view text, Color color, int scale);
/// Width in pixels of what drawText draws.
int textWidth(std::string_view text, int scale);

/// At most `count` + 1 round numbers (1, 2 or 5 times a power of ten) that cover the range from inside.
std::vector<double> linearTicks(double low, double high, int count);

}  // namespace lockstep::io
