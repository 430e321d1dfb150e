// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/syntax/parser.h"

namespace lockstep::wgsl {
namespace {

struct CompoundWord {
  Word word;
  BinaryOp op;
};

constexpr std::array kCompoundWords = std::to_array<CompoundWord>({
    {"+=", BinaryOp::Add},
    {"-=", BinaryOp::Sub},
    {"*=", BinaryOp::Mul},
    {"/=", BinaryOp::Div},
    {"%=", BinaryOp::Rem},
    {"&=", BinaryOp::And},
    {"|=", BinaryOp::Or},
    {"^=", BinaryOp::Xor},
    {"<<=", BinaryOp::Shl},
    {">>=", BinaryOp::Shr},
});

}  // namespace

StmtId Parser::add(const Stmt& stmt) {
  ast_.statements.push_back(stmt);
  return StmtId(ast_.statements.size() - 1);
}

void Parser::declareLocal(Stmt& stmt, VariableDecl variable) {
  stmt.kind = StmtKind::Declare;
  stmt.local = static_cast<uint32_t>(ast_.locals.size());
  ast_.locals.push_back(std::move(variable));
}

/// Skips to the end of the statement: past the next ';' of this level, or to a '}' that closes this level.
void Parser::recoverStatement() {
  int depth = 0;
  while (peek().kind != TokenKind::End) {
    if (is("{")) ++depth;
    if (is("}")) {
      if (depth == 0) return;
      --depth;
      next();
      if (depth == 0) return;
      continue;
    }
    if (depth == 0 && accept(";")) return;
    // A missing brace must not swallow the next function.
    if (depth == 0 && (is("fn") || is("struct"))) return;
    next();
  }
}

StmtId Parser::parseBlock() {
  const Nested nested(*this);
  Stmt block;
  const std::vector<Attribute> attributes = parseAttributes();
  const uint32_t begin = expect("{", "to open the block").begin;
  block.statements = parseStatements(false, nullptr);
  expect("}", "to close the block");
  block.span = since(begin);
  bindFilters(attributes, begin);
  return add(block);
}

StmtList Parser::parseStatements(bool in_loop_body, StmtId* continuing) {
  Pending<StmtId> statements(ast_, pending_statements_);
  while (!is("}") && peek().kind != TokenKind::End) {
    const size_t before = at_;
    const uint32_t depth = depth_;
    try {
      if (is("continuing")) {
        if (!in_loop_body) fail("'continuing' is only allowed at the end of a loop body");
        *continuing = parseContinuing();
        if (!is("}")) fail("'continuing' must be the last statement of a loop body");
      } else if (const StmtId statement = parseStatement(); statement.valid()) {
        statements.push(statement);
      }
    } catch (const SyntaxAbort&) {
      whole_body_ = false;
      depth_ = depth;
      recoverStatement();
      if (is("fn") || is("struct")) throw;
      if (at_ == before) next();
    }
  }
  return statements.keep();
}

/// Invalid if the next token starts no statement with a body.
StmtId Parser::parseCompound() {
  if (is("{")) return parseBlock();
  if (is("if")) return parseIf();
  if (is("switch")) return parseSwitch();
  if (is("loop")) return parseLoop();
  if (is("for")) return parseFor();
  if (is("while")) return parseWhile();
  return {};
}

/// Invalid for an empty statement.
StmtId Parser::parseStatement() {
  if (accept(";")) return {};
  std::vector<Attribute> attributes = parseAttributes();
  const Token& token = peek();
  if (const StmtId compound = parseCompound(); compound.valid()) {
    bindFilters(attributes, token.span.begin);
    return compound;
  }
  const bool declares = is("const") || is("let") || is("var");
  if (!attributes.empty() && !declares) failAt(attributes.front().span, "attributes are not allowed on this statement");
  Stmt stmt;
  StmtId parsed;
  if (declares) {
    declareLocal(stmt, parseVariable(std::move(attributes)));
  } else if (is("override")) {
    fail("'override' is only allowed at module scope");
  } else if (accept("break")) {
    stmt.kind = StmtKind::Break;
    if (is("if")) fail("'break if' is only allowed at the end of a continuing block");
  } else if (accept("continue")) {
    stmt.kind = StmtKind::Continue;
  } else if (accept("return")) {
    stmt.kind = StmtKind::Return;
    if (!is(";")) stmt.value = parseExpression();
  } else if (accept("const_assert")) {
    stmt.kind = StmtKind::ConstAssert;
    stmt.condition = parseExpression();
  } else if (accept("discard")) {
    stmt.kind = StmtKind::Discard;
  } else {
    parsed = parseSimple();
  }
  if (!parsed.valid()) {
    stmt.span = since(token.span.begin);
    parsed = add(stmt);
  }
  expectSeparator(";", "after the statement");
  return parsed;
}

StmtId Parser::parseSimple() {
  const Token& token = peek();
  Stmt stmt;
  if (accept("_")) {
    expect("=", "after '_'");
    stmt.kind = StmtKind::Phony;
    stmt.value = parseExpression();
    stmt.span = since(token.span.begin);
    return add(stmt);
  }
  const bool starts_expression = token.kind == TokenKind::Identifier || is("*") || is("&") || is("(");
  if (!starts_expression) fail(fmt::format("expected a statement, found '{}'", token.text));
  const ExprId left = parseUnary();
  const auto* compound = std::find_if(kCompoundWords.begin(), kCompoundWords.end(), [&](const CompoundWord& c) { return is(c.word); });
  if (compound != kCompoundWords.end()) {
    next();
    stmt.kind = StmtKind::CompoundAssign;
    stmt.op = compound->op;
    stmt.target = left;
    stmt.value = parseExpression();
  } else if (accept("=")) {
    stmt.kind = StmtKind::Assign;
    stmt.target = left;
    stmt.value = parseExpression();
  } else if (accept("++")) {
    stmt.kind = StmtKind::Increment;
    stmt.target = left;
  } else if (accept("--")) {
    stmt.kind = StmtKind::Decrement;
    stmt.target = left;
  } else if (ast_[left].kind == ExprKind::Call) {
    stmt.kind = StmtKind::Call;
    stmt.value = left;
  } else {
    fail(fmt::format("expected '=' after the expression, found '{}'", peek().text));
  }
  stmt.span = since(token.span.begin);
  return add(stmt);
}

StmtId Parser::parseIf() {
  const Nested nested(*this);
  Stmt stmt;
  stmt.kind = StmtKind::If;
  const uint32_t begin = next().span.begin;
  stmt.condition = parseExpression();
  stmt.body = parseBlock();
  if (accept("else")) stmt.otherwise = is("if") ? parseIf() : parseBlock();
  stmt.span = since(begin);
  return add(stmt);
}

StmtId Parser::parseSwitch() {
  const Nested nested(*this);
  Stmt stmt;
  stmt.kind = StmtKind::Switch;
  const uint32_t begin = next().span.begin;
  stmt.condition = parseExpression();
  const std::vector<Attribute> attributes = parseAttributes();
  const uint32_t body_begin = expect("{", "after the switch selector").begin;
  Pending<CaseClause> cases(ast_, pending_cases_);
  while (!is("}")) {
    CaseClause clause;
    const uint32_t clause_begin = peek().span.begin;
    if (accept("default")) {
      clause.is_default = true;
    } else if (accept("case")) {
      Pending<ExprId> selectors(ast_, pending_expressions_);
      do {
        if (is(":") || is("{") || is("@")) break;
        if (accept("default")) {
          if (clause.is_default) failAt(previousSpan(), "'default' appears twice in one case");
          clause.is_default = true;
        } else {
          selectors.push(parseExpression());
        }
      } while (accept(","));
      clause.selectors = selectors.keep();
      if (clause.selectors.empty() && !clause.is_default) fail("case has no selector");
    } else {
      fail(fmt::format("expected 'case' or 'default', found '{}'", peek().text));
    }
    clause.span = since(clause_begin);
    accept(":");
    clause.body = parseBlock();
    cases.push(clause);
  }
  stmt.cases = cases.keep();
  expect("}", "to close the switch");
  bindFilters(attributes, body_begin);
  stmt.span = since(begin);
  return add(stmt);
}

StmtId Parser::parseLoop() {
  const Nested nested(*this);
  Stmt stmt, body;
  stmt.kind = StmtKind::Loop;
  const uint32_t begin = next().span.begin;
  const std::vector<Attribute> attributes = parseAttributes();
  const uint32_t body_begin = expect("{", "to open the loop body").begin;
  body.statements = parseStatements(true, &stmt.continuing);
  expect("}", "to close the loop body");
  bindFilters(attributes, body_begin);
  body.span = since(body_begin);
  stmt.body = add(body);
  stmt.span = since(begin);
  return add(stmt);
}

StmtId Parser::parseContinuing() {
  const Nested nested(*this);
  next();
  Stmt block;
  const std::vector<Attribute> attributes = parseAttributes();
  const uint32_t begin = expect("{", "after 'continuing'").begin;
  Pending<StmtId> statements(ast_, pending_statements_);
  while (!is("}") && peek().kind != TokenKind::End) {
    const Token& token = peek();
    if (is("break") && tokens_[at_ + 1].word == "if") {
      next();
      next();
      Stmt stmt;
      stmt.kind = StmtKind::BreakIf;
      stmt.condition = parseExpression();
      stmt.span = since(token.span.begin);
      expectSeparator(";", "after the 'break if' condition");
      statements.push(add(stmt));
      if (!is("}")) fail("'break if' must be the last statement of a continuing block");
    } else if (const StmtId statement = parseStatement(); statement.valid()) {
      statements.push(statement);
    }
  }
  expect("}", "to close the continuing block");
  block.statements = statements.keep();
  bindFilters(attributes, begin);
  block.span = since(begin);
  return add(block);
}

StmtId Parser::parseFor() {
  const Nested nested(*this);
  Stmt stmt;
  stmt.kind = StmtKind::For;
  const uint32_t begin = next().span.begin;
  expect("(", "after 'for'");
  if (!is(";")) {
    if (is("const") || is("let") || is("var")) {
      Stmt declaration;
      const uint32_t declaration_begin = peek().span.begin;
      declareLocal(declaration, parseVariable({}));
      declaration.span = since(declaration_begin);
      stmt.initializer = add(declaration);
    } else {
      stmt.initializer = parseSimple();
    }
  }
  expect(";", "after the loop initializer");
  if (!is(";")) stmt.condition = parseExpression();
  expect(";", "after the loop condition");
  if (!is(")")) stmt.update = parseSimple();
  expect(")", "after the loop header");
  stmt.body = parseBlock();
  stmt.span = since(begin);
  return add(stmt);
}

StmtId Parser::parseWhile() {
  const Nested nested(*this);
  Stmt stmt;
  stmt.kind = StmtKind::While;
  const uint32_t begin = next().span.begin;
  stmt.condition = parseExpression();
  stmt.body = parseBlock();
  stmt.span = since(begin);
  return add(stmt);
}

}  // namespace lockstep::wgsl
