// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/explainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backends/reference/dispatch.h"
#include "ir/support/narrow_float.h"

namespace lockstep::reference {
namespace {

constexpr size_t kMostLines = 60;
/// Rounds of a loop that are shown.
constexpr uint32_t kRounds = 2;

struct Symbol {
  Opcode op;
  const char* text;
};
constexpr Symbol kSymbols[] = {
    {Opcode::AddF, "{0} + {1}"},
    {Opcode::AddI, "{0} + {1}"},
    {Opcode::SubF, "{0} - {1}"},
    {Opcode::SubI, "{0} - {1}"},
    {Opcode::MulF, "{0} * {1}"},
    {Opcode::MulI, "{0} * {1}"},
    {Opcode::DivF, "{0} / {1}"},
    {Opcode::DivI, "{0} / {1}"},
    {Opcode::DivU, "{0} / {1}"},
    {Opcode::RemF, "{0} % {1}"},
    {Opcode::RemI, "{0} % {1}"},
    {Opcode::RemU, "{0} % {1}"},
    {Opcode::And, "{0} & {1}"},
    {Opcode::Or, "{0} | {1}"},
    {Opcode::Xor, "{0} ^ {1}"},
    {Opcode::Shl, "{0} << {1}"},
    {Opcode::ShrI, "{0} >> {1}"},
    {Opcode::ShrU, "{0} >> {1}"},
    {Opcode::NegF, "-{0}"},
    {Opcode::NegI, "-{0}"},
    {Opcode::MulAddF, "{0} * {1} + {2}"},
    {Opcode::MulAddI, "{0} * {1} + {2}"},
    {Opcode::MulSubF, "{0} * {1} - {2}"},
    {Opcode::NegMulAddF, "{2} - {0} * {1}"},
    {Opcode::MinF, "min({0}, {1})"},
    {Opcode::MinI, "min({0}, {1})"},
    {Opcode::MinU, "min({0}, {1})"},
    {Opcode::MaxF, "max({0}, {1})"},
    {Opcode::MaxI, "max({0}, {1})"},
    {Opcode::MaxU, "max({0}, {1})"},
    {Opcode::Select, "select({0}, {1}, {2})"},
    {Opcode::EqF, "{0} == {1}"},
    {Opcode::EqI, "{0} == {1}"},
    {Opcode::NeF, "{0} != {1}"},
    {Opcode::NeI, "{0} != {1}"},
    {Opcode::LtF, "{0} < {1}"},
    {Opcode::LtI, "{0} < {1}"},
    {Opcode::LtU, "{0} < {1}"},
    {Opcode::LeF, "{0} <= {1}"},
    {Opcode::LeI, "{0} <= {1}"},
    {Opcode::LeU, "{0} <= {1}"},
    {Opcode::IntToF, "f32({0})"},
    {Opcode::UintToF, "f32({0})"},
    {Opcode::FloatToI, "i32({0})"},
    {Opcode::FloatToU, "u32({0})"},
    {Opcode::BoolToF, "f32({0})"},
    {Opcode::QuantizeToF16, "f16({0})"},
};

/// Types of an operation's result and operands: 'f', 'i' or 'u'.
constexpr std::string_view kTypes[] = {
#define LS_VM_OP1(name, r, a) #r #a,
#define LS_VM_OP2(name, r, a, b) #r #a #b,
#define LS_VM_OP3(name, r, a, b, c) #r #a #b #c,
#define LS_VM_CONTROL(name)
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
};

std::string numberText(uint32_t bits, char type) {
  switch (type) {
    case 'f':
      return fmt::format("{:.9g}", std::bit_cast<float>(bits));
    case 'h':
      return fmt::format("{:.9g}", halfToFloat(static_cast<uint16_t>(bits)));
    case 'i':
      return fmt::format("{}", static_cast<int32_t>(bits));
    case 'b':
      return bits != 0 ? "true" : "false";
    default:
      return fmt::format("{}", bits);
  }
}

char letterOf(kernel::Scalar scalar) {
  switch (scalar) {
    case kernel::Scalar::F32:
    case kernel::Scalar::F16:
    case kernel::Scalar::BF16:
      return 'f';
    case kernel::Scalar::I32:
      return 'i';
    case kernel::Scalar::U32:
      return 'u';
    case kernel::Scalar::Bool:
      return 'b';
  }
  return 'u';
}

/// Constants, ids and lengths: their value stands in the line above.
bool isLeaf(const TraceNode& node) {
  return node.op >= Opcode::Splat || std::ranges::all_of(node.from, [](uint32_t from) { return from == TraceNode::kNone; });
}

}  // namespace

std::string textOf(const TracedPlace& place, const Bytecode& code) {
  const Variable& variable = code.variables[place.variable];
  return variable.is_scalar ? variable.name : fmt::format("{}[{}]", variable.name, place.byte / (variable.has_halves ? 2 : 4));
}

std::vector<WhyLine> Explainer::explain(uint32_t node) {
  visit(node, 0);
  if (lines_.size() == kMostLines) lines_.push_back({.depth = 0, .where = {}, .text = "and so on"});
  return std::move(lines_);
}

/// As the kernel has it: of a value, or of what an access finds in memory.
kernel::Scalar Explainer::scalarOf(const TraceNode& node) const {
  const kernel::Instruction& x = module_.instructions[node.site - 1];
  const bool in_memory = node.kind != TraceNode::Kind::Computed;
  const kernel::ValueId value = in_memory && !x.operands.empty() ? x.operands[0] : x.result;
  if (!value.valid()) return kernel::Scalar::U32;
  kernel::TypeId id = module_[value].type;
  if (module_.types[id].kind == kernel::TypeKind::Pointer) id = module_.types[id].element;
  const kernel::Type& type = module_.types[id];
  if (type.kind != kernel::TypeKind::Struct && type.kind != kernel::TypeKind::Array) return type.scalar;
  // An access of words leaves out the halves, and the other way round.
  std::vector<Component> components = flatten(module_.types, id, 2);
  if (code_.variables[node.place.variable].home != Home::Lanes)
    std::erase_if(components, [&](const Component& one) { return (one.scalar == kernel::Scalar::F16) != (node.place.size == 2); });
  return node.place.component < components.size() ? components[node.place.component].scalar : kernel::Scalar::U32;
}

/// 'f', 'i', 'u' or 'b', or 'h' for the bits of an f16.
char Explainer::typeOf(const TraceNode& node) const {
  if (node.site == 0) return 'u';
  if (node.kind != TraceNode::Kind::Computed && node.place.size == 2) return 'h';
  return letterOf(scalarOf(node));
}

/// What the machine takes for bits is of the type of the result.
char Explainer::typeOfOperand(const TraceNode& node, size_t operand) const {
  const std::string_view types = node.op < Opcode::Splat ? kTypes[static_cast<size_t>(node.op)] : std::string_view("u");
  if (node.op == Opcode::Select && operand == 2) return 'b';
  const char type = operand + 1 < types.size() ? types[operand + 1] : 'u';
  const char result = typeOf(node);
  return type == 'u' && types[0] == 'u' && result != 'b' ? result : type;
}

std::string Explainer::formula(const TraceNode& node) const {
  std::array<std::string, 3> operands;
  for (size_t k = 0; k < 3; ++k) operands[k] = numberText(node.operands[k], typeOfOperand(node, k));
  const auto* symbol = std::ranges::find(kSymbols, node.op, &Symbol::op);
  if (symbol != std::end(kSymbols)) return fmt::format(fmt::runtime(symbol->text), operands[0], operands[1], operands[2]);
  std::string name(nameOf(node.op));
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  const size_t count = operandCount(node.op);
  return fmt::format("{}({})", name, fmt::join(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count), ", "));
}

/// An f16 between registers and memory, and a rounding to f16 that changes nothing.
bool Explainer::isMove(const TraceNode& node) const {
  if (node.kind != TraceNode::Kind::Computed) return false;
  if (node.op == Opcode::QuantizeToF16) return node.bits == node.operands[0];
  if ((node.op != Opcode::PackHalf && node.op != Opcode::UnpackHalf) || node.site == 0) return false;
  return kernel::info(module_.instructions[node.site - 1].op).group == kernel::OpGroup::Memory;
}

void Explainer::line(const TraceNode& node, uint32_t depth, std::string text) {
  lines_.push_back({.depth = depth, .where = placeOf(node.site, module_, kernel_), .text = std::move(text)});
}

void Explainer::visit(uint32_t id, uint32_t depth) {
  if (id == TraceNode::kNone || lines_.size() >= kMostLines) return;
  const TraceNode& node = nodes_[id];
  if (node.kind == TraceNode::Kind::Computed && isLeaf(node)) return;
  if (isMove(node)) return visit(node.from[0], depth);
  if (!shown_.insert(id).second) return;
  const std::string value = numberText(node.bits, typeOf(node));
  // Of an operation that uses its own result, that of a round before.
  const Round round{node.instruction, node.kind, node.lane};
  if (rounds_[round] == kRounds) return line(node, depth, fmt::format("{} in the round before, and so on", value));
  ++rounds_[round];
  switch (node.kind) {
    case TraceNode::Kind::Stored:
      line(node, depth,
           fmt::format("{} = {} was stored by {}", textOf(node.place, code_), value, invocationText(group_, node.lane, code_, groups_)));
      break;
    case TraceNode::Kind::Loaded:
      line(node, depth,
           fmt::format("{} = {} was read{}", textOf(node.place, code_), value,
                       node.from[0] != TraceNode::kNone                            ? ""
                       : code_.variables[node.place.variable].home == Home::Buffer ? ", as it was before this workgroup ran"
                                                                                   : ", its value at the start"));
      break;
    case TraceNode::Kind::Computed:
      line(node, depth, fmt::format("{} = {}", value, formula(node)));
      break;
  }
  for (const uint32_t from : node.from) visit(from, depth + 1);
  --rounds_[round];
}

}  // namespace lockstep::reference
