// SPDX-License-Identifier: Apache-2.0
// Blocks and instructions.
#include <fmt/format.h>

#include "ir/kernel/literal.h"
#include "ir/kernel/names.h"
#include "ir/kernel/parser.h"

namespace lockstep::kernel {

ValueId Parser::addValue(ValueKind kind, TypeId type, size_t index, const std::string& name) {
  module_.values.push_back(
      {.kind = kind, .type = type, .index = static_cast<uint32_t>(index), .elements = {}, .name = isNumber(name) ? "" : name});
  return ValueId(module_.values.size() - 1);
}

Result<BlockId> Parser::parseBlock() {
  if (nesting_ >= kMaxBlockNesting) {
    return fail("kernel.nesting", fmt::format("blocks nest deeper than {}", kMaxBlockNesting), cursor_.peek().where);
  }
  LS_CHECK(cursor_.expect("{"));
  BlockId block(module_.blocks.size());
  module_.blocks.emplace_back();
  ++nesting_;
  while (!cursor_.accept("}")) LS_CHECK(parseInstruction(block));
  --nesting_;
  return block;
}

Status Parser::parseInstruction(BlockId block) {
  Instruction instruction;
  instruction.type = module_.types.voidType();
  std::string name;
  Location where = cursor_.peek().where;
  if (cursor_.peek().kind == TokenKind::Percent) LS_CHECK(parseResult(instruction, name));
  if (cursor_.accept("strict")) instruction.float_mode = FloatMode::Strict;
  Location op_where = cursor_.peek().where;
  LS_TRY(std::string mnemonic, cursor_.identifier());
  std::optional<Op> op = findOp(mnemonic);
  if (!op) return fail("kernel.name", fmt::format("unknown operation '{}'", mnemonic), op_where);
  instruction.op = *op;
  InstructionId id(module_.instructions.size());
  module_.instructions.emplace_back();
  module_.blocks[block.index()].instructions.push_back(id);
  LS_CHECK(instruction.op == Op::Call ? parseCallee(instruction) : parseOperands(instruction));
  LS_CHECK(parseInstructionAttributes(instruction));
  // Defined after the operands, so that an instruction cannot use its own result.
  if (!name.empty()) {
    instruction.result = addValue(ValueKind::Instruction, instruction.type, id.index(), name);
    if (!locals_.emplace(name, instruction.result).second) return fail("kernel.name", fmt::format("%{} is defined twice", name), where);
  }
  LS_CHECK(parseRegions(instruction));
  module_.instructions[id.index()] = std::move(instruction);
  return Success{};
}

Status Parser::parseResult(Instruction& instruction, std::string& name) {
  LS_TRY(name, cursor_.percentName());
  LS_CHECK(cursor_.expect(":"));
  LS_TRY(instruction.type, parseType());
  return cursor_.expect("=");
}

bool Parser::atOperandEnd() const {
  const Token& token = cursor_.peek();
  if (token.kind == TokenKind::End || token.text == "{" || token.text == "}") return true;
  // The next line's instruction: "%name :" or a mnemonic. Operands never start with those.
  if (token.kind == TokenKind::Percent) return cursor_.peek(1).text == ":";
  return token.kind == TokenKind::Identifier && (token.text == "strict" || findOp(token.text).has_value());
}

Status Parser::parseOperands(Instruction& instruction) {
  if (atOperandEnd()) return Success{};
  do {
    LS_TRY(ValueId operand, parseOperand());
    instruction.operands.push_back(operand);
  } while (cursor_.accept(","));
  return Success{};
}

Status Parser::parseCallee(Instruction& instruction) {
  Location where = cursor_.peek().where;
  LS_TRY(std::string name, cursor_.atName());
  auto callee = functions_.find(name);
  if (callee == functions_.end()) {
    return fail("kernel.name", fmt::format("unknown function @{}", name), where, "a function stands before its callers");
  }
  instruction.immediate = static_cast<uint32_t>(callee->second.index());
  LS_CHECK(cursor_.expect("("));
  while (!cursor_.accept(")")) {
    if (!instruction.operands.empty()) LS_CHECK(cursor_.expect(","));
    LS_TRY(ValueId operand, parseOperand());
    instruction.operands.push_back(operand);
  }
  return Success{};
}

Result<ValueId> Parser::parseOperand() {
  const Token& token = cursor_.peek();
  if (token.kind != TokenKind::Percent && token.kind != TokenKind::At) return parseConstant({});
  bool is_local = token.kind == TokenKind::Percent;
  const NameMap<ValueId>& scope = is_local ? locals_ : globals_;
  auto found = scope.find(token.text);
  if (found == scope.end()) {
    std::string_view what = is_local ? "value %" : "variable @";
    return fail("kernel.name", fmt::format("unknown {}{}", what, token.text), token.where, "a definition stands before its uses");
  }
  cursor_.next();
  return found->second;
}

Status Parser::parseInstructionAttributes(Instruction& instruction) {
  if (!atAttributes()) return Success{};  // most have none, and the table below is not free
  auto in_bounds = [&]() -> Status {
    instruction.in_bounds = true;
    return cursor_.expect("true");
  };
  AttributeReaders readers = {
      {"origin", numberReader(instruction.origin)}, {"location", [&] { return parseLocation(instruction); }}, {"in_bounds", in_bounds}};
  if (instruction.op == Op::Print) readers["labels"] = [&] { return parseLabels(instruction); };
  if (instruction.op == Op::Swizzle) readers["components"] = [&] { return parseComponents(instruction); };
  if (hasMajor(instruction.op)) {
    readers["column_major"] = [&]() -> Status {
      instruction.immediate = 1;
      return cursor_.expect("true");
    };
  }
  return parseAttributes(readers);
}

Status Parser::parseComponents(Instruction& instruction) {
  Location where = cursor_.peek().where;
  LS_TRY(std::string letters, cursor_.identifier());
  uint32_t width = module_.types[instruction.type].width();
  if (letters.size() != width) {
    return fail("kernel.literal", fmt::format("{} components for a result of {}", letters.size(), width), where);
  }
  for (size_t i = 0; i < letters.size(); ++i) {
    size_t component = std::string_view("xyzw").find(letters[i]);
    if (component == std::string_view::npos) return fail("kernel.literal", "components are letters of xyzw", where);
    instruction.immediate |= static_cast<uint32_t>(component << (2 * i));
  }
  return Success{};
}

Status Parser::parseLabels(Instruction& instruction) {
  LS_CHECK(cursor_.expect("["));
  do {
    LS_TRY(instruction.labels.emplace_back(), cursor_.string());
  } while (cursor_.accept(","));
  return cursor_.expect("]");
}

Status Parser::parseLocation(Instruction& instruction) {
  Location location;
  location.quoted = true;
  LS_CHECK(cursor_.expect("["));
  LS_TRY(location.file, cursor_.string());
  LS_CHECK(cursor_.expect(","));
  LS_TRY(location.line, parseU32());
  LS_CHECK(cursor_.expect(","));
  LS_TRY(location.column, parseU32());
  if (cursor_.accept(",")) {
    LS_CHECK(cursor_.expect("embedded"));
    location.embedded = true;
  }
  module_.locations.push_back(std::move(location));
  instruction.location = static_cast<uint32_t>(module_.locations.size());
  return cursor_.expect("]");
}

Status Parser::parseRegions(Instruction& instruction) {
  if (instruction.op == Op::Switch) {
    LS_CHECK(cursor_.expect("{"));
    while (!cursor_.accept("}")) LS_CHECK(parseCase(instruction));
    return Success{};
  }
  if (instruction.op != Op::If && instruction.op != Op::Loop) return Success{};
  LS_TRY(BlockId first, parseBlock());
  instruction.blocks.push_back(first);
  if (cursor_.accept(instruction.op == Op::If ? "else" : "continuing")) {
    LS_TRY(BlockId second, parseBlock());
    instruction.blocks.push_back(second);
  } else {
    instruction.blocks.emplace_back(module_.blocks.size());
    module_.blocks.emplace_back();
  }
  return Success{};
}

Status Parser::parseCase(Instruction& instruction) {
  SwitchCase choice;
  LS_CHECK(cursor_.expect("case"));
  bool is_signed = !instruction.operands.empty() && module_.typeOf(instruction.operands[0]).is(Scalar::I32);
  TypeId selector_type = is_signed ? module_.types.i32() : module_.types.u32();
  do {
    if (cursor_.accept("default")) {
      choice.is_default = true;
      continue;
    }
    LS_TRY(ValueId selector, parseConstant(selector_type));
    choice.selectors.push_back(module_[selector].bits);
  } while (cursor_.accept(","));
  LS_TRY(BlockId block, parseBlock());
  instruction.blocks.push_back(block);
  instruction.cases.push_back(std::move(choice));
  return Success{};
}

}  // namespace lockstep::kernel
