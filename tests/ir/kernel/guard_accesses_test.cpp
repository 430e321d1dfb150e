// SPDX-License-Identifier: Apache-2.0
// The policies for accesses out of bounds, as texts; what they compute is in tests/backends.
#include "ir/kernel/guard_accesses.h"

#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

Module read(const std::string& text) { return canonical(parse(text).orThrow()); }

std::string guarded(const std::string& text, OutOfBounds policy) {
  Module module = guardAccesses(read(text), policy);
  EXPECT_EQ(canonical(guardAccesses(module, policy)), canonical(module)) << "it guards what has a guard";
  EXPECT_TRUE(validate(module).ok()) << toString(validate(module).diagnostics()) << print(module);
  return print(module);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

constexpr const char* kText = R"(lockstep.kernel 1
var @in: array<vec4<u32>, 8> {access = read, binding = 0, group = 0, space = storage}
var @out: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
var @count: array<atomic<u32>, 4> {access = read_write, binding = 2, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %s: i32 = bitcast %i
  %0: ptr<storage, u32> = access @in, %s, %i
  %1: u32 = load %0
  %2: ptr<storage, u32, read_write> = access @out, %i
  store %2, %1
  %3: ptr<storage, atomic<u32>, read_write> = access @count, %i
  %4: u32 = atomic_add %3, 1u
  %5: u32 = extract %gid, %i
  %6: ptr<storage, u32, read_write> = access @out, 0u
  store %6, %5
}
)";

/// 16 rows of 2 quads in an array of 40: from 0 with a stride of 2 they fit, from 9 they do not.
std::string matrixText(const std::string& offset, const std::string& stride) {
  return "lockstep.kernel 1\nenable subgroup_matrices\nvar @tile: array<vec4<u32>, 40> {space = workgroup}\n"
         "fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {\n  %i: u32 = extract %gid, 0u\n"
         "  %small: u32 = and %i, 8u\n  %m: subgroup_matrix_left<f32, 8, 16> = subgroup_matrix_load @tile, " +
         offset + ", " + stride + "\n}\n";
}

TEST(GuardAccesses, matrices_stay_inside) {
  const auto mins = [](const std::string& offset, const std::string& stride, OutOfBounds policy) {
    Module module = guardAccesses(read(matrixText(offset, stride)), policy);
    EXPECT_TRUE(validate(module).ok()) << toString(validate(module).diagnostics());
    return std::pair(count(print(module), " = min "), count(print(module), "  if "));
  };
  using Counts = std::pair<size_t, size_t>;
  EXPECT_EQ(mins("0u", "2u", OutOfBounds::Clamp), Counts(0, 0)) << "the last row ends at 32";
  EXPECT_EQ(mins("%small", "2u", OutOfBounds::Clamp), Counts(0, 0)) << "at 40";
  EXPECT_EQ(mins("9u", "2u", OutOfBounds::Clamp), Counts(2, 0));
  EXPECT_EQ(mins("%i", "%i", OutOfBounds::Clamp), Counts(2, 0));
  EXPECT_EQ(mins("%i", "2u", OutOfBounds::ZeroAndSkip), Counts(2, 1));
  EXPECT_EQ(mins("%i", "%i", OutOfBounds::Trap), Counts(0, 0));
}

TEST(GuardAccesses, trap_only_marks_what_is_proven) {
  const std::string text = guarded(kText, OutOfBounds::Trap);
  EXPECT_EQ(count(text, "in_bounds = true"), 1u) << text;
  EXPECT_EQ(count(text, " = min "), 0u) << text;
}

TEST(GuardAccesses, clamp_takes_the_last_element) {
  const std::string text = guarded(kText, OutOfBounds::Clamp);
  EXPECT_EQ(count(text, "in_bounds = true"), 4u) << text;
  // Two indices of @in, @out, @count and the component.
  EXPECT_EQ(count(text, " = min "), 5u) << text;
  EXPECT_EQ(count(text, "array_length @out"), 1u) << text;
  EXPECT_EQ(count(text, "  if "), 0u) << text;
}

TEST(GuardAccesses, zero_and_skip_asks_before_each_access) {
  const std::string text = guarded(kText, OutOfBounds::ZeroAndSkip);
  EXPECT_EQ(count(text, "  if "), 3u) << text;
  EXPECT_EQ(count(text, " = select 0u, "), 1u) << text;
}

TEST(GuardAccesses, a_member_that_is_a_runtime_array_has_its_own_length) {
  const std::string text = guarded(R"(lockstep.kernel 1
struct S { n: u32 {offset = 0} all: array<u32> {offset = 4} }
var @s: S {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %0: ptr<storage, u32, read_write> = access @s, 1u, %i
  store %0, 1u
}
)",
                                   OutOfBounds::Clamp);
  EXPECT_EQ(count(text, "array_length"), 1u) << text;
}

TEST(GuardAccesses, names_of_policies) {
  for (const OutOfBounds policy : {OutOfBounds::Trap, OutOfBounds::Clamp, OutOfBounds::ZeroAndSkip})
    EXPECT_EQ(findOutOfBounds(toString(policy)), policy);
  EXPECT_EQ(findOutOfBounds("wrap"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::kernel
