// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/write/writer.h"

namespace lockstep::wgsl {

using kernel::Op;
using kernel::OpGroup;

namespace {

std::string withoutParentheses(const std::string& place) {
  const bool whole = place.starts_with("(*") && place.find(')') == place.size() - 1;
  return whole ? place.substr(1, place.size() - 2) : place;
}

bool mentions(const std::string& text, const std::string& name) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool ends = at + name.size() == text.size() || !is_word(text[at + name.size()]);
    if (begins && ends) return true;
  }
  return false;
}

/// "!x" and "!(a < b)" without the negation; other conditions negated.
std::string negated(const std::string& condition) {
  if (condition.starts_with("!(") && condition.ends_with(')')) {
    int depth = 0;
    for (size_t i = 1; i < condition.size(); ++i) {
      depth += condition[i] == '(' ? 1 : condition[i] == ')' ? -1 : 0;
      if (depth == 0) return i + 1 == condition.size() ? condition.substr(2, condition.size() - 3) : fmt::format("!({})", condition);
    }
  }
  const bool plain_name = condition.starts_with('!') && condition.find_first_of(" (") == std::string::npos;
  return plain_name ? condition.substr(1) : fmt::format("!({})", condition);
}

}  // namespace

void Writer::writeBlock(kernel::BlockId block) {
  for (const kernel::InstructionId id : module_[block].instructions) writeInstruction(id);
}

std::vector<Writer::Line> Writer::capture(kernel::BlockId block) {
  std::vector<Line> outer;
  outer.swap(lines_);
  ++indent_;
  writeBlock(block);
  --indent_;
  outer.swap(lines_);
  return outer;
}

void Writer::writeInstruction(kernel::InstructionId id) {
  const kernel::Instruction& instruction = module_[id];
  const auto& operands = instruction.operands;
  const Op op = instruction.op;
  if (op == Op::If) return writeIf(instruction);
  if (op == Op::Loop) return writeLoop(instruction);
  if (op == Op::Switch) return writeSwitch(instruction);
  if (op == Op::Break) return line("break;");
  if (op == Op::Continue) return line("continue;");
  if (op == Op::BreakIf) return line(fmt::format("break if {};", value(operands[0]).text));
  if (op == Op::Return) return line(operands.empty() ? "return;" : fmt::format("return {};", value(operands[0]).text));
  if (op == Op::Store) return writeStore(instruction, places_[id.index()].compound);
  if (!instruction.result.valid()) return line(expression(instruction).text + ";");
  writeResult(id);
}

void Writer::writeResult(kernel::InstructionId id) {
  const kernel::Instruction& instruction = module_[id];
  const kernel::ValueId result = instruction.result;
  const auto name = [&] {
    const std::string& hint = module_[result].name;
    std::string& name = names_[result.index()];
    name = hint.empty() ? numberedName() : uniqueName(hint, scope_);
    return name;
  };
  if (instruction.op == Op::Var) {
    const kernel::TypeId type = module_.types[instruction.type].element;
    const std::string type_text = isExchangeResult(type) ? "" : ": " + typeText(type);
    const std::string initial = instruction.operands.empty() ? "" : " = " + value(instruction.operands[0]).text;
    return line(fmt::format("var {}{}{};", name(), type_text, initial));
  }
  const Place& at = places_[id.index()];
  const bool unused = at.uses == 0 && module_[result].name.empty();
  if (instruction.op == Op::Access) {
    // A component has no address, so that its place is written where it is used.
    if (at.inlined || at.floating || isComponentAccess(instruction)) return;
    const std::string target = "&" + placeOf(instruction);
    return line(unused ? fmt::format("_ = {};", target) : fmt::format("let {} = {};", name(), target));
  }
  if (isConstantComposite(instruction)) {
    inlined_[result.index()] = expression(instruction);
    return;
  }
  if (at.compound) return;
  Text text = expression(instruction);
  if (at.inlined) {
    inlined_[result.index()] = std::move(text);
    return;
  }
  if (!unused) return line(fmt::format("let {} = {};", name(), text.text));
  // Most functions that compute must be used; what a call or an atomic gives need not.
  const bool statement = instruction.op == Op::Call || kernel::info(instruction.op).group == OpGroup::Atomic;
  line(fmt::format("{}{};", statement ? "" : "_ = ", text.text));
}

void Writer::writeStore(const kernel::Instruction& store, bool compound) {
  const std::string target = withoutParentheses(place(store.operands[0]));
  if (!compound) return line(fmt::format("{} = {};", target, value(store.operands[1]).text));
  line(fmt::format("{} {};", target, compoundText(module_.instructions[module_[store.operands[1]].index])));
}

void Writer::writeIf(const kernel::Instruction& instruction) {
  line(fmt::format("if {} {{", value(instruction.operands[0]).text));
  const std::vector<Line> then = capture(instruction.blocks[0]);
  lines_.insert(lines_.end(), then.begin(), then.end());
  std::vector<Line> otherwise = capture(instruction.blocks[1]);
  if (otherwise.empty()) return line("}");
  // An else that holds one if becomes `else if`.
  const bool starts_with_if = otherwise.front().text.starts_with("if ") && otherwise.front().text.ends_with("{");
  const bool alone = starts_with_if && std::all_of(otherwise.begin() + 1, otherwise.end(),
                                                   [&](const Line& l) { return l.indent > indent_ + 1 || l.text.starts_with("}"); });
  if (!alone) {
    line("} else {");
    lines_.insert(lines_.end(), otherwise.begin(), otherwise.end());
    return line("}");
  }
  otherwise.front().text.insert(0, "} else ");
  for (Line& l : otherwise) --l.indent;
  lines_.insert(lines_.end(), otherwise.begin(), otherwise.end());
}

/// A loop that begins with `if c { break; }` is a `while`, or a `for` when its continuing block is one assignment.
bool Writer::writeAsWhile(std::vector<Line>& body, std::vector<Line>& continuing) {
  const int inside = indent_ + 1;
  const bool guard = body.size() >= 3 && body[0].text.starts_with("if ") && body[0].text.ends_with(" {") && body[1].text == "break;" &&
                     body[1].indent == inside + 1 && body[2].text == "}";
  if (!guard || continuing.size() > 1) return false;
  const std::string condition = negated(body[0].text.substr(3, body[0].text.size() - 5));
  if (continuing.empty()) {
    line(fmt::format("while {} {{", condition));
  } else {
    std::string update = continuing[0].text;
    const bool assignment =
        update.ends_with(";") && update.find(" = ") != std::string::npos && !update.starts_with("let ") && !update.starts_with("var ");
    if (!assignment) return false;
    update.pop_back();
    // The update of a `for` does not see what the body declares.
    for (const Line& l : body) {
      if (l.indent != inside || !(l.text.starts_with("let ") || l.text.starts_with("var "))) continue;
      const size_t end = l.text.find_first_of(" :=", 4);
      if (mentions(update, l.text.substr(4, end - 4))) return false;
    }
    line(fmt::format("for (; {}; {}) {{", condition, update));
  }
  lines_.insert(lines_.end(), body.begin() + 3, body.end());
  line("}");
  return true;
}

bool Writer::leaves(kernel::BlockId block, bool break_counts) const {
  const auto& instructions = module_[block].instructions;
  return std::any_of(instructions.begin(), instructions.end(), [&](kernel::InstructionId id) {
    const kernel::Instruction& instruction = module_[id];
    if (instruction.op == Op::Return) return true;
    if (instruction.op == Op::Break || instruction.op == Op::BreakIf) return break_counts;
    const bool inner_breaks_count = break_counts && instruction.op == Op::If;
    return std::any_of(instruction.blocks.begin(), instruction.blocks.end(),
                       [&](kernel::BlockId inner) { return leaves(inner, inner_breaks_count); });
  });
}

void Writer::writeLoop(const kernel::Instruction& instruction) {
  std::vector<Line> body = capture(instruction.blocks[0]);
  ++indent_;
  std::vector<Line> continuing = capture(instruction.blocks[1]);
  --indent_;
  if (writeAsWhile(body, continuing)) return;
  // WGSL rejects loops that plainly never end, such as the one that `while true {}` becomes.
  const bool ends = leaves(instruction.blocks[0], true) || leaves(instruction.blocks[1], true);
  if (!ends) continuing.push_back({indent_ + 2, "break if false;"});
  line("loop {");
  lines_.insert(lines_.end(), body.begin(), body.end());
  if (!continuing.empty()) {
    ++indent_;
    line("continuing {");
    lines_.insert(lines_.end(), continuing.begin(), continuing.end());
    line("}");
    --indent_;
  }
  line("}");
}

void Writer::writeSwitch(const kernel::Instruction& instruction) {
  line(fmt::format("switch {} {{", value(instruction.operands[0]).text));
  const kernel::Scalar scalar = module_.typeOf(instruction.operands[0]).scalar;
  ++indent_;
  for (size_t i = 0; i < instruction.blocks.size(); ++i) {
    const kernel::SwitchCase& choice = instruction.cases[i];
    std::string selectors;
    for (const uint32_t bits : choice.selectors) {
      const std::string text = scalar == kernel::Scalar::I32 ? fmt::format("{}", static_cast<int32_t>(bits)) : fmt::format("{}u", bits);
      selectors += (selectors.empty() ? "" : ", ") + text;
    }
    if (choice.is_default && !selectors.empty()) selectors += ", default";
    line(selectors.empty() ? "default: {" : fmt::format("case {}: {{", selectors));
    const std::vector<Line> body = capture(instruction.blocks[i]);
    lines_.insert(lines_.end(), body.begin(), body.end());
    line("}");
  }
  --indent_;
  line("}");
}

}  // namespace lockstep::wgsl
