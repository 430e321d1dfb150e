// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/plot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/io/file.h"
#include "frontend/io/font.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

constexpr Color kWhite = {255, 255, 255};

size_t pixelsOf(const Image& image, Color color) {
  size_t count = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) count += image.at(x, y) == color ? 1 : 0;
  }
  return count;
}

TEST(Png, file_has_the_signature_and_the_size) {
  const testing::ScratchDirectory scratch("png");
  Image image(3, 2, kWhite);
  image.set(2, 1, {1, 2, 3});
  image.set(-1, 7, {9, 9, 9});
  EXPECT_EQ(image.at(2, 1), (Color{1, 2, 3}));
  ASSERT_TRUE(writePng(scratch / "a.png", image).ok());
  const auto bytes = readFile(scratch / "a.png");
  ASSERT_TRUE(bytes.ok());
  ASSERT_GT(bytes->size(), 24u);
  EXPECT_EQ((*bytes)[1], std::byte{'P'});
  EXPECT_EQ((*bytes)[19], std::byte{3});  // width
  EXPECT_EQ((*bytes)[23], std::byte{2});  // height
}

TEST(Font, digits_differ_and_unknown_is_a_box) {
  for (char a = '0'; a <= '9'; ++a) {
    for (char b = '0'; b < a; ++b) EXPECT_NE(glyphOf(a), glyphOf(b)) << a << b;
  }
  EXPECT_EQ(glyphOf('a'), glyphOf('A'));
  EXPECT_EQ(glyphOf('\x7f'), glyphOf('~'));
  EXPECT_EQ(textWidth("123", 2), 34);
}

TEST(Ticks, are_round_and_inside) {
  EXPECT_EQ(linearTicks(0, 1000, 5), (std::vector<double>{0, 200, 400, 600, 800, 1000}));
  EXPECT_EQ(linearTicks(1, 9, 4), (std::vector<double>{2, 4, 6, 8}));
  for (const double tick : linearTicks(-0.3, 0.41, 7)) {
    EXPECT_GE(tick, -0.3);
    EXPECT_LE(tick, 0.41);
  }
}

TEST(Plot, curve_falls_from_top_left_to_bottom_right) {
  Series series{.name = "loss", .x = {}, .y = {}};
  for (int step = 1; step <= 1000; ++step) {
    series.x.push_back(step);
    series.y.push_back(std::pow(10.0, -step / 250.0));
  }
  const Image image = plot({series}, {.title = "sine"});
  const auto firstInk = [&](int x) {
    for (int y = 60; y < image.height(); ++y) {
      const Color color = image.at(x, y);
      if (color[2] > 150 && color[0] < 100) return y;
    }
    return -1;
  };
  const int left = firstInk(150), middle = firstInk(500), right = firstInk(900);
  EXPECT_GT(left, 0);
  EXPECT_GT(middle, left + 100);
  EXPECT_GT(right, middle + 100);
  // A logarithmic axis makes an exponential a straight line.
  EXPECT_NEAR(middle - left, (right - left) * 350.0 / 750.0, 3);
}

TEST(Plot, values_that_cannot_be_drawn_leave_gaps) {
  const Image nothing = plot({}, {});
  const Image gaps = plot({{.name = "", .x = {1, 2, 3}, .y = {NAN, -1, INFINITY}}}, {});
  EXPECT_EQ(nothing.pixels(), gaps.pixels());
  const Image point = plot({{.name = "", .x = {5}, .y = {0.5}}}, {});
  EXPECT_GT(pixelsOf(point, {31, 111, 235}), 0u);
}

TEST(Plot, extreme_ranges_end) {
  plot({{.name = "a", .x = {0, 1}, .y = {1e-300, 1e300}}, {.name = "b", .x = {0, 1}, .y = {1, 1}}}, {});
  plot({{.name = "a", .x = {0, 1}, .y = {1.0, 1.0000001}}}, {});
  plot({{.name = "a", .x = {0, 1}, .y = {-1e300, 1e300}}}, {.log_y = false});
  plot({{.name = "a", .x = {1e15, 1e15 + 1}, .y = {3, 3}}}, {.log_y = false});
}

}  // namespace
}  // namespace lockstep::io
