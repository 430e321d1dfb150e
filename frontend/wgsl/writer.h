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
    kernel::InstructionId user;   ///< the last one found
    bool shared_operand = false;  ///< an operand of an access that is written out several times
  };

  // write_module.cpp
  void nameGlobals();
  void nameFunction(const kernel::Function& function);
  std::string uniqueName(std::string_view hint, std::set<std::string>& scope);
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
  void analyze(kernel::BlockId block);
  void analyzeSharing(const kernel::Function& function);
  /// May the result be written in place of its only use?
  [[nodiscard]] bool canInline(kernel::InstructionId id) const;
  [[nodiscard]] static bool isPure(kernel::Op op);
  [[nodiscard]] bool isComponentAccess(const kernel::Instruction& instruction) const;
  /// The instruction before which an inlined result is evaluated.
  [[nodiscard]] kernel::InstructionId evaluationPlace(kernel::InstructionId id) const;

  // write_statements.cpp
  void writeBlock(kernel::BlockId block);
  void writeInstruction(kernel::InstructionId id);
  void writeResult(kernel::InstructionId id);
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
  /// A private variable that holds `bits`: its value is not known to a WGSL compiler.
  std::string variableOfBits(uint32_t bits);
  std::string scalarText(const kernel::Value& value);
  std::string argument(kernel::ValueId id);
  std::string arguments(const std::vector<kernel::ValueId>& ids);
  /// The memory that a pointer value names: "a", "(*p)", "a[i].b".
  std::string place(kernel::ValueId pointer);
  std::string placeOf(const kernel::Instruction& access);
  /// Names constant operands that WGSL would reject as constant expressions, such as the zero of `x / 0`.
  void hideConstants(const kernel::Instruction& instruction);
  void hide(kernel::ValueId constant);
  [[nodiscard]] bool isConstant(kernel::ValueId id) const { return module_[id].kind == kernel::ValueKind::Constant; }
  [[nodiscard]] bool anyLane(kernel::ValueId constant, bool (*test)(uint32_t bits)) const;
  Text binaryText(const kernel::Instruction& instruction);
  std::string operand(kernel::ValueId id, Binding least);
  std::string elementText(kernel::TypeId base, kernel::ValueId index);
  [[nodiscard]] kernel::TypeId partType(kernel::TypeId whole, kernel::ValueId index) const;
  [[nodiscard]] kernel::TypeId columnType(kernel::TypeId matrix) const;

  const kernel::Module& module_;
  std::vector<Line> lines_;
  int indent_ = 0;
  std::set<std::string> global_names_;
  std::vector<std::string> struct_names_;          // by type id
  std::vector<std::string> function_names_;        // by function id
  std::vector<std::string> names_;                 // by value id: variables, parameters, lets
  std::map<kernel::ValueId, std::string> hidden_;  // constants named for the instruction that is being written
  std::vector<Text> inlined_;                      // by value id: texts to be written in place of the use
  std::vector<Place> places_;                      // by instruction id
  std::vector<std::vector<uint32_t>> effects_;     // by block: number of instructions with effects before each index
  std::vector<bool> used_types_;
  std::map<uint32_t, std::string> odd_bits_;  // private variables that hold bits WGSL has no f32 literal for
  std::set<std::string> scope_;               // names taken in the current function
  std::set<std::string> hints_;               // names that values of the current function ask for
  uint32_t next_number_ = 0;
};

}  // namespace lockstep::wgsl
