// SPDX-License-Identifier: Apache-2.0
#include "ir/program/profile.h"

#include <gtest/gtest.h>

#include "ir/support/text.h"
#include "tests/ir/text_testing.h"

namespace lockstep::program {
namespace {

TEST(Profile, print_parse_givesEveryNamedProfile) {
  ASSERT_EQ(namedProfiles().size(), 4u);
  for (const DeviceProfile& profile : namedProfiles()) {
    auto again = parseProfile(print(profile));
    ASSERT_TRUE(again.ok()) << toString(again.diagnostics());
    EXPECT_EQ(*again, profile);
    auto found = findProfile(profile.name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, profile);
  }
}

TEST(Profile, namedProfiles_differAsDocumented) {
  EXPECT_EQ(*findProfile("portable"), DeviceProfile{});
  EXPECT_TRUE(findProfile("webgpu_default")->whole_buffer_access);
  EXPECT_EQ(findProfile("small_bindings")->max_binding_bytes, 65536u);
  DeviceProfile cpu = *findProfile("cpu");
  EXPECT_EQ(cpu.style, ExecutionStyle::Cpu);
  EXPECT_EQ(cpu.max_workgroup_invocations, 1024u);
  EXPECT_EQ(cpu.max_workgroup_bytes, 32768u);
  EXPECT_EQ(cpu.max_storage_buffers, 32u);
  EXPECT_EQ(cpu.parallel_units, 2u);
  EXPECT_EQ(cpu.memory_mb_per_second, kCpuRates.memory_mb_per_second);
  EXPECT_EQ(findProfile("portable")->level_ns, kGpuRates.level_ns);
  EXPECT_TRUE(reports(findProfile("toaster").failure(), "profile.unknown"));
}

TEST(Profile, print_everyField_isInTheText) {
  DeviceProfile profile{.name = "my device",
                        .style = ExecutionStyle::Cpu,
                        .max_storage_buffers = 1,
                        .max_binding_bytes = 1ull << 40,
                        .min_offset_alignment = 3,
                        .max_workgroup_invocations = 4,
                        .max_workgroup_bytes = 5,
                        .max_workgroup_size_x = 512,
                        .max_workgroup_size_y = 1,
                        .max_workgroup_size_z = 7,
                        .max_immediate_bytes = 128,
                        .max_groups_per_dimension = 4294967295u,
                        .max_loop_iterations = 9,
                        .subgroup_size = 7,
                        .parallel_units = 8,
                        .whole_buffer_access = true,
                        .f16 = true,
                        .subgroups = true,
                        .fixed_subgroups = true,
                        .matrix_f16 = {.m = 16, .n = 8, .k = 16},
                        .matrix_bf16 = {},
                        .matrix_rows = true,
                        .packed_dot = true,
                        .memory_mb_per_second = 10,
                        .f32_mflops = 11,
                        .dispatch_ns = 12,
                        .level_ns = 13};
  auto again = parseProfile(print(profile));
  ASSERT_TRUE(again.ok()) << toString(again.diagnostics());
  EXPECT_EQ(*again, profile);
}

TEST(Profile, reference_saysWhatDiffersFromTheNamedProfile) {
  DeviceProfile cpu = *findProfile("cpu"), device;
  EXPECT_EQ(printReference(cpu), "cpu");
  cpu.max_binding_bytes = 1u << 31;
  EXPECT_EQ(printReference(cpu), "cpu {\n  max_binding_bytes = 2147483648\n}");
  device.name = "my device";
  device.max_loop_iterations = 0;
  EXPECT_EQ(printReference(device), "\"my device\" {\n  max_loop_iterations = 0\n}");
  for (const DeviceProfile& profile : {cpu, device, DeviceProfile{}, unlimitedProfile("any")}) {
    const std::string text = printReference(profile);
    auto cursor = TokenCursor::create(text, "profile");
    ASSERT_TRUE(cursor.ok());
    auto again = parseReference(*cursor);
    ASSERT_TRUE(again.ok()) << toString(again.diagnostics());
    EXPECT_EQ(*again, profile);
  }
}

TEST(Profile, parse_brokenText_pointsAtIt) {
  std::string text = print(DeviceProfile{});
  EXPECT_TRUE(reports(parseProfile(replaced(text, "profile 1", "profile 9")).failure(), "text.version", 1));
  EXPECT_TRUE(reports(parseProfile(replaced(text, "subgroup_size", "subgroup_width")).failure(), "profile.field", 15));
  EXPECT_TRUE(reports(parseProfile(replaced(text, "subgroup_size", "f16")).failure(), "text.syntax", 15));
  EXPECT_TRUE(reports(parseProfile(replaced(text, "subgroups = false", "f16 = true")).failure(), "profile.field", 19));
  EXPECT_TRUE(
      reports(parseProfile(replaced(text, "min_offset_alignment = 256", "min_offset_alignment = 0")).failure(), "profile.value", 6));
  EXPECT_TRUE(
      reports(parseProfile(replaced(text, "max_storage_buffers = 8", "max_storage_buffers = 4294967296")).failure(), "profile.value", 4));
  EXPECT_TRUE(reports(parseProfile(replaced(text, "gpu", "tpu")).failure(), "text.syntax", 3));
  EXPECT_TRUE(reports(parseProfile(text + "x").failure(), "text.syntax"));
}

TEST(Profile, parse_mutatedText_neverCrashes) {
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    auto profile = parseProfile(mutate(print(*findProfile("cpu")), random));
    if (!profile.ok()) continue;
    EXPECT_EQ(*parseProfile(print(*profile)), *profile);
  }
}

}  // namespace
}  // namespace lockstep::program
