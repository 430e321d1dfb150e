// SPDX-License-Identifier: Apache-2.0
#include "ir/program/limits.h"

#include <gtest/gtest.h>

#include "ir/kernel/queries.h"
#include "ir/program/program.h"

namespace lockstep::program {
namespace {

kernel::Module moduleOf(const std::string& globals, const std::string& size = "[1, 1, 1]") {
  return kernel::parse("lockstep.kernel 1\n" + globals + "fn @main() {workgroup_size = " + size + "} {\n}\n").orThrow();
}

/// What of the use with this name is above its limit.
std::optional<LimitUse> exceededBy(const std::string& globals, const std::string& size = "[1, 1, 1]") {
  return firstExceeded(limitUses(moduleOf(globals, size), DeviceProfile{}));
}

// 16372 + 12 is 16384, but the second array begins at the next multiple of 16, and devices count what is before it.
TEST(Limits, each_array_of_workgroup_memory_begins_at_a_multiple_of_16) {
  const std::string large = "var @a: array<f32, 4093> {initial = none, space = workgroup}\n";
  EXPECT_EQ(kernel::workgroupBytes(moduleOf(large)), 16384u);
  EXPECT_FALSE(exceededBy(large).has_value());
  const auto both = exceededBy(large + "var @b: array<u32, 3> {initial = none, space = workgroup}\n");
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->what, "bytes of workgroup memory");
  EXPECT_EQ(both->used, 16400u);
  EXPECT_EQ(both->allowed, 16384u);
}

TEST(Limits, other_memory_is_not_workgroup_memory) {
  EXPECT_EQ(kernel::workgroupBytes(moduleOf("var @a: array<f32, 4093> {space = private}\n")), 0u);
}

TEST(Limits, workgroups_are_compared_in_each_dimension_and_as_a_product_that_does_not_overflow) {
  EXPECT_FALSE(exceededBy("", "[64, 2, 2]").has_value());
  EXPECT_EQ(exceededBy("", "[64, 4, 2]")->what, "invocations in a workgroup");
  EXPECT_EQ(exceededBy("", "[1, 1, 65]")->what, "invocations of a workgroup in z");
  EXPECT_EQ(exceededBy("", "[4294967295, 4294967295, 4294967295]")->used, uint64_t{1} << 48);
}

TEST(Limits, of_a_dispatch_are_its_workgroups) {
  EXPECT_FALSE(firstExceeded(limitUses({65535, 65535, 65535}, DeviceProfile{})).has_value());
  const auto beyond = firstExceeded(limitUses({1, 65536, 1}, DeviceProfile{}));
  ASSERT_TRUE(beyond.has_value());
  EXPECT_EQ(beyond->what, "workgroups in y");
}

// The validator reads the same table.
TEST(Limits, a_program_with_a_kernel_beyond_them_is_refused) {
  const std::string head = "lockstep.program 1\nprofile portable\nkernel @k {\n  lockstep.kernel 1\n";
  const std::string tail = "  fn @main() {workgroup_size = [1, 1, 1]} {\n  }\n}\nend\n";
  const std::string a = "  var @a: array<f32, 4093> {initial = none, space = workgroup}\n";
  const std::string b = "  var @b: array<u32, 3> {initial = none, space = workgroup}\n";
  EXPECT_TRUE(validate(parse(head + a + tail).orThrow()).ok());
  const auto refused = validate(parse(head + a + b + tail).orThrow());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().code, "program.kernel");
  EXPECT_NE(refused.diagnostics().front().message.find("has 16400 bytes of workgroup memory, but profile portable allows 16384"),
            std::string::npos)
      << toString(refused.diagnostics());
}

}  // namespace
}  // namespace lockstep::program
