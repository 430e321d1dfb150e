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

/// Words that no class may be called, and names that the classes and their host use.
const std::vector<std::string_view> kReserved{
    "Array",    "ArrayBuffer", "DataView", "Float32Array", "Int32Array", "Object",  "Uint16Array", "Uint32Array", "arguments",   "at",
    "await",    "bindings",    "break",    "buffer",       "case",       "catch",   "class",       "const",       "constructor", "continue",
    "debugger", "default",     "delete",   "do",           "else",       "enum",    "eval",        "export",      "extends",     "false",
    "finally",  "for",         "function", "if",           "implements", "import",  "in",          "instanceof",  "interface",   "let",
    "list",     "name",        "new",      "null",         "offset",     "package", "private",     "protected",   "prototype",   "public",
    "return",   "static",      "super",    "switch",       "this",       "throw",   "true",        "try",         "typeof",      "var",
    "void",     "while",       "with",     "yield"};

struct ScalarRow {
  std::string_view array, get, set;
};
ScalarRow rowOf(Scalar scalar) {
  switch (scalar) {
    case Scalar::F32:
      return {"Float32Array", "getFloat32", "setFloat32"};
    case Scalar::I32:
      return {"Int32Array", "getInt32", "setInt32"};
    case Scalar::BF16:
    case Scalar::F16:
      return {"Uint16Array", "getUint16", "setUint16"};
    case Scalar::U32:
    case Scalar::Bool:
      break;
  }
  return {"Uint32Array", "getUint32", "setUint32"};
}

class JsLayout {
 public:
  JsLayout(const kernel::Module& module, const std::string& file)
      : module_(module), types_(module.types), file_(file), structs_(hostStructs(module, kReserved)) {}

  std::string run() {
    text_ = fmt::format("// The layout of the buffers of {}, made by `lockstep reflect --layout js`.\n",
                        std::filesystem::path(file_).filename().string());
    text_ +=
        "// An object of a class is a view of its bytes: scalars are read and written as properties, vectors are typed arrays, matrices "
        "arrays\n"
        "// of columns. An f16 is the 16 bits of its number.\n\n"
        "const list = (count, make) => Array.from({length: count}, (_, index) => make(index));\n";
    for (const HostStruct& one : structs_) addStruct(one);
    text_ += "\nexport const bindings = {\n";
    HostNames names({});
    for (const kernel::GlobalVariable* variable : hostVariables(module_)) addVariable(*variable, names);
    return text_ + "};\n";
  }

 private:
  /// The value whose bytes begin at `at`, an expression of JavaScript.
  [[nodiscard]] std::string view(TypeId id, const std::string& at, uint32_t depth = 0) const {
    const kernel::Type& type = types_[id];
    const auto typed = [&](const std::string& begin, uint32_t count) {
      return fmt::format("new {}(this.buffer, {}, {})", rowOf(type.scalar).array, begin, count);
    };
    const std::string index = depth == 0 ? "i" : fmt::format("i{}", depth);
    const auto listOf = [&](uint32_t count, uint32_t stride, TypeId element) {
      return fmt::format("list({}, ({}) => {})", count, index, view(element, fmt::format("{} + {} * {}", at, stride, index), depth + 1));
    };
    switch (type.kind) {
      case TypeKind::Vector:
        return typed(at, type.rows);
      case TypeKind::Matrix: {
        const std::string begin = fmt::format("{} + {} * {}", at, types_.columnStride(id), index);
        return fmt::format("list({}, ({}) => {})", type.columns, index, typed(begin, type.rows));
      }
      case TypeKind::Array: {
        const kernel::Type& element = types_[type.element];
        const bool dense = element.kind == TypeKind::Scalar || element.kind == TypeKind::Atomic;
        if (dense) return fmt::format("new {}(this.buffer, {}, {})", rowOf(element.scalar).array, at, type.count);
        return listOf(type.count, types_.strideOf(id), type.element);
      }
      case TypeKind::Struct:
        return fmt::format("new {}(this.buffer, {})", nameOf(id), at);
      case TypeKind::Scalar:
      case TypeKind::Atomic:
      case TypeKind::Void:
      case TypeKind::Pointer:
      case TypeKind::SubgroupMatrix:
        break;
    }
    return typed(at, 1);
  }

  [[nodiscard]] const std::string& nameOf(TypeId id) const { return std::ranges::find(structs_, id, &HostStruct::type)->name; }

  void addMember(const std::string& name, const kernel::Member& member) {
    const kernel::Type& type = types_[member.type];
    const std::string place = fmt::format("this.offset{}", member.offset == 0 ? "" : fmt::format(" + {}", member.offset));
    text_ += fmt::format("\n  // {} at {}\n", types_.toString(member.type), member.offset);
    if (type.kind == TypeKind::Scalar || type.kind == TypeKind::Atomic) {
      const ScalarRow row = rowOf(type.scalar);
      text_ += fmt::format("  get {}() {{\n    return new DataView(this.buffer).{}({}, true);\n  }}\n", name, row.get, place);
      text_ += fmt::format("  set {}(value) {{\n    new DataView(this.buffer).{}({}, value, true);\n  }}\n", name, row.set, place);
    } else if (type.kind == TypeKind::Array && type.count == 0) {
      const kernel::Type& element = types_[type.element];
      text_ +=
          fmt::format("  // The element at an index; the buffer says how many there are.\n  {}At(index) {{\n    return {};\n  }}\n", name,
                      view(type.element, fmt::format("{} + {} * index", place, types_.strideOf(member.type)),
                           element.kind == TypeKind::Struct ? 0u : 1u));
    } else {
      text_ += fmt::format("  get {}() {{\n    return {};\n  }}\n", name, view(member.type, place));
    }
  }

  void addStruct(const HostStruct& one) {
    const kernel::Type& type = types_[one.type];
    const RuntimeArray runtime = runtimeArrayOf(types_, one.type);
    text_ += fmt::format("\nexport class {} {{\n", one.name);
    std::string offsets;
    for (size_t i = 0; i < type.members.size(); ++i) {
      offsets += fmt::format("{}{}: {}", i == 0 ? "" : ", ", one.members[i], type.members[i].offset);
    }
    text_ += fmt::format("  static offsets = {{{}}};\n", offsets);
    std::string first = fmt::format("{}.size", one.name);
    if (runtime.type.valid()) {
      text_ += fmt::format("  static stride = {};\n", types_.strideOf(runtime.type));
      text_ += "\n  // Bytes of a buffer with this many elements of the last member.\n";
      text_ += fmt::format("  static sizeOf(count) {{\n    return Math.max({}, Math.ceil(({} + {} * count) / 4) * 4);\n  }}\n",
                           types_.sizeOf(one.type), runtime.offset, types_.strideOf(runtime.type));
      first = fmt::format("{}.sizeOf(1)", one.name);
    } else {
      text_ += fmt::format("  static size = {};\n", types_.sizeOf(one.type));
    }
    text_ += fmt::format(
        "\n  constructor(buffer = new ArrayBuffer({}), offset = 0) {{\n    this.buffer = buffer;\n    this.offset = offset;\n  }}\n",
        first);
    for (size_t i = 0; i < type.members.size(); ++i) addMember(one.members[i], type.members[i]);
    text_ += "}\n";
  }

  void addVariable(const kernel::GlobalVariable& variable, HostNames& names) {
    const RuntimeArray runtime = runtimeArrayOf(types_, variable.type);
    std::string fields;
    if (kernel::isBound(variable.space)) fields = fmt::format("group: {}, binding: {}, ", variable.group, variable.binding);
    if (runtime.type.valid()) {
      fields += fmt::format("offset: {}, stride: {}", runtime.offset, types_.strideOf(runtime.type));
    } else {
      fields += fmt::format("size: {}", types_.sizeOf(variable.type));
    }
    text_ += fmt::format("  // {} ({})\n  {}: {{{}}},\n", types_.toString(variable.type), memoryText(variable), names.take(variable.name),
                         fields);
  }

  const kernel::Module& module_;
  const kernel::TypeTable& types_;
  const std::string& file_;
  std::vector<HostStruct> structs_;
  std::string text_;
};

}  // namespace

std::string layoutAsJs(const kernel::Module& module, const std::string& file) { return JsLayout(module, file).run(); }

}  // namespace lockstep::tools
