// SPDX-License-Identifier: Apache-2.0
// The precedence is Jinja's: or, and, not, comparisons, + -, ~, * / // %, **, unary, then filters and tests, which bind closest.
#include "frontend/text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

#include "frontend/text/jinja/builtins.h"

namespace lockstep::text::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case Lexeme::End:
      return "the end of the template";
    case Lexeme::Text:
      return "text";
    case Lexeme::BlockBegin:
      return "'{%'";
    case Lexeme::BlockEnd:
      return "'%}'";
    case Lexeme::OutputBegin:
      return "'{{'";
    case Lexeme::OutputEnd:
      return "'}}'";
    case Lexeme::Name:
    case Lexeme::String:
    case Lexeme::Integer:
    case Lexeme::Real:
    case Lexeme::Sign:
      break;
  }
  return "'" + token.text + "'";
}

}  // namespace

ExpressionParser::Deeper::Deeper(ExpressionParser& parser) : parser_(parser) {
  constexpr size_t kMostDepth = 100;
  if (parser_.depth_ >= kMostDepth) parser_.failHere(fmt::format("more than {} parts in each other", kMostDepth));
  ++parser_.depth_;
}

void ExpressionParser::failHere(const std::string& message) const {
  throw TemplateFailure(TemplateFailure::Kind::Syntax, message, peek().line);
}

bool ExpressionParser::acceptSign(std::string_view text) {
  if (!isSign(text)) return false;
  next();
  return true;
}

bool ExpressionParser::acceptName(std::string_view text) {
  if (!isName(text)) return false;
  next();
  return true;
}

void ExpressionParser::expectSign(std::string_view text) {
  if (!acceptSign(text)) failHere(fmt::format("wanted '{}', not {}", text, describe(peek())));
}

std::string ExpressionParser::expectName(std::string_view what) {
  if (peek().kind != Lexeme::Name) failHere(fmt::format("wanted {}, not {}", what, describe(peek())));
  return next().text;
}

ExpressionPointer ExpressionParser::make(Expression::Kind kind, std::string name) const {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->line = peek().line;
  expression->name = std::move(name);
  return expression;
}

ExpressionPointer ExpressionParser::parseExpression(bool with_condition) {
  const Deeper deeper(*this);
  ExpressionPointer result = parseOr();
  size_t conditions = 0;
  while (with_condition && isName("if")) {
    constexpr size_t kMostConditions = 50;
    if (++conditions > kMostConditions) failHere("too many conditions in one expression");
    ExpressionPointer conditional = make(Expression::Kind::Conditional);
    next();
    conditional->parts.push_back(parseOr());
    conditional->parts.push_back(std::move(result));
    conditional->parts.push_back(acceptName("else") ? parseExpression() : nullptr);
    result = std::move(conditional);
  }
  return result;
}

ExpressionPointer ExpressionParser::parseTupleOrExpression(bool with_condition) {
  ExpressionPointer first = parseExpression(with_condition);
  if (!isSign(",")) return first;
  ExpressionPointer tuple = make(Expression::Kind::Tuple);
  tuple->parts.push_back(std::move(first));
  while (acceptSign(",")) {
    if (peek().kind == Lexeme::BlockEnd || peek().kind == Lexeme::OutputEnd || isSign(")")) break;
    tuple->parts.push_back(parseExpression(with_condition));
  }
  return tuple;
}

namespace {

constexpr size_t kLongestChain = 200;  // a chain of operators is as deep as it is long

}  // namespace

ExpressionPointer ExpressionParser::parseOr() {
  ExpressionPointer left = parseAnd();
  for (size_t count = 0; isName("or"); ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    ExpressionPointer both = make(Expression::Kind::Or);
    next();
    both->parts.push_back(std::move(left));
    both->parts.push_back(parseAnd());
    left = std::move(both);
  }
  return left;
}

ExpressionPointer ExpressionParser::parseAnd() {
  ExpressionPointer left = parseNot();
  for (size_t count = 0; isName("and"); ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    ExpressionPointer both = make(Expression::Kind::And);
    next();
    both->parts.push_back(std::move(left));
    both->parts.push_back(parseNot());
    left = std::move(both);
  }
  return left;
}

ExpressionPointer ExpressionParser::parseNot() {
  if (!isName("not")) return parseCompare();
  const Deeper deeper(*this);
  ExpressionPointer negated = make(Expression::Kind::Not);
  next();
  negated->parts.push_back(parseNot());
  return negated;
}

ExpressionPointer ExpressionParser::parseCompare() {
  ExpressionPointer first = parseSum();
  ExpressionPointer chain = make(Expression::Kind::Compare);
  while (true) {
    std::string sign;
    for (const char* known : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (sign.empty() && isSign(known)) sign = known;
    }
    if (sign.empty() && isName("in")) sign = "in";
    if (sign.empty() && isName("not") && isName("in", 1)) sign = "not in";
    if (sign.empty()) break;
    next();
    if (sign == "not in") next();
    if (chain->parts.empty()) chain->parts.push_back(std::move(first));
    chain->names.push_back(sign);
    chain->parts.push_back(parseSum());
  }
  return chain->parts.empty() ? std::move(first) : std::move(chain);
}

ExpressionPointer ExpressionParser::parseSum() {
  ExpressionPointer left = parseConcat();
  for (size_t count = 0; isSign("+") || isSign("-"); ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    ExpressionPointer sum = make(Expression::Kind::Arithmetic, peek().text);
    next();
    sum->parts.push_back(std::move(left));
    sum->parts.push_back(parseConcat());
    left = std::move(sum);
  }
  return left;
}

ExpressionPointer ExpressionParser::parseConcat() {
  ExpressionPointer first = parseProduct();
  if (!isSign("~")) return first;
  ExpressionPointer texts = make(Expression::Kind::Concat);
  texts->parts.push_back(std::move(first));
  while (acceptSign("~")) texts->parts.push_back(parseProduct());
  return texts;
}

ExpressionPointer ExpressionParser::parseProduct() {
  ExpressionPointer left = parsePower();
  for (size_t count = 0; isSign("*") || isSign("/") || isSign("//") || isSign("%"); ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    ExpressionPointer product = make(Expression::Kind::Arithmetic, peek().text);
    next();
    product->parts.push_back(std::move(left));
    product->parts.push_back(parsePower());
    left = std::move(product);
  }
  return left;
}

ExpressionPointer ExpressionParser::parsePower() {
  ExpressionPointer left = parseUnary(true);
  for (size_t count = 0; isSign("**"); ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    ExpressionPointer power = make(Expression::Kind::Arithmetic, "**");
    next();
    power->parts.push_back(std::move(left));
    power->parts.push_back(parseUnary(true));
    left = std::move(power);
  }
  return left;
}

ExpressionPointer ExpressionParser::parseUnary(bool with_filters) {
  const Deeper deeper(*this);
  ExpressionPointer result;
  if (isSign("-") || isSign("+")) {
    result = make(isSign("-") ? Expression::Kind::Negative : Expression::Kind::Positive);
    next();
    result->parts.push_back(parseUnary(false));
  } else {
    result = parsePostfix(parsePrimary());
  }
  return with_filters ? parseFiltersAndTests(std::move(result)) : std::move(result);
}

ExpressionPointer ExpressionParser::parsePrimary() {
  const Token token = peek();
  ExpressionPointer result = make(Expression::Kind::Constant);
  switch (token.kind) {
    case Lexeme::Name:
      next();
      if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
        result->value = Value(token.text == "true" || token.text == "True");
      } else if (token.text != "none" && token.text != "None") {
        result->kind = Expression::Kind::Name;
        result->name = token.text;
      }
      return result;
    case Lexeme::String: {
      std::string text;
      while (peek().kind == Lexeme::String) text += next().text;
      result->value = Value(std::move(text));
      return result;
    }
    case Lexeme::Integer: {
      next();
      errno = 0;
      const auto number = static_cast<int64_t>(std::strtoll(token.text.c_str(), nullptr, 10));
      if (errno != 0) failHere(fmt::format("the number {} is beyond 64 bits", token.text));
      result->value = Value(number);
      return result;
    }
    case Lexeme::Real:
      next();
      result->value = Value(std::strtod(token.text.c_str(), nullptr));
      return result;
    case Lexeme::Sign:
      if (acceptSign("[")) {
        result->kind = Expression::Kind::List;
        parseItems(*result, "]");
        return result;
      }
      if (isSign("{")) return parseDict();
      if (acceptSign("(")) {
        if (acceptSign(")")) {
          result->kind = Expression::Kind::Tuple;
          return result;
        }
        result = parseTupleOrExpression();
        expectSign(")");
        return result;
      }
      break;
    case Lexeme::Text:
    case Lexeme::BlockBegin:
    case Lexeme::BlockEnd:
    case Lexeme::OutputBegin:
    case Lexeme::OutputEnd:
    case Lexeme::End:
      break;
  }
  failHere(fmt::format("wanted an expression, not {}", describe(token)));
}

void ExpressionParser::parseItems(Expression& list, std::string_view end) {
  while (!acceptSign(end)) {
    list.parts.push_back(parseExpression());
    if (!isSign(end)) expectSign(",");
  }
}

ExpressionPointer ExpressionParser::parseDict() {
  ExpressionPointer dict = make(Expression::Kind::Dict);
  expectSign("{");
  while (!acceptSign("}")) {
    dict->parts.push_back(parseExpression());
    expectSign(":");
    dict->parts.push_back(parseExpression());
    if (!isSign("}")) expectSign(",");
  }
  return dict;
}

void ExpressionParser::parseArguments(Expression& call) {
  expectSign("(");
  while (!acceptSign(")")) {
    if (isSign("*") || isSign("**")) failHere("arguments with '*' are not supported");
    std::string name;
    if (peek().kind == Lexeme::Name && isSign("=", 1)) {
      name = next().text;
      next();
    } else if (!call.names.empty() && !call.names.back().empty()) {
      failHere("an argument without a name follows one with a name");
    }
    call.names.push_back(name);
    call.parts.push_back(parseExpression());
    if (!isSign(")")) expectSign(",");
  }
}

ExpressionPointer ExpressionParser::parsePostfix(ExpressionPointer subject) {
  for (size_t count = 0;; ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    if (isSign(".")) {
      next();
      ExpressionPointer attribute = make(Expression::Kind::Attribute, peek().text);
      if (peek().kind == Lexeme::Integer) {
        attribute->kind = Expression::Kind::Item;
        attribute->parts.push_back(std::move(subject));
        attribute->parts.push_back(parsePrimary());
      } else {
        expectName("a name after '.'");
        attribute->parts.push_back(std::move(subject));
      }
      subject = std::move(attribute);
    } else if (isSign("[")) {
      subject = parseSubscript(std::move(subject));
    } else if (isSign("(")) {
      ExpressionPointer call = make(Expression::Kind::Call);
      call->parts.push_back(std::move(subject));
      parseArguments(*call);
      subject = std::move(call);
    } else {
      return subject;
    }
  }
}

ExpressionPointer ExpressionParser::parseSubscript(ExpressionPointer subject) {
  ExpressionPointer result = make(Expression::Kind::Item);
  expectSign("[");
  result->parts.push_back(std::move(subject));
  ExpressionPointer first = isSign(":") ? nullptr : parseTupleOrExpression();
  if (isSign(":")) {
    result->kind = Expression::Kind::Slice;
    result->parts.push_back(std::move(first));
    for (int i = 0; i < 2; ++i) {
      const bool there = acceptSign(":") && !isSign("]") && !isSign(":");
      result->parts.push_back(there ? parseExpression() : nullptr);
    }
  } else {
    result->parts.push_back(std::move(first));
  }
  expectSign("]");
  return result;
}

ExpressionPointer ExpressionParser::parseFiltersAndTests(ExpressionPointer subject) {
  for (size_t count = 0;; ++count) {
    if (count > kLongestChain) failHere("too many operators in one expression");
    if (acceptSign("|")) {
      subject = parseFilters(std::move(subject));
    } else if (acceptName("is")) {
      subject = parseTest(std::move(subject));
    } else if (isSign("(")) {
      subject = parsePostfix(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPointer ExpressionParser::parseFilters(ExpressionPointer subject) {
  ExpressionPointer filter = make(Expression::Kind::Filter);
  filter->name = expectName("the name of a filter");
  if (!isFilter(filter->name)) failHere(fmt::format("there is no filter '{}'; there are {}", filter->name, filterNames()));
  filter->parts.push_back(std::move(subject));
  if (isSign("(")) parseArguments(*filter);
  return filter;
}

ExpressionPointer ExpressionParser::parseTest(ExpressionPointer subject) {
  ExpressionPointer test = make(Expression::Kind::Test);
  test->negated = acceptName("not");
  test->name = expectName("the name of a test");
  if (!isTest(test->name)) failHere(fmt::format("there is no test '{}'; there are {}", test->name, testNames()));
  test->parts.push_back(std::move(subject));
  if (isSign("(")) {
    parseArguments(*test);
    return test;
  }
  const bool is_value =
      peek().kind == Lexeme::String || peek().kind == Lexeme::Integer || peek().kind == Lexeme::Real || isSign("[") || isSign("{");
  const bool is_name = peek().kind == Lexeme::Name && !isName("else") && !isName("or") && !isName("and") && !isName("if") && !isName("in");
  if (is_name && isName("is")) failHere("tests do not chain");
  if ((is_value || is_name) && !isName("not")) {
    test->names.emplace_back();
    test->parts.push_back(parsePostfix(parsePrimary()));
  }
  return test;
}

}  // namespace lockstep::text::jinja
