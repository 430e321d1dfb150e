// SPDX-License-Identifier: Apache-2.0
// Private: expressions from tokens, and what the parser of statements shares with that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/jinja/lexer.h"
#include "frontend/text/jinja/syntax.h"

namespace lockstep::text::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  /// Counts nesting, so that no template overflows the stack.
  class Deeper {
   public:
    explicit Deeper(ExpressionParser& parser);
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    ExpressionParser& parser_;
  };

  ExpressionPointer parseExpression(bool with_condition = true);
  /// "a, b" is a tuple.
  ExpressionPointer parseTupleOrExpression(bool with_condition = true);
  ExpressionPointer parsePostfix(ExpressionPointer subject);
  ExpressionPointer parsePrimary();
  /// "name(arguments)" and further "| name" of `subject`, which may be null; the first '|' is already taken.
  ExpressionPointer parseFilters(ExpressionPointer subject);

  [[nodiscard]] const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  [[nodiscard]] bool isSign(std::string_view text, size_t ahead = 0) const {
    return peek(ahead).kind == Lexeme::Sign && peek(ahead).text == text;
  }
  [[nodiscard]] bool isName(std::string_view text, size_t ahead = 0) const {
    return peek(ahead).kind == Lexeme::Name && peek(ahead).text == text;
  }
  bool acceptSign(std::string_view text);
  bool acceptName(std::string_view text);
  void expectSign(std::string_view text);
  std::string expectName(std::string_view what);
  [[noreturn]] void failHere(const std::string& message) const;

 private:
  ExpressionPointer make(Expression::Kind kind, std::string name = {}) const;
  ExpressionPointer parseOr();
  ExpressionPointer parseAnd();
  ExpressionPointer parseNot();
  ExpressionPointer parseCompare();
  ExpressionPointer parseSum();
  ExpressionPointer parseConcat();
  ExpressionPointer parseProduct();
  ExpressionPointer parsePower();
  ExpressionPointer parseUnary(bool with_filters);
  ExpressionPointer parseFiltersAndTests(ExpressionPointer subject);
  ExpressionPointer parseTest(ExpressionPointer subject);
  ExpressionPointer parseSubscript(ExpressionPointer subject);
  ExpressionPointer parseDict();
  void parseArguments(Expression& call);
  void parseItems(Expression& list, std::string_view end);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace lockstep::text::jinja
