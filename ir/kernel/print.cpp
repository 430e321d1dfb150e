// SPDX-License-Identifier: Apache-2.0
// The text form; grammar in docs/ir.md. Must print anything, also modules that the validator rejects.
#include <fmt/format.h>

#include <map>

#include "ir/kernel/literal.h"
#include "ir/kernel/names.h"
#include "ir/kernel/print_places.h"
#include "ir/support/text.h"

namespace lockstep::kernel {
namespace {

constexpr std::string_view kInvalid = "<invalid>";
/// Constants are trees of values; a module that is not valid may hold a circle.
constexpr uint32_t kMaxConstantNesting = 256;

using Attributes = std::map<std::string, std::string>;  // printed in the order of their names

class Printer {
 public:
  Printer(const Module& module, bool with_locations)
      : module_(module), names_(nameModule(module)), with_locations_(with_locations), block_seen_(module.blocks.size()) {
    out_.types.resize(module.types.size());
    out_.globals.resize(module.globals.size());
    out_.functions.resize(module.functions.size());
    out_.parameters.resize(module.functions.size());
    out_.instructions.resize(module.instructions.size());
    out_.operands.resize(module.instructions.size());
    out_.cases.resize(module.blocks.size());
  }

  PrintedModule run() {
    write("lockstep.kernel 1\n");
    if (!module_.name.empty()) write("module " + quote(module_.name) + "\n");
    if (with_locations_ && !module_.source.empty()) write("source " + quote(module_.source) + "\n");
    for (Capability capability : module_.capabilities) write(fmt::format("enable {}\n", toString(capability)));
    for (TypeId id : names_.structs) printStruct(id);
    for (size_t i = 0; i < module_.globals.size(); ++i) printGlobal(i);
    for (size_t i = 0; i < module_.functions.size(); ++i) printFunction(i);
    return std::move(out_);
  }

 private:
  void write(std::string_view text) {
    out_.text += text;
    size_t line_end = text.rfind('\n');
    if (line_end == std::string_view::npos) return;
    for (char c : text) line_ += c == '\n' ? 1 : 0;
    line_start_ = out_.text.size() - (text.size() - line_end - 1);
  }

  void indent() { write(std::string(2 * depth_, ' ')); }
  [[nodiscard]] Place here() const { return {.line = line_, .column = static_cast<uint32_t>(out_.text.size() - line_start_ + 1)}; }

  [[nodiscard]] std::string typeText(TypeId id) const {
    return id.index() < module_.types.size() ? module_.types.toString(id, names_.types) : std::string(kInvalid);
  }

  static std::string attributesText(const Attributes& attributes) {
    if (attributes.empty()) return "";
    std::string text;
    for (const auto& [name, value] : attributes) text += fmt::format("{}{} = {}", text.empty() ? " {" : ", ", name, value);
    return text + "}";
  }

  [[nodiscard]] std::string valueText(ValueId id, uint32_t nesting = 0) const {
    if (id.index() >= module_.values.size() || nesting > kMaxConstantNesting) return std::string(kInvalid);
    const Value& value = module_[id];
    const std::string& name = names_.values[id.index()];
    if (value.kind == ValueKind::Variable) return name.empty() ? std::string(kInvalid) : "@" + name;
    if (value.kind != ValueKind::Constant) return name.empty() ? std::string(kInvalid) : "%" + name;
    if (value.type.index() >= module_.types.size()) return std::string(kInvalid);
    const Type& type = module_.types[value.type];
    if (type.kind == TypeKind::Scalar) return formatScalar(type.scalar, value.bits);
    if (value.elements.empty()) return fmt::format("zero<{}>", typeText(value.type));
    std::string text = typeText(value.type) + "(";
    for (size_t i = 0; i < value.elements.size(); ++i) text += (i == 0 ? "" : ", ") + valueText(value.elements[i], nesting + 1);
    return text + ")";
  }

  void printStruct(TypeId id) {
    out_.types[id.index()] = here();
    write(fmt::format("struct {} {{\n", names_.types[id.index()]));
    for (const Member& member : module_.types[id].members) {
      Attributes attributes = {{"offset", std::to_string(member.offset)}};
      if (member.align != 0) attributes["align"] = std::to_string(member.align);
      if (member.size != 0) attributes["size"] = std::to_string(member.size);
      write(fmt::format("  {}: {}{}\n", memberName(member.name), typeText(member.type), attributesText(attributes)));
    }
    write("}\n");
  }

  void printGlobal(size_t index) {
    const GlobalVariable& global = module_.globals[index];
    out_.globals[index] = here();
    bool known = global.value.index() < module_.values.size();
    write(fmt::format("var @{}: {}", known ? names_.values[global.value.index()] : kInvalid, typeText(global.type)));
    if (global.initializer.valid()) write(" = " + valueText(global.initializer));
    Attributes attributes = {{"space", std::string(toString(global.space))}};
    const bool bound = isBound(global.space);
    if (bound) attributes["group"] = std::to_string(global.group);
    if (bound) attributes["binding"] = std::to_string(global.binding);
    if (global.space == AddressSpace::Storage || global.access != defaultAccess(global.space)) {
      attributes["access"] = toString(global.access);
    }
    if (!global.zero_initialized) attributes["initial"] = "none";
    write(attributesText(attributes) + "\n");
  }

  void printFunction(size_t index) {
    const Function& function = module_.functions[index];
    out_.functions[index] = here();
    write(fmt::format("fn @{}(", names_.functions[index]));
    for (const Parameter& parameter : function.parameters) {
      if (&parameter != &function.parameters.front()) write(", ");
      out_.parameters[index].push_back(here());
      bool known = parameter.value.index() < module_.values.size();
      write(fmt::format("{}: {}", valueText(parameter.value), known ? typeText(module_[parameter.value].type) : kInvalid));
      if (parameter.builtin != Builtin::None) write(fmt::format(" {{builtin = {}}}", toString(parameter.builtin)));
    }
    write(")");
    if (function.return_type != module_.types.voidType()) write(" -> " + typeText(function.return_type));
    if (function.workgroup_size) {
      const auto& size = *function.workgroup_size;
      write(" {");
      if (function.subgroup_size != 0) write(fmt::format("subgroup_size = {}, ", function.subgroup_size));
      write(fmt::format("workgroup_size = [{}, {}, {}]}}", size[0], size[1], size[2]));
    }
    write(" {\n");
    printBlock(function.body);
    write("}\n");
  }

  void printBlock(BlockId id) {
    ++depth_;
    ++nesting_;
    if (id.index() >= module_.blocks.size()) {
      printNote("block out of range");
    } else if (block_seen_[id.index()]) {
      printNote("a block that is printed above");
    } else if (nesting_ > kMaxBlockNesting) {
      printNote("too deep");
    } else {
      block_seen_[id.index()] = true;
      for (InstructionId instruction : module_[id].instructions) printInstruction(instruction);
    }
    --nesting_;
    --depth_;
  }

  void printNote(std::string_view note) {
    indent();
    write(fmt::format("# {}\n", note));
  }

  void printInstruction(InstructionId id) {
    if (id.index() >= module_.instructions.size()) {
      printNote("instruction out of range");
      return;
    }
    const Instruction& instruction = module_[id];
    indent();
    out_.instructions[id.index()] = here();
    if (instruction.result.valid()) write(fmt::format("{}: {} = ", valueText(instruction.result), typeText(instruction.type)));
    if (instruction.float_mode == FloatMode::Strict) write("strict ");
    write(info(instruction.op).text);
    bool is_call = instruction.op == Op::Call;
    if (is_call) {
      bool known = instruction.immediate < names_.functions.size();
      write(fmt::format(" @{}(", known ? names_.functions[instruction.immediate] : kInvalid));
    }
    std::vector<Place>& places = out_.operands[id.index()];
    places.clear();
    for (ValueId operand : instruction.operands) {
      write(places.empty() ? (is_call ? "" : " ") : ", ");
      places.push_back(here());
      write(valueText(operand));
    }
    if (is_call) write(")");
    write(attributesText(attributesOf(instruction)));
    printRegions(instruction);
    write("\n");
  }

  [[nodiscard]] Attributes attributesOf(const Instruction& instruction) const {
    Attributes attributes;
    if (instruction.op == Op::Swizzle && instruction.type.index() < module_.types.size()) {
      uint32_t width = module_.types[instruction.type].width();
      for (uint32_t i = 0; i < width; ++i) attributes["components"] += "xyzw"[(instruction.immediate >> (2 * i)) & 3];
    }
    if (hasMajor(instruction.op) && instruction.immediate != 0) attributes["column_major"] = "true";
    if (instruction.in_bounds) attributes["in_bounds"] = "true";
    if (instruction.op == Op::Print && !instruction.labels.empty()) {
      std::string texts;
      for (const std::string& label : instruction.labels) texts += (texts.empty() ? "" : ", ") + quote(label);
      attributes["labels"] = fmt::format("[{}]", texts);
    }
    if (instruction.origin != 0) attributes["origin"] = std::to_string(instruction.origin);
    if (with_locations_ && instruction.location != 0 && instruction.location <= module_.locations.size()) {
      const Location& location = module_.locations[instruction.location - 1];
      const std::string_view embedded = location.embedded ? ", embedded" : "";
      attributes["location"] = fmt::format("[{}, {}, {}{}]", quote(location.file), location.line, location.column, embedded);
    }
    return attributes;
  }

  void printRegion(std::string_view opening, BlockId block) {
    write(opening);
    write(" {\n");
    printBlock(block);
    indent();
    write("}");
  }

  /// The second block of if and loop is left out when it is empty.
  [[nodiscard]] bool isShown(BlockId id) const { return id.index() >= module_.blocks.size() || !module_[id].instructions.empty(); }

  void printRegions(const Instruction& instruction) {
    bool is_loop = instruction.op == Op::Loop;
    if (instruction.op == Op::Switch) {
      printCases(instruction);
    } else if (instruction.op == Op::If || is_loop) {
      for (size_t i = 0; i < instruction.blocks.size(); ++i) {
        std::string_view later = is_loop ? " continuing" : " else";
        if (i == 0 || isShown(instruction.blocks[i])) printRegion(i == 0 ? "" : later, instruction.blocks[i]);
      }
    }
  }

  void printCases(const Instruction& instruction) {
    bool is_signed = false;
    if (!instruction.operands.empty() && instruction.operands[0].index() < module_.values.size()) {
      TypeId type = module_[instruction.operands[0]].type;
      is_signed = type.index() < module_.types.size() && module_.types[type].is(Scalar::I32);
    }
    write(" {\n");
    ++depth_;
    for (size_t i = 0; i < instruction.cases.size() && i < instruction.blocks.size(); ++i) {
      const SwitchCase& choice = instruction.cases[i];
      std::string text;
      for (uint32_t selector : choice.selectors) {
        text += (text.empty() ? "" : ", ") + formatScalar(is_signed ? Scalar::I32 : Scalar::U32, selector);
      }
      if (choice.is_default) text += text.empty() ? "default" : ", default";
      indent();
      if (instruction.blocks[i].index() < out_.cases.size()) out_.cases[instruction.blocks[i].index()] = here();
      printRegion("case " + text, instruction.blocks[i]);
      write("\n");
    }
    --depth_;
    indent();
    write("}");
  }

  const Module& module_;
  Names names_;
  bool with_locations_;
  PrintedModule out_;
  std::vector<bool> block_seen_;
  uint32_t depth_ = 0;    // of the indentation
  uint32_t nesting_ = 0;  // of blocks: 1 in a function's body
  uint32_t line_ = 1;
  size_t line_start_ = 0;
};

}  // namespace

PrintedModule printWithPlaces(const Module& module, bool with_locations) { return Printer(module, with_locations).run(); }

std::string print(const Module& module, bool with_locations) { return printWithPlaces(module, with_locations).text; }

}  // namespace lockstep::kernel
