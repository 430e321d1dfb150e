// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/builder.h"

#include <gtest/gtest.h>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

using testing::moduleUsing;
using testing::uses;

/// A function with an empty body, entered.
struct Fixture {
  Builder builder;
  FunctionId function = builder.function("f", builder.types().voidType());
  Fixture() { builder.enterFunction(function); }
};

TEST(Builder, golden_of_a_small_kernel) {
  Builder builder;
  TypeTable& types = builder.types();
  TypeId floats = types.array(types.f32(), 0);
  ValueId in = builder.global(
      {.name = "in", .value = {}, .type = floats, .space = AddressSpace::Storage, .access = Access::Read, .initializer = {}});
  ValueId out =
      builder.global({.name = "out", .value = {}, .type = floats, .space = AddressSpace::Storage, .binding = 1, .initializer = {}});
  FunctionId main = builder.function("main", types.voidType());
  builder.setWorkgroupSize(main, {64, 1, 1});
  ValueId id = builder.parameter(main, "gid", types.vector(Scalar::U32, 3), Builtin::GlobalInvocationId);
  builder.enterFunction(main);
  ValueId i = builder.extract(id, 0);
  ValueId sum = builder.var(types.f32(), "sum", builder.f32(0.5f));
  builder.setFloatMode(FloatMode::Strict);
  builder.setOrigin(12);
  builder.forRange(builder.u32(0), builder.make(Op::ArrayLength, {in}), builder.u32(1), "k", [&](ValueId k) {
    ValueId x = builder.load(builder.access(in, {k}, true));
    builder.store(sum, builder.make(Op::Add, {builder.load(sum), x}));
  });
  builder.setOrigin(0);
  ValueId target = builder.access(out, {i});
  builder.store(target, builder.load(sum));
  EXPECT_EQ(print(builder.module()), R"(lockstep.kernel 1
var @in: array<f32> {access = read, binding = 0, group = 0, space = storage}
var @out: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %0: u32 = extract %gid, 0u
  %sum: ptr<function, f32> = var 0.5f
  %1: u32 = array_length @in {origin = 12}
  %k: ptr<function, u32> = var 0u {origin = 12}
  loop {origin = 12} {
    %2: u32 = load %k {origin = 12}
    %3: bool = ge %2, %1 {origin = 12}
    if %3 {origin = 12} {
      break {origin = 12}
    }
    %4: ptr<storage, f32, read> = access @in, %2 {in_bounds = true, origin = 12}
    %5: f32 = load %4 {origin = 12}
    %6: f32 = load %sum {origin = 12}
    %7: f32 = strict add %6, %5 {origin = 12}
    store %sum, %7 {origin = 12}
  } continuing {
    %8: u32 = load %k {origin = 12}
    %9: u32 = add %8, 1u {origin = 12}
    store %k, %9 {origin = 12}
  }
  %10: ptr<storage, f32, read_write> = access @out, %0
  %11: f32 = load %sum
  store %10, %11
}
)");
  Result<ValidModule> valid = validate(builder.take());
  ASSERT_TRUE(valid.ok()) << toString(valid.diagnostics());
  EXPECT_EQ((*valid)->entryPoint(), (*valid)->findFunction("main"));
}

TEST(Builder, constants_are_interned_also_in_a_given_module) {
  Builder builder;
  EXPECT_EQ(builder.f32(1.0f), builder.f32(1.0f));
  EXPECT_NE(builder.f32(0.0f), builder.f32(-0.0f));
  EXPECT_NE(builder.i32(1), builder.u32(1));
  EXPECT_EQ(builder.zero(builder.types().f32()), builder.f32(0.0f));
  TypeId vec2 = builder.types().vector(Scalar::F32, 2);
  ValueId one = builder.f32(1.0f);
  ValueId composite = builder.composite(vec2, {one, one});
  Builder again(builder.take());
  EXPECT_EQ(again.f32(1.0f), one);
  EXPECT_EQ(again.composite(vec2, {one, one}), composite);
}

TEST(Builder, every_op_has_a_sample_that_is_valid) {
  for (size_t i = 0; i < kOpCount; ++i) {
    Op op = static_cast<Op>(i);
    std::optional<Module> module = moduleUsing(op);
    ASSERT_TRUE(module) << info(op).text << " has no sample in tests/ir/kernel/samples.cpp";
    EXPECT_TRUE(uses(*module, op)) << info(op).text;
    Result<ValidModule> valid = validate(*module);
    EXPECT_TRUE(valid.ok()) << info(op).text << "\n" << toString(valid.diagnostics());
    EXPECT_EQ(findOp(info(op).text), op);
  }
}

TEST(Builder, misuse_is_an_internal_error) {
  Fixture f;
  Builder& builder = f.builder;
  EXPECT_THROW(builder.make(Op::Add, {builder.f32(1), builder.i32(1)}), InternalError);
  EXPECT_THROW(builder.make(Op::Add, {builder.f32(1)}), InternalError);
  EXPECT_THROW(builder.make(Op::Neg, {ValueId()}), InternalError);
  EXPECT_THROW(builder.extract(builder.f32(1), 0), InternalError);
  EXPECT_THROW(builder.access(builder.f32(1), {builder.u32(0)}), InternalError);
  EXPECT_THROW(builder.composite(builder.types().vector(Scalar::F32, 2), {builder.f32(1)}), InternalError);
  builder.setBlock({});
  EXPECT_THROW(builder.returnVoid(), InternalError);
}

TEST(Builder, one_component_is_extracted_not_swizzled) {
  Fixture f;
  ValueId vector = f.builder.load(f.builder.var(f.builder.types().vector(Scalar::F32, 3), "v"));
  const uint32_t component[] = {2};
  ValueId value = f.builder.swizzle(vector, component);
  EXPECT_EQ(f.builder.module().instructions[f.builder.module()[value].index].op, Op::Extract);
}

TEST(Builder, float_mode_is_stamped_on_float_operations_only) {
  Fixture f;
  f.builder.setFloatMode(FloatMode::Strict);
  ValueId x = f.builder.load(f.builder.var(f.builder.types().f32(), "x"));
  f.builder.make(Op::Add, {x, x});
  f.builder.make(Op::Add, {f.builder.u32(1), f.builder.u32(2)});
  const std::vector<Instruction>& instructions = f.builder.module().instructions;
  std::vector<FloatMode> modes;
  for (const Instruction& instruction : instructions) modes.push_back(instruction.float_mode);
  EXPECT_EQ(modes, (std::vector<FloatMode>{FloatMode::Contract, FloatMode::Contract, FloatMode::Strict, FloatMode::Contract}));
}

struct InferCase {
  Op op;
  std::vector<std::string> operands;
  std::string result;  ///< empty: the rule is broken
};

TEST(InferType, follows_the_rules) {
  TypeTable types;
  std::map<std::string, TypeId> known;
  auto learn = [&](TypeId type) { known[types.toString(type)] = type; };
  for (Scalar scalar : {Scalar::Bool, Scalar::I32, Scalar::U32, Scalar::F32, Scalar::F16}) {
    for (uint32_t width = 1; width <= 4; ++width) learn(types.scalarOrVector(scalar, width));
  }
  for (uint32_t columns = 2; columns <= 4; ++columns) {
    for (uint32_t rows = 2; rows <= 4; ++rows) learn(types.matrix(Scalar::F32, columns, rows));
  }
  learn(types.pointer(AddressSpace::Workgroup, types.atomic(Scalar::I32)));
  learn(types.pointer(AddressSpace::Workgroup, types.f32()));
  const InferCase cases[] = {
      {Op::Add, {"vec3<f16>", "vec3<f16>"}, "vec3<f16>"},
      {Op::Add, {"vec3<f32>", "f32"}, ""},
      {Op::Add, {"bool", "bool"}, ""},
      {Op::Neg, {"u32"}, ""},
      {Op::Sign, {"vec2<i32>"}, "vec2<i32>"},
      {Op::Abs, {"u32"}, "u32"},
      {Op::And, {"bool", "bool"}, "bool"},
      {Op::And, {"f32", "f32"}, ""},
      {Op::Xor, {"bool", "bool"}, ""},
      {Op::Shl, {"vec2<i32>", "vec2<u32>"}, "vec2<i32>"},
      {Op::Shl, {"i32", "i32"}, ""},
      {Op::Lt, {"vec4<f32>", "vec4<f32>"}, "vec4<bool>"},
      {Op::Lt, {"bool", "bool"}, ""},
      {Op::Eq, {"bool", "bool"}, "bool"},
      {Op::Select, {"vec2<f32>", "vec2<f32>", "bool"}, "vec2<f32>"},
      {Op::Select, {"vec2<f32>", "vec2<f32>", "vec2<bool>"}, "vec2<f32>"},
      {Op::Select, {"vec2<f32>", "vec2<f32>", "vec3<bool>"}, ""},
      {Op::Dot, {"vec3<i32>", "vec3<i32>"}, "i32"},
      {Op::Dot, {"f32", "f32"}, ""},
      {Op::All, {"vec3<bool>"}, "bool"},
      {Op::Any, {"vec3<i32>"}, ""},
      {Op::MatMul, {"mat3x2<f32>", "mat4x3<f32>"}, "mat4x2<f32>"},
      {Op::MatMul, {"mat3x2<f32>", "vec3<f32>"}, "vec2<f32>"},
      {Op::MatMul, {"vec2<f32>", "mat3x2<f32>"}, "vec3<f32>"},
      {Op::MatMul, {"mat3x2<f32>", "mat3x2<f32>"}, ""},
      {Op::MatMul, {"mat3x2<f32>", "f32"}, ""},
      {Op::ExtractBits, {"vec2<i32>", "u32", "u32"}, "vec2<i32>"},
      {Op::InsertBits, {"u32", "u32", "u32", "i32"}, ""},
      {Op::Dot4I8Packed, {"u32", "u32"}, "i32"},
      {Op::Dot4U8Packed, {"u32", "u32"}, "u32"},
      {Op::Dot4I8Packed, {"i32", "i32"}, ""},
      {Op::QuantizeToF16, {"f16"}, ""},
      {Op::Extract, {"mat4x2<f32>", "i32"}, "vec2<f32>"},
      {Op::Load, {"ptr<workgroup, f32>"}, "f32"},
      {Op::Load, {"f32"}, ""},
      {Op::Store, {"ptr<workgroup, f32>", "f32"}, "void"},
      {Op::Store, {"ptr<workgroup, f32>", "i32"}, ""},
      {Op::AtomicAdd, {"ptr<workgroup, atomic<i32>>", "i32"}, "i32"},
      {Op::AtomicAdd, {"ptr<workgroup, atomic<i32>>", "u32"}, ""},
      {Op::AtomicStore, {"ptr<workgroup, atomic<i32>>", "i32"}, "void"},
      {Op::AtomicCompareExchange, {"ptr<workgroup, atomic<i32>>", "i32", "i32"}, "atomic_compare_exchange_result_i32"},
      {Op::WorkgroupUniformLoad, {"ptr<workgroup, atomic<i32>>"}, "i32"},
      {Op::If, {"bool"}, "void"},
      {Op::Switch, {"f32"}, ""},
  };
  for (const InferCase& each : cases) {
    std::vector<TypeId> operands;
    for (const std::string& name : each.operands) operands.push_back(known.at(name));
    std::optional<TypeId> result = inferType(types, each.op, operands);
    EXPECT_EQ(result ? types.toString(*result) : "", each.result) << info(each.op).text << " " << ::testing::PrintToString(each.operands);
  }
}

}  // namespace
}  // namespace lockstep::kernel
