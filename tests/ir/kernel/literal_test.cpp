// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/literal.h"
#include "ir/support/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::kernel {
namespace {

/// Reads what formatScalar wrote: a number with suffix, or "f32(0x...)".
std::optional<uint32_t> readBack(Scalar scalar, const std::string& text) {
  if (text.ends_with(")")) return parseScalar(Scalar::U32, text.substr(4, text.size() - 5));
  if (scalarOfSuffix(text.substr(text.size() - 1)) != scalar) return std::nullopt;
  return parseScalar(scalar, text.substr(0, text.size() - 1));
}

TEST(Literal, text_of_each_type) {
  EXPECT_EQ(formatScalar(Scalar::Bool, 1), "true");
  EXPECT_EQ(formatScalar(Scalar::I32, 0xfffffffcu), "-4i");
  EXPECT_EQ(formatScalar(Scalar::I32, 0x80000000u), "-2147483648i");
  EXPECT_EQ(formatScalar(Scalar::U32, UINT32_MAX), "4294967295u");
  EXPECT_EQ(formatScalar(Scalar::F32, 0x3fc00000u), "1.5f");
  EXPECT_EQ(formatScalar(Scalar::F32, 0x80000000u), "-0.0f");
  EXPECT_EQ(formatScalar(Scalar::F32, 0x3dcccccdu), "0.1f");
  EXPECT_EQ(formatScalar(Scalar::F32, 0x7fc00000u), "f32(0x7fc00000)");
  EXPECT_EQ(formatScalar(Scalar::F32, 0xff800000u), "f32(0xff800000)");
  EXPECT_EQ(formatScalar(Scalar::F16, 0x4000u), "2.0h");
  EXPECT_EQ(formatScalar(Scalar::F16, 0x2e66u), "0.1h");
  EXPECT_EQ(formatScalar(Scalar::F16, 0x7e00u), "f16(0x7e00)");
}

TEST(Literal, every_half_reads_back_to_its_bits) {
  for (uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    std::string text = formatScalar(Scalar::F16, bits);
    ASSERT_EQ(readBack(Scalar::F16, text), bits) << text;
  }
}

TEST(Literal, floats_read_back_to_their_bits) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    auto bits = static_cast<uint32_t>(random());
    std::string text = formatScalar(Scalar::F32, bits);
    ASSERT_EQ(readBack(Scalar::F32, text), bits) << text;
  }
}

TEST(Literal, every_half_round_trips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = halfToFloat(static_cast<uint16_t>(bits));
    if (value == value) {
      EXPECT_EQ(doubleToHalf(value), bits);
    }
  }
}

TEST(Literal, half_conversion_is_exact_and_rounds_to_even) {
  EXPECT_EQ(halfToFloat(0x3c01), 1.0009765625f);
  EXPECT_EQ(halfToFloat(0x0001), 5.9604644775390625e-8f);
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00)));
  EXPECT_EQ(doubleToHalf(65519.99), 0x7bff);
  EXPECT_EQ(doubleToHalf(65520.0), 0x7c00);
  EXPECT_EQ(doubleToHalf(1.0 + 0x1p-11), 0x3c00);  // half way: to the even neighbour
  EXPECT_EQ(doubleToHalf(1.0 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(doubleToHalf(0x1p-25), 0x0000);
  EXPECT_EQ(doubleToHalf(0x1.8p-25), 0x0001);
  EXPECT_EQ(doubleToHalf(2047.9 * 0x1p-25), 0x0400);  // the largest subnormals round up into the normal range
  EXPECT_EQ(doubleToHalf(-0.0), 0x8000);
}

TEST(Literal, values_out_of_range_are_rejected) {
  EXPECT_FALSE(parseScalar(Scalar::U32, "-1"));
  EXPECT_FALSE(parseScalar(Scalar::U32, "4294967296"));
  EXPECT_FALSE(parseScalar(Scalar::I32, "2147483648"));
  EXPECT_FALSE(parseScalar(Scalar::I32, "1.5"));
  EXPECT_FALSE(parseScalar(Scalar::F32, "1e39"));
  EXPECT_FALSE(parseScalar(Scalar::F32, "inf"));
  EXPECT_FALSE(parseScalar(Scalar::F32, "nan"));
  EXPECT_FALSE(parseScalar(Scalar::F16, "65520"));
  EXPECT_TRUE(parseScalar(Scalar::F16, "65519"));
}

}  // namespace
}  // namespace lockstep::kernel
