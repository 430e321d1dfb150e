// SPDX-License-Identifier: Apache-2.0
// Expressions. WGSL's grammar is not a plain precedence table: bitwise operators take only unary operands, shifts neither chain nor
// mix with additions, relations do not chain, and && does not mix with ||.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/wgsl/syntax/parser.h"

namespace lockstep::wgsl {
namespace {

struct BinaryWord {
  Word word;
  BinaryOp op;
};

constexpr std::array kBinaryWords = std::to_array<BinaryWord>({
    {"+", BinaryOp::Add},
    {"-", BinaryOp::Sub},
    {"*", BinaryOp::Mul},
    {"/", BinaryOp::Div},
    {"%", BinaryOp::Rem},
    {"&", BinaryOp::And},
    {"|", BinaryOp::Or},
    {"^", BinaryOp::Xor},
    {"<<", BinaryOp::Shl},
    {">>", BinaryOp::Shr},
    {"==", BinaryOp::Eq},
    {"!=", BinaryOp::Ne},
    {"<", BinaryOp::Lt},
    {"<=", BinaryOp::Le},
    {">", BinaryOp::Gt},
    {">=", BinaryOp::Ge},
    {"&&", BinaryOp::LogicalAnd},
    {"||", BinaryOp::LogicalOr},
});

struct UnaryWord {
  Word word;
  UnaryOp op;
};

constexpr std::array kUnaryWords = std::to_array<UnaryWord>({
    {"-", UnaryOp::Negate},
    {"!", UnaryOp::Not},
    {"~", UnaryOp::Complement},
    {"&", UnaryOp::AddressOf},
    {"*", UnaryOp::Dereference},
});

/// The operator of each word.
template <class Op, class Rows>
constexpr auto byWord(const Rows& rows) {
  std::array<std::optional<Op>, Word::kCount> ops{};
  for (const auto& row : rows) ops[row.word.index()] = row.op;
  return ops;
}

constexpr auto kBinaryOps = byWord<BinaryOp>(kBinaryWords);
constexpr auto kUnaryOps = byWord<UnaryOp>(kUnaryWords);

std::optional<BinaryOp> binaryOf(const Token& token) { return kBinaryOps[token.word.index()]; }

bool isBitwise(Word word) { return word == "&" || word == "|" || word == "^"; }

}  // namespace

std::string_view toString(BinaryOp op) {
  return std::find_if(kBinaryWords.begin(), kBinaryWords.end(), [&](const BinaryWord& b) { return b.op == op; })->word.text();
}

std::string_view toString(UnaryOp op) {
  return std::find_if(kUnaryWords.begin(), kUnaryWords.end(), [&](const UnaryWord& u) { return u.op == op; })->word.text();
}

/// Sets the depth.
ExprId Parser::add(Expr& expr) {
  const auto deepen = [&](ExprId child, uint32_t by) {
    if (child.valid()) expr.depth = std::max(expr.depth, ast_[child].depth + by);
  };
  deepen(expr.left, expr.kind == ExprKind::Binary ? 0 : 1);
  deepen(expr.right, 1);
  for (const ExprId child : expr.templates) deepen(child, 1);
  for (const ExprId child : expr.arguments) deepen(child, 1);
  if (expr.depth > kMaximumDepth) failAt(expr.span, "expression is nested too deeply");
  ast_.expressions.push_back(expr);
  return ExprId(ast_.expressions.size() - 1);
}

ExprId Parser::binary(BinaryOp op, ExprId left, ExprId right) {
  Expr expr;
  expr.kind = ExprKind::Binary;
  expr.span = join(ast_[left].span, ast_[right].span);
  expr.binary = op;
  expr.left = left;
  expr.right = right;
  return add(expr);
}

ExprId Parser::parseExpression() {
  const Nested nested(*this);
  ExprId expr = parseUnary();
  if (isBitwise(peek().word)) {
    expr = parseChain(expr, peek().word, false);
  } else {
    expr = parseRelational(expr);
    if (is("&&") || is("||")) expr = parseChain(expr, peek().word, true);
  }
  rejectMixedOperator(expr);
  return is("?") ? parseTernary(expr) : expr;
}

ExprId Parser::parseTernary(ExprId condition) {
  const Span mark = next().span;
  reporter_.error(kSyntax, mark, "WGSL has no '?:'", "write select(no, yes, condition), which evaluates both values, or an 'if'");
  const ExprId yes = parseExpression();
  expect(":", "between the values");
  const ExprId no = parseExpression();
  Expr call;
  call.kind = ExprKind::Call;
  call.name = "select";
  call.name_span = mark;
  call.arguments = ast_.keep<ExprId>(std::array{no, yes, condition});
  call.span = since(ast_[condition].span.begin);
  return add(call);
}

ExprId Parser::parseChain(ExprId first, Word op, bool relational_operands) {
  const BinaryOp kind = *binaryOf(peek());
  while (is(op)) {
    next();
    const ExprId operand = parseUnary();
    first = binary(kind, first, relational_operands ? parseRelational(operand) : operand);
  }
  return first;
}

void Parser::rejectMixedOperator(ExprId parsed) {
  const auto op = binaryOf(peek());
  if (!op) return;
  const Expr& expr = ast_[parsed];
  if (expr.kind != ExprKind::Binary) fail(fmt::format("operator '{}' is not allowed here", peek().text));
  fail(fmt::format("operators '{}' and '{}' need parentheses when they are mixed", toString(expr.binary), peek().text),
       "write parentheses around the part that is to be evaluated first");
}

ExprId Parser::parseRelational(ExprId first) {
  first = parseShift(first);
  const auto op = binaryOf(peek());
  if (!op || *op < BinaryOp::Eq || *op > BinaryOp::Ge) return first;
  next();
  return binary(*op, first, parseShift(parseUnary()));
}

ExprId Parser::parseShift(ExprId first) {
  if (!is("<<") && !is(">>")) return parseAdditive(first);
  const BinaryOp op = *binaryOf(next());
  return binary(op, first, parseUnary());
}

/// Inside of expressions "--" is two tokens: "a--b" is a - (-b). The grammar takes the longest token that can stand at its place.
/// Takes the first of the two; the second is what is next.
bool Parser::acceptHalfDecrement() {
  if (!is("--")) return false;
  tokens_[at_].word = "-";
  tokens_[at_].text.remove_prefix(1);
  ++tokens_[at_].span.begin;
  return true;
}

ExprId Parser::parseAdditive(ExprId first) {
  first = parseMultiplicative(first);
  while (is("+") || is("-") || is("--")) {
    const BinaryOp op = acceptHalfDecrement() ? BinaryOp::Sub : *binaryOf(next());
    first = binary(op, first, parseMultiplicative(parseUnary()));
  }
  return first;
}

ExprId Parser::parseMultiplicative(ExprId first) {
  while (is("*") || is("/") || is("%")) {
    const BinaryOp op = *binaryOf(next());
    first = binary(op, first, parseUnary());
  }
  return first;
}

ExprId Parser::parseUnary() {
  const Nested nested(*this);
  const uint32_t begin = peek().span.begin;
  Expr expr;
  expr.kind = ExprKind::Unary;
  if (acceptHalfDecrement()) {
    expr.unary = UnaryOp::Negate;
  } else {
    const std::optional<UnaryOp> op = kUnaryOps[peek().word.index()];
    if (!op) return parsePostfix();
    next();
    expr.unary = *op;
  }
  expr.left = parseUnary();
  expr.span = {begin, ast_[expr.left].span.end};
  return add(expr);
}

ExprId Parser::parsePostfix() {
  ExprId base = parsePrimary();
  while (is("[") || is(".")) {
    Expr expr;
    expr.left = base;
    const uint32_t begin = ast_[base].span.begin;
    if (accept("[")) {
      expr.kind = ExprKind::Index;
      expr.right = parseExpression();
      expect("]", "after the index");
    } else {
      next();
      expr.kind = ExprKind::Member;
      if (peek().kind != TokenKind::Identifier) fail(fmt::format("expected a member name after '.', found '{}'", peek().text));
      expr.name_span = peek().span;
      expr.name = next().text;
    }
    expr.span = since(begin);
    base = add(expr);
  }
  return base;
}

ExprId Parser::parsePrimary() {
  const Token& token = peek();
  if (token.kind == TokenKind::Literal) {
    next();
    Expr expr;
    expr.kind = ExprKind::Literal;
    expr.span = token.span;
    expr.name = token.text;
    expr.literal = token.literal;
    return add(expr);
  }
  if (accept("(")) {
    const ExprId inner = parseExpression();
    expect(")", "after the expression");
    // The parentheses belong to the span, so that messages show the whole operand.
    ast_.expressions[inner.index()].span = since(token.span.begin);
    return inner;
  }
  if (token.kind == TokenKind::Identifier) return parseIdentifier();
  fail(fmt::format("expected an expression, found '{}'", token.text));
}

Expr Parser::parseTemplatedName() {
  const Token& token = next();
  Expr expr;
  expr.kind = ExprKind::Identifier;
  expr.name = token.text;
  expr.name_span = token.span;
  if (peek().kind == TokenKind::TemplateStart) {
    expr.has_templates = true;
    expr.templates = parseTemplates();
  }
  expr.span = since(token.span.begin);
  return expr;
}

ExprId Parser::parseIdentifier() {
  Expr expr = parseTemplatedName();
  if (is("(")) {
    expr.kind = ExprKind::Call;
    expr.arguments = parseArguments();
    expr.span = since(expr.name_span.begin);
  }
  return add(expr);
}

ExprId Parser::parseType() {
  const Nested nested(*this);
  if (peek().kind != TokenKind::Identifier) fail(fmt::format("expected a type, found '{}'", peek().text));
  Expr expr = parseTemplatedName();
  return add(expr);
}

ExprList Parser::parseTemplates() {
  const Nested nested(*this);
  next();
  Pending<ExprId> templates(ast_, pending_expressions_);
  while (peek().kind != TokenKind::TemplateEnd) {
    templates.push(parseExpression());
    if (!accept(",")) break;
  }
  if (peek().kind != TokenKind::TemplateEnd) fail(fmt::format("expected '>' after the template list, found '{}'", peek().text));
  next();
  if (templates.empty()) failAt(previousSpan(), "template list is empty");
  return templates.keep();
}

ExprList Parser::parseArguments() {
  const Nested nested(*this);
  expect("(", "before the arguments");
  Pending<ExprId> arguments(ast_, pending_expressions_);
  while (!is(")")) {
    arguments.push(parseExpression());
    if (!accept(",")) break;
  }
  expect(")", "after the arguments");
  return arguments.keep();
}

}  // namespace lockstep::wgsl
