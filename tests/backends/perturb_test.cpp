// SPDX-License-Identifier: Apache-2.0
// The reference with the arithmetic of other devices.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "backends/perturb.h"
#include "tests/backends/run_on_device.h"

namespace lockstep {
namespace {

/// y[i] = x[i] / 3, z[i] = x[i] * x[i] + w, s[i] = the product of two small numbers, for 64 invocations.
constexpr std::string_view kText = R"(lockstep.kernel 1
var @x: array<f32, 64> {access = read, binding = 0, group = 0, space = storage}
var @y: array<f32, 192> {access = read_write, binding = 1, group = 0, space = storage}

fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [64, 1, 1]} {
  %0: ptr<storage, f32, read> = access @x, %i
  %1: f32 = load %0
  %2: f32 = div %1, 3.0f
  %3: ptr<storage, f32, read_write> = access @y, %i
  store %3, %2
  %4: f32 = mul %1, %1
  %5: f32 = add %4, -1.0f
  %6: u32 = add %i, 64u
  %7: ptr<storage, f32, read_write> = access @y, %6
  store %7, %5
  %8: f32 = mul %1, 1.17549435e-38f
  %9: f32 = mul %8, 0.25f
  %10: u32 = add %i, 128u
  %11: ptr<storage, f32, read_write> = access @y, %10
  store %11, %9
  return
}
)";

constexpr size_t kCount = 64;
float input(size_t i) { return (i % 2 == 0 ? 1.0f : -1.0f) * (1 + static_cast<float>(i) * 0x1.2345p-10f); }

std::vector<float> resultsOn(const std::string& device) {
  std::vector<float> x;
  for (size_t i = 0; i < kCount; ++i) x.push_back(input(i));
  std::vector<float> results;
  for (const uint32_t word : testing::runOnDevice(kText, device, x, 3 * kCount)) results.push_back(std::bit_cast<float>(word));
  return results;
}

double third(size_t i) { return static_cast<double>(input(i)) / 3; }

TEST(Perturb, rounding_takes_either_neighbour_and_repeats_itself) {
  const std::vector<float> plain = resultsOn("reference"), first = resultsOn("reference:perturb=rounding@3");
  size_t different = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const float other = std::nextafter(plain[i], third(i) > plain[i] ? HUGE_VALF : -HUGE_VALF);
    EXPECT_TRUE(first[i] == plain[i] || first[i] == other) << i;
    different += first[i] == plain[i] ? 0 : 1;
  }
  EXPECT_GT(different, kCount / 4);
  EXPECT_LT(different, kCount * 3 / 4);
  EXPECT_EQ(first, resultsOn("reference:perturb=rounding@3"));
  EXPECT_NE(first, resultsOn("reference:perturb=rounding@4"));
}

TEST(Perturb, truncation_is_towards_zero) {
  const std::vector<float> plain = resultsOn("reference"), truncated = resultsOn("reference:perturb=truncation");
  size_t different = 0;
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_LE(std::abs(static_cast<double>(truncated[i])), std::abs(third(i))) << i;
    EXPECT_GT(std::abs(static_cast<double>(std::nextafter(truncated[i], truncated[i] * 2))), std::abs(third(i))) << i;
    different += truncated[i] == plain[i] ? 0 : 1;
  }
  EXPECT_GT(different, kCount / 4);
}

TEST(Perturb, contraction_rounds_once) {
  const std::vector<float> plain = resultsOn("reference"), contracted = resultsOn("reference:perturb=contraction");
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(contracted[kCount + i], std::fma(input(i), input(i), -1.0f)) << i;
  EXPECT_NE(plain, contracted);
}

TEST(Perturb, flush_makes_subnormals_zero_and_keeps_their_sign) {
  const std::vector<float> plain = resultsOn("reference"), flushed = resultsOn("reference:perturb=flush");
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(std::fpclassify(plain[2 * kCount + i]), FP_SUBNORMAL) << i;
    EXPECT_EQ(flushed[2 * kCount + i], 0.0f) << i;
    EXPECT_EQ(std::signbit(flushed[2 * kCount + i]), input(i) < 0) << i;
    EXPECT_EQ(flushed[i], plain[i]) << i;
  }
}

TEST(Perturb, lists_that_mean_nothing_are_errors) {
  EXPECT_EQ(parsePerturbation("rounding+contraction+flush@7").orThrow(),
            (Perturbation{.rounding = true, .contraction = true, .flush = true, .seed = 7}));
  for (const std::string_view text : {"", "rounding+", "noise", "rounding@", "rounding@x", "rounding@1x", "rounding+truncation"}) {
    const Result<Perturbation> parsed = parsePerturbation(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.failure().diagnostics.front().code, "device.perturb") << text;
  }
}

}  // namespace
}  // namespace lockstep
