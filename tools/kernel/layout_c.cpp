// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/kernel/layout_text.h"

namespace lockstep::tools {
namespace {

using kernel::Scalar;
using kernel::TypeId;
using kernel::TypeKind;

/// Keywords of C and C++, and names that the headers of the text take.
const std::vector<std::string_view> kReserved{"alignas",    "alignof",       "and",         "and_eq",    "asm",          "assert",
                                              "auto",       "bitand",        "bitor",       "bool",      "break",        "case",
                                              "catch",      "char",          "char8_t",     "char16_t",  "char32_t",     "class",
                                              "compl",      "concept",       "const",       "consteval", "constexpr",    "constinit",
                                              "const_cast", "continue",      "co_await",    "co_return", "co_yield",     "decltype",
                                              "default",    "delete",        "do",          "double",    "dynamic_cast", "else",
                                              "enum",       "explicit",      "export",      "extern",    "false",        "float",
                                              "for",        "friend",        "goto",        "if",        "inline",       "int",
                                              "int32_t",    "long",          "mutable",     "namespace", "new",          "noexcept",
                                              "not",        "not_eq",        "nullptr",     "offsetof",  "operator",     "or",
                                              "or_eq",      "private",       "protected",   "public",    "register",     "reinterpret_cast",
                                              "requires",   "restrict",      "return",      "short",     "signed",       "sizeof",
                                              "static",     "static_assert", "static_cast", "struct",    "switch",       "template",
                                              "this",       "thread_local",  "throw",       "true",      "try",          "typedef",
                                              "typeid",     "typename",      "typeof",      "uint16_t",  "uint32_t",     "uint8_t",
                                              "union",      "unsigned",      "using",       "virtual",   "void",         "volatile",
                                              "wchar_t",    "while",         "xor",         "xor_eq"};

std::string_view scalarText(Scalar scalar) {
  switch (scalar) {
    case Scalar::F32:
      return "float";
    case Scalar::I32:
      return "int32_t";
    case Scalar::BF16:
    case Scalar::F16:
      return "uint16_t";
    case Scalar::U32:
    case Scalar::Bool:
      break;
  }
  return "uint32_t";
}

class CLayout {
 public:
  CLayout(const kernel::Module& module, const std::string& file)
      : module_(module), types_(module.types), file_(file), structs_(hostStructs(module, kReserved)), names_(kReserved) {
    for (const HostStruct& one : structs_) names_.take(one.name);
  }

  std::string run() {
    const std::string guard = HostNames(kReserved).take(std::filesystem::path(file_).stem().string() + "_layout_h");
    text_ = fmt::format("/* The layout of the buffers of {}, made by `lockstep reflect --layout c`. */\n#ifndef {}\n#define {}\n\n",
                        std::filesystem::path(file_).filename().string(), guard, guard);
    text_ += "#include <assert.h>\n#include <stddef.h>\n#include <stdint.h>\n";
    for (const HostStruct& one : structs_) addStruct(one);
    for (const kernel::GlobalVariable* variable : hostVariables(module_)) addVariable(*variable);
    return text_ + fmt::format("\n#endif /* {} */\n", guard);
  }

 private:
  /// What a C declaration of a value is made of: "float", "[3][4]".
  struct Declaration {
    std::string type, extents;
    uint32_t size = 0;  ///< bytes
  };
  /// Of a value that is followed by the next one after `slot` bytes; vectors in arrays have padding elements.
  [[nodiscard]] Declaration declare(TypeId id, uint32_t slot) const {
    const kernel::Type& type = types_[id];
    const uint32_t scalar = kernel::byteSize(type.scalar);
    switch (type.kind) {
      case TypeKind::Vector:
        return {.type = std::string(scalarText(type.scalar)), .extents = fmt::format("[{}]", slot / scalar), .size = slot};
      case TypeKind::Matrix:
        return {.type = std::string(scalarText(type.scalar)),
                .extents = fmt::format("[{}][{}]", type.columns, types_.columnStride(id) / scalar),
                .size = type.columns * types_.columnStride(id)};
      case TypeKind::Array: {
        Declaration element = declare(type.element, types_.strideOf(id));
        return {
            .type = element.type, .extents = fmt::format("[{}]{}", type.count, element.extents), .size = type.count * types_.strideOf(id)};
      }
      case TypeKind::Struct:
        return {.type = std::ranges::find(structs_, id, &HostStruct::type)->name, .extents = "", .size = types_.sizeOf(id)};
      case TypeKind::Scalar:
      case TypeKind::Atomic:
      case TypeKind::Void:
      case TypeKind::Pointer:
      case TypeKind::SubgroupMatrix:
        break;
    }
    return {.type = std::string(scalarText(type.scalar)), .extents = "", .size = scalar};
  }

  void addStruct(const HostStruct& one) {
    const kernel::Type& type = types_[one.type];
    const RuntimeArray runtime = runtimeArrayOf(types_, one.type);
    const uint32_t size = runtime.type.valid() ? runtime.offset : types_.sizeOf(one.type);
    std::string members, checks;
    HostNames paddings(kReserved);
    for (const std::string& name : one.members) paddings.take(name);
    uint32_t at = 0;
    const auto padTo = [&](uint32_t offset) {
      if (offset > at) members += fmt::format("  uint8_t {}[{}];\n", paddings.take(fmt::format("padding_{}", at)), offset - at);
      at = offset;
    };
    for (size_t i = 0; i < type.members.size(); ++i) {
      const kernel::Member& member = type.members[i];
      if (runtime.type.valid() && i + 1 == type.members.size()) break;
      padTo(member.offset);
      const uint32_t own = types_[member.type].kind == TypeKind::Vector ? types_.sizeOf(member.type) : 0;
      const Declaration declaration = declare(member.type, own);
      members += fmt::format("  {} {}{}; /* {} at {} */\n", declaration.type, one.members[i], declaration.extents,
                             types_.toString(member.type), member.offset);
      checks += fmt::format("static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1} is at {2}\");\n", one.name, one.members[i], member.offset);
      at = member.offset + declaration.size;
    }
    padTo(size);
    if (runtime.type.valid()) {
      const std::string element = types_.toString(types_[runtime.type].element);
      text_ += fmt::format("\n/* {}: {} of {} follow at {}, {} bytes each. */\n", one.name, one.members.back(), element, runtime.offset,
                           types_.strideOf(runtime.type));
      text_ += fmt::format("enum {{ {0}_offset = {1}, {0}_stride = {2} }};\n", names_.take(one.name + "_" + one.members.back()),
                           runtime.offset, types_.strideOf(runtime.type));
      if (members.empty()) return;
    } else {
      text_ += "\n";
    }
    text_ += fmt::format("typedef struct {0} {{\n{1}}} {0};\nstatic_assert(sizeof({0}) == {2}, \"{0} has {2} bytes\");\n{3}", one.name,
                         members, size, checks);
  }

  void addVariable(const kernel::GlobalVariable& variable) {
    const std::string name = names_.take(variable.name);
    const RuntimeArray runtime = runtimeArrayOf(types_, variable.type);
    text_ += fmt::format("\n/* {}: {} ({}) */\n", variable.name, types_.toString(variable.type), memoryText(variable));
    std::string constants;
    if (kernel::isBound(variable.space))
      constants = fmt::format("{0}_group = {1}, {0}_binding = {2}, ", name, variable.group, variable.binding);
    if (runtime.type.valid()) {
      constants += fmt::format("{0}_offset = {1}, {0}_stride = {2}", name, runtime.offset, types_.strideOf(runtime.type));
    } else {
      constants += fmt::format("{}_size = {}", name, types_.sizeOf(variable.type));
    }
    text_ += fmt::format("enum {{ {} }};\n", constants);
    // Of an array of vectors or arrays one wants to declare the elements; structs have a name.
    const TypeId array = runtime.type.valid() ? runtime.type : types_[variable.type].kind == TypeKind::Array ? variable.type : TypeId();
    if (!array.valid() || types_[types_[array].element].kind == TypeKind::Struct) return;
    const Declaration element = declare(types_[array].element, types_.strideOf(array));
    const std::string element_name = names_.take(name + "_element");
    text_ += fmt::format("typedef {0} {1}{2};\nstatic_assert(sizeof({1}) == {3}, \"{1} has {3} bytes\");\n", element.type, element_name,
                         element.extents, types_.strideOf(array));
  }

  const kernel::Module& module_;
  const kernel::TypeTable& types_;
  const std::string& file_;
  std::vector<HostStruct> structs_;
  HostNames names_;  ///< of the whole header
  std::string text_;
};

}  // namespace

std::string layoutAsC(const kernel::Module& module, const std::string& file) { return CLayout(module, file).run(); }

}  // namespace lockstep::tools
