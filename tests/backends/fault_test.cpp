// SPDX-License-Identifier: Apache-2.0
// The reference with a planted fault: what is off, by how much, and where.
#include <gtest/gtest.h>

#include <bit>

#include "backends/fault.h"
#include "tests/backends/run_on_device.h"

namespace lockstep {
namespace {

constexpr std::string_view kText = R"(lockstep.kernel 1
var @x: array<f32, 4> {access = read, binding = 0, group = 0, space = storage}
var @y: array<f32, 8> {access = read_write, binding = 1, group = 0, space = storage}

fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [4, 1, 1]} {
  %0: ptr<storage, f32, read> = access @x, %i
  %1: f32 = load %0
  %2: f32 = exp %1
  %3: ptr<storage, f32, read_write> = access @y, %i
  store %3, %2
  %4: vec2<f32> = construct %1, %2
  %5: vec2<f32> = exp %4
  %6: f32 = extract %5, 0u
  %7: u32 = add %i, 4u
  %8: ptr<storage, f32, read_write> = access @y, %7
  store %8, %6
  return
}
)";

std::vector<uint32_t> resultsOn(const std::string& device) {
  return testing::runOnDevice(kText, device, std::vector<float>{0, 1, -2.5f, 1000}, 8);
}

TEST(Fault, an_operation_is_off_by_the_given_distance_in_scalars_and_vectors) {
  const std::vector<uint32_t> right = resultsOn("reference"), wrong = resultsOn("reference:fault=exp+4ulp");
  for (size_t i = 0; i < 8; ++i) {
    const bool finite = std::isfinite(std::bit_cast<float>(right[i]));
    EXPECT_EQ(wrong[i], right[i] + (finite ? 4 : 0)) << i;
  }
  EXPECT_FALSE(std::isfinite(std::bit_cast<float>(right[3])));
  EXPECT_EQ(resultsOn("reference:fault=exp-2ulp")[1], right[1] - 2);
}

TEST(Fault, other_operations_integers_and_other_kernels_are_left_alone) {
  const std::vector<uint32_t> right = resultsOn("reference");
  EXPECT_EQ(resultsOn("reference:fault=add+4ulp"), right);  // the add is of u32
  EXPECT_EQ(resultsOn("reference:fault=exp+4ulp@mat"), right);
  EXPECT_NE(resultsOn("reference:fault=exp+4ulp@main"), right);
}

TEST(Fault, texts_that_say_nothing_are_refused) {
  EXPECT_EQ(parseFault("exp+4ulp").orThrow(), (Fault{kernel::Op::Exp, 4, ""}));
  EXPECT_EQ(parseFault("add-1ulp@k0_").orThrow(), (Fault{kernel::Op::Add, -1, "k0_"}));
  for (const char* text :
       {"", "exp", "exp+4", "exp+ulp", "exp+0ulp", "exp+99999999999ulp", "exq+4ulp", "load+1ulp", "exp+4ulp@", "clamp+-4ulp"}) {
    const auto parsed = parseFault(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.diagnostics().front().code, "device.fault");
  }
  EXPECT_FALSE(chooseDevice("reference:fault=exp").ok());
}

}  // namespace
}  // namespace lockstep
