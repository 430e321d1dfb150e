// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ir/support/narrow_float.h"

namespace lockstep {
namespace {

struct Format {
  float (*widen)(uint16_t);
  uint16_t (*narrow)(double);
};
constexpr Format kFormats[] = {{halfToFloat, doubleToHalf}, {bfloat16ToFloat, doubleToBfloat16}};

TEST(NarrowFloat, every_pattern_comes_back) {
  for (const Format& format : kFormats) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float wide = format.widen(static_cast<uint16_t>(bits));
      const uint16_t back = format.narrow(wide);
      if (std::isnan(wide)) {
        EXPECT_TRUE(std::isnan(format.widen(back))) << bits;
      } else {
        EXPECT_EQ(back, bits);
      }
    }
  }
}

TEST(NarrowFloat, what_lies_between_goes_to_the_nearer_one_and_ties_to_even) {
  for (const Format& format : kFormats) {
    for (uint32_t bits = 0; std::isfinite(format.widen(static_cast<uint16_t>(bits + 1))); ++bits) {
      const double low = format.widen(static_cast<uint16_t>(bits)), high = format.widen(static_cast<uint16_t>(bits + 1));
      const double middle = (low + high) / 2;  // exact
      EXPECT_EQ(format.narrow(middle), bits % 2 == 0 ? bits : bits + 1);
      EXPECT_EQ(format.narrow(std::nextafter(middle, low)), bits);
      EXPECT_EQ(format.narrow(-std::nextafter(middle, high)), (bits + 1) | 0x8000u);
    }
  }
}

TEST(NarrowFloat, what_is_too_large_is_infinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(doubleToHalf(65519.99), 0x7bff);
  EXPECT_EQ(doubleToHalf(65520), 0x7c00);
  EXPECT_EQ(doubleToHalf(-infinity), 0xfc00);
  EXPECT_EQ(doubleToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(doubleToBfloat16(0x1.feffp127), 0x7f7f);
  EXPECT_EQ(doubleToBfloat16(-infinity), 0xff80);
  EXPECT_TRUE(std::isnan(bfloat16ToFloat(doubleToBfloat16(std::nan("")))));
}

}  // namespace
}  // namespace lockstep
