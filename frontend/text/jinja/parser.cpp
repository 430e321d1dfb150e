// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/text/jinja/expression_parser.h"

namespace lockstep::text::jinja {
namespace {

class TemplateParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Statements run() {
    Statements all = parseUntil({});
    if (peek().kind != Lexeme::End) failHere(fmt::format("'{}' closes nothing", peek(1).text));
    return all;
  }

 private:
  /// Up to a block that begins with one of `ends`, which stays.
  Statements parseUntil(const std::vector<std::string>& ends) {
    const Deeper deeper(*this);
    Statements statements;
    while (true) {
      const Token& token = peek();
      if (token.kind == Lexeme::End) {
        if (!ends.empty()) failHere(fmt::format("the template ends before '{}'", fmt::join(ends, "' or '")));
        return statements;
      }
      if (token.kind == Lexeme::Text) {
        auto text = makeStatement(Statement::Kind::Text);
        text->text = next().text;
        statements.push_back(std::move(text));
      } else if (token.kind == Lexeme::OutputBegin) {
        next();
        auto output = makeStatement(Statement::Kind::Output);
        output->expressions.push_back(parseTupleOrExpression());
        expectEnd(Lexeme::OutputEnd);
        statements.push_back(std::move(output));
      } else {
        const std::string& name = peek(1).text;
        if (std::ranges::find(ends, name) != ends.end() || name.starts_with("end") || name == "else" || name == "elif") {
          if (!ends.empty() && std::ranges::find(ends, name) == ends.end()) {
            failHere(fmt::format("'{}' where '{}' is wanted", name, fmt::join(ends, "' or '")));
          }
          return statements;
        }
        next();
        statements.push_back(parseBlock());
      }
    }
  }

  std::unique_ptr<Statement> makeStatement(Statement::Kind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = peek().line;
    return statement;
  }

  void expectEnd(Lexeme kind) {
    if (peek().kind != kind) failHere(fmt::format("wanted the end of the tag, not '{}'", peek().text));
    next();
  }

  /// "{% end %}"
  void expectClosing(std::string_view name) {
    next();
    if (!acceptName(name)) failHere(fmt::format("wanted '{}'", name));
    if (name == "endmacro" && peek().kind == Lexeme::Name) next();
    expectEnd(Lexeme::BlockEnd);
  }

  void parseBody(Statement& statement, std::string_view end) {
    expectEnd(Lexeme::BlockEnd);
    statement.bodies.push_back(parseUntil({std::string(end)}));
    expectClosing(end);
  }

  std::unique_ptr<Statement> parseBlock() {
    const std::string name = expectName("the name of a tag");
    if (name == "if") return parseIf();
    if (name == "for") return parseFor();
    if (name == "set") return parseSet();
    if (name == "macro") return parseMacro();
    if (name == "call") return parseCall();
    if (name == "filter") return parseFilterBlock();
    if (name == "with") return parseWith();
    if (name == "generation") {
      auto body = makeStatement(Statement::Kind::Body);
      parseBody(*body, "endgeneration");
      return body;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) failHere(fmt::format("'{}' outside of a loop", name));
      auto jump = makeStatement(name == "break" ? Statement::Kind::Break : Statement::Kind::Continue);
      expectEnd(Lexeme::BlockEnd);
      return jump;
    }
    failHere(fmt::format(
        "the tag '{}' is not supported; there are if, for, set, macro, call, filter, with, generation, break, continue, raw", name));
  }

  std::unique_ptr<Statement> parseIf() {
    auto statement = makeStatement(Statement::Kind::If);
    while (true) {
      statement->expressions.push_back(parseTupleOrExpression());
      expectEnd(Lexeme::BlockEnd);
      statement->bodies.push_back(parseUntil({"elif", "else", "endif"}));
      next();
      if (acceptName("elif")) continue;
      if (acceptName("else")) {
        expectEnd(Lexeme::BlockEnd);
        statement->bodies.push_back(parseUntil({"endif"}));
        next();
      }
      if (!acceptName("endif")) failHere("wanted 'endif'");
      expectEnd(Lexeme::BlockEnd);
      return statement;
    }
  }

  /// "a", "a.b" or "a, b"
  void parseTargets(Statement& statement) {
    const bool parenthesis = acceptSign("(");
    do {
      if (!statement.targets.empty() && peek().kind != Lexeme::Name) break;
      std::string target = expectName("the name of a variable");
      for (const char* reserved : {"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"}) {
        if (target == reserved) failHere(fmt::format("'{}' is not the name of a variable", target));
      }
      if (acceptSign(".")) target += "." + expectName("the name of a member");
      statement.targets.push_back(std::move(target));
      statement.unpacks = statement.unpacks || isSign(",");
    } while (acceptSign(","));
    if (parenthesis) expectSign(")");
  }

  std::unique_ptr<Statement> parseFor() {
    auto statement = makeStatement(Statement::Kind::For);
    parseTargets(*statement);
    for (const std::string& target : statement->targets) {
      if (target.find('.') != std::string::npos) failHere("a for cannot set a member");
    }
    if (!acceptName("in")) failHere("wanted 'in'");
    statement->expressions.push_back(parseTupleOrExpression(false));
    statement->expressions.push_back(acceptName("if") ? parseExpression() : nullptr);
    if (isName("recursive")) failHere("'recursive' is not supported");
    expectEnd(Lexeme::BlockEnd);
    ++loops_;
    statement->bodies.push_back(parseUntil({"else", "endfor"}));
    --loops_;
    if (isName("else", 1)) {
      next();
      next();
      expectEnd(Lexeme::BlockEnd);
      statement->bodies.push_back(parseUntil({"endfor"}));
    }
    expectClosing("endfor");
    return statement;
  }

  std::unique_ptr<Statement> parseSet() {
    auto statement = makeStatement(Statement::Kind::Set);
    parseTargets(*statement);
    if (acceptSign("=")) {
      statement->expressions.push_back(parseTupleOrExpression());
      expectEnd(Lexeme::BlockEnd);
      return statement;
    }
    if (statement->unpacks) failHere("wanted '='");
    statement->kind = Statement::Kind::SetBlock;
    ExpressionPointer filters;
    while (acceptSign("|")) filters = parseFilters(std::move(filters));
    statement->expressions.push_back(std::move(filters));
    parseBody(*statement, "endset");
    return statement;
  }

  void parseParameters(Statement& statement) {
    expectSign("(");
    while (!acceptSign(")")) {
      Parameter parameter{.name = expectName("the name of a parameter"), .otherwise = nullptr};
      if (acceptSign("=")) parameter.otherwise = parseExpression();
      statement.parameters.push_back(std::move(parameter));
      if (!isSign(")")) expectSign(",");
    }
  }

  std::unique_ptr<Statement> parseMacro() {
    auto statement = makeStatement(Statement::Kind::Macro);
    statement->text = expectName("the name of a macro");
    parseParameters(*statement);
    const size_t loops = std::exchange(loops_, 0);
    parseBody(*statement, "endmacro");
    loops_ = loops;
    return statement;
  }

  std::unique_ptr<Statement> parseCall() {
    auto statement = makeStatement(Statement::Kind::Call);
    if (isSign("(")) parseParameters(*statement);
    statement->expressions.push_back(parseExpression());
    if (statement->expressions[0]->kind != Expression::Kind::Call) failHere("wanted a call of a macro");
    const size_t loops = std::exchange(loops_, 0);
    parseBody(*statement, "endcall");
    loops_ = loops;
    return statement;
  }

  std::unique_ptr<Statement> parseFilterBlock() {
    auto statement = makeStatement(Statement::Kind::Filter);
    ExpressionPointer filters = parseFilters(nullptr);
    while (acceptSign("|")) filters = parseFilters(std::move(filters));
    statement->expressions.push_back(std::move(filters));
    parseBody(*statement, "endfilter");
    return statement;
  }

  std::unique_ptr<Statement> parseWith() {
    auto statement = makeStatement(Statement::Kind::With);
    while (peek().kind == Lexeme::Name) {
      statement->targets.push_back(next().text);
      expectSign("=");
      statement->expressions.push_back(parseExpression());
      if (!acceptSign(",")) break;
    }
    parseBody(*statement, "endwith");
    return statement;
  }

  size_t loops_ = 0;
};

}  // namespace

Statements parseTemplate(std::string_view source) { return TemplateParser(tokenize(source)).run(); }

}  // namespace lockstep::text::jinja
