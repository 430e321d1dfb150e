// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "frontend/wgsl/check/builtins.h"
#include "frontend/wgsl/syntax/printed_text.h"
#include "frontend/wgsl/write/writer.h"
#include "ir/kernel/literal.h"

namespace lockstep::wgsl {

using kernel::Op;
using kernel::OpGroup;

namespace {

struct OperatorText {
  Op op;
  std::string_view text;
  Binding binding, left, right;  ///< of the whole; least binding of each operand
};

constexpr std::array kOperators = std::to_array<OperatorText>({
    {Op::Mul, "*", Binding::Product, Binding::Product, Binding::Unary},
    {Op::MatMul, "*", Binding::Product, Binding::Product, Binding::Unary},
    {Op::Div, "/", Binding::Product, Binding::Product, Binding::Unary},
    {Op::Rem, "%", Binding::Product, Binding::Product, Binding::Unary},
    {Op::Add, "+", Binding::Sum, Binding::Sum, Binding::Product},
    {Op::Sub, "-", Binding::Sum, Binding::Sum, Binding::Product},
    {Op::Shl, "<<", Binding::Shift, Binding::Unary, Binding::Unary},
    {Op::Shr, ">>", Binding::Shift, Binding::Unary, Binding::Unary},
    {Op::And, "&", Binding::Loose, Binding::Unary, Binding::Unary},
    {Op::Or, "|", Binding::Loose, Binding::Unary, Binding::Unary},
    {Op::Xor, "^", Binding::Loose, Binding::Unary, Binding::Unary},
    {Op::Eq, "==", Binding::Relation, Binding::Sum, Binding::Sum},
    {Op::Ne, "!=", Binding::Relation, Binding::Sum, Binding::Sum},
    {Op::Lt, "<", Binding::Relation, Binding::Sum, Binding::Sum},
    {Op::Le, "<=", Binding::Relation, Binding::Sum, Binding::Sum},
    {Op::Gt, ">", Binding::Relation, Binding::Sum, Binding::Sum},
    {Op::Ge, ">=", Binding::Relation, Binding::Sum, Binding::Sum},
});

constexpr std::string_view kComponents = "xyzw";

}  // namespace

std::string_view Writer::functionName(Op op) {
  constexpr std::array kAll = std::to_array<std::pair<Op, std::string_view>>({
#define LS_WGSL_BUILTIN(name, text, signature, op, uniformity) {Op::op, text},
#include "frontend/wgsl/check/builtins.def"
#undef LS_WGSL_BUILTIN
  });
  const auto* row = std::find_if(kAll.begin(), kAll.end(), [&](const auto& r) { return r.first == op; });
  return row == kAll.end() || op == Op::Call ? std::string_view() : row->second;
}

bool Writer::hasNoLiteral(const kernel::Value& value) const {
  const kernel::Type& type = module_.types[value.type];
  const bool f32 = type.kind == kernel::TypeKind::Scalar && type.scalar == kernel::Scalar::F32;
  return f32 && !std::isfinite(std::bit_cast<float>(value.bits));
}

std::string Writer::scalarText(const kernel::Value& value) {
  const kernel::Scalar scalar = module_.types[value.type].scalar;
  if (hasNoLiteral(value)) {
    // WGSL has no such constants, but bits that are read from memory are not looked at by the compiler.
    used_odd_bits_.insert(value.bits);
    return fmt::format("bitcast<f32>({})", odd_names_.at(value.bits));
  }
  if (scalar == kernel::Scalar::F16 && (value.bits & 0x7C00u) == 0x7C00u) internalError("WGSL cannot express a non-finite f16 constant");
  // The shortest decimal of the largest f32 lies above it: out of range for a reader that looks before it rounds.
  if (scalar == kernel::Scalar::F32 && (value.bits & 0x7FFFFFFFu) == 0x7F7FFFFFu) {
    return value.bits >> 31 == 0 ? "0x1.fffffep+127f" : "-0x1.fffffep+127f";
  }
  // The literal of the smallest i32 would be out of range before its sign.
  if (scalar == kernel::Scalar::I32 && value.bits == 0x80000000u) return "i32(-2147483648)";
  return kernel::formatScalar(scalar, value.bits);
}

Text Writer::constant(const kernel::Value& value) {
  if (module_.types[value.type].kind == kernel::TypeKind::Scalar) {
    std::string text = scalarText(value);
    const Binding binding = text.starts_with('-') ? Binding::Unary : Binding::Primary;
    return {std::move(text), binding};
  }
  const bool vector = module_.types[value.type].kind == kernel::TypeKind::Vector;
  const auto& elements = value.elements;
  const bool splat = vector && !elements.empty() && std::all_of(elements.begin(), elements.end(), [&](auto e) { return e == elements[0]; });
  std::string list;
  for (const kernel::ValueId element : elements) {
    if (!list.empty()) list += ", ";
    list += constant(module_[element]).text;
    if (splat) break;
  }
  return {fmt::format("{}({})", typeText(value.type), list)};
}

Text Writer::value(kernel::ValueId id) {
  const kernel::Value& value = module_[id];
  if (const auto hidden = hidden_.find(id); hidden != hidden_.end()) return {hidden->second};
  if (value.kind == kernel::ValueKind::Constant) return constant(value);
  if (module_.types[value.type].kind == kernel::TypeKind::Pointer) {
    const bool is_pointer_name =
        !names_[id.index()].empty() && (value.kind == kernel::ValueKind::Parameter ||
                                        (value.kind == kernel::ValueKind::Instruction && module_.instructions[value.index].op != Op::Var));
    if (is_pointer_name) return {names_[id.index()]};
    return {"&" + place(id), Binding::Unary};
  }
  if (!names_[id.index()].empty()) return {names_[id.index()]};
  return inlined_[id.index()];
}

std::string Writer::operand(kernel::ValueId id, Binding least) {
  Text text = value(id);
  return text.binding >= least ? std::move(text.text) : fmt::format("({})", text.text);
}

/// A comparison in an argument list could be taken for a template list: f(a < b, c > d).
std::string Writer::argument(kernel::ValueId id) {
  Text text = value(id);
  return text.binding == Binding::Relation ? fmt::format("({})", text.text) : std::move(text.text);
}

std::string Writer::arguments(const std::vector<kernel::ValueId>& ids) {
  std::string list;
  for (const kernel::ValueId id : ids) list += (list.empty() ? "" : ", ") + argument(id);
  return list;
}

std::string Writer::elementText(kernel::TypeId base, kernel::ValueId index) {
  const kernel::Type& type = module_.types[base];
  const kernel::Value& value = module_[index];
  const bool constant = value.kind == kernel::ValueKind::Constant;
  if (type.kind == kernel::TypeKind::Struct) return "." + type.members[value.bits].name;
  // An i32 stays one, so that the text reads as the same module.
  const bool component = constant && type.kind == kernel::TypeKind::Vector && module_.types[value.type].scalar == kernel::Scalar::U32;
  if (component && value.bits < type.rows) return fmt::format(".{}", kComponents[value.bits]);
  return fmt::format("[{}]", this->value(index).text);
}

std::string Writer::placeOf(const kernel::Instruction& access) {
  std::string text = place(access.operands[0]);
  kernel::TypeId part = module_.typeOf(access.operands[0]).element;
  for (size_t i = 1; i < access.operands.size(); ++i) {
    text += elementText(part, access.operands[i]);
    part = partType(part, access.operands[i]);
  }
  return text;
}

kernel::TypeId Writer::partType(kernel::TypeId whole, kernel::ValueId index) const {
  const kernel::Type& type = module_.types[whole];
  if (type.kind == kernel::TypeKind::Array) return type.element;
  if (type.kind == kernel::TypeKind::Struct) return type.members[module_[index].bits].type;
  return type.kind == kernel::TypeKind::Matrix ? columnType(whole) : module_.types.scalar(type.scalar);
}

/// Looked up by hand, because the table of a const module cannot grow; whoever made the access has put the type there.
kernel::TypeId Writer::columnType(kernel::TypeId matrix) const {
  kernel::Type wanted;
  wanted.kind = kernel::TypeKind::Vector;
  wanted.scalar = module_.types[matrix].scalar;
  wanted.rows = module_.types[matrix].rows;
  for (size_t i = 0; i < module_.types.size(); ++i) {
    if (module_.types[kernel::TypeId(i)] == wanted) return kernel::TypeId(i);
  }
  internalError("the column type of a matrix is not in the type table");
}

std::string Writer::place(kernel::ValueId pointer) {
  const kernel::Value& value = module_[pointer];
  if (value.kind == kernel::ValueKind::Variable) return names_[pointer.index()];
  if (value.kind == kernel::ValueKind::Parameter) return fmt::format("(*{})", names_[pointer.index()]);
  const kernel::Instruction& instruction = module_.instructions[value.index];
  if (instruction.op == Op::Var) return names_[pointer.index()];
  if (!names_[pointer.index()].empty()) return fmt::format("(*{})", names_[pointer.index()]);
  return placeOf(instruction);
}

Text Writer::binaryText(const kernel::Instruction& instruction) {
  const auto* row = std::find_if(kOperators.begin(), kOperators.end(), [&](const OperatorText& o) { return o.op == instruction.op; });
  const std::string left = operand(instruction.operands[0], row->left), right = operand(instruction.operands[1], row->right);
  return {fmt::format("{} {} {}", left, row->text, right), row->binding};
}

std::string Writer::compoundText(const kernel::Instruction& operation) {
  const auto* row = std::find_if(kOperators.begin(), kOperators.end(), [&](const OperatorText& o) { return o.op == operation.op; });
  hidden_.clear();
  hideConstants(operation);
  std::string text = fmt::format("{}= {}", row->text, value(operation.operands[1]).text);
  hidden_.clear();
  return text;
}

bool Writer::anyLane(kernel::ValueId constant, bool (*test)(uint32_t bits)) const {
  const kernel::Value& value = module_[constant];
  if (module_.types[value.type].kind == kernel::TypeKind::Scalar) return test(value.bits);
  if (value.elements.empty()) return test(0);
  return std::any_of(value.elements.begin(), value.elements.end(), [&](kernel::ValueId element) { return anyLane(element, test); });
}

void Writer::hide(kernel::ValueId constant) {
  if (hidden_.contains(constant)) return;
  const std::string name = numberedName();
  line(fmt::format("let {} = {};", name, value(constant).text));
  hidden_[constant] = name;
}

/// The IR defines x / 0, shifts by 32 and so on; WGSL rejects them where the operands are constant. A `let` is never constant.
void Writer::hideConstants(const kernel::Instruction& instruction) {
  const Op op = instruction.op;
  const auto& operands = instruction.operands;
  const OpGroup group = kernel::info(op).group;
  // A lane that is no constant may be any number.
  if (group == OpGroup::Subgroup && op != Op::SubgroupBroadcast && op != Op::QuadBroadcast && operands.size() == 2 &&
      isConstant(operands[1]) && module_[operands[1]].bits >= 128) {
    hide(operands[1]);
  }
  const bool computes = group == OpGroup::Arithmetic || group == OpGroup::Math || op == Op::Convert || op == Op::Bitcast;
  if (!computes || operands.empty()) return;
  if (std::all_of(operands.begin(), operands.end(), [&](kernel::ValueId id) { return isConstant(id); })) hide(operands[0]);
  const bool division = (op == Op::Div || op == Op::Rem) && module_.typeOf(operands[0]).isInteger();
  const bool shift = op == Op::Shl || op == Op::Shr;
  if (division && isConstant(operands[1]) && anyLane(operands[1], [](uint32_t bits) { return bits == 0; })) hide(operands[1]);
  if (shift && isConstant(operands[1]) && anyLane(operands[1], [](uint32_t bits) { return bits >= 32; })) hide(operands[1]);
  if (op == Op::Clamp && isConstant(operands[1]) && isConstant(operands[2])) {
    // Bounds that are plainly in order are common; others are named rather than compared by type here.
    const bool plain = module_.typeOf(operands[0]).kind == kernel::TypeKind::Scalar &&
                       module_.typeOf(operands[0]).scalar == kernel::Scalar::F32 &&
                       std::bit_cast<float>(module_[operands[1]].bits) <= std::bit_cast<float>(module_[operands[2]].bits);
    if (!plain) hide(operands[1]);
  }
  if (op != Op::ExtractBits && op != Op::InsertBits) return;
  for (const kernel::ValueId number : {operands[operands.size() - 2], operands.back()}) {
    if (isConstant(number)) hide(number);
  }
}

Text Writer::expression(const kernel::Instruction& instruction) {
  hidden_.clear();
  hideConstants(instruction);
  Text text = expressionText(instruction);
  hidden_.clear();
  return text;
}

/// With the names that a reader would not find in the text.
std::string Writer::printText(const kernel::Instruction& print) {
  std::vector<std::string> parts;
  if (!print.labels.empty() && !print.labels[0].empty()) {
    // One that ends with '=' would be a name.
    parts.push_back(quotedText(print.labels[0].ends_with('=') ? print.labels[0] + " " : print.labels[0]));
  }
  for (size_t i = 0; i < print.operands.size(); ++i) {
    const std::string text = argument(print.operands[i]), name = print.labels.empty() ? "" : print.labels[i + 1];
    if (printedName(text) != name) parts.push_back(quotedText(name + (name.empty() ? "=" : " =")));
    parts.push_back(text);
  }
  if (parts.empty()) parts.emplace_back("\"\"");
  return fmt::format("print({})", fmt::join(parts, ", "));
}

/// A load or store of a subgroup matrix.
std::string Writer::matrixMoveText(std::string_view name, const kernel::Instruction& instruction) {
  const std::string type = instruction.op == Op::SubgroupMatrixLoad ? typeText(instruction.type) + ", " : "";
  return fmt::format("{}<{}{}>({})", name, type, instruction.immediate != 0 ? kColumnMajor : kRowMajor, arguments(instruction.operands));
}

Text Writer::expressionText(const kernel::Instruction& instruction) {
  const auto& operands = instruction.operands;
  const Op op = instruction.op;
  const bool binary = std::any_of(kOperators.begin(), kOperators.end(), [&](const OperatorText& o) { return o.op == op; });
  if (binary) return binaryText(instruction);
  if (op == Op::Neg) return {"-" + operand(operands[0], Binding::Primary), Binding::Unary};
  if (op == Op::Not) return {"!" + operand(operands[0], Binding::Primary), Binding::Unary};
  if (op == Op::Complement) return {"~" + operand(operands[0], Binding::Primary), Binding::Unary};
  if (op == Op::Load) return {place(operands[0])};
  if (op == Op::Extract) return {operand(operands[0], Binding::Primary) + elementText(module_[operands[0]].type, operands[1])};
  if (op == Op::Swizzle) {
    std::string letters;
    for (uint32_t i = 0; i < module_.types[instruction.type].width(); ++i) letters += kComponents[instruction.immediate >> (2 * i) & 3u];
    return {operand(operands[0], Binding::Primary) + "." + letters};
  }
  if (op == Op::Convert || op == Op::Construct) return {fmt::format("{}({})", typeText(instruction.type), arguments(operands))};
  if (op == Op::Bitcast) return {fmt::format("bitcast<{}>({})", typeText(instruction.type), arguments(operands))};
  if (op == Op::Call) return {fmt::format("{}({})", function_names_[instruction.immediate], arguments(operands))};
  if (op == Op::Print) return {printText(instruction)};
  const std::string_view name = functionName(op);
  if (name.empty()) internalError(fmt::format("the WGSL writer does not know the op {}", kernel::info(op).text));
  if (kernel::hasMajor(op)) return {matrixMoveText(name, instruction)};
  if (op == Op::SubgroupMatrixConvert) return {fmt::format("{}<{}>({})", name, typeText(instruction.type), arguments(operands))};
  return {fmt::format("{}({})", name, arguments(operands))};
}

}  // namespace lockstep::wgsl
