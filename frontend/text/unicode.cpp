// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ir/support/diagnostic.h"

namespace lockstep::text {
namespace {

unsigned char byteAt(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

/// A code point at `at`: its bytes, and how many of them are there and fit; `whole` when that is all.
struct Scan {
  size_t length = 0;
  bool whole = false;
};
Scan scan(std::string_view text, size_t at) {
  const unsigned char first = byteAt(text, at);
  if (first < 0x80) return {.length = 1, .whole = true};
  size_t wanted = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    wanted = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    wanted = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    wanted = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {.length = 1, .whole = false};
  }
  size_t length = 1;
  while (length < wanted && at + length < text.size()) {
    const unsigned char next = byteAt(text, at + length);
    if (next < low || next > high) break;
    low = 0x80;
    high = 0xBF;
    ++length;
  }
  return {.length = length, .whole = length == wanted};
}

bool isAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

utf8proc_category_t categoryOf(char32_t code_point) { return utf8proc_category(static_cast<utf8proc_int32_t>(code_point)); }

bool isBetween(utf8proc_category_t category, utf8proc_category_t first, utf8proc_category_t last) {
  return category >= first && category <= last;
}

}  // namespace

size_t validUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Scan found = scan(text, at);
    if (!found.whole) return at;
    at += found.length;
  }
  return at;
}

size_t incompleteUtf8Tail(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const size_t at = text.size() - back;
    const unsigned char byte = byteAt(text, at);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    const Scan found = scan(text, at);
    // A byte that begins nothing is not waiting for more.
    return !found.whole && found.length == back && byte >= 0xC2 && byte <= 0xF4 ? back : 0;
  }
  return 0;
}

std::string lossyUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Scan found = scan(text, at);
    if (found.whole) {
      result += text.substr(at, found.length);
    } else {
      result += "\xEF\xBF\xBD";
    }
    at += found.length;
  }
  return result;
}

size_t utf8Length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

char32_t nextCodePoint(std::string_view text, size_t& at) {
  const unsigned char first = byteAt(text, at);
  const size_t length = utf8Length(text[at]);
  if (at + length > text.size()) internalError("a code point beyond the end of a text");
  constexpr std::array<unsigned char, 5> kBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t value = first & kBits[length];
  for (size_t i = 1; i < length; ++i) value = (value << 6) | (byteAt(text, at + i) & 0x3F);
  at += length;
  return value;
}

char32_t previousCodePoint(std::string_view text, size_t& end) {
  do --end;
  while (end > 0 && (byteAt(text, end) & 0xC0) == 0x80);
  size_t at = end;
  return nextCodePoint(text, at);
}

void appendUtf8(std::string& text, char32_t code_point) {
  const auto push = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | (code_point >> 18));
    push(0x80 | ((code_point >> 12) & 0x3F));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

std::string utf8Of(char32_t code_point) {
  std::string text;
  appendUtf8(text, code_point);
  return text;
}

size_t countCodePoints(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string normalize(std::string_view text, NormalForm form) {
  if (isAscii(text)) return std::string(text);
  const bool compatible = form == NormalForm::Nfkc || form == NormalForm::Nfkd;
  const bool composed = form == NormalForm::Nfc || form == NormalForm::Nfkc;
  const int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size() + 1);
  std::array<utf8proc_int32_t, 32> parts{};
  for (size_t at = 0; at < text.size();) {
    const auto point = static_cast<utf8proc_int32_t>(nextCodePoint(text, at));
    int boundary = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(point, parts.data(), parts.size(), static_cast<utf8proc_option_t>(options), &boundary);
    if (count < 0 || static_cast<size_t>(count) > parts.size()) internalError("utf8proc does not decompose a code point");
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  // utf8proc's own ordering takes quadratic time for a long run of marks.
  const auto classOf = [](utf8proc_int32_t point) { return utf8proc_get_property(point)->combining_class; };
  for (auto first = points.begin(); first != points.end();) {
    first = std::find_if(first, points.end(), [&](auto point) { return classOf(point) != 0; });
    const auto last = std::find_if(first, points.end(), [&](auto point) { return classOf(point) == 0; });
    std::stable_sort(first, last, [&](auto a, auto b) { return classOf(a) < classOf(b); });
    first = last;
  }
  if (composed) {
    const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                 static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    if (length < 0) internalError("utf8proc does not compose a text");
    points.resize(static_cast<size_t>(length));
  }
  std::string result;
  result.reserve(text.size());
  for (const utf8proc_int32_t point : points) appendUtf8(result, static_cast<char32_t>(point));
  return result;
}

std::string lowerCase(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    if (point == 0x130) {
      result += "i\xCC\x87";
    } else {
      appendUtf8(result, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point))));
    }
  }
  return result;
}

std::string upperCase(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    if (point == 0xDF) {
      result += "SS";
    } else {
      appendUtf8(result, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(point))));
    }
  }
  return result;
}

bool isWhiteSpace(char32_t code_point) {
  if (code_point < 0x80) return code_point == ' ' || (code_point >= 9 && code_point <= 13);
  return code_point == 0x85 || isBetween(categoryOf(code_point), UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool isLetter(char32_t code_point) { return isBetween(categoryOf(code_point), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }

bool isNumeric(char32_t code_point) { return isBetween(categoryOf(code_point), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }

bool isDecimalDigit(char32_t code_point) { return categoryOf(code_point) == UTF8PROC_CATEGORY_ND; }

bool isPunctuation(char32_t code_point) {
  if (code_point < 0x80) {
    return (code_point >= 33 && code_point <= 47) || (code_point >= 58 && code_point <= 64) || (code_point >= 91 && code_point <= 96) ||
           (code_point >= 123 && code_point <= 126);
  }
  return isBetween(categoryOf(code_point), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool isWordPart(char32_t code_point) {
  const utf8proc_category_t category = categoryOf(code_point);
  if (isBetween(category, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC) return true;
  // Joiners, and the symbols that are alphabetic: letters in circles and squares.
  return code_point == 0x200C || code_point == 0x200D || (code_point >= 0x24B6 && code_point <= 0x24E9) ||
         (code_point >= 0x1F130 && code_point <= 0x1F149) || (code_point >= 0x1F150 && code_point <= 0x1F169) ||
         (code_point >= 0x1F170 && code_point <= 0x1F189);
}

bool isMark(char32_t code_point) { return isBetween(categoryOf(code_point), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }
bool isPrintable(char32_t code_point) {
  const utf8proc_category_t category = categoryOf(code_point);
  return code_point == ' ' || isBetween(category, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_SO);
}
bool isUpper(char32_t code_point) { return categoryOf(code_point) == UTF8PROC_CATEGORY_LU; }
bool isLower(char32_t code_point) { return categoryOf(code_point) == UTF8PROC_CATEGORY_LL; }

}  // namespace lockstep::text
