// SPDX-License-Identifier: Apache-2.0
// Builds kernel IR. Keeps an insertion block; constants are interned; result types are inferred by the table's rule.
// Misuse (a type rule broken) is an InternalError: readers check user input before they build.
// C++ evaluates the arguments of one call in any order, so name all but one argument that builds: store(access(..), load(..)) may
// emit either first. Operands in braces are evaluated from left to right.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

class Builder {
 public:
  explicit Builder(Module module = {});

  Module& module() { return module_; }
  TypeTable& types() { return module_.types; }
  [[nodiscard]] const Type& typeOf(ValueId value) const { return module_.typeOf(value); }
  [[nodiscard]] TypeId typeIdOf(ValueId value) const { return module_[value].type; }
  /// Gives up the finished module.
  Module take() { return std::move(module_); }

  // Constants.
  ValueId boolean(bool value) { return scalar(Scalar::Bool, value ? 1 : 0); }
  ValueId i32(int32_t value) { return scalar(Scalar::I32, static_cast<uint32_t>(value)); }
  ValueId u32(uint32_t value) { return scalar(Scalar::U32, value); }
  ValueId f32(float value);
  ValueId scalar(Scalar type, uint32_t bits);
  ValueId composite(TypeId type, std::vector<ValueId> elements);
  ValueId zero(TypeId type);

  // Module scope.
  /// `value` is set here; name, type, space, access, group and binding by the caller (uniform variables become read-only here).
  ValueId global(GlobalVariable variable);
  FunctionId function(std::string name, TypeId return_type);
  ValueId parameter(FunctionId function, std::string name, TypeId type, Builtin builtin = Builtin::None);
  void setWorkgroupSize(FunctionId function, std::array<uint32_t, 3> size);
  void setSubgroupSize(FunctionId function, uint32_t size);

  // Insertion point.
  void setBlock(BlockId block) { block_ = block; }
  void enterFunction(FunctionId function) { block_ = module_[function].body; }
  [[nodiscard]] BlockId block() const { return block_; }
  BlockId newBlock();
  /// Stamped on every instruction made from now on (see Instruction::origin / location).
  void setOrigin(uint32_t origin) { origin_ = origin; }
  void setLocation(Location location);
  /// The location that is set, to be set again later.
  [[nodiscard]] uint32_t locationIndex() const { return location_; }
  void setLocationIndex(uint32_t index) { location_ = index; }
  /// Stamped on the float operations (groups Arithmetic and Math) made from now on.
  void setFloatMode(FloatMode mode) { float_mode_ = mode; }

  // Instructions. `make` infers the result type from the op's rule; `makeAs` states it.
  ValueId make(Op op, std::vector<ValueId> operands);
  /// The result is invalid when `type` is void.
  ValueId makeAs(Op op, TypeId type, std::vector<ValueId> operands, uint32_t immediate = 0);
  void makeVoid(Op op, std::vector<ValueId> operands = {});
  /// See Instruction::labels.
  void print(std::vector<ValueId> values, std::vector<std::string> labels = {});
  ValueId convert(TypeId type, ValueId value) { return makeAs(Op::Convert, type, {value}); }
  ValueId extract(ValueId composite, uint32_t index);
  ValueId extract(ValueId composite, ValueId index);
  ValueId construct(TypeId type, std::vector<ValueId> elements) { return makeAs(Op::Construct, type, std::move(elements)); }
  /// A single component is extracted.
  ValueId swizzle(ValueId vector, std::span<const uint32_t> components);
  ValueId var(TypeId type, std::string name, ValueId initial = {});
  ValueId access(ValueId pointer, std::vector<ValueId> indices, bool in_bounds = false);
  ValueId load(ValueId pointer);
  void store(ValueId pointer, ValueId value) { makeVoid(Op::Store, {pointer, value}); }
  /// Subgroup matrices; `array` is a pointer to an array.
  ValueId loadMatrix(TypeId type, ValueId array, ValueId offset, ValueId stride, bool column_major = false) {
    return makeAs(Op::SubgroupMatrixLoad, type, {array, offset, stride}, column_major ? 1 : 0);
  }
  void storeMatrix(ValueId array, ValueId offset, ValueId matrix, ValueId stride, bool column_major = false) {
    makeAs(Op::SubgroupMatrixStore, types().voidType(), {array, offset, matrix, stride}, column_major ? 1 : 0);
  }
  ValueId convertMatrix(TypeId type, ValueId matrix) { return makeAs(Op::SubgroupMatrixConvert, type, {matrix}); }
  ValueId call(FunctionId function, std::vector<ValueId> arguments);
  void name(ValueId value, std::string name);

  // Structured control flow; the callbacks fill the blocks and the insertion point returns after the construct.
  void ifThen(ValueId condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  /// for (i = begin; i < end; i += step) { body(i) }; i is u32.
  void forRange(ValueId begin, ValueId end, ValueId step, const std::string& name, const std::function<void(ValueId)>& body);
  void loop(const std::function<void()>& body, const std::function<void()>& continuing = {});
  void switchOn(ValueId selector, std::vector<SwitchCase> cases, const std::function<void(size_t)>& fill);
  void breakLoop() { makeVoid(Op::Break); }
  void continueLoop() { makeVoid(Op::Continue); }
  void breakIf(ValueId condition) { makeVoid(Op::BreakIf, {condition}); }
  void returnVoid() { makeVoid(Op::Return); }
  void returnValue(ValueId value) { makeVoid(Op::Return, {value}); }

 private:
  InstructionId append(Instruction instruction);
  ValueId addValue(Value value);
  Module module_;
  BlockId block_;
  uint32_t origin_ = 0;
  uint32_t location_ = 0;
  FloatMode float_mode_ = FloatMode::Contract;
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint32_t> locations_;
  std::map<std::pair<TypeId, uint32_t>, ValueId> scalars_;
  std::map<std::pair<TypeId, std::vector<ValueId>>, ValueId> composites_;
};

/// The result type that `op`'s rule gives for these operand types (void for an op without result); nullopt when the operands break
/// the rule, and for the ops whose result type only the instruction can state (convert, bitcast, construct, extract from a struct,
/// swizzle, var, access, call, subgroup_matrix_load, subgroup_matrix_convert).
std::optional<TypeId> inferType(TypeTable& types, Op op, std::span<const TypeId> operands);

}  // namespace lockstep::kernel
