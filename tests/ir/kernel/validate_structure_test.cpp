// SPDX-License-Identifier: Apache-2.0
// What no text can express: ids out of range and arenas that disagree.
#include <gtest/gtest.h>

#include <functional>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

/// fn @f(%p: f32) { %0 = neg %p; if true { %1 = load @x } }, with @x private.
Module sample() {
  Builder builder;
  TypeTable& types = builder.types();
  ValueId x =
      builder.global({.name = "x", .value = {}, .type = types.f32(), .space = AddressSpace::Private, .initializer = builder.f32(2)});
  FunctionId f = builder.function("f", types.voidType());
  ValueId p = builder.parameter(f, "p", types.f32());
  builder.enterFunction(f);
  builder.make(Op::Neg, {p});
  builder.ifThen(builder.boolean(true), [&] { builder.load(x); });
  builder.makeAs(Op::Construct, types.vector(Scalar::F32, 2),
                 {builder.composite(types.vector(Scalar::F32, 2), {builder.f32(2), builder.f32(2)})});
  return builder.take();
}

struct Damage {
  std::string name;
  std::function<void(Module&)> apply;
  std::string code = "kernel.structure";
};

ValueId findComposite(const Module& module) {
  for (size_t i = 0; i < module.values.size(); ++i) {
    if (!module.values[i].elements.empty()) return ValueId(i);
  }
  return {};
}

TEST(ValidateStructure, each_damage_is_found) {
  const Damage damages[] = {
      {"global_value_range", [](Module& m) { m.globals[0].value = ValueId(999); }},
      {"global_value_kind", [](Module& m) { m.globals[0].value = m.globals[0].initializer; }},
      {"global_type_range", [](Module& m) { m.globals[0].type = TypeId(999); }},
      {"global_pointer_type", [](Module& m) { m.globals[0].space = AddressSpace::Workgroup; }},
      {"initializer_range", [](Module& m) { m.globals[0].initializer = ValueId(999); }},
      {"initializer_kind", [](Module& m) { m.globals[0].initializer = m.globals[0].value; }},
      {"return_type_range", [](Module& m) { m.functions[0].return_type = TypeId(999); }},
      {"body_range", [](Module& m) { m.functions[0].body = BlockId(999); }},
      {"parameter_range", [](Module& m) { m.functions[0].parameters[0].value = ValueId(999); }},
      {"parameter_twice", [](Module& m) { m.functions[0].parameters.push_back(m.functions[0].parameters[0]); }},
      {"block_twice", [](Module& m) { m.instructions[1].blocks[1] = m.instructions[1].blocks[0]; }},
      {"block_circle", [](Module& m) { m.instructions[1].blocks[1] = m.functions[0].body; }},
      {"block_missing", [](Module& m) { m.instructions[1].blocks.pop_back(); }},
      {"block_of_a_plain_op", [](Module& m) { m.instructions[0].blocks.push_back(BlockId(0)); }},
      {"cases_of_an_if", [](Module& m) { m.instructions[1].cases.emplace_back(); }},
      {"instruction_range", [](Module& m) { m.blocks[0].instructions.push_back(InstructionId(999)); }},
      {"instruction_twice", [](Module& m) { m.blocks[0].instructions.push_back(InstructionId(0)); }},
      {"type_range", [](Module& m) { m.instructions[0].type = TypeId(999); }},
      {"result_missing", [](Module& m) { m.instructions[0].result = {}; }},
      {"result_of_nothing", [](Module& m) { m.instructions[1].result = m.instructions[0].result; }},
      {"result_of_another", [](Module& m) { m.instructions[0].result = m.instructions[2].result; }},
      {"result_type", [](Module& m) { m.values[m.instructions[0].result.index()].type = m.types.i32(); }},
      {"operand_range", [](Module& m) { m.instructions[0].operands[0] = ValueId(999); }},
      {"operand_missing", [](Module& m) { m.instructions[0].operands[0] = {}; }},
      {"operand_count", [](Module& m) { m.instructions[0].operands.clear(); }},
      {"operand_of_a_gone_instruction",
       [](Module& m) {
         m.values[m.instructions[0].operands[0].index()] = {
             .kind = ValueKind::Instruction, .type = m.types.f32(), .index = 1, .elements = {}, .name = {}};
       }},
      {"callee_range",
       [](Module& m) {
         m.instructions[1].op = Op::Call;
         m.instructions[1].blocks.clear();
         m.instructions[1].immediate = 9;
       }},
      {"constant_circle", [](Module& m) { m.values[findComposite(m).index()].elements[0] = findComposite(m); }},
      {"constant_element_kind", [](Module& m) { m.values[findComposite(m).index()].elements[0] = m.globals[0].value; }},
      {"constant_element_count", [](Module& m) { m.values[findComposite(m).index()].elements.pop_back(); }, "kernel.constant"},
      {"constant_of_pointer", [](Module& m) { m.values[findComposite(m).index()].type = m.values[m.globals[0].value.index()].type; },
       "kernel.constant"},
  };
  // The construct of a vector from a vector is the only thing wrong with the sample; it is found once the structure is right.
  Result<ValidModule> before = validate(sample());
  ASSERT_FALSE(before.ok());
  EXPECT_EQ(before.diagnostics()[0].code, "kernel.type");
  for (const Damage& damage : damages) {
    Module module = sample();
    damage.apply(module);
    Result<ValidModule> valid = validate(module);
    ASSERT_FALSE(valid.ok()) << damage.name;
    EXPECT_EQ(valid.diagnostics()[0].code, damage.code) << damage.name << "\n" << toString(valid.diagnostics());
  }
}

TEST(ValidateStructure, a_circle_of_blocks_ends) {
  Module module = sample();
  module.instructions[1].blocks[0] = module.functions[0].body;
  EXPECT_FALSE(validate(module).ok());
  EXPECT_THROW((void)canonical(module), InternalError);
}

TEST(ValidateStructure, callees_stand_before_callers) {
  Builder builder;
  TypeTable& types = builder.types();
  FunctionId first = builder.function("first", types.voidType());
  FunctionId second = builder.function("second", types.voidType());
  builder.enterFunction(first);
  builder.call(second, {});
  Result<ValidModule> valid = validate(builder.take());
  ASSERT_FALSE(valid.ok());
  EXPECT_EQ(valid.diagnostics()[0].code, "kernel.recursion");
  EXPECT_EQ(valid.diagnostics()[0].where, (Location{"kernel", 3, 3}));
}

TEST(ValidateStructure, blocks_nest_up_to_the_limit) {
  for (uint32_t depth : {kMaxBlockNesting - 1, kMaxBlockNesting}) {
    Builder builder;
    FunctionId f = builder.function("f", builder.types().voidType());
    builder.enterFunction(f);
    std::function<void(uint32_t)> nest = [&](uint32_t left) {
      if (left > 0) builder.ifThen(builder.boolean(true), [&] { nest(left - 1); });
    };
    nest(depth);
    Module module = builder.take();
    EXPECT_EQ(validate(module).ok(), depth < kMaxBlockNesting);
    EXPECT_EQ(parse(print(module)).ok(), depth < kMaxBlockNesting);
  }
}

TEST(ValidateStructure, entry_points_have_different_names) {
  Builder builder;
  for (int i = 0; i < 2; ++i) builder.setWorkgroupSize(builder.function("main", builder.types().voidType()), {1, 1, 1});
  Result<ValidModule> valid = validate(builder.take());
  ASSERT_FALSE(valid.ok());
  EXPECT_EQ(valid.diagnostics()[0].code, "kernel.entry_point");
}

}  // namespace
}  // namespace lockstep::kernel
