// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/inlined_size.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/isolate_entry.h"

namespace lockstep::kernel {
namespace {

/// An entry point and `levels` functions, of which each calls the one before it twice. The first has two instructions.
Module doubling(int levels) {
  std::string text = "lockstep.kernel 1\nfn @f0(%x: i32) -> i32 {\n  %0: i32 = add %x, 1i\n  return %0\n}\n";
  for (int i = 1; i <= levels; ++i) {
    text += fmt::format("fn @f{0}(%x: i32) -> i32 {{\n  %0: i32 = call @f{1}(%x)\n  %1: i32 = call @f{1}(%0)\n  return %1\n}}\n", i, i - 1);
  }
  text += fmt::format("fn @main() {{workgroup_size = [1, 1, 1]}} {{\n  if true {{\n    %0: i32 = call @f{}(1i)\n  }}\n}}\n", levels);
  auto module = parse(text);
  EXPECT_TRUE(module.ok()) << toString(module.diagnostics());
  return *module;
}

TEST(InlinedSize, counts_a_callee_at_every_call) {
  const Module module = doubling(2);
  EXPECT_EQ(inlinedSize(module, module.functions[0]).instructions, 2u);
  EXPECT_EQ(inlinedSize(module, module.functions[1]).instructions, 3u + 2 * 2);
  EXPECT_EQ(inlinedSize(module, module.functions[2]).instructions, 3u + 2 * 7);
  EXPECT_EQ(inlinedSize(module, *module.entryPoint()).instructions, 2u + 17);
}

TEST(InlinedSize, counts_blocks_and_calls_within_each_other) {
  const Module module = doubling(2);
  EXPECT_EQ(inlinedSize(module, module.functions[0]).nesting, 1u);
  EXPECT_EQ(inlinedSize(module, *module.entryPoint()).nesting, 5u);
}

TEST(InlinedSize, a_chain_of_too_many_calls_is_refused) {
  std::string text = "lockstep.kernel 1\nfn @f0() {\n}\n";
  for (int i = 1; i < 30000; ++i) text += fmt::format("fn @f{}() {{\n  call @f{}()\n}}\n", i, i - 1);
  text += "fn @main() {workgroup_size = [1, 1, 1]} {\n  call @f29999()\n}\n";
  const auto module = parse(text);
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  const auto alone = isolateEntry(*module, "main");
  ASSERT_TRUE(alone.ok());
  const Status refused = checkInlinedSize(*alone, *alone->entryPoint(), "test.limit");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.diagnostics().front().message.find("30001 deep; the limit is 2000"), std::string::npos);
}

TEST(InlinedSize, large_private_and_local_arrays_are_refused) {
  const auto check = [](uint32_t own, uint32_t local) {
    const Module module =
        parse(
            fmt::format("lockstep.kernel 1\nvar @own: array<u32, {}> {{space = private}}\nfn @f() {{\n  %a: ptr<function, array<u32, {}>, "
                        "read_write> = var\n}}\nfn @main() {{workgroup_size = [1, 1, 1]}} {{\n  call @f()\n  call @f()\n}}\n",
                        own, local))
            .orThrow();
    return checkInlinedSize(module, *module.entryPoint(), "test.limit");
  };
  EXPECT_TRUE(check(8192, 4096).ok());
  for (const Status& refused : {check(8193, 4096), check(1, 8192), check(16384, 65), check(1u << 28, 1)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.diagnostics().front().message.find("private and local variables"), std::string::npos);
  }
}

TEST(InlinedSize, what_doubles_too_often_is_refused) {
  const Module small = doubling(17), large = doubling(18), huge = doubling(100);
  EXPECT_TRUE(checkInlinedSize(small, *small.entryPoint(), "test.limit").ok());
  const Status refused = checkInlinedSize(large, *large.entryPoint(), "test.limit");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().code, "test.limit");
  EXPECT_NE(refused.diagnostics().front().message.find("'main' has 1310719 instructions"), std::string::npos)
      << refused.diagnostics().front().message;
  const Status counted = checkInlinedSize(huge, *huge.entryPoint(), "test.limit");
  ASSERT_FALSE(counted.ok());
  EXPECT_NE(counted.diagnostics().front().message.find("at least 4611686018427387904 instructions"), std::string::npos)
      << counted.diagnostics().front().message;
}

}  // namespace
}  // namespace lockstep::kernel
