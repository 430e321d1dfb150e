// SPDX-License-Identifier: Apache-2.0
// What the validator's parts share. Parts run in this order; the later ones rely on the ids that checkIds has found in range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/kernel/queries.h"

namespace lockstep::kernel {

/// What a problem is about; resolved to a line and column of the printed module only when there is one.
struct Subject {
  enum class Kind : uint8_t { Module, Type, Global, Function, Parameter, Instruction, Operand, Case };
  Kind kind = Kind::Module;
  size_t index = 0;   ///< type, global, function or instruction id; Case: block id
  size_t second = 0;  ///< Parameter, Operand: which one
};

class Problems {
 public:
  void add(Subject subject, std::string_view code, std::string message, std::string remedy = {});
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// Prints the module and points into it.
  [[nodiscard]] Failure take(const Module& module) const;

 private:
  struct Problem {
    Subject subject;
    std::string code, message, remedy;
  };
  std::vector<Problem> problems_;
};

inline Subject at(TypeId id) { return {.kind = Subject::Kind::Type, .index = id.index()}; }
inline Subject at(FunctionId id) { return {.kind = Subject::Kind::Function, .index = id.index()}; }
inline Subject at(InstructionId id) { return {.kind = Subject::Kind::Instruction, .index = id.index()}; }
inline Subject at(BlockId of_case) { return {.kind = Subject::Kind::Case, .index = of_case.index()}; }
inline Subject atOperand(InstructionId id, size_t operand) {
  return {.kind = Subject::Kind::Operand, .index = id.index(), .second = operand};
}
inline Subject atParameter(FunctionId id, size_t parameter) {
  return {.kind = Subject::Kind::Parameter, .index = id.index(), .second = parameter};
}
inline Subject atGlobal(size_t index) { return {.kind = Subject::Kind::Global, .index = index}; }

/// Ids in range, each block and instruction owned once, values that know their owner, counts of blocks and operands.
void checkIds(const Module& module, Problems& problems);
/// Each use of a value is dominated by its definition.
void checkDominance(const Module& module, Problems& problems);
/// Jumps stand where they may, nothing follows them, functions return a value on every path, calls go backwards.
void checkControl(const Module& module, Problems& problems);
/// Struct layouts, store types of globals, their address space, access, initializer and binding.
void checkGlobals(const Module& module, Problems& problems);
/// Parameters, return types, builtins, workgroup sizes and capabilities.
void checkFunctions(const Module& module, Problems& problems);
/// Operand and result types of every instruction that is reachable from a function.
void checkInstructions(const Module& module, Problems& problems);

/// A type that values can have: no void, pointer, atomic or runtime-sized part.
bool isConstructible(const TypeTable& types, TypeId id);

/// The answers to a question about types, each found out once. The types may become more meanwhile.
class TypeFacts {
 public:
  using Question = bool (*)(const TypeTable&, TypeId);
  TypeFacts(const TypeTable& types, Question question) : types_(types), question_(question) {}
  bool operator()(TypeId id) {
    if (answers_.size() <= id.index()) answers_.resize(types_.size(), Answer::Unknown);
    Answer& answer = answers_[id.index()];
    if (answer == Answer::Unknown) answer = question_(types_, id) ? Answer::Yes : Answer::No;
    return answer == Answer::Yes;
  }

 private:
  enum class Answer : uint8_t { Unknown, No, Yes };
  const TypeTable& types_;
  Question question_;
  std::vector<Answer> answers_;
};

}  // namespace lockstep::kernel
