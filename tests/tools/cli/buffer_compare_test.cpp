// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/buffer_compare.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "frontend/wgsl/wgsl.h"
#include "ir/support/narrow_float.h"
#include "tools/kernel/kernel_run.h"
#include "tools/kernel/scalars.h"

namespace lockstep::tools {
namespace {

/// A particle has 48 bytes: position at 0, id at 12, spin at 16 (columns of 8 bytes), half at 32 and 34, padding from 36 on.
constexpr std::string_view kParticles = R"(
enable f16;
struct Particle { position: vec3<f32>, id: u32, spin: mat2x2<f32>, half: vec2<f16> }
@group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
@compute @workgroup_size(1)
fn main() { particles[0].id = 1u; }
)";

class Buffers : public ::testing::Test {
 protected:
  Buffers() : module_(wgsl::read(kParticles, {.file_name = "particles.wgsl", .overrides = {}}).orThrow()) {
    for (size_t i = 0; i < 2; ++i) {
      for (const size_t at : {0, 4, 8, 16, 20, 24, 28}) put(want_, 48 * i + at, 2.0f);
      put(want_, 48 * i + 12, uint32_t{7});
      for (const size_t at : {32, 34}) put(want_, 48 * i + at, half(1));
    }
    got_ = want_;
  }
  template <class T>
  static void put(Bytes& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  static uint16_t half(double value) { return static_cast<uint16_t>(doubleToHalf(value)); }
  BufferDifference compare(const FloatTolerance& tolerance = {}) {
    return compareBuffers(module_, *findVariable(module_, {0, 0}), got_, want_, tolerance);
  }
  kernel::Module module_;
  Bytes want_ = Bytes(96), got_;
};

TEST_F(Buffers, equal_ones_have_all_their_numbers) {
  const BufferDifference same = compare();
  EXPECT_TRUE(same.numbers.equal());
  EXPECT_EQ(same.numbers.elements, 20u);
}

TEST_F(Buffers, floats_in_structs_vectors_and_matrices_are_floats) {
  put(got_, 48 + 4, std::nextafter(2.0f, 3.0f));
  const BufferDifference component = compare({.relative = 1e-6});
  EXPECT_TRUE(component.numbers.within());
  EXPECT_EQ(component.numbers.different, 1u);
  EXPECT_EQ(component.numbers.ulps, 1u);
  EXPECT_EQ(component.element, "[1].position.y");
  put(got_, 28, 2.5f);
  const BufferDifference entry = compare({.relative = 1e-6});
  EXPECT_EQ(entry.numbers.beyond, 1u);
  EXPECT_EQ(entry.element, "[0].spin[1].y");
  EXPECT_TRUE(compare({.absolute = 0.5}).numbers.within());
}

TEST_F(Buffers, integers_beside_floats_must_be_equal) {
  put(got_, 12, uint32_t{8});
  const BufferDifference found = compare({.relative = 1, .absolute = 100});
  EXPECT_FALSE(found.numbers.within());
  EXPECT_EQ(found.element, "[0].id");
  EXPECT_EQ(found.numbers.want, 7);
  EXPECT_EQ(found.numbers.ulps, 1u);
}

TEST_F(Buffers, halves_have_their_own_units_and_a_least_tolerance) {
  put(got_, 34, half(1 + 0x1p-10));
  const BufferDifference found = compare({.relative = 1e-5});
  EXPECT_TRUE(found.numbers.within());
  EXPECT_EQ(found.element, "[0].half.y");
  EXPECT_EQ(found.numbers.ulps, 1u);
  EXPECT_FALSE(compare().numbers.within());
  put(got_, 34, half(1 + 0x1p-6));
  EXPECT_FALSE(compare({.relative = 1e-5}).numbers.within());
  EXPECT_TRUE(compare({.relative = 0.1}).numbers.within());
}

TEST_F(Buffers, padding_may_differ) {
  put(got_, 36, uint32_t{1});
  put(got_, 92, uint32_t{1});
  EXPECT_TRUE(compare().numbers.equal());
}

TEST_F(Buffers, each_member_has_its_own_scale) {
  for (const size_t i : {0, 48}) put(want_, i + 16, 1e6f), put(got_, i + 16, 1e6f);
  put(want_, 0, 0.0f);
  put(got_, 0, 0.01f);
  // 1e-4 of the positions is less, of the spins it would be more.
  EXPECT_FALSE(compare({.of_typical = 1e-4}).numbers.within());
  EXPECT_FALSE(compare({.of_largest = 1e-4}).numbers.within());
  EXPECT_TRUE(compare({.of_typical = 1e-2}).numbers.within());
  EXPECT_TRUE(compare({.of_largest = 1e-2}).numbers.within());
}

TEST_F(Buffers, nans_are_equal_and_zeros_differ_in_their_bits) {
  put(want_, 0, std::bit_cast<float>(0x7fc00000u));
  put(got_, 0, std::bit_cast<float>(0x7fc00001u));
  EXPECT_TRUE(compare().numbers.equal());
  put(want_, 4, 0.0f);
  put(got_, 4, -0.0f);
  const BufferDifference zeros = compare();
  EXPECT_TRUE(zeros.numbers.within());
  EXPECT_EQ(zeros.numbers.different, 1u);
  EXPECT_EQ(zeros.element, "[0].position.y");
  put(got_, 0, 1.0f);
  EXPECT_FALSE(compare({.relative = 1, .absolute = 100}).numbers.within());
}

TEST(Halves, are_apart_by_the_halves_between_them) {
  EXPECT_EQ(ulpsBetweenHalves(0x3c00, 0x3c00), 0u);
  EXPECT_EQ(ulpsBetweenHalves(0x0000, 0x8000), 0u);
  EXPECT_EQ(ulpsBetweenHalves(0x0001, 0x8001), 2u);
  EXPECT_EQ(ulpsBetweenHalves(0x7e00, 0x7e01), 0u);
  EXPECT_EQ(ulpsBetweenHalves(0x7e00, 0x3c00), UINT64_MAX);
}

TEST(Numbers, have_the_digits_that_tell_them_apart) {
  EXPECT_EQ(numberText(4294967295.0), "4294967295");
  EXPECT_EQ(numberText(-3), "-3");
  EXPECT_EQ(numberText(static_cast<double>(0.1f)), "0.100000001");
  EXPECT_EQ(numberText(1e30), "1e+30");
}

}  // namespace
}  // namespace lockstep::tools
