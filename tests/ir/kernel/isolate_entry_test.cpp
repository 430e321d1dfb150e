// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/isolate_entry.h"

#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

constexpr std::string_view kModule = R"(lockstep.kernel 1
var @x: array<f32> {access = read_write, binding = 0, group = 0, space = storage}
var @y: array<f32> {access = read_write, binding = 0, group = 0, space = storage}
fn @first() {workgroup_size = [1, 1, 1]} {
  %0: ptr<storage, f32, read_write> = access @x, 0u
  store %0, 1.0f
}
fn @helper(%value: f32) -> f32 {
  %0: f32 = add %value, 1.0f
  return %0
}
fn @second() {workgroup_size = [2, 1, 1]} {
  %0: f32 = call @helper(2.0f)
  %1: ptr<storage, f32, read_write> = access @y, 0u
  store %1, %0
}
)";

Module module() {
  auto result = parse(kModule);
  EXPECT_TRUE(result.ok()) << toString(result.diagnostics());
  return *result;
}

TEST(IsolateEntry, keeps_what_the_entry_uses) {
  const auto second = isolateEntry(module(), "second");
  ASSERT_TRUE(second.ok());
  ASSERT_EQ(second->functions.size(), 2u);
  EXPECT_EQ(second->functions[0].name, "helper");
  ASSERT_EQ(second->globals.size(), 1u);
  EXPECT_EQ(second->globals[0].name, "y");
  EXPECT_TRUE(validate(*second).ok()) << print(*second);
  EXPECT_NE(print(*second).find("call @helper"), std::string::npos) << print(*second);

  const auto first = isolateEntry(module(), "first");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->functions.size(), 1u);
  EXPECT_EQ(first->globals[0].name, "x");
  EXPECT_TRUE(validate(*first).ok());
  EXPECT_EQ(*isolateEntry(*first, ""), *first);
}

TEST(IsolateEntry, locations_stay) {
  const Module placed = *parse(R"(lockstep.kernel 1
fn @unused() {
  workgroup_barrier {location = ["k.wgsl", 1, 1]}
}
fn @main() {workgroup_size = [1, 1, 1]} {
  workgroup_barrier {location = ["k.wgsl", 7, 3]}
}
)");
  const auto alone = isolateEntry(placed, "main");
  ASSERT_TRUE(alone.ok());
  ASSERT_EQ(alone->locations.size(), 1u);
  EXPECT_EQ(toString(alone->locations[alone->instructions[0].location - 1]), "k.wgsl:7:3");
}

TEST(IsolateEntry, wrong_names_are_answered) {
  EXPECT_EQ(isolateEntry(module(), "").diagnostics().front().code, "run.entry");
  EXPECT_EQ(isolateEntry(module(), "secnd").diagnostics().front().remedy, "did you mean 'second'?");
  EXPECT_FALSE(isolateEntry(module(), "helper").ok());
  EXPECT_FALSE(isolateEntry(*parse("lockstep.kernel 1\nfn @f() {\n}\n"), "").ok());
}

}  // namespace
}  // namespace lockstep::kernel
