// SPDX-License-Identifier: Apache-2.0
#include "tests/ir/kernel/samples.h"

#include <algorithm>

namespace lockstep::kernel::testing {
namespace {

/// Builds uses of single ops inside an entry point. Operands are loads from function-space vars, so nothing is constant.
class OpSampler {
 public:
  OpSampler() {
    TypeTable& types = builder_.types();
    builder_.module().capabilities = {Capability::F16, Capability::Subgroups};
    atomics_ = builder_.global(
        {.name = "atomics", .value = {}, .type = types.atomic(Scalar::U32), .space = AddressSpace::Workgroup, .initializer = {}});
    data_ = builder_.global({.name = "data",
                             .value = {},
                             .type = types.array(types.f32(), 0),
                             .space = AddressSpace::Storage,
                             .access = Access::ReadWrite,
                             .binding = 1,
                             .initializer = {}});
    shared_ = builder_.global({.name = "shared", .value = {}, .type = types.f32(), .space = AddressSpace::Workgroup, .initializer = {}});
    helper_ = builder_.function("helper", types.f32());
    ValueId x = builder_.parameter(helper_, "x", types.f32());
    builder_.enterFunction(helper_);
    builder_.returnValue(x);
    main_ = builder_.function("main", types.voidType());
    builder_.setWorkgroupSize(main_, {8, 4, 2});
    builder_.enterFunction(main_);
  }

  bool add(Op op) {
    if (addControl(op) || addExplicit(op)) return true;
    return addInferred(op);
  }

  Builder& builder() { return builder_; }
  Module take() { return builder_.take(); }

 private:
  ValueId value(TypeId type) { return builder_.load(builder_.var(type, "")); }
  ValueId value(Scalar scalar, uint32_t width = 1) { return value(builder_.types().scalarOrVector(scalar, width)); }

  /// Tries every list of operands of a small set of types and keeps those that the rule takes.
  bool addInferred(Op op) {
    TypeTable& types = builder_.types();
    std::vector<TypeId> choices;
    for (Scalar scalar : {Scalar::Bool, Scalar::I32, Scalar::U32, Scalar::F32, Scalar::F16}) {
      for (uint32_t width : {1u, 3u}) choices.push_back(types.scalarOrVector(scalar, width));
    }
    choices.push_back(types.vector(Scalar::F32, 2));
    choices.push_back(types.matrix(Scalar::F32, 3, 2));
    choices.push_back(types.matrix(Scalar::F32, 2, 3));
    int count = info(op).operands;
    if (count <= 0) return false;
    bool added = false;
    std::vector<size_t> picks(static_cast<size_t>(count), 0);
    while (picks.back() < choices.size()) {
      std::vector<TypeId> operand_types;
      for (size_t pick : picks) operand_types.push_back(choices[pick]);
      if (inferType(types, op, operand_types)) {
        std::vector<ValueId> operands;
        for (TypeId type : operand_types) operands.push_back(value(type));
        // The lane of a broadcast is a constant.
        if (info(op).rule == TypeRule::Lane) operands[1] = builder_.u32(3);
        builder_.setFloatMode(added ? FloatMode::Strict : FloatMode::Contract);
        builder_.make(op, operands);
        added = true;
      }
      ++picks[0];
      for (size_t i = 0; i + 1 < picks.size() && picks[i] == choices.size(); ++i) picks[i] = 0, ++picks[i + 1];
    }
    return added;
  }

  bool addExplicit(Op op) {
    TypeTable& types = builder_.types();
    if (info(op).group == OpGroup::SubgroupMatrix) {
      addMatrices(op);
    } else if (info(op).group == OpGroup::Atomic) {
      std::vector<ValueId> operands = {atomics_};
      for (int i = 1; i < info(op).operands; ++i) operands.push_back(value(Scalar::U32));
      builder_.make(op, operands);
    } else if (op == Op::Convert) {
      builder_.convert(types.vector(Scalar::U32, 3), value(Scalar::F32, 3));
      builder_.convert(types.boolean(), value(Scalar::I32));
    } else if (op == Op::Bitcast) {
      builder_.makeAs(op, types.vector(Scalar::F32, 2), {value(Scalar::U32, 2)});
      builder_.makeAs(op, types.u32(), {value(Scalar::F16, 2)});
    } else if (op == Op::Construct) {
      ValueId scalar = value(Scalar::F32);
      ValueId vector = builder_.construct(types.vector(Scalar::F32, 2), {scalar, scalar});
      builder_.construct(types.vector(Scalar::F32, 4), {scalar});
      builder_.construct(types.matrix(Scalar::F32, 2, 2), {vector, vector});
      builder_.construct(types.array(types.f32(), 2), {scalar, scalar});
    } else if (op == Op::Extract) {
      builder_.extract(value(Scalar::F32, 3), 2);
      builder_.extract(value(types.matrix(Scalar::F32, 2, 3)), value(Scalar::I32));
      builder_.extract(value(types.atomicExchangeResult(Scalar::I32)), 1);
    } else if (op == Op::Swizzle) {
      const uint32_t components[] = {2, 2, 0, 1};
      builder_.swizzle(value(Scalar::I32, 3), components);
    } else if (op == Op::Var) {
      builder_.var(types.array(types.boolean(), 3), "flags");
      builder_.var(types.vector(Scalar::F32, 2), "v", builder_.zero(types.vector(Scalar::F32, 2)));
    } else if (op == Op::Access) {
      builder_.access(data_, {value(Scalar::U32)}, true);
      builder_.access(builder_.var(types.matrix(Scalar::F32, 2, 3), "m"), {builder_.i32(1), value(Scalar::I32)});
    } else if (op == Op::Load || op == Op::WorkgroupUniformLoad) {
      builder_.make(op, {shared_});
    } else if (op == Op::Store) {
      builder_.store(shared_, value(Scalar::F32));
    } else if (op == Op::ArrayLength) {
      builder_.make(op, {data_});
    } else if (op == Op::Call) {
      builder_.call(helper_, {value(Scalar::F32)});
    } else if (op == Op::SubgroupElect) {
      builder_.make(op, {});
    } else if (info(op).group == OpGroup::Subgroup && info(op).rule == TypeRule::Explicit) {
      builder_.make(op, {value(Scalar::Bool)});
    } else if (op == Op::WorkgroupBarrier || op == Op::StorageBarrier) {
      builder_.makeVoid(op);
    } else if (op == Op::Print) {
      builder_.makeVoid(op, {value(Scalar::F32), value(Scalar::Bool, 3), value(Scalar::F16, 2), value(Scalar::I32), builder_.u32(7)});
      kernel::TypeTable& types = builder_.types();
      const ValueId list = builder_.zero(types.array(types.matrix(Scalar::F32, 2, 3), 2));
      builder_.print({builder_.u32(8), list}, {"the \"text\"", "", "list"});
      builder_.print({}, {"text"});
    } else {
      return false;
    }
    return true;
  }

  void addMatrices(Op op) {
    TypeTable& types = builder_.types();
    builder_.setWorkgroupSize(main_, {64, 1, 1});
    const bool asks_for_places = op == Op::SubgroupMatrixRow || op == Op::SubgroupMatrixColumn;
    if (asks_for_places) builder_.setSubgroupSize(main_, 32);
    builder_.module().capabilities.push_back(Capability::SubgroupMatrices);
    const TypeId left = types.subgroupMatrix(MatrixUse::Left, Scalar::BF16, 16, 16);
    const TypeId right = types.subgroupMatrix(MatrixUse::Right, Scalar::BF16, 16, 16);
    const TypeId sum = types.subgroupMatrix(MatrixUse::Result, Scalar::F32, 16, 16);
    const ValueId offset = value(Scalar::U32), stride = value(Scalar::U32);
    if (op == Op::SubgroupMatrixLoad) {
      builder_.loadMatrix(types.subgroupMatrix(MatrixUse::Left, Scalar::F32, 8, 16), data_, offset, stride);
      builder_.loadMatrix(sum, data_, offset, stride, true);
    } else if (op == Op::SubgroupMatrixStore) {
      builder_.storeMatrix(data_, offset, value(sum), stride);
      builder_.storeMatrix(data_, offset, builder_.construct(sum, {value(Scalar::F32)}), stride, true);
    } else if (op == Op::SubgroupMatrixMultiplyAccumulate) {
      builder_.make(op, {value(left), value(right), builder_.zero(sum)});
    } else if (op == Op::SubgroupMatrixAdd) {
      builder_.make(op, {value(sum), value(sum)});
    } else if (op == Op::SubgroupMatrixScale) {
      builder_.make(op, {value(sum), value(Scalar::F32)});
    } else if (op == Op::SubgroupMatrixRowMax || op == Op::SubgroupMatrixRowSum) {
      builder_.make(op, {value(sum)});
      builder_.make(op, {value(types.subgroupMatrix(MatrixUse::Result, Scalar::F16, 16, 16))});
    } else if (op == Op::SubgroupMatrixConvert) {
      builder_.convertMatrix(left, value(sum));
      builder_.convertMatrix(types.subgroupMatrix(MatrixUse::Left, Scalar::F16, 16, 16), value(sum));
    } else {
      builder_.make(op, {value(sum), value(Scalar::U32)});
      builder_.make(op, {value(sum), builder_.u32(3)});
      builder_.extract(value(sum), 2);
    }
  }

  bool addControl(Op op) {
    if (info(op).group != OpGroup::Control) return false;
    ValueId condition = value(Scalar::Bool);
    if (op == Op::If) {
      builder_.ifThen(condition, [] {});
      builder_.ifThen(condition, [&] { value(Scalar::F32); }, [&] { value(Scalar::I32); });
      builder_.ifThen(condition, [] {}, [&] { value(Scalar::I32); });
    } else if (op == Op::Loop || op == Op::Break || op == Op::Continue || op == Op::BreakIf) {
      builder_.loop([&] { builder_.ifThen(condition, [&] { builder_.breakLoop(); }, [&] { builder_.continueLoop(); }); },
                    [&] { builder_.breakIf(value(Scalar::Bool)); });
    } else if (op == Op::Switch) {
      for (Scalar scalar : {Scalar::I32, Scalar::U32}) {
        builder_.switchOn(value(scalar), {{.selectors = {UINT32_MAX, 0}, .is_default = false}, {.selectors = {7}, .is_default = true}},
                          [&](size_t i) {
                            if (i == 1) builder_.breakLoop();
                          });
      }
    } else if (op == Op::Return) {
      builder_.ifThen(condition, [&] { builder_.returnVoid(); });
    } else {
      return false;
    }
    return true;
  }

  Builder builder_;
  ValueId atomics_, data_, shared_;
  FunctionId helper_, main_;
};

void addNames(Builder& builder) {
  TypeTable& types = builder.types();
  for (const char* name : {"x", "x", "x_1", "7", "größe", "add"}) builder.var(types.f32(), name);
}

void addConstants(Builder& builder) {
  TypeTable& types = builder.types();
  TypeId vec2 = types.vector(Scalar::F32, 2);
  ValueId vector = builder.composite(vec2, {builder.f32(1.5f), builder.f32(-0.0f)});
  builder.var(types.array(vec2, 2), "table", builder.composite(types.array(vec2, 2), {vector, builder.zero(vec2)}));
  builder.var(types.array(types.f32(), 1000), "zeros", builder.zero(types.array(types.f32(), 1000)));
  for (uint32_t bits : {0x7fc00000u, 0xff800000u, 0x7f800001u, 0x00000001u, 0x7f7fffffu}) {
    builder.var(types.f32(), "", builder.scalar(Scalar::F32, bits));
  }
  for (uint32_t bits : {0x7e01u, 0xfc00u, 1u, 0x7bffu}) builder.var(types.scalar(Scalar::F16), "", builder.scalar(Scalar::F16, bits));
}

void addGlobals(Builder& builder) {
  TypeTable& types = builder.types();
  std::vector<Member> inner(2);
  inner[0] = {.name = "a", .type = types.vector(Scalar::F32, 3)};
  inner[1] = {.name = "b", .type = types.f32()};
  TypeId inner_type = types.structure("Inner", inner);
  std::vector<Member> outer(3);
  outer[0] = {.name = "count", .type = types.u32(), .size = 32};
  outer[1] = {.name = "inner", .type = inner_type, .align = 64};
  outer[2] = {.name = "items", .type = types.array(inner_type, 0)};
  TypeId outer_type = types.structure("vec2", outer);  // a name that the text cannot use as it is
  ValueId storage = builder.global({.name = "outer",
                                    .value = {},
                                    .type = outer_type,
                                    .space = AddressSpace::Storage,
                                    .access = Access::Read,
                                    .group = 2,
                                    .binding = 7,
                                    .initializer = {}});
  builder.global({.name = "params", .value = {}, .type = inner_type, .space = AddressSpace::Uniform, .group = 1, .initializer = {}});
  builder.global({.name = "", .value = {}, .type = types.i32(), .space = AddressSpace::Private, .initializer = builder.i32(-4)});
  builder.load(builder.access(storage, {builder.u32(2), builder.i32(3), builder.u32(0), builder.u32(1)}));
}

}  // namespace

std::optional<Module> moduleUsing(Op op) {
  OpSampler sampler;
  if (!sampler.add(op)) return std::nullopt;
  return sampler.take();
}

Module wideModule() {
  OpSampler sampler;
  Builder& builder = sampler.builder();
  builder.module().name = "wide \"kernel\"\n";
  addGlobals(builder);
  addNames(builder);
  addConstants(builder);
  for (size_t i = 0; i < kOpCount; ++i) {
    // They want an entry point of their own, with a row of invocations.
    if (info(static_cast<Op>(i)).group == OpGroup::SubgroupMatrix) continue;
    builder.setOrigin(static_cast<uint32_t>(i % 3));
    builder.setLocation({.file = "wide.wgsl", .line = static_cast<uint32_t>(i / 2), .column = 5});
    sampler.add(static_cast<Op>(i));
  }
  return sampler.take();
}

std::string inEntryPoint(const std::string& lines) {
  return R"(lockstep.kernel 1
enable f16
struct S {
  a: f32 {offset = 0}
  b: vec2<u32> {offset = 8}
}
var @in: array<f32> {access = read, binding = 0, group = 0, space = storage}
var @out: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
var @counter: atomic<u32> {space = workgroup}
var @state: S {space = private}
fn @helper(%x: f32) -> f32 {
  return %x
}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %i: u32 {builtin = local_invocation_index}) {workgroup_size = [64, 1, 1]} {
)" + lines +
         "}\n";
}

bool uses(const Module& module, Op op) {
  return std::any_of(module.instructions.begin(), module.instructions.end(),
                     [&](const Instruction& instruction) { return instruction.op == op; });
}

}  // namespace lockstep::kernel::testing
