// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::kernel {
namespace {

/// Words that a struct's name may not be, because the reader gives them another meaning; mnemonics too.
constexpr std::string_view kReservedWords[] = {"void",   "bool",   "i32",    "u32",        "f32",    "f16",    "vec2",   "vec3",
                                               "vec4",   "mat2x2", "mat2x3", "mat2x4",     "mat3x2", "mat3x3", "mat3x4", "mat4x2",
                                               "mat4x3", "mat4x4", "atomic", "array",      "ptr",    "strict", "zero",   "true",
                                               "false",  "inf",    "nan",    "continuing", "else",   "case",   "default"};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isPlain(char c) { return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.'; }

bool isReserved(std::string_view word) { return std::ranges::find(kReservedWords, word) != std::end(kReservedWords) || findOp(word); }

/// One name space: the first to ask for a name gets it, later ones a suffix.
class Scope {
 public:
  enum class Of : uint8_t { Values, Structs };
  explicit Scope(Of what) : what_(what) {}
  std::string claim(const std::string& hint) {
    std::string plain = plainName(hint);
    if (plain.empty()) return std::to_string(next_number_++);
    std::string name = plain;
    // Counting on from the last suffix keeps many equal hints from taking quadratic time.
    for (uint32_t& suffix = suffixes_[plain]; !take(name);) name = fmt::format("{}_{}", plain, ++suffix);
    return name;
  }

 private:
  bool take(const std::string& name) { return !(what_ == Of::Structs && isReserved(name)) && taken_.insert(name).second; }

  Of what_;
  std::set<std::string> taken_;
  std::map<std::string, uint32_t> suffixes_;
  uint32_t next_number_ = 0;
};

class Namer {
 public:
  explicit Namer(const Module& module) : module_(module), type_seen_(module.types.size()), block_seen_(module.blocks.size()) {
    names_.values.resize(module.values.size());
    names_.functions.resize(module.functions.size());
    names_.types.resize(module.types.size());
  }

  Names run() {
    Scope scope(Scope::Of::Values);
    // Named functions first: hosts look entry points up by name.
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      if (!module_.functions[i].name.empty()) names_.functions[i] = scope.claim(module_.functions[i].name);
    }
    for (const GlobalVariable& global : module_.globals) {
      visitType(global.type);
      visitConstant(global.initializer);
      nameValue(global.value, global.name, scope);
    }
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      if (module_.functions[i].name.empty()) names_.functions[i] = scope.claim("");
      nameFunction(module_.functions[i]);
    }
    return std::move(names_);
  }

 private:
  void nameValue(ValueId id, const std::string& hint, Scope& scope) {
    if (id.index() < names_.values.size() && names_.values[id.index()].empty()) names_.values[id.index()] = scope.claim(hint);
  }

  void nameFunction(const Function& function) {
    Scope scope(Scope::Of::Values);
    for (const Parameter& parameter : function.parameters) {
      if (parameter.value.index() >= module_.values.size()) continue;
      visitType(module_[parameter.value].type);
      nameValue(parameter.value, module_[parameter.value].name, scope);
    }
    visitType(function.return_type);
    nameBlock(function.body, scope, 1);
  }

  void nameBlock(BlockId id, Scope& scope, uint32_t depth) {
    if (id.index() >= module_.blocks.size() || block_seen_[id.index()] || depth > kMaxBlockNesting) return;
    block_seen_[id.index()] = true;
    for (InstructionId instruction_id : module_[id].instructions) {
      if (instruction_id.index() >= module_.instructions.size()) continue;
      const Instruction& instruction = module_[instruction_id];
      visitType(instruction.type);
      if (instruction.result.index() < module_.values.size()) nameValue(instruction.result, module_[instruction.result].name, scope);
      for (ValueId operand : instruction.operands) visitConstant(operand);
      for (BlockId block : instruction.blocks) nameBlock(block, scope, depth + 1);
    }
  }

  void visitConstant(ValueId id) {
    if (id.index() < module_.values.size() && module_[id].kind == ValueKind::Constant) visitType(module_[id].type);
  }

  void visitType(TypeId id) {
    if (id.index() >= module_.types.size() || type_seen_[id.index()]) return;
    type_seen_[id.index()] = true;
    const Type& type = module_.types[id];
    if (type.kind == TypeKind::Array || type.kind == TypeKind::Pointer) visitType(type.element);
    for (const Member& member : type.members) visitType(member.type);
    if (type.kind != TypeKind::Struct) return;
    names_.types[id.index()] = struct_scope_.claim(type.name.empty() ? "Struct" : type.name);
    names_.structs.push_back(id);
  }

  const Module& module_;
  Names names_;
  Scope struct_scope_{Scope::Of::Structs};
  std::vector<bool> type_seen_, block_seen_;
};

}  // namespace

Names nameModule(const Module& module) { return Namer(module).run(); }

std::string plainName(std::string_view name) {
  std::string plain(name);
  std::replace_if(plain.begin(), plain.end(), [](char c) { return !isPlain(c); }, '_');
  // A word cannot start with a digit or a dot.
  if (!plain.empty() && (isDigit(plain[0]) || plain[0] == '.')) plain.insert(plain.begin(), '_');
  return plain;
}

std::string memberName(std::string_view name) {
  std::string plain = plainName(name);
  if (plain.empty()) return "_";
  return plain == "inf" || plain == "nan" ? plain + "_" : plain;  // those two words are numbers
}

bool isNumber(std::string_view name) { return std::all_of(name.begin(), name.end(), isDigit); }

}  // namespace lockstep::kernel
