// SPDX-License-Identifier: Apache-2.0
// UTF-8 and the properties of code points that tokenizers and chat templates ask for. The tables are utf8proc's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::text {

/// How many bytes at the start of `text` are UTF-8 in shortest form, without surrogates: text.size() when all are.
size_t validUtf8Prefix(std::string_view text);
/// How many bytes at the end begin a code point whose other bytes are not there; 0 to 3.
size_t incompleteUtf8Tail(std::string_view text);
/// Each longest run of bytes that begins a code point and does not finish it becomes U+FFFD, as does each other stray byte.
std::string lossyUtf8(std::string_view text);

/// The code point at `at`, which moves past it. `text` is UTF-8 and has one there.
char32_t nextCodePoint(std::string_view text, size_t& at);
/// The code point that ends before `end`, which moves to its first byte.
char32_t previousCodePoint(std::string_view text, size_t& end);
void appendUtf8(std::string& text, char32_t code_point);
std::string utf8Of(char32_t code_point);
size_t countCodePoints(std::string_view text);
/// Of the first byte of a code point.
size_t utf8Length(char first);

enum class NormalForm : uint8_t { Nfc, Nfd, Nfkc, Nfkd };
/// O(n log n), whatever runs of combining marks there are. `text` is UTF-8.
std::string normalize(std::string_view text, NormalForm form);

/// Code point by code point, with the mappings that give more than one.
std::string lowerCase(std::string_view text);
std::string upperCase(std::string_view text);

bool isWhiteSpace(char32_t code_point);
bool isLetter(char32_t code_point);
/// Nd, Nl and No.
bool isNumeric(char32_t code_point);
bool isDecimalDigit(char32_t code_point);
/// P*, and what ASCII calls punctuation.
bool isPunctuation(char32_t code_point);
/// \w: alphabetic, marks, decimal digits, connectors, joiners.
bool isWordPart(char32_t code_point);
bool isMark(char32_t code_point);
/// As Python's repr() shows it: no control, format or unassigned character and no space other than ' '.
bool isPrintable(char32_t code_point);
bool isUpper(char32_t code_point);
bool isLower(char32_t code_point);

}  // namespace lockstep::text
