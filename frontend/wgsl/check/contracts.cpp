// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/contracts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "ir/support/nearest.h"

namespace lockstep::wgsl {
namespace {

using Kind = ContractPart::Kind;

constexpr std::string_view kMarker = "lockstep:";
constexpr uint32_t kMaxNesting = 64;

struct Failed {};  ///< the problem was reported

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || isDigit(c) || static_cast<unsigned char>(c) >= 0x80;
}

struct Operator {
  std::string_view text;
  Kind kind;
  int binding;  ///< the larger, the tighter
};
constexpr std::array kOperators = std::to_array<Operator>({{"&&", Kind::And, 1},
                                                           {"==", Kind::Equal, 2},
                                                           {"!=", Kind::NotEqual, 2},
                                                           {"<=", Kind::LessEqual, 2},
                                                           {">=", Kind::GreaterEqual, 2},
                                                           {"<", Kind::Less, 2},
                                                           {">", Kind::Greater, 2},
                                                           {"+", Kind::Add, 3},
                                                           {"-", Kind::Subtract, 3},
                                                           {"*", Kind::Multiply, 4},
                                                           {"/", Kind::Divide, 4},
                                                           {"%", Kind::Remainder, 4}});
constexpr std::array kFunctions =
    std::to_array<Operator>({{"ceil_div", Kind::CeilDivide, 0}, {"min", Kind::Minimum, 0}, {"max", Kind::Maximum, 0}});

bool isCondition(Kind kind) { return kind >= Kind::Equal; }

/// One contract; `at` is behind the name of its form.
class ContractParser {
 public:
  ContractParser(const Source& source, uint32_t at, uint32_t end, const Ast& ast, const Program& program, Reporter& reporter)
      : text_(source.text()), at_(at), end_(end), ast_(ast), program_(program), reporter_(reporter) {}

  /// Nothing after a report.
  std::optional<Contract> run(bool is_dispatch) {
    try {
      parse(is_dispatch);
      return std::move(made_);
    } catch (const Failed&) {
      return std::nullopt;
    }
  }
  [[nodiscard]] uint32_t end() const { return at_; }

 private:
  void parse(bool is_dispatch) {
    made_.is_dispatch = is_dispatch;
    expect("(");
    do {
      const uint32_t begin = next();
      made_.wanted.push_back(expression(1));
      const bool condition = isCondition(made_.parts[made_.wanted.back()].kind);
      if (condition == is_dispatch)
        fail(begin, is_dispatch ? "a number of workgroups is no condition" : "require takes a condition such as length(y) == length(x)");
    } while (is_dispatch && made_.wanted.size() < 3 && accept(","));
    expect(")");
    // Where nothing is said, a dispatch has one workgroup.
    while (is_dispatch && made_.wanted.size() < 3)
      made_.wanted.push_back(add({.kind = Kind::Number, .number = 1, .path = {}, .text = "1"}));
  }
  [[noreturn]] void fail(uint32_t begin, std::string message, std::string remedy = {}) {
    reporter_.error(kContract, {begin, std::max(at_, begin + 1)}, std::move(message), std::move(remedy));
    throw Failed{};
  }

  /// The place of what comes next.
  uint32_t next() {
    while (at_ < end_ && isBlank(text_[at_])) ++at_;
    return at_;
  }
  bool accept(std::string_view word) {
    next();
    if (!text_.substr(at_, end_ - at_).starts_with(word)) return false;
    at_ += static_cast<uint32_t>(word.size());
    return true;
  }
  void expect(std::string_view word) {
    const uint32_t begin = next();
    if (!accept(word)) fail(begin, fmt::format("expected '{}' in the contract", word));
  }
  std::string_view takeWord() {
    const uint32_t begin = next();
    while (at_ < end_ && isWordByte(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  uint32_t add(ContractPart part) {
    made_.parts.push_back(std::move(part));
    return static_cast<uint32_t>(made_.parts.size() - 1);
  }
  [[nodiscard]] std::string since(uint32_t begin) const {
    std::string_view text = text_.substr(begin, at_ - begin);
    while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
    return std::string(text);
  }

  uint32_t expression(int least) {
    if (++nesting_ > kMaxNesting) fail(at_, "the contract nests too deep");
    const uint32_t begin = next();
    uint32_t left = operand();
    while (true) {
      next();
      const std::string_view rest = text_.substr(at_, end_ - at_);
      const auto* found = std::ranges::find_if(kOperators, [&](const Operator& one) { return rest.starts_with(one.text); });
      if (found == kOperators.end() || found->binding < least) break;
      at_ += static_cast<uint32_t>(found->text.size());
      const uint32_t right = expression(found->binding + 1);
      const bool joins = found->kind == Kind::And;
      for (const uint32_t side : {left, right}) {
        if (isCondition(made_.parts[side].kind) == joins) continue;
        fail(begin, joins ? "'&&' joins conditions" : fmt::format("'{}' takes numbers, not conditions", found->text));
      }
      left = add({.kind = found->kind, .path = {}, .left = left, .right = right, .text = since(begin)});
    }
    --nesting_;
    return left;
  }

  uint32_t operand() {
    const uint32_t begin = next();
    if (accept("(")) {
      const uint32_t inner = expression(1);
      expect(")");
      made_.parts[inner].text = since(begin);
      return inner;
    }
    if (begin < end_ && isDigit(text_[begin])) return number(begin);
    const std::string_view word = takeWord();
    if (word.empty()) fail(begin, "expected a number, a variable or a function in the contract");
    if (accept("(")) return call(begin, word);
    if (word == "workgroups" || word == "workgroup_size") return axis(begin, word);
    return value(begin, word);
  }

  uint32_t number(uint32_t begin) {
    std::string_view word = takeWord();
    ContractPart part{.kind = Kind::Number, .path = {}, .text = since(begin)};
    if (word.ends_with('u') || word.ends_with('i')) word.remove_suffix(1);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), part.number);
    if (error != std::errc() || end != word.data() + word.size()) fail(begin, fmt::format("'{}' is no whole number", part.text));
    return add(std::move(part));
  }

  uint32_t call(uint32_t begin, std::string_view name) {
    if (name == "length" || name == "size") {
      const uint32_t at = next();
      const std::string variable(takeWord());
      findVariable(at, variable);
      expect(")");
      return add({.kind = name == "length" ? Kind::Length : Kind::Size, .path = {variable}, .text = since(begin)});
    }
    const auto* function = std::ranges::find(kFunctions, name, &Operator::text);
    if (function == kFunctions.end()) {
      fail(begin, fmt::format("there is no function '{}' in contracts", name), "there are length, size, ceil_div, min and max");
    }
    const uint32_t left = expression(3);
    expect(",");
    const uint32_t right = expression(3);
    expect(")");
    return add({.kind = function->kind, .path = {}, .left = left, .right = right, .text = since(begin)});
  }

  uint32_t axis(uint32_t begin, std::string_view word) {
    expect(".");
    const std::string_view letter = takeWord();
    if (letter != "x" && letter != "y" && letter != "z") fail(begin, fmt::format("'{}' has x, y and z", word));
    return add({.kind = word == "workgroups" ? Kind::Workgroups : Kind::WorkgroupSize,
                .axis = static_cast<uint32_t>(letter[0] - 'x'),
                .path = {},
                .text = since(begin)});
  }

  uint32_t value(uint32_t begin, std::string_view word) {
    if (const VariableDecl* constant = findDeclaration(word); constant != nullptr && constant->kind != VariableKind::Var) {
      const auto entity = std::ranges::find_if(program_.entities, [&](const Entity& one) { return one.scope == 0 && one.name == word; });
      const bool known = entity != program_.entities.end() && entity->value && isInteger(entity->value->type);
      if (!known && constant->kind == VariableKind::Const) fail(begin, fmt::format("'{}' is no integer", word));
      return add(
          {.kind = known ? Kind::Number : Kind::Unknown, .number = known ? entity->value->integer : 0, .path = {}, .text = since(begin)});
    }
    findVariable(begin, word);
    ContractPart part{.kind = Kind::Value, .path = {std::string(word)}, .text = {}};
    while (accept(".")) {
      part.path.emplace_back(takeWord());
      if (part.path.back().empty()) fail(begin, "expected a member after '.'");
    }
    part.text = since(begin);
    return add(std::move(part));
  }

  static bool isInteger(Ty type) { return type == kI32 || type == kU32 || type == kAbstractInt; }

  [[nodiscard]] const VariableDecl* findDeclaration(std::string_view name) const {
    const auto found = std::ranges::find(ast_.variables, name, &VariableDecl::name);
    return found == ast_.variables.end() ? nullptr : &*found;
  }

  /// Fails if it is no variable that a host binds.
  void findVariable(uint32_t begin, std::string_view name) {
    std::vector<std::string_view> bound;
    for (const EntityId id : program_.globals) {
      const AddressSpace space = program_.types[program_[id].type].space;
      if (kernel::isBound(space) || space == AddressSpace::Immediate) bound.emplace_back(program_[id].name);
    }
    if (std::ranges::find(bound, name) != bound.end()) return;
    const std::string near = nearestName(name, bound);
    fail(begin, fmt::format("'{}' is no variable that a host binds", name), near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }

  std::string_view text_;
  uint32_t at_, end_, nesting_ = 0;
  const Ast& ast_;
  const Program& program_;
  Reporter& reporter_;
  Contract made_;
};

/// The entry point that stands next after an offset, or else the last one.
std::string entryAfter(uint32_t offset, const Ast& ast, const Program& program) {
  std::string last;
  for (size_t i = 0; i < ast.functions.size(); ++i) {
    const bool is_entry = std::ranges::any_of(ast.functions[i].attributes, [](const Attribute& one) { return one.name == "compute"; });
    if (!is_entry || i >= program.functions.size()) continue;
    last = std::string(ast.functions[i].name);
    if (ast.functions[i].name_span.begin > offset) break;
  }
  return last;
}

}  // namespace

std::vector<Contract> readContracts(const Source& source, const Ast& ast, const Program& program, Reporter& reporter) {
  constexpr std::array<std::string_view, 3> kForms{"dispatch", "require", "allow"};
  std::vector<Contract> contracts;
  const std::string_view text = source.text();
  for (size_t at = text.find(kMarker); at != std::string_view::npos; at = text.find(kMarker, at + 1)) {
    // Only behind `//` with nothing between.
    size_t before = at;
    while (before > 0 && isBlank(text[before - 1])) --before;
    if (before < 2 || text.substr(before - 2, 2) != "//") continue;
    size_t begin = at + kMarker.size();
    const size_t end = std::min(text.find('\n', at), text.size());
    while (begin < end && isBlank(text[begin])) ++begin;
    size_t word_end = begin;
    while (word_end < end && isWordByte(text[word_end])) ++word_end;
    const std::string_view form = text.substr(begin, word_end - begin);
    if (word_end == end || text[word_end] != '(' || form.empty() || form == "allow") continue;
    const Span span{static_cast<uint32_t>(begin), static_cast<uint32_t>(word_end)};
    if (form != "dispatch" && form != "require") {
      const std::string near = nearestName(form, kForms);
      reporter.error(kContract, span, fmt::format("there is no '{}' for a host", form),
                     near.empty() ? "there are dispatch(...), require(...) and allow(...)" : fmt::format("did you mean '{}'?", near));
      continue;
    }
    ContractParser parser(source, span.end, static_cast<uint32_t>(end), ast, program, reporter);
    std::optional<Contract> contract = parser.run(form == "dispatch");
    if (!contract) continue;
    contract->entry = entryAfter(span.begin, ast, program);
    contract->where = source.locate(span);
    contract->begin = span.begin;
    contract->end = parser.end();
    contract->text = std::string(source.text({contract->begin, contract->end}));
    contract->length = source.lengthOnLine({contract->begin, contract->end});
    contracts.push_back(*std::move(contract));
  }
  return contracts;
}

}  // namespace lockstep::wgsl
