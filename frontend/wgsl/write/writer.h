// SPDX-License-Identifier: Apache-2.0
// Kernel IR -> WGSL text, internal to write(). One class over write_module, write_statements, write_expressions, write_analysis.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::wgsl {

/// How tightly a text binds; operands that bind less tightly get parentheses.
enum class Binding : uint8_t { Loose, Relation, Shift, Sum, Product, Unary, Primary };

struct Text {
  std::string text;
  Binding binding = Binding::Primary;
};

class Writer {
 public:
  explicit Writer(const kernel::Module& module) : module_(module) {}
  std::string run();

 private:
  struct Line {
    int indent = 0;
    std::string text;
  };
  /// Where an instruction stands, and how its result is used.
  struct Place {
    uint32_t block = UINT32_MAX, index = 0;
    uint32_t uses = 0;
    bool inlined = false;   ///< written in its user's expression
    bool floating = false;  ///< the access of a store's target, written at the store
    bool compound = false;  ///< a store that is written `place op= value`, and the operation and the load in it
  };
  /// A run of instructions that one statement writes: those after `at`.
  struct Claim {
    int32_t at = -1;
    std::vector<kernel::InstructionId> inlined;
  };

  struct NameScope {
    std::set<std::string> taken;
    std::map<std::string, uint32_t> suffixes;  // the last ones, so that many equal hints take linear time
  };

  // write_module.cpp
  void reserveWords();
  void findUsedNames(const kernel::Function& function);
  void nameGlobals();
  void nameFunction(const kernel::Function& function);
  std::string uniqueName(std::string_view hint, NameScope& scope);
  /// The first free of v0, v1, ... that no value asks for, so that numbering is stable when a text is read and written again.
  std::string numberedName();
  void markTypes();
  void markType(kernel::TypeId type);
  void writeDirectives();
  void writeStructs();
  void writeGlobal(const kernel::GlobalVariable& global);
  void writeFunction(const kernel::Function& function);
  [[nodiscard]] bool needsStandardLayout(kernel::TypeId type) const;
  std::string typeText(kernel::TypeId type) const;
  [[nodiscard]] bool isExchangeResult(kernel::TypeId type) const;

  // write_analysis.cpp
  void countUses(kernel::BlockId block);
  void analyze(kernel::BlockId block);
  const kernel::Instruction* next(uint32_t block, Claim& claim) const;
  uint32_t claimOperands(kernel::InstructionId user, uint32_t depth, Claim& claim);
  uint32_t claimOperand(kernel::InstructionId user, size_t index, uint32_t depth, Claim& claim);
  bool claimCompound(kernel::InstructionId store, Claim& claim);
  void floatTarget(kernel::InstructionId store);
  [[nodiscard]] bool isFloating(kernel::InstructionId id) const { return places_[id.index()].floating; }
  [[nodiscard]] bool mayInline(kernel::InstructionId id, const kernel::Instruction& user) const;
  [[nodiscard]] static bool isPure(kernel::Op op);
  [[nodiscard]] bool isConstantComposite(const kernel::Instruction& instruction) const;
  [[nodiscard]] bool isComponentAccess(const kernel::Instruction& instruction) const;

  // write_statements.cpp
  void writeBlock(kernel::BlockId block);
  void writeInstruction(kernel::InstructionId id);
  void writeResult(kernel::InstructionId id);
  void writeStore(const kernel::Instruction& instruction, bool compound);
  void writeIf(const kernel::Instruction& instruction);
  void writeLoop(const kernel::Instruction& instruction);
  void writeSwitch(const kernel::Instruction& instruction);
  bool writeAsWhile(std::vector<Line>& body, std::vector<Line>& continuing);
  std::vector<Line> capture(kernel::BlockId block);
  /// Can control leave the loop (or switch) that directly holds this block?
  [[nodiscard]] bool leaves(kernel::BlockId block, bool break_counts) const;
  void line(std::string text) { lines_.push_back({indent_, std::move(text)}); }

  // write_expressions.cpp
  Text expression(const kernel::Instruction& instruction);
  Text expressionText(const kernel::Instruction& instruction);
  Text value(kernel::ValueId id);
  Text constant(const kernel::Value& value);
  /// The WGSL function of an op that is one builtin; empty for others.
  [[nodiscard]] static std::string_view functionName(kernel::Op op);
  /// A scalar that needs a private variable with its bits, whose value is not known to a WGSL compiler.
  [[nodiscard]] bool hasNoLiteral(const kernel::Value& value) const;
  std::string scalarText(const kernel::Value& value);
  std::string argument(kernel::ValueId id);
  std::string printText(const kernel::Instruction& print);
  std::string arguments(const std::vector<kernel::ValueId>& ids);
  std::string matrixMoveText(std::string_view name, const kernel::Instruction& instruction);
  /// The memory that a pointer value names: "a", "(*p)", "a[i].b".
  std::string place(kernel::ValueId pointer);
  std::string placeOf(const kernel::Instruction& access);
  /// Names constant operands that WGSL would reject as constant expressions, such as the zero of `x / 0`.
  void hideConstants(const kernel::Instruction& instruction);
  void hide(kernel::ValueId constant);
  [[nodiscard]] bool isConstant(kernel::ValueId id) const { return module_[id].kind == kernel::ValueKind::Constant; }
  [[nodiscard]] bool anyLane(kernel::ValueId constant, bool (*test)(uint32_t bits)) const;
  Text binaryText(const kernel::Instruction& instruction);
  /// "+= x" of `place = place + x`.
  std::string compoundText(const kernel::Instruction& operation);
  std::string operand(kernel::ValueId id, Binding least);
  std::string elementText(kernel::TypeId base, kernel::ValueId index);
  [[nodiscard]] kernel::TypeId partType(kernel::TypeId whole, kernel::ValueId index) const;
  [[nodiscard]] kernel::TypeId columnType(kernel::TypeId matrix) const;

  const kernel::Module& module_;
  std::vector<Line> lines_;
  int indent_ = 0;
  NameScope global_names_;
  std::vector<std::string> struct_names_;          // by type id
  std::vector<std::string> function_names_;        // by function id
  std::vector<std::string> names_;                 // by value id: variables, parameters, lets
  std::map<kernel::ValueId, std::string> hidden_;  // constants named for the instruction that is being written
  std::vector<Text> inlined_;                      // by value id: texts to be written in place of the use
  std::vector<Place> places_;                      // by instruction id
  std::vector<bool> used_types_;
  std::map<uint32_t, std::string> odd_names_;  // of private variables that hold bits WGSL has no f32 literal for
  std::set<uint32_t> used_odd_bits_;
  std::set<std::string> spoken_;      // words that no declaration may hide
  std::set<std::string> used_names_;  // module-scope names that the current function uses
  NameScope scope_;                   // names taken in the current function
  std::set<std::string> hints_;       // names that values of the current function ask for
  uint32_t next_number_ = 0;
};

}  // namespace lockstep::wgsl
