// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/check/builtins.h"
#include "frontend/wgsl/syntax/token.h"
#include "frontend/wgsl/wgsl.h"
#include "frontend/wgsl/write/writer.h"

namespace lockstep::wgsl {

std::string write(const kernel::Module& module) { return Writer(module).run(); }

std::string Writer::run() {
  names_.resize(module_.values.size());
  inlined_.resize(module_.values.size());
  places_.resize(module_.instructions.size());
  markTypes();
  reserveWords();
  nameGlobals();
  // Functions first: they find out which helpers the module needs.
  for (const kernel::Function& function : module_.functions) writeFunction(function);
  std::vector<Line> functions;
  functions.swap(lines_);
  writeDirectives();
  writeStructs();
  for (const kernel::GlobalVariable& global : module_.globals) writeGlobal(global);
  for (const uint32_t bits : used_odd_bits_) line(fmt::format("var<private> {}: u32 = {}u;", odd_names_[bits], bits));
  if (!lines_.empty() && !functions.empty() && !lines_.back().text.empty()) line("");
  lines_.insert(lines_.end(), functions.begin(), functions.end());
  while (!lines_.empty() && lines_.back().text.empty()) lines_.pop_back();
  std::string out;
  for (const Line& line : lines_) out += line.text.empty() ? "\n" : fmt::format("{:{}}{}\n", "", 2 * line.indent, line.text);
  return out;
}

/// A WGSL name that is free in the module and in `scope`: the hint if possible, else the hint with a number.
std::string Writer::uniqueName(std::string_view hint, NameScope& scope) {
  std::string base;
  for (const char c : hint) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    base += plain ? c : '_';
  }
  while (base.starts_with("__")) base.erase(0, 1);
  if (base.empty() || base == "_") base = "v";
  if (base[0] >= '0' && base[0] <= '9') base.insert(0, "v");
  const auto taken = [&](const std::string& name) {
    const bool word = findKeyword(name) != Word() || isReservedWord(name);
    return word || spoken_.contains(name) || used_names_.contains(name) || scope.taken.contains(name);
  };
  std::string name = base;
  for (uint32_t& suffix = scope.suffixes[base]; taken(name);) name = fmt::format("{}_{}", base, ++suffix);
  scope.taken.insert(name);
  return name;
}

std::string Writer::numberedName() {
  std::string name;
  do {
    name = fmt::format("v{}", next_number_++);
  } while (hints_.contains(name) || scope_.taken.contains(name) || global_names_.taken.contains(name));
  scope_.taken.insert(name);
  return name;
}

/// Words that the text needs in their own meaning, which a declaration of the same name would hide.
void Writer::reserveWords() {
  spoken_.insert("bitcast");
  for (const kernel::GlobalVariable& global : module_.globals) {
    spoken_.emplace(kernel::toString(global.space));
    spoken_.emplace(kernel::toString(global.access));
  }
  const std::vector<std::string> no_structs(module_.types.size());
  for (size_t i = 0; i < module_.types.size(); ++i) {
    if (!used_types_[i] || module_.types[kernel::TypeId(i)].kind == kernel::TypeKind::Struct) continue;
    const std::string text = module_.types.toString(kernel::TypeId(i), no_structs);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find_first_of("<>, ", begin), text.size());
      spoken_.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  for (const kernel::Instruction& instruction : module_.instructions) {
    if (const std::string_view text = functionName(instruction.op); !text.empty()) spoken_.emplace(text);
    if (kernel::hasMajor(instruction.op)) spoken_.emplace(instruction.immediate != 0 ? kColumnMajor : kRowMajor);
  }
  for (const kernel::Value& value : module_.values) {
    const bool odd = value.kind == kernel::ValueKind::Constant && hasNoLiteral(value) && !odd_names_.contains(value.bits);
    if (!odd) continue;
    spoken_.insert("private");
    spoken_.insert(odd_names_[value.bits] = uniqueName(fmt::format("bits_{:08x}", value.bits), global_names_));
  }
}

/// Module-scope names that a function uses, so that it may not give them to something else.
void Writer::findUsedNames(const kernel::Function& function) {
  used_names_.clear();
  std::vector<kernel::BlockId> blocks{function.body};
  while (!blocks.empty()) {
    const kernel::BlockId block = blocks.back();
    blocks.pop_back();
    for (const kernel::InstructionId id : module_[block].instructions) {
      const kernel::Instruction& instruction = module_[id];
      if (instruction.op == kernel::Op::Call) used_names_.insert(function_names_[instruction.immediate]);
      for (const kernel::ValueId operand : instruction.operands) {
        if (module_[operand].kind == kernel::ValueKind::Variable) used_names_.insert(names_[operand.index()]);
      }
      blocks.insert(blocks.end(), instruction.blocks.begin(), instruction.blocks.end());
    }
  }
}

void Writer::nameGlobals() {
  struct_names_.resize(module_.types.size());
  for (size_t i = 0; i < module_.types.size(); ++i) {
    const kernel::Type& type = module_.types[kernel::TypeId(i)];
    if (type.kind == kernel::TypeKind::Struct) struct_names_[i] = uniqueName(type.name, global_names_);
  }
  for (const kernel::Function& function : module_.functions) function_names_.push_back(uniqueName(function.name, global_names_));
  for (const kernel::GlobalVariable& global : module_.globals) names_[global.value.index()] = uniqueName(global.name, global_names_);
  for (size_t i = 0; i < struct_names_.size(); ++i) {
    if (used_types_[i]) spoken_.insert(struct_names_[i]);  // in whatever function
  }
}

bool Writer::isExchangeResult(kernel::TypeId id) const {
  const kernel::Type& type = module_.types[id];
  return type.kind == kernel::TypeKind::Struct && type.name.starts_with("atomic_compare_exchange_result_") && type.members.size() == 2;
}

void Writer::markType(kernel::TypeId id) {
  if (used_types_[id.index()]) return;
  used_types_[id.index()] = true;
  const kernel::Type& type = module_.types[id];
  if (type.kind == kernel::TypeKind::Array || type.kind == kernel::TypeKind::Pointer) markType(type.element);
  for (const kernel::Member& member : type.members) markType(member.type);
}

void Writer::markTypes() {
  used_types_.assign(module_.types.size(), false);
  for (const kernel::GlobalVariable& global : module_.globals) markType(global.type);
  for (const kernel::Function& function : module_.functions) {
    markType(function.return_type);
    for (const kernel::Parameter& parameter : function.parameters) markType(module_[parameter.value].type);
  }
  for (const kernel::Instruction& instruction : module_.instructions) {
    markType(instruction.type);
    for (const kernel::ValueId operand : instruction.operands) markType(module_[operand].type);
  }
}

std::string Writer::typeText(kernel::TypeId type) const { return module_.types.toString(type, struct_names_); }

void Writer::writeDirectives() {
  bool f16 = false;
  for (size_t i = 0; i < used_types_.size(); ++i) {
    const kernel::Type& type = module_.types[kernel::TypeId(i)];
    f16 = f16 || (used_types_[i] && type.scalar == kernel::Scalar::F16);
  }
  const auto has = [&](kernel::Capability capability) {
    return std::find(module_.capabilities.begin(), module_.capabilities.end(), capability) != module_.capabilities.end();
  };
  if (f16 || has(kernel::Capability::F16)) line("enable f16;");
  if (has(kernel::Capability::Subgroups)) line("enable subgroups;");
  if (has(kernel::Capability::SubgroupMatrices)) line("enable chromium_experimental_subgroup_matrix;");
  const auto wants_size = [](const kernel::Function& function) { return function.subgroup_size != 0; };
  if (std::ranges::any_of(module_.functions, wants_size)) line("enable subgroup_size_control;");
  // Buffers are laid out by the plain rules; only some uniform buffers need the feature.
  const bool standard = std::any_of(module_.globals.begin(), module_.globals.end(), [&](const kernel::GlobalVariable& global) {
    return global.space == kernel::AddressSpace::Uniform && module_.types[global.type].kind != kernel::TypeKind::Scalar &&
           module_.types[global.type].kind != kernel::TypeKind::Vector && needsStandardLayout(global.type);
  });
  if (standard) line("requires uniform_buffer_standard_layout;");
  // No "requires immediate_address_space": WGSL does without, and naga does not know the word.
  // The kernel IR lets some lanes of a subgroup be away; WGSL only with its leave.
  const bool operations = std::ranges::any_of(module_.instructions, [](const kernel::Instruction& x) {
    const kernel::OpGroup group = kernel::info(x.op).group;
    return group == kernel::OpGroup::Subgroup || group == kernel::OpGroup::SubgroupMatrix;
  });
  if (operations) line("diagnostic(off, subgroup_uniformity);");
  if (!lines_.empty()) line("");
}

/// True when a uniform buffer of this type breaks the 16-byte rules of plain WGSL.
bool Writer::needsStandardLayout(kernel::TypeId id) const {
  const kernel::Type& type = module_.types[id];
  if (type.kind == kernel::TypeKind::Array) return module_.types.strideOf(id) % 16 != 0 || needsStandardLayout(type.element);
  for (size_t i = 0; i < type.members.size(); ++i) {
    const kernel::Member& member = type.members[i];
    const kernel::TypeKind kind = module_.types[member.type].kind;
    const bool nested = kind == kernel::TypeKind::Struct;
    if ((nested || kind == kernel::TypeKind::Array) && (member.offset % 16 != 0 || needsStandardLayout(member.type))) return true;
    const uint32_t nested_end = member.offset + (module_.types.sizeOf(member.type) + 15) / 16 * 16;
    if (nested && i + 1 < type.members.size() && type.members[i + 1].offset < nested_end) return true;
  }
  return false;
}

void Writer::writeStructs() {
  for (size_t i = 0; i < module_.types.size(); ++i) {
    const kernel::TypeId id(i);
    const kernel::Type& type = module_.types[id];
    if (type.kind != kernel::TypeKind::Struct || !used_types_[i] || isExchangeResult(id)) continue;
    line(fmt::format("struct {} {{", struct_names_[i]));
    for (const kernel::Member& member : type.members) {
      const std::string align = member.align != 0 ? fmt::format("@align({}) ", member.align) : "";
      const std::string size = member.size != 0 ? fmt::format("@size({}) ", member.size) : "";
      line(fmt::format("  {}{}{}: {},", align, size, member.name, typeText(member.type)));
    }
    line("}");
    line("");
  }
}

void Writer::writeGlobal(const kernel::GlobalVariable& global) {
  const bool resource = kernel::isBound(global.space);
  const bool storage = global.space == kernel::AddressSpace::Storage;
  const std::string binding = resource ? fmt::format("@group({}) @binding({}) ", global.group, global.binding) : "";
  const std::string access = storage ? fmt::format(", {}", kernel::toString(global.access)) : "";
  const std::string initial = global.initializer.valid() ? " = " + value(global.initializer).text : "";
  line(fmt::format("{}var<{}{}> {}: {}{};", binding, kernel::toString(global.space), access, names_[global.value.index()],
                   typeText(global.type), initial));
}

void Writer::nameFunction(const kernel::Function& function) {
  findUsedNames(function);
  scope_ = {};
  hints_.clear();
  next_number_ = 0;
  std::vector<kernel::BlockId> blocks{function.body};
  while (!blocks.empty()) {
    const kernel::BlockId block = blocks.back();
    blocks.pop_back();
    for (const kernel::InstructionId id : module_[block].instructions) {
      const kernel::Instruction& instruction = module_[id];
      if (instruction.result.valid()) hints_.insert(module_[instruction.result].name);
      blocks.insert(blocks.end(), instruction.blocks.begin(), instruction.blocks.end());
    }
  }
  for (const kernel::Parameter& parameter : function.parameters) {
    names_[parameter.value.index()] = uniqueName(module_[parameter.value].name, scope_);
  }
}

void Writer::writeFunction(const kernel::Function& function) {
  nameFunction(function);
  countUses(function.body);
  analyze(function.body);
  if (function.workgroup_size) {
    const auto& size = *function.workgroup_size;
    const std::string subgroups = function.subgroup_size == 0 ? "" : fmt::format(" @subgroup_size({})", function.subgroup_size);
    line(fmt::format("@compute @workgroup_size({}, {}, {}){}", size[0], size[1], size[2], subgroups));
  }
  std::string parameters;
  for (const kernel::Parameter& parameter : function.parameters) {
    const kernel::Value& value = module_[parameter.value];
    if (!parameters.empty()) parameters += ", ";
    if (parameter.builtin != kernel::Builtin::None) parameters += fmt::format("@builtin({}) ", kernel::toString(parameter.builtin));
    parameters += fmt::format("{}: {}", names_[parameter.value.index()], typeText(value.type));
  }
  const bool returns = function.return_type != module_.types.voidType();
  const auto index = static_cast<size_t>(&function - module_.functions.data());
  line(fmt::format("fn {}({}){} {{", function_names_[index], parameters, returns ? " -> " + typeText(function.return_type) : ""));
  ++indent_;
  writeBlock(function.body);
  --indent_;
  line("}");
  line("");
}

}  // namespace lockstep::wgsl
