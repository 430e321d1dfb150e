// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "frontend/wgsl/syntax/parser.h"

namespace lockstep::wgsl {

Ast parseModule(const Source& source, Reporter& reporter) {
  std::vector<Literal> literals;
  std::vector<Token> tokens = tokenize(source, reporter, literals);
  return Parser(std::move(tokens), std::move(literals), reporter).run();
}

Parser::Parser(std::vector<Token> tokens, std::vector<Literal> literals, Reporter& reporter)
    : tokens_(std::move(tokens)), reporter_(reporter) {
  ast_.literals = std::move(literals);
  // As many as texts usually have.
  ast_.expressions.reserve(tokens_.size() / 2);
  ast_.statements.reserve(tokens_.size() / 8);
}

void Parser::failExpected(Word word, std::string_view after) {
  fail(fmt::format("expected '{}' {}, found '{}'", word.text(), after, peek().text));
}

/// At the end of a line a separator that is not there is reported where it should be, and parsing goes on as if it were.
void Parser::expectSeparator(Word word, std::string_view after) {
  if (accept(word)) return;
  const uint32_t end = previousSpan().end;
  const std::string_view between = reporter_.source().text().substr(end, peek().span.begin - end);
  if (between.find('\n') == std::string_view::npos) failExpected(word, after);
  reporter_.error(kSyntax, {end, end + 1}, fmt::format("expected '{}' {}", word.text(), after));
}

void Parser::fail(std::string message, std::string remedy) { failAt(peek().span, std::move(message), std::move(remedy)); }

void Parser::failAt(Span where, std::string message, std::string remedy) {
  reporter_.error(kSyntax, where, std::move(message), std::move(remedy));
  throw SyntaxAbort{};
}

void Parser::tooDeep() {
  reporter_.error(kLimit, peek().span, fmt::format("nesting is deeper than {} levels", kMaximumDepth));
  throw SyntaxAbort{};
}

std::string_view Parser::declaredName(std::string_view what, Span& span) {
  const Token& token = peek();
  if (token.kind != TokenKind::Identifier) fail(fmt::format("expected a name for the {}, found '{}'", what, token.text));
  if (isReservedWord(token.text)) fail(fmt::format("'{}' is a reserved word", token.text), "choose another name");
  if (token.text.starts_with("__")) fail(fmt::format("name '{}' starts with two underscores", token.text), "choose another name");
  span = token.span;
  return next().text;
}

Ast Parser::run() {
  try {
    parseDirectives();
  } catch (const SyntaxAbort&) {
    ast_.whole = false;
    depth_ = 0;
    recoverDeclaration();
  }
  checkDirectiveConflicts();
  while (peek().kind != TokenKind::End && !reporter_.full()) {
    const size_t before = at_;
    try {
      parseDeclaration();
    } catch (const SyntaxAbort&) {
      ast_.whole = false;
      depth_ = 0;
      recoverDeclaration();
      if (at_ == before) next();
    }
  }
  return std::move(ast_);
}

/// Skips to the next token that can only start a declaration.
void Parser::recoverDeclaration() {
  int depth = 0;
  while (peek().kind != TokenKind::End) {
    if (is("fn") || is("struct") || is("alias") || is("override")) return;
    if (depth == 0 && (is("var") || is("const") || is("@"))) return;
    if (is("{")) ++depth;
    if (is("}") && --depth <= 0) {
      next();
      return;
    }
    if (depth == 0 && accept(";")) return;
    next();
  }
}

void Parser::parseDirectives() {
  while (true) {
    if (accept("enable") || accept("requires")) {
      auto& list = tokens_[at_ - 1].word == "enable" ? ast_.enables : ast_.requirements;
      do {
        if (is(";") && !list.empty()) break;
        if (peek().kind != TokenKind::Identifier) fail(fmt::format("expected a feature name, found '{}'", peek().text));
        list.push_back({.span = peek().span, .name = peek().text});
        next();
      } while (accept(","));
      expectSeparator(";", "after the directive");
    } else if (is("diagnostic")) {
      const uint32_t begin = next().span.begin;
      ast_.filters[parseFilter(begin)].range = {0, UINT32_MAX};
      expectSeparator(";", "after the directive");
    } else {
      return;
    }
  }
}

void Parser::parseDeclaration() {
  if (accept(";")) return;
  if (is("enable") || is("requires") || is("diagnostic")) fail(fmt::format("'{}' must come before all declarations", peek().text));
  std::vector<Attribute> attributes = parseAttributes();
  const auto declare = [&](DeclarationKind kind, size_t size) { ast_.declarations.push_back({kind, static_cast<uint32_t>(size - 1)}); };
  const bool takes_attributes = is("fn") || is("var") || is("override");
  if (!attributes.empty() && !takes_attributes) failAt(attributes.front().span, "attributes are not allowed on this declaration");
  if (is("fn")) {
    parseFunction(std::move(attributes));
    declare(DeclarationKind::Function, ast_.functions.size());
  } else if (is("struct")) {
    parseStruct();
    declare(DeclarationKind::Struct, ast_.structs.size());
  } else if (is("const") || is("override") || is("var")) {
    VariableDecl variable = parseVariable(std::move(attributes));
    expectSeparator(";", "after the declaration");
    ast_.variables.push_back(std::move(variable));
    declare(DeclarationKind::Variable, ast_.variables.size());
  } else if (accept("alias")) {
    AliasDecl alias;
    alias.name = declaredName("alias", alias.name_span);
    expect("=", "after the alias name");
    alias.type = parseType();
    expectSeparator(";", "after the alias");
    ast_.aliases.push_back(alias);
    declare(DeclarationKind::Alias, ast_.aliases.size());
  } else if (accept("const_assert")) {
    ast_.const_asserts.push_back(parseExpression());
    expectSeparator(";", "after the assertion");
    declare(DeclarationKind::ConstAssert, ast_.const_asserts.size());
  } else if (is("let")) {
    fail("'let' is not allowed at module scope", "use 'const' or 'override'");
  } else {
    fail(fmt::format("expected a declaration, found '{}'", peek().text));
  }
}

std::vector<Attribute> Parser::parseAttributes() {
  std::vector<Attribute> attributes;
  while (is("@")) {
    Attribute attribute;
    const uint32_t begin = next().span.begin;
    const bool keyword = is("diagnostic") || is("const");
    if (peek().kind != TokenKind::Identifier && !keyword) fail(fmt::format("expected an attribute name, found '{}'", peek().text));
    attribute.name = next().text;
    if (attribute.name == "diagnostic") {
      attribute.filter = parseFilter(begin);
    } else if (is("(")) {
      attribute.has_parentheses = true;
      attribute.arguments = parseArguments();
    }
    attribute.span = since(begin);
    attributes.push_back(attribute);
  }
  return attributes;
}

VariableDecl Parser::parseVariable(std::vector<Attribute> attributes) {
  VariableDecl variable;
  const Token& keyword = next();
  variable.kind = keyword.word == "const"      ? VariableKind::Const
                  : keyword.word == "override" ? VariableKind::Override
                  : keyword.word == "let"      ? VariableKind::Let
                                               : VariableKind::Var;
  variable.attributes = std::move(attributes);
  if (peek().kind == TokenKind::TemplateStart) {
    if (variable.kind != VariableKind::Var) fail(fmt::format("'{}' takes no template list", keyword.text));
    variable.templates = parseTemplates();
  }
  variable.name = declaredName(keyword.text, variable.name_span);
  if (accept(":")) variable.type = parseType();
  if (accept("=")) variable.initializer = parseExpression();
  variable.span = since(keyword.span.begin);
  const bool needs_value = variable.kind == VariableKind::Const || variable.kind == VariableKind::Let;
  if (needs_value && !variable.initializer.valid()) fail(fmt::format("'{}' needs a value", keyword.text), "add '= value'");
  return variable;
}

ParameterDecl Parser::parseParameter(std::string_view what) {
  ParameterDecl parameter;
  parameter.attributes = parseAttributes();
  parameter.name = declaredName(what, parameter.name_span);
  if (!is(":")) failExpected(":", fmt::format("after the {} name", what));
  next();
  parameter.type = parseType();
  return parameter;
}

void Parser::parseStruct() {
  StructDecl structure;
  next();
  structure.name = declaredName("struct", structure.name_span);
  expect("{", "after the struct name");
  while (!is("}") && peek().kind != TokenKind::End) {
    try {
      structure.members.push_back(parseParameter("member"));
      if (!is("}")) expectSeparator(",", "after the member");
    } catch (const SyntaxAbort&) {
      recoverMember();
    }
  }
  expect("}", "after the members");
  ast_.structs.push_back(std::move(structure));
}

/// Skips to the next member, or to the end of the struct; out of it when something comes that no struct has.
void Parser::recoverMember() {
  ast_.whole = false;
  depth_ = 0;
  while (peek().kind != TokenKind::End && !is("}")) {
    if (accept(",")) return;
    if (is("fn") || is("struct") || is("{") || is(";") || is("var") || is("override") || is("alias")) throw SyntaxAbort{};
    next();
  }
}

void Parser::parseFunction(std::vector<Attribute> attributes) {
  FunctionDecl function;
  function.attributes = std::move(attributes);
  const uint32_t begin = next().span.begin;
  function.name = declaredName("function", function.name_span);
  expect("(", "after the function name");
  while (!is(")")) {
    function.parameters.push_back(parseParameter("parameter"));
    if (!accept(",")) break;
  }
  expect(")", "after the parameters");
  if (accept("->")) {
    function.return_attributes = parseAttributes();
    function.return_type = parseType();
  }
  function.span = since(begin);
  whole_body_ = true;
  function.body = parseBlock();
  function.whole = whole_body_;
  bindFilters(function.attributes, begin, false);
  ast_.functions.push_back(std::move(function));
}

}  // namespace lockstep::wgsl
