// SPDX-License-Identifier: Apache-2.0
// WGSL's answers where the naive SPIR-V instruction is undefined or answers otherwise.
#include <climits>
#include <cmath>
#include <limits>

#include "tests/backends/vulkan/harness.h"

namespace lockstep::vulkan::testing {
namespace {

using Semantics = VulkanTest;

constexpr int32_t kMin = INT32_MIN;
constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

TEST_F(Semantics, signed_division) {
  Words q = mapWords("i32", "i32", "    %r: i32 = div %a, %b", words(Ints{7, -7, 7, kMin, 5, kMin}), words(Ints{2, 2, -2, -1, 0, 0}));
  EXPECT_EQ(q, words(Ints{3, -3, -3, kMin, 5, kMin}));
  Words r = mapWords("i32", "i32", "    %r: i32 = rem %a, %b", words(Ints{7, -7, 7, kMin, 5, kMin}), words(Ints{4, 4, -4, -1, 0, 0}));
  EXPECT_EQ(r, words(Ints{3, -3, 3, 0, 0, 0}));
}

TEST_F(Semantics, unsigned_division) {
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = div %a, %b", {7, UINT_MAX, 9}, {2, 1, 0}), (Words{3, UINT_MAX, 9}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = rem %a, %b", {7, UINT_MAX, 9}, {4, 10, 0}), (Words{3, 5, 0}));
}

TEST_F(Semantics, division_of_vectors) {
  const std::string body = R"(
    %x: vec2<i32> = construct %a, %a
    %y: vec2<i32> = construct %b, 2i
    %q: vec2<i32> = div %x, %y
    %m: vec2<i32> = rem %x, %y
    %s: vec2<i32> = mul %m, 1000i32x
    %r: i32 = extract %q, 0u
)";
  std::string plain = body.substr(0, body.find("    %s:")) + "    %q0: i32 = extract %q, 0u\n    %m1: i32 = extract %m, 1u\n" +
                      "    %k: i32 = mul %m1, 1000i\n    %r: i32 = add %q0, %k\n";
  EXPECT_EQ(mapWords("i32", "i32", plain, words(Ints{-9, 8}), words(Ints{0, 3})), words(Ints{-9 - 1000, 2}));
}

TEST_F(Semantics, shifts_take_the_count_modulo_32) {
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = shl %a, %b", {1, 1, 3}, {4, 33, 32}), (Words{16, 2, 3}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = shr %a, %b", {0x80000000u, 256}, {31, 36}), (Words{1, 16}));
  EXPECT_EQ(mapWords("i32", "i32", "    %u: u32 = bitcast %b\n    %r: i32 = shr %a, %u", words(Ints{-8, -8}), words(Ints{1, 33})),
            words(Ints{-4, -4}));
}

TEST_F(Semantics, integers_wrap) {
  EXPECT_EQ(mapWords("i32", "i32", "    %r: i32 = add %a, %b", words(Ints{INT32_MAX, kMin}), words(Ints{1, -1})),
            words(Ints{kMin, INT32_MAX}));
  EXPECT_EQ(mapWords("i32", "i32", "    %r: i32 = mul %a, %b", words(Ints{65536}), words(Ints{65537})), words(Ints{65536}));
  EXPECT_EQ(mapWords("i32", "i32", "    %r: i32 = neg %a", words(Ints{kMin, 4})), words(Ints{kMin, -4}));
  EXPECT_EQ(mapWords("i32", "i32", "    %r: i32 = abs %a", words(Ints{kMin, -4, 4})), words(Ints{kMin, 4, 4}));
}

TEST_F(Semantics, clamp_with_crossed_bounds_is_min_of_max) {
  EXPECT_EQ(mapWords("i32", "i32", "    %r: i32 = clamp %a, %b, %c", words(Ints{0, 7}), words(Ints{5, 5}), words(Ints{2, 9})),
            words(Ints{2, 7}));
  EXPECT_EQ(mapWords("f32", "f32", "    %r: f32 = clamp %a, %b, %c", words(Floats{0, 7}), words(Floats{5, 5}), words(Floats{2, 9})),
            words(Floats{2, 7}));
}

TEST_F(Semantics, float_to_integer_clamps_then_truncates) {
  EXPECT_EQ(mapWords("f32", "i32", "    %r: i32 = convert %a", words(Floats{1.9f, -1.9f, 3e9f, -3e9f, kInf})),
            words(Ints{1, -1, 2147483520, kMin, 2147483520}));
  EXPECT_EQ(mapWords("f32", "u32", "    %r: u32 = convert %a", words(Floats{1.9f, -1.9f, 5e9f, -kInf})), (Words{1, 0, 4294967040u, 0}));
}

TEST_F(Semantics, nan_differs_from_itself) {
  const std::string body = "    %t: bool = ne %a, %b\n    %r: u32 = convert %t";
  EXPECT_EQ(mapWords("f32", "u32", body, words(Floats{kNan, 1, 2}), words(Floats{kNan, 1, 1})), (Words{1, 0, 1}));
  const std::string equal = "    %t: bool = eq %a, %b\n    %r: u32 = convert %t";
  EXPECT_EQ(mapWords("f32", "u32", equal, words(Floats{kNan, 1}), words(Floats{kNan, 1})), (Words{0, 1}));
}

TEST_F(Semantics, minimum_and_maximum_prefer_the_number) {
  EXPECT_EQ(floats(mapWords("f32", "f32", "    %r: f32 = min %a, %b", words(Floats{kNan, 1, 2}), words(Floats{3, kNan, 1}))),
            (Floats{3, 1, 1}));
  EXPECT_EQ(floats(mapWords("f32", "f32", "    %r: f32 = max %a, %b", words(Floats{kNan, 1, 2}), words(Floats{3, kNan, 1}))),
            (Floats{3, 1, 2}));
}

TEST_F(Semantics, rounding) {
  Floats x{0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f};
  EXPECT_EQ(floats(mapWords("f32", "f32", "    %r: f32 = round %a", words(x))), (Floats{0, 2, 2, -0.0f, -2, 2}));
  EXPECT_EQ(floats(mapWords("f32", "f32", "    %r: f32 = trunc %a", words(x))), (Floats{0, 1, 2, -0.0f, -1, 2}));
  EXPECT_EQ(floats(mapWords("f32", "f32", "    %r: f32 = rem %a, %b", words(Floats{5.5f, -5.5f}), words(Floats{2, 2}))),
            (Floats{1.5f, -1.5f}));
}

TEST_F(Semantics, tanh_of_large_arguments) {
  Floats y = floats(mapWords("f32", "f32", "    %r: f32 = tanh %a", words(Floats{100, -100, 0, 0.5f, kInf})));
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], -1.0f);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_NEAR(y[3], std::tanh(0.5), 2e-5);
  EXPECT_EQ(y[4], 1.0f);
}

TEST_F(Semantics, bit_counting) {
  Words x{0, 1, 0x80000000u, UINT_MAX, 0x00f0u};
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = count_leading_zeros %a", x), (Words{32, 31, 0, 0, 24}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = count_trailing_zeros %a", x), (Words{32, 0, 31, 0, 4}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = count_one_bits %a", x), (Words{0, 1, 1, 32, 4}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = first_leading_bit %a", x), (Words{UINT_MAX, 0, 31, 31, 7}));
  EXPECT_EQ(mapWords("i32", "i32", "    %r: i32 = first_leading_bit %a", words(Ints{0, -1, 1, -2})), words(Ints{-1, -1, 0, 0}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = first_trailing_bit %a", x), (Words{UINT_MAX, 0, 31, 0, 4}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = reverse_bits %a", {1, 0xf0000000u}), (Words{0x80000000u, 0xfu}));
}

TEST_F(Semantics, bit_fields_are_clamped_to_the_word) {
  EXPECT_EQ(
      mapWords("u32", "u32", "    %r: u32 = extract_bits %a, %b, %c", {0xabcdu, 0xabcdu, UINT_MAX, 0xffu}, {4, 4, 28, 40}, {8, 0, 20, 3}),
      (Words{0xbcu, 0, 0xfu, 0}));
  EXPECT_EQ(mapWords("u32", "u32", "    %r: u32 = insert_bits %a, 0xffffffffu, %b, %c", {0, 7, 0, 9}, {4, 0, 28, 40}, {8, 0, 20, 3}),
            (Words{0xff0u, 7, 0xf0000000u, 9}));
}

TEST_F(Semantics, select_takes_the_false_value_first) {
  const std::string body = "    %t: bool = lt %a, %b\n    %r: u32 = select 10u, 20u, %t";
  EXPECT_EQ(mapWords("u32", "u32", body, {1, 2}, {2, 1}), (Words{20, 10}));
}

TEST_F(Semantics, strict_multiply_add_is_not_fused) {
  // a * a rounds to 1 + 2^-11; fused, a * a - c would keep the 2^-24 that the product loses.
  float a = 1.0f + 0x1p-12f, product = a * a;
  Words r =
      mapWords("f32", "f32", "    %m: f32 = strict mul %a, %a\n    %r: f32 = strict sub %m, %b", words(Floats{a}), words(Floats{product}));
  EXPECT_EQ(floats(r), Floats{0.0f});
}

TEST_F(Semantics, strict_dot_and_matrix_products_sum_in_order) {
  const std::string body = R"(
    %x: vec3<f32> = construct %a, %b, %c
    %d: f32 = strict dot %x, %x
    %m: mat3x3<f32> = construct %x, %x, %x
    %y: vec3<f32> = strict matmul %m, %x
    %y1: f32 = extract %y, 1u
    %r: f32 = strict add %d, %y1
)";
  float a = 1.5f, b = -2.25f, c = 0.125f;
  float dot = a * a + b * b + c * c;
  float y1 = b * a + b * b + b * c;
  EXPECT_NEAR(floats(mapWords("f32", "f32", body, words(Floats{a}), words(Floats{b}), words(Floats{c})))[0], dot + y1, 1e-6);
}

TEST_F(Semantics, conversions_and_bitcasts) {
  EXPECT_EQ(mapWords("f32", "u32", "    %t: bool = convert %a\n    %r: u32 = convert %t", words(Floats{0, -0.0f, 2, kNan})),
            (Words{0, 0, 1, 1}));
  EXPECT_EQ(mapWords("f32", "u32", "    %r: u32 = bitcast %a", words(Floats{-1.5f})), (Words{bits(-1.5f)}));
  EXPECT_EQ(floats(mapWords("i32", "f32", "    %r: f32 = convert %a", words(Ints{-3, 16777217}))), (Floats{-3, 16777216}));
  EXPECT_EQ(
      mapWords("f32", "u32", "    %v: vec2<f32> = construct %a, %b\n    %r: u32 = pack_2x16float %v", words(Floats{1}), words(Floats{-2})),
      (Words{0xc0003c00u}));
}

TEST_F(Semantics, half_precision) {
  if (!device()->device().profile.f16) GTEST_SKIP() << "the device has no f16";
  const std::string body = R"(
    %h: f16 = convert %a
    %k: f16 = convert %b
    %v: vec2<f16> = construct %h, %k
    %u: u32 = bitcast %v
    %w: vec2<f16> = bitcast %u
    %x: f16 = extract %w, 1u
    %y: f16 = mul %h, %x
    %r: f32 = convert %y
)";
  EXPECT_EQ(floats(mapWords("f32", "f32", body, words(Floats{1.5f, 2049, -0.25f}), words(Floats{2, 1, 4}))), (Floats{3, 2048, -1}));
}

}  // namespace
}  // namespace lockstep::vulkan::testing
