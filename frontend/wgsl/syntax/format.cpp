// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/syntax/format.h"

#include <algorithm>
#include <array>
#include <vector>

#include "frontend/wgsl/syntax/ast.h"
#include "frontend/wgsl/syntax/token.h"

namespace lockstep::wgsl {
namespace {

template <size_t N>
bool isOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

bool isWord(const Token& token) { return token.kind == TokenKind::Identifier || token.kind == TokenKind::Keyword; }
bool isPunctuation(const Token& token, std::string_view text) { return token.kind == TokenKind::Punctuation && token.text == text; }

/// A comment, and whether it starts a line of its own.
struct Comment {
  std::string_view text;
  bool on_own_line = false;
  bool line_ends_after = false;
  uint32_t empty_lines = 0;  // before it
};

/// What stands between two tokens.
struct Gap {
  std::vector<Comment> comments;
  uint32_t line_breaks = 0;  // after the last comment
};

size_t blockCommentLength(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size();) {
    const std::string_view pair = text.substr(i, 2);
    depth += pair == "/*" ? 1 : pair == "*/" ? -1 : 0;
    i += pair == "/*" || pair == "*/" ? 2 : 1;
    if (depth == 0) return i;
  }
  return text.size();
}

Gap readGap(std::string_view text, bool at_start) {
  Gap gap;
  uint32_t breaks = at_start ? 1 : 0;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    size_t length = 1;
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      length = rest.starts_with("//") ? std::min(rest.find_first_of("\r\n"), rest.size()) : blockCommentLength(rest);
      std::string_view comment = rest.substr(0, length);
      while (comment.ends_with(' ') || comment.ends_with('\t')) comment.remove_suffix(1);
      gap.comments.push_back({.text = comment, .on_own_line = breaks > 0, .empty_lines = breaks > 1 ? 1u : 0u});
      breaks = 0;
    } else if (rest.front() == '\n' || (rest.front() == '\r' && !rest.starts_with("\r\n"))) {
      ++breaks;
      if (!gap.comments.empty()) gap.comments.back().line_ends_after = true;
    }
    i += length;
  }
  gap.line_breaks = breaks;
  return gap;
}

class Formatter {
 public:
  Formatter(const Source& source, std::vector<Token> tokens) : source_(source), tokens_(std::move(tokens)) {}

  std::string run() {
    uint32_t end = 0;
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const Token& token = tokens_[at_];
      const Gap gap = readGap(source_.text({end, token.span.begin}), at_ == 0);
      end = token.span.end;
      separate(gap, token);
      if (token.kind == TokenKind::End) break;
      place(token);
    }
    while (!out_.empty() && (out_.back() == '\n' || out_.back() == ' ')) out_.pop_back();
    return out_.empty() ? out_ : out_ + "\n";
  }

 private:
  struct Brace {
    bool is_struct = false;
    int parentheses = 0;  // open ones around it
  };

  [[nodiscard]] const Token& before() const { return tokens_[at_ - 1]; }

  /// Comments, line breaks and spaces in front of a token.
  void separate(const Gap& gap, const Token& token) {
    const bool closes_block = isPunctuation(token, "}");
    const bool must_break = at_ > 0 && endsLine(token);
    bool broken = must_break;
    for (const Comment& comment : gap.comments) {
      if (comment.on_own_line) {
        breakLine(comment.empty_lines > 0 && !opensBlock());
      } else if (!out_.empty() && out_.back() != '\n') {
        out_ += ' ';
      }
      indentIfAtLineStart(!must_break && in_statement_);
      out_ += comment.text;
      if (comment.line_ends_after) breakLine(false);
      broken = comment.line_ends_after || must_break;
    }
    const bool empty_line = gap.line_breaks > 1 && !closes_block && (!opensBlock() || !gap.comments.empty());
    if (token.kind == TokenKind::End) return;
    if (at_ == 0 && gap.comments.empty()) return;
    if (broken || keepsBreak(gap, token)) {
      breakLine(empty_line && broken);
    } else if (!out_.empty() && out_.back() != '\n' && (!gap.comments.empty() || needsSpace(before(), token))) {
      out_ += ' ';
    }
  }

  /// Must the line end between the last token and this one?
  [[nodiscard]] bool endsLine(const Token& token) const {
    const Token& last = before();
    if (isPunctuation(last, "{")) return !isPunctuation(token, "}");
    if (isPunctuation(token, "}")) return !isPunctuation(last, "{");
    if (isPunctuation(last, "}")) {
      return !(token.text == "else" || isPunctuation(token, ";") || isPunctuation(token, ",") || isPunctuation(token, ")"));
    }
    if (isPunctuation(last, ";")) return parentheses_ == baseParentheses();
    return isPunctuation(last, ",") && !braces_.empty() && braces_.back().is_struct && parentheses_ == baseParentheses();
  }

  /// A break that the author made within a statement.
  [[nodiscard]] bool keepsBreak(const Gap& gap, const Token& token) const {
    if (gap.line_breaks == 0 || at_ == 0) return false;
    return !isPunctuation(token, ";") && !isPunctuation(token, ",") && !isPunctuation(token, "{") && token.text != "else";
  }

  [[nodiscard]] bool opensBlock() const { return at_ > 0 && isPunctuation(before(), "{"); }
  [[nodiscard]] int baseParentheses() const { return braces_.empty() ? 0 : braces_.back().parentheses; }

  void breakLine(bool empty_line) {
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    if (out_.empty()) return;
    if (out_.back() != '\n') out_ += '\n';
    if (empty_line && !out_.ends_with("\n\n")) out_ += '\n';
  }

  void indentIfAtLineStart(bool continuation) {
    if (!out_.empty() && out_.back() != '\n') return;
    const bool closes = tokens_[at_].kind == TokenKind::Punctuation && (tokens_[at_].text == ")" || tokens_[at_].text == "]");
    const size_t levels = braces_.size() + (continuation && !closes ? 1 : 0);
    out_.append(levels * 2, ' ');
  }

  void place(const Token& token) {
    if (isPunctuation(token, "}") && !braces_.empty()) {
      parentheses_ = braces_.back().parentheses;
      braces_.pop_back();
      in_statement_ = false;
    }
    indentIfAtLineStart(in_statement_);
    out_ += token.text;
    follow(token);
  }

  /// Where the layout stands after a token.
  void follow(const Token& token) {
    in_statement_ = true;
    if (token.kind == TokenKind::TemplateStart) ++parentheses_;
    if (token.kind == TokenKind::TemplateEnd) --parentheses_;
    if (isPunctuation(token, "{")) {
      braces_.push_back({.is_struct = at_ >= 2 && tokens_[at_ - 2].text == "struct", .parentheses = parentheses_});
      in_statement_ = false;
    } else if (token.kind == TokenKind::Punctuation && (token.text == "(" || token.text == "[")) {
      if (!in_attribute_ && at_ > 0 && at_ >= 2 && isPunctuation(tokens_[at_ - 2], "@")) in_attribute_ = attributes_only_;
      ++parentheses_;
    } else if (token.kind == TokenKind::Punctuation && (token.text == ")" || token.text == "]")) {
      --parentheses_;
    }
    const bool level = parentheses_ == baseParentheses();
    const bool ends = isPunctuation(token, "}") || (level && isPunctuation(token, ";")) ||
                      (level && isPunctuation(token, ",") && !braces_.empty() && braces_.back().is_struct) || isPunctuation(token, "{");
    trackAttributes(token, level, ends);
    if (ends || (attributes_only_ && level)) in_statement_ = false;
  }

  /// The attributes at the start of a declaration may stand on lines of their own, which continue nothing.
  void trackAttributes(const Token& token, bool level, bool ends) {
    if (ends) {
      attributes_only_ = true;
      in_attribute_ = false;
      return;
    }
    if (!attributes_only_ || !level) return;
    const bool at_sign = isPunctuation(token, "@");
    const bool name = at_ > 0 && isPunctuation(before(), "@");
    const bool closing = isPunctuation(token, ")") && in_attribute_;
    if (closing) in_attribute_ = false;
    attributes_only_ = at_sign || name || closing;
  }

  [[nodiscard]] bool isUnary(size_t index) const {
    if (tokens_[index].kind != TokenKind::Punctuation || !isOneOf<5>(tokens_[index].text, {"-", "!", "~", "*", "&"})) return false;
    if (tokens_[index].text == "!" || tokens_[index].text == "~" || index == 0) return true;
    const Token& last = tokens_[index - 1];
    if (last.kind == TokenKind::Keyword) return true;
    return last.kind == TokenKind::Punctuation && !isOneOf<5>(last.text, {")", "]", "++", "--", "_"});
  }

  [[nodiscard]] bool needsSpace(const Token& left, const Token& right) const {
    if (right.kind == TokenKind::TemplateStart || right.kind == TokenKind::TemplateEnd || left.kind == TokenKind::TemplateStart)
      return false;
    // "a - --b" and "- -a" have other tokens without the space.
    const bool would_merge = left.kind == TokenKind::Punctuation && right.kind == TokenKind::Punctuation &&
                             isOneOf<2>(left.text, {"-", "&"}) && right.text.starts_with(left.text);
    if (would_merge) return true;
    if (right.kind == TokenKind::Punctuation) {
      if (isOneOf<8>(right.text, {")", "]", ".", ",", ";", ":", "++", "--"})) return false;
      if (right.text == "(") return !(left.kind == TokenKind::Identifier || isTight(left)) && !isUnary(at_ - 1);
      if (right.text == "[") return !isWord(left) && !isTight(left) && !isUnary(at_ - 1);
      if (right.text == "}") return false;
    }
    if (isUnary(at_ - 1)) return false;
    if (left.kind == TokenKind::Punctuation && isOneOf<6>(left.text, {"(", "[", ".", "@", "++", "--"})) return false;
    return true;
  }

  /// What a call or an index may follow without a space.
  static bool isTight(const Token& left) {
    return left.kind == TokenKind::TemplateEnd || (left.kind == TokenKind::Punctuation && isOneOf<4>(left.text, {")", "]", "(", "["}));
  }

  const Source& source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string out_;
  std::vector<Brace> braces_;
  int parentheses_ = 0;
  bool in_statement_ = false;    // the next line continues a statement
  bool attributes_only_ = true;  // of the statement so far
  bool in_attribute_ = false;    // within the arguments of one of these
};

}  // namespace

Result<std::string> format(std::string_view text, const std::string& file_name) {
  const Source source(text, file_name);
  Reporter reporter(source);
  parseModule(source, reporter);
  if (reporter.failed()) return Failure{.diagnostics = reporter.take()};
  return Formatter(source, tokenize(source, reporter)).run();
}

}  // namespace lockstep::wgsl
