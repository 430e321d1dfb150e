// SPDX-License-Identifier: Apache-2.0
// print, parse and canonical agree.
#include <gtest/gtest.h>

#include <iterator>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

using testing::inEntryPoint;
using testing::moduleUsing;
using testing::wideModule;

void expectFixpoint(const Module& module, bool with_locations, const std::string& what) {
  std::string text = print(module, with_locations);
  Module plain = canonical(module, with_locations);
  EXPECT_EQ(print(plain, with_locations), text) << what;
  EXPECT_EQ(canonical(plain, with_locations), plain) << what;
  Result<Module> parsed = parse(text);
  ASSERT_TRUE(parsed.ok()) << what << "\n" << toString(parsed.diagnostics()) << "\n" << text;
  EXPECT_EQ(*parsed, plain) << what << "\n" << text;
  EXPECT_EQ(print(*parsed, with_locations), text) << what;
}

TEST(Text, each_op_reads_back) {
  for (size_t i = 0; i < kOpCount; ++i) {
    std::optional<Module> module = moduleUsing(static_cast<Op>(i));
    ASSERT_TRUE(module) << info(static_cast<Op>(i)).text;
    expectFixpoint(*module, false, std::string(info(static_cast<Op>(i)).text));
  }
}

TEST(Text, wide_module_is_valid_and_reads_back) {
  Module module = wideModule();
  expectFixpoint(module, false, "without locations");
  expectFixpoint(module, true, "with locations");
  Result<ValidModule> valid = validate(module);
  EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics());
  EXPECT_NE(print(module, true), print(module, false));
  EXPECT_EQ(print(module), print(canonical(module)));
  EXPECT_TRUE(canonical(module).locations.empty());
  EXPECT_FALSE(canonical(module, true).locations.empty());
}

TEST(Text, source_and_places_inside_of_another_text_read_back) {
  Module module = wideModule();
  module.source = "one \"line\"\n\tand another";
  ASSERT_FALSE(module.locations.empty());
  for (Location& location : module.locations) location.embedded = true;
  expectFixpoint(module, true, "with locations");
  EXPECT_TRUE(canonical(module, true).locations.front().embedded);
  EXPECT_EQ(canonical(module, true).source, module.source);
  EXPECT_EQ(print(module), print(wideModule()));
}

TEST(Text, empty_module_reads_back) {
  EXPECT_EQ(print(Module()), "lockstep.kernel 1\n");
  expectFixpoint(Module(), false, "empty");
}

TEST(Text, workgroup_memory_without_its_zero_reads_back) {
  const std::string text = "lockstep.kernel 1\nvar @scratch: array<f32, 8> {initial = none, space = workgroup}\n";
  Result<Module> module = parse(text);
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  EXPECT_FALSE(module->globals.front().zero_initialized);
  EXPECT_EQ(print(*module), text);
  EXPECT_FALSE(parse("lockstep.kernel 1\nvar @scratch: f32 {initial = zero, space = workgroup}\n").ok());
}

TEST(Text, canonical_drops_what_is_unreachable) {
  Builder builder;
  builder.types().array(builder.types().f32(), 99);
  builder.f32(42);
  builder.newBlock();
  FunctionId f = builder.function("f", builder.types().voidType());
  builder.enterFunction(f);
  builder.returnVoid();
  Module plain = canonical(builder.module());
  EXPECT_EQ(plain.types.size(), TypeTable().size());
  EXPECT_TRUE(plain.values.empty());
  EXPECT_EQ(plain.blocks.size(), 1u);
}

TEST(Text, canonical_does_not_depend_on_the_order_of_the_arenas) {
  auto build = [](bool swapped) {
    Builder builder;
    if (swapped) builder.f32(2);
    if (swapped) builder.types().vector(Scalar::I32, 4);
    FunctionId f = builder.function("f", builder.types().voidType());
    builder.enterFunction(f);
    builder.var(builder.types().f32(), "a", builder.f32(1));
    builder.var(builder.types().f32(), "b", builder.f32(2));
    builder.var(builder.types().vector(Scalar::I32, 4), "c");
    return builder.take();
  };
  EXPECT_NE(build(false), build(true));
  EXPECT_EQ(canonical(build(false)), canonical(build(true)));
}

TEST(Text, names_are_hints_made_plain_and_unique) {
  Builder builder;
  FunctionId f = builder.function("f", builder.types().voidType());
  builder.enterFunction(f);
  for (const char* name : {"x", "x", "x_1", "", "7", "a-b"}) builder.var(builder.types().f32(), name);
  EXPECT_EQ(print(builder.module()), R"(lockstep.kernel 1
fn @f() {
  %x: ptr<function, f32> = var
  %x_1: ptr<function, f32> = var
  %x_1_1: ptr<function, f32> = var
  %0: ptr<function, f32> = var
  %_7: ptr<function, f32> = var
  %a_b: ptr<function, f32> = var
}
)");
}

TEST(Text, numbers_start_again_in_each_function) {
  Result<Module> module = parse(R"(lockstep.kernel 1
fn @a(%0: f32) -> f32 {
  %5: f32 = neg %0
  return %5
}
fn @b() {
  %0: ptr<function, f32> = var
}
)");
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  EXPECT_EQ(print(*module), R"(lockstep.kernel 1
fn @a(%0: f32) -> f32 {
  %1: f32 = neg %0
  return %1
}
fn @b() {
  %0: ptr<function, f32> = var
}
)");
}

TEST(Text, control_flow_layout) {
  std::string text = inEntryPoint(R"(  %n: ptr<function, i32> = var -3i
  loop {
    %0: i32 = load %n
    switch %0 {
      case -1i, 2i {
        continue
      }
      case 7i, default {
        break
      }
    }
    if true {origin = 3} {
      break
    } else {
      workgroup_barrier
    }
  } continuing {
    break_if false
  }
)");
  Result<Module> module = parse(text);
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  EXPECT_EQ(print(*module), R"(lockstep.kernel 1
enable f16
struct S {
  a: f32 {offset = 0}
  b: vec2<u32> {offset = 8}
}
)" + text.substr(text.find("var @in")));
  EXPECT_TRUE(validate(*module).ok());
}

TEST(Text, free_spelling_is_made_canonical) {
  Result<Module> module = parse(R"(# a comment
lockstep.kernel 1 enable subgroups enable f16 enable f16
var @x:array<vec2<f32>,4>={oops
)");
  EXPECT_FALSE(module.ok());
  module = parse(
      "lockstep.kernel 1 enable subgroups enable f16 enable f16 # twice\nvar @x:array<u32,0x10>{space=private}"
      "fn @f(){%a:vec2<f32>=construct 1e3f,f32(0x40000000)return}");
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  EXPECT_EQ(print(*module), R"(lockstep.kernel 1
enable f16
enable subgroups
var @x: array<u32, 16> {space = private}
fn @f() {
  %a: vec2<f32> = construct 1000.0f, 2.0f
  return
}
)");
}

TEST(Text, an_invalid_module_prints_all_the_same) {
  Module module = wideModule();
  module.functions[0].body = BlockId(99999);
  module.functions[1].body = module.functions.back().body;
  module.globals[0].value = {};
  for (Instruction& instruction : module.instructions) {
    if (instruction.op == Op::Add) instruction.operands = {ValueId(), ValueId(123456)};
    if (instruction.op == Op::Load) instruction.type = TypeId(4242);
    if (instruction.op == Op::Loop) instruction.blocks[1] = instruction.blocks[0];
    if (instruction.op == Op::Call) instruction.immediate = 77;
  }
  module.blocks[0].instructions.push_back(InstructionId());
  EXPECT_NE(print(module, true).find("<invalid>"), std::string::npos);
  EXPECT_FALSE(validate(module).ok());
}

}  // namespace
}  // namespace lockstep::kernel
