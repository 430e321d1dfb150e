// SPDX-License-Identifier: Apache-2.0
// Syntax tree + what the checker knows -> kernel IR. Internal to the reader; only for programs without errors.
#pragma once

#include <unordered_map>

#include "frontend/wgsl/check/program.h"
#include "ir/kernel/builder.h"

namespace lockstep::wgsl {

kernel::Module lower(const Ast& ast, Program program, const Source& source);

/// One class over several files: lower_module, lower_statements, lower_expressions, lower_builtins, lower_vector_builtins,
/// lower_float_parts, lower_subgroup_matrices.
class Lowerer {
 public:
  Lowerer(const Ast& ast, Program program, const Source& source);
  kernel::Module run();

 private:
  using Value = kernel::ValueId;
  /// A place in memory whose indices have been evaluated.
  struct MemoryPlace {
    Value root;  // pointer
    std::vector<Value> indices = {};
    bool in_bounds = true;
    Span span = {};
  };
  using Op = kernel::Op;
  /// The instructions from this one on come from this place in the text.
  struct Origin {
    size_t instruction = 0;
    uint32_t offset = 0;
  };

  // lower_module.cpp
  kernel::TypeId type(Ty id);
  kernel::TypeId makeType(Ty id);
  kernel::Scalar scalar(Ty id) const;
  Value constant(const ConstValue& value);
  void lowerGlobal(EntityId id);
  void lowerFunction(uint32_t index);
  /// Struct parameters of an entry point become one parameter per member.
  Value entryParameter(kernel::FunctionId function, const Entity& entity, const FunctionInfo& info, size_t index);
  std::string plainName(std::string_view name);
  void setLocations(kernel::Module& module) const;

  // lower_statements.cpp: nothing is built after a jump until the block ends.
  void lowerBlock(StmtId id);
  void lowerSequence(StmtList statements);
  void lowerStatement(StmtId id);
  void lowerIf(const Stmt& stmt);
  void lowerSwitch(const Stmt& stmt);
  void lowerLoop(const Stmt& stmt);
  void lowerConditionLoop(const Stmt& stmt);
  void lowerCondition(ExprId condition);
  void lowerAssign(const Stmt& stmt);
  void lowerSwizzleAssign(const Stmt& stmt);
  void lowerDeclaration(StmtId id);
  void jump(kernel::Op op);

  // lower_expressions.cpp
  Value lowerValue(ExprId id);
  Value lowerReference(ExprId id);
  MemoryPlace lowerPlace(ExprId id);
  [[nodiscard]] bool isAddressOf(ExprId id) const;
  Value accessPlace(MemoryPlace place);
  Value runTimeIndex(Value index);
  Value matrixElement(Value matrix, Value index);
  Value lowerUnary(ExprId id);
  Value lowerBinary(ExprId id);
  Value lowerLogical(ExprId id, Value left);
  Value lowerMember(ExprId id);
  void lowerPrint(const Expr& call);
  Value lowerCall(ExprId id);
  Value lowerConstructor(ExprId id);
  Value swizzle(Value vector, std::string_view letters);
  Value binary(BinaryOp op, Value left, Value right);
  Value matrixBinary(BinaryOp op, Value left, Value right);
  Value splat(Value value, uint32_t width);
  Value construct(kernel::TypeId type, std::vector<Value> parts);
  Value extract(Value composite, uint32_t index);
  bool isConstant(Value value) { return builder_.module()[value].kind == kernel::ValueKind::Constant; }
  /// Evaluating the expression has no effect, cannot go out of bounds and costs little.
  bool isCheap(ExprId id) const;
  /// What is built from now on comes from here. Which line that is, is looked up at the end and once.
  void at(Span span) {
    const size_t next = builder_.module().instructions.size();
    if (origins_.empty() || origins_.back().instruction != next) origins_.push_back({.instruction = next});
    origins_.back().offset = span.begin;
  }

  // lower_builtins.cpp
  Value lowerBuiltin(ExprId id);
  Value scalarComposition(Builtin builtin, const std::vector<Value>& arguments);
  Value unsignedNumber(Value number);
  Value packComposition(Builtin builtin, Value argument);
  Value unpackComposition(Builtin builtin, Value argument, kernel::TypeId result);
  Value ldexp(Value value, Value exponent);

  // lower_float_parts.cpp
  Value floatParts(Builtin builtin, Value argument, kernel::TypeId result);
  Value frexp(Value value, kernel::TypeId result);

  // lower_subgroup_matrices.cpp
  Value lowerMatrixBuiltin(ExprId id);
  Value filled(kernel::TypeId matrix, Value component);

  // lower_vector_builtins.cpp
  Value vectorComposition(Builtin builtin, const std::vector<Value>& arguments);
  Value length(Value vector);
  Value cross(Value a, Value b);
  Value refract(Value incident, Value normal, Value eta);
  Value transpose(Value matrix);
  Value determinant(Value matrix);
  /// A constant of the scalar or vector type of `like`.
  Value number(Value like, double value);
  Value make(Op op, std::vector<Value> operands) { return builder_.make(op, std::move(operands)); }

  [[nodiscard]] const ExprInfo& infoOf(ExprId id) const { return program_[id]; }
  [[nodiscard]] const kernel::Type& kernelType(Value value) const { return builder_.typeOf(value); }

  const Ast& ast_;
  Program program_;
  Types& types_;
  ConstEval eval_;
  const Source& source_;
  kernel::Builder builder_;
  std::vector<Origin> origins_;
  std::vector<kernel::TypeId> type_map_;
  std::vector<Value> entity_values_;
  std::vector<kernel::FunctionId> functions_;
  std::unordered_map<const void*, Value> composites_;  // by shared elements: constants may share parts many times
  bool jumped_ = false;                                // the block that is being built ends in a jump
  bool continued_ = false;                             // a continue of the innermost loop was built
};

}  // namespace lockstep::wgsl
