// SPDX-License-Identifier: Apache-2.0
#include "console/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "console/terminal.h"

namespace lockstep::console {
namespace {

TEST(Curve, falls_from_the_top_left_to_the_bottom_right) {
  const std::vector<float> values{3, 2, 1, 0};
  EXPECT_EQ(drawCurve(values, 12, 1), (std::vector<std::string>{"       3 │⠑⢄"}));
}

TEST(Curve, axis_is_logarithmic_over_more_than_a_decade) {
  // A hundredth of the way down in value is half of the way down here.
  const std::vector<float> values{100, 100, 1, 1, 0.01f, 0.01f};
  EXPECT_EQ(drawCurve(values, 13, 3), (std::vector<std::string>{"     100 │⠉  ", "         │ ⠒ ", "    0.01 │  ⣀"}));
}

TEST(Curve, many_values_share_dots_and_gaps_stay) {
  std::vector<float> values(10'000, 5.0f);
  values[9'999] = NAN;
  const std::vector<std::string> lines = drawCurve(values, 20, 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "       5 │⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀");
  EXPECT_TRUE(drawCurve(std::vector<float>{NAN, INFINITY}, 20, 2).empty());
  EXPECT_TRUE(drawCurve({}, 20, 2).empty());
}

TEST(Sparkline, last_values_between_the_smallest_and_the_largest) {
  EXPECT_EQ(sparkline(std::vector<double>{9, 0, 1, 2, NAN, 7}, 5), "▁▂▃ █");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3}, 5), "▁▁");
  EXPECT_EQ(sparkline({}, 5), "");
}

TEST(Terminal, text_is_cut_between_characters) {
  EXPECT_EQ(cutToColumns("abc", 2), "ab");
  EXPECT_EQ(cutToColumns("äöü", 2), "äö");
  EXPECT_EQ(cutToColumns("ab", 5), "ab");
}

}  // namespace
}  // namespace lockstep::console
