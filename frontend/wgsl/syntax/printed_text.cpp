// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/syntax/printed_text.h"

#include <initializer_list>

#include "frontend/wgsl/syntax/token.h"
#include "ir/support/diagnostic.h"

namespace lockstep::wgsl {
namespace {

/// Can stand between the quotes of a text, and be printed: blanks for line breaks and for what is no UTF-8 or acts on a terminal.
std::string onOneLine(std::string_view text) {
  std::string line = withoutControls(text, " ");
  for (const std::string_view wide : {"\u2028", "\u2029", "\r", "\n", "\t"}) {
    for (size_t at = line.find(wide); at != std::string::npos; at = line.find(wide, at)) {
      line.erase(at, wide.size() - 1);
      line[at] = ' ';
    }
  }
  return line;
}

bool isLiteral(std::string_view expression) {
  if (expression == "true" || expression == "false") return true;
  if (expression.starts_with('-')) expression.remove_prefix(1);
  const bool number = !expression.empty() && (expression.front() == '.' || (expression.front() >= '0' && expression.front() <= '9'));
  if (!number) return false;
  Literal literal;
  std::string error;
  return readNumber(expression, literal, error) == expression.size();
}

}  // namespace

std::string unquoted(std::string_view text) {
  if (text.starts_with('"')) text.remove_prefix(1);
  if (text.ends_with('"')) text.remove_suffix(1);
  std::string content;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
    content += text[i];
  }
  return onOneLine(content);
}

std::string quotedText(std::string_view content) {
  std::string text = "\"";
  for (const char c : onOneLine(content)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

bool isPrintedName(std::string_view text) { return text.ends_with("=\""); }

std::string printedName(std::string_view expression) {
  constexpr size_t kLongest = 60;
  if (isLiteral(expression)) return {};
  std::string name;
  for (const char c : onOneLine(expression)) {
    if (c != ' ' || !(name.empty() || name.ends_with(' '))) name += c;
  }
  if (name.size() <= kLongest) return name;
  size_t end = kLongest - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // a character of UTF-8 is not divided
  return name.substr(0, end) + "...";
}

}  // namespace lockstep::wgsl
