// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/inline_calls.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/queries.h"

namespace lockstep::kernel {
namespace {

Module parsed(const std::string& text) {
  Module module = parse("lockstep.kernel 1\n" + text).orThrow();
  EXPECT_TRUE(validate(module).ok()) << toString(validate(module).diagnostics());
  return module;
}

/// What is left of a module for a backend, as text.
std::string inlined(const std::string& text) {
  Module module = inlineAllCalls(parsed(text)).module;
  const auto valid = validate(module);
  EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics()) << print(module);
  return print(canonical(module));
}

constexpr const char* kMain = "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [64, 1, 1]} {\n";

TEST(InlineAllCalls, a_return_from_inside_leaves_a_switch) {
  EXPECT_EQ(inlined(std::string("fn @early(%x: u32) -> u32 {\n"
                                "  %big: bool = gt %x, 7u\n"
                                "  if %big {\n"
                                "    return 7u\n"
                                "  }\n"
                                "  return %x\n"
                                "}\n") +
                    kMain + "  %e: u32 = call @early(%i)\n  %f: u32 = add %e, 1u\n}\n"),
            "lockstep.kernel 1\n"
            "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [64, 1, 1]} {\n"
            "  %early_result: ptr<function, u32> = var\n"
            "  %early_returned: ptr<function, bool> = var false\n"
            "  switch 0u {\n"
            "    case default {\n"
            "      %big: bool = gt %i, 7u\n"
            "      if %big {\n"
            "        store %early_result, 7u\n"
            "        break\n"
            "      }\n"
            "      store %early_result, %i\n"
            "      break\n"
            "    }\n"
            "  }\n"
            "  %0: u32 = load %early_result\n"
            "  %f: u32 = add %0, 1u\n"
            "}\n");
}

TEST(InlineAllCalls, a_return_from_a_loop_is_looked_at_after_each_loop_around_it) {
  EXPECT_EQ(inlined(std::string("fn @find(%x: u32) {\n"
                                "  loop {\n"
                                "    loop {\n"
                                "      %c: bool = gt %x, 7u\n"
                                "      if %c {\n"
                                "        return\n"
                                "      }\n"
                                "    }\n"
                                "  }\n"
                                "}\n") +
                    kMain + "  call @find(%i)\n}\n"),
            "lockstep.kernel 1\n"
            "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [64, 1, 1]} {\n"
            "  %find_returned: ptr<function, bool> = var false\n"
            "  switch 0u {\n"
            "    case default {\n"
            "      loop {\n"
            "        loop {\n"
            "          %c: bool = gt %i, 7u\n"
            "          if %c {\n"
            "            store %find_returned, true\n"
            "            break\n"
            "          }\n"
            "        }\n"
            "        %0: bool = load %find_returned\n"
            "        if %0 {\n"
            "          break\n"
            "        }\n"
            "      }\n"
            "      %1: bool = load %find_returned\n"
            "      if %1 {\n"
            "        break\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(InlineAllCalls, leaves_the_entry_point_alone_with_what_it_calls) {
  const std::string text =
      inlined(std::string("fn @bump(%p: ptr<function, u32>) {\n"
                          "  %old: u32 = load %p\n"
                          "  %new: u32 = add %old, 1u\n"
                          "  store %p, %new\n"
                          "}\n"
                          "fn @twice(%p: ptr<function, u32>) {\n"
                          "  call @bump(%p)\n"
                          "  call @bump(%p)\n"
                          "}\n"
                          "fn @nobody() {\n}\n") +
              kMain + "  %v: ptr<function, u32> = var\n  call @twice(%v)\n}\nfn @other() {workgroup_size = [1, 1, 1]} {\n}\n");
  EXPECT_EQ(text.find("call"), std::string::npos) << text;
  EXPECT_EQ(text.find("nobody"), std::string::npos) << text;
  EXPECT_EQ(text.find("other"), std::string::npos) << text;
  EXPECT_NE(text.find("  store %v, %new_1\n"), std::string::npos) << text;
}

// Reports speak of the kernel as it was written.
TEST(InlineAllCalls, sources_are_the_instructions_that_were_written) {
  const Module module = parsed(std::string("fn @early(%x: u32) -> u32 {\n"
                                           "  %big: bool = gt %x, 7u\n"
                                           "  if %big {\n"
                                           "    return 7u\n"
                                           "  }\n"
                                           "  return %x\n"
                                           "}\n"
                                           "fn @both(%x: u32) -> u32 {\n"
                                           "  %a: u32 = call @early(%x)\n"
                                           "  %b: u32 = call @early(%a)\n"
                                           "  return %b\n"
                                           "}\n") +
                               kMain + "  %e: u32 = call @both(%i)\n}\n");
  const InlinedModule made = inlineAllCalls(module);
  ASSERT_EQ(made.sources.size(), made.module.instructions.size());
  size_t comparisons = 0;
  forEachInstruction(made.module, made.module.entryPoint()->body, [&](InstructionId id, const Instruction& x) {
    ASSERT_LT(made.sources[id.index()].index(), module.instructions.size());
    const Op source = module[made.sources[id.index()]].op;
    const bool stands_for_call_or_return = source == Op::Call || source == Op::Return;
    EXPECT_TRUE(stands_for_call_or_return || source == x.op) << info(source).text << " became " << info(x.op).text;
    comparisons += x.op == Op::Gt ? 1 : 0;
  });
  EXPECT_EQ(comparisons, 2u);
}

// Each function calls the one before it once: the work is that of the entry point alone, not of each function.
TEST(InlineAllCalls, copies_what_the_entry_point_reaches_once_per_call) {
  std::string text = "fn @f0(%p: ptr<function, u32>) {\n";
  for (int i = 0; i < 100; ++i) text += "  store %p, 1u\n";
  text += "}\n";
  constexpr int kFunctions = 500;
  for (int i = 1; i < kFunctions; ++i) text += fmt::format("fn @f{}(%p: ptr<function, u32>) {{\n  call @f{}(%p)\n}}\n", i, i - 1);
  const Module module = parsed(text + kMain + fmt::format("  %v: ptr<function, u32> = var\n  call @f{}(%v)\n}}\n", kFunctions - 1));
  EXPECT_EQ(inlineAllCalls(module).module.instructions.size(), module.instructions.size() + 100);
}

}  // namespace
}  // namespace lockstep::kernel
