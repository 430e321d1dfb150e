// SPDX-License-Identifier: Apache-2.0
// Recursive-descent parser, internal to the reader. A syntax error throws SyntaxAbort after reporting; statement and declaration
// loops catch it and resume at the next one.
#pragma once

#include <string>
#include <vector>

#include "frontend/wgsl/syntax/ast.h"

namespace lockstep::wgsl {

/// Nesting beyond this is an error, so that no visitor runs out of stack. WGSL asks for at least 127 levels of braces;
/// an `if` with its block counts two.
inline constexpr uint32_t kMaximumDepth = 520;

class Parser {
 public:
  /// Literals are those of the tokens.
  Parser(std::vector<Token> tokens, std::vector<Literal> literals, Reporter& reporter);
  Ast run();

 private:
  struct SyntaxAbort {};

  /// Counts nesting while it lives.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaximumDepth) {
        --parser_.depth_;
        parser_.tooDeep();
      }
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  /// The elements of a list while it is parsed. Lists nest, so all stand on one stack.
  template <class T>
  class Pending {
   public:
    Pending(Ast& ast, std::vector<T>& stack) : ast_(ast), stack_(stack), begin_(stack.size()) {}
    ~Pending() { stack_.resize(begin_); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    void push(const T& element) { stack_.push_back(element); }
    [[nodiscard]] bool empty() const { return stack_.size() == begin_; }
    [[nodiscard]] std::span<const T> keep() const { return ast_.keep(std::span<const T>(stack_).subspan(begin_)); }

   private:
    Ast& ast_;
    std::vector<T>& stack_;
    size_t begin_;
  };

  // Tokens.
  [[nodiscard]] const Token& peek() const { return tokens_[at_]; }
  const Token& next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_.back(); }
  [[nodiscard]] bool is(Word word) const { return peek().word == word; }
  bool accept(Word word) {
    if (!is(word)) return false;
    next();
    return true;
  }
  /// `after` says what came before, for the message ("after the condition").
  Span expect(Word word, std::string_view after) {
    if (!is(word)) failExpected(word, after);
    return next().span;
  }
  void expectSeparator(Word word, std::string_view after);
  [[noreturn]] void failExpected(Word word, std::string_view after);
  std::string_view declaredName(std::string_view what, Span& span);
  [[noreturn]] void fail(std::string message, std::string remedy = {});
  [[noreturn]] void failAt(Span where, std::string message, std::string remedy = {});
  [[noreturn]] void tooDeep();
  [[nodiscard]] Span previousSpan() const { return tokens_[at_ == 0 ? 0 : at_ - 1].span; }
  [[nodiscard]] Span since(uint32_t begin) const { return {begin, std::max(begin, previousSpan().end)}; }

  // Declarations (parser_declarations.cpp).
  void parseDirectives();
  void parseDeclaration();
  void recoverDeclaration();
  void parseStruct();
  void recoverMember();
  void parseFunction(std::vector<Attribute> attributes);
  VariableDecl parseVariable(std::vector<Attribute> attributes);
  std::vector<Attribute> parseAttributes();
  /// Behind the word `diagnostic`, of a directive or an attribute; returns the index of the filter.
  uint32_t parseFilter(uint32_t begin);
  /// Binds the filters among the attributes to the text from `begin` to the last token. Nothing else may stand there if `only_filters`.
  void bindFilters(const std::vector<Attribute>& attributes, uint32_t begin, bool only_filters = true);
  void checkDirectiveConflicts();
  ParameterDecl parseParameter(std::string_view what);

  // Statements (parser_statements.cpp).
  StmtId parseBlock();
  StmtId parseStatement();
  StmtId parseCompound();
  StmtId parseIf();
  StmtId parseSwitch();
  StmtId parseLoop();
  StmtId parseContinuing();
  StmtId parseFor();
  StmtId parseWhile();
  /// Assignment, increment, decrement, call or `_ =`, without the semicolon.
  StmtId parseSimple();
  StmtList parseStatements(bool in_loop_body, StmtId* continuing);
  void recoverStatement();
  void declareLocal(Stmt& stmt, VariableDecl variable);
  StmtId add(const Stmt& stmt);

  // Expressions (parser_expressions.cpp).
  ExprId parseExpression();
  /// `condition ? yes : no` of other languages: reports it and makes of it what was meant.
  ExprId parseTernary(ExprId condition);
  ExprId parseUnary();
  ExprId parsePostfix();
  ExprId parsePrimary();
  ExprId parseIdentifier();
  Expr parseTemplatedName();
  ExprId parseType();
  ExprId parseRelational(ExprId first);
  ExprId parseShift(ExprId first);
  bool acceptHalfDecrement();
  ExprId parseAdditive(ExprId first);
  ExprId parseMultiplicative(ExprId first);
  ExprId parseChain(ExprId first, Word op, bool relational_operands);
  ExprList parseArguments();
  ExprList parseTemplates();
  void rejectMixedOperator(ExprId parsed);
  ExprId binary(BinaryOp op, ExprId left, ExprId right);
  ExprId add(Expr& expr);

  std::vector<Token> tokens_;
  Reporter& reporter_;
  Ast ast_;
  std::vector<ExprId> pending_expressions_;
  std::vector<StmtId> pending_statements_;
  std::vector<CaseClause> pending_cases_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  bool whole_body_ = true;  // of the function that is being read: no statement was left out
};

}  // namespace lockstep::wgsl
