// SPDX-License-Identifier: Apache-2.0
// The words that WGSL itself gives a meaning: punctuation, keywords and the words that it keeps for later.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep::wgsl {

/// Grouped by their first byte; of punctuation that begins alike the longest comes first.
inline constexpr auto kWords = std::to_array<std::string_view>({
    "!=",
    "!",
    "%=",
    "%",
    "&&",
    "&=",
    "&",
    "(",
    ")",
    "*=",
    "*",
    "++",
    "+=",
    "+",
    ",",
    "--",
    "-=",
    "->",
    "-",
    ".",
    "/=",
    "/",
    ":",
    ";",
    "<<=",
    "<<",
    "<=",
    "<",
    "==",
    "=",
    ">>=",
    ">>",
    ">=",
    ">",
    "?",
    "@",
    "[",
    "]",
    "^=",
    "^",
    "_",
    "alias",
    "break",
    "case",
    "const",
    "continue",
    "const_assert",
    "continuing",
    "default",
    "discard",
    "diagnostic",
    "else",
    "enable",
    "fn",
    "for",
    "false",
    "if",
    "let",
    "loop",
    "override",
    "return",
    "requires",
    "struct",
    "switch",
    "true",
    "var",
    "while",
    "{",
    "|=",
    "||",
    "|",
    "}",
    "~",
});

/// Of a table that is grouped by first bytes: where the group of each byte begins. Group b ends where group b + 1 begins.
template <size_t N>
constexpr std::array<uint8_t, 129> groupsOf(const std::array<std::string_view, N>& words) {
  std::array<uint8_t, 129> begins{};
  size_t at = 0;
  for (size_t byte = 0; byte < begins.size(); ++byte) {
    begins[byte] = static_cast<uint8_t>(at);
    while (at < N && static_cast<unsigned char>(words[at].front()) == byte) ++at;
  }
  return begins;
}

/// A keyword or a punctuation mark, as a number; or none.
class Word {
 public:
  constexpr Word() = default;
  /// Of a text in the program, so that `is("{")` compares numbers. Does not compile if WGSL has no such word.
  consteval Word(const char* text) : Word(std::string_view(text)) {
    if (index_ == 0) throw "no word of WGSL";
  }
  /// None if the text is no word.
  constexpr explicit Word(std::string_view text) {
    const auto* row = std::find(kWords.begin(), kWords.end(), text);
    if (row != kWords.end()) index_ = static_cast<uint8_t>(row - kWords.begin() + 1);
  }
  /// By its place in the table.
  static constexpr Word at(size_t place) {
    Word word;
    word.index_ = static_cast<uint8_t>(place + 1);
    return word;
  }
  [[nodiscard]] constexpr std::string_view text() const { return index_ == 0 ? "" : kWords[index_ - 1u]; }
  /// Below kCount; 0 for none.
  [[nodiscard]] constexpr size_t index() const { return index_; }
  static constexpr size_t kCount = kWords.size() + 1;
  friend constexpr bool operator==(Word, Word) = default;

 private:
  uint8_t index_ = 0;
};

/// Which keyword the whole text is, or none.
Word findKeyword(std::string_view text);
/// The longest punctuation mark that the text begins with, or none.
Word findPunctuation(std::string_view text);
/// Words that no declaration may use, besides keywords.
bool isReservedWord(std::string_view word);

}  // namespace lockstep::wgsl
