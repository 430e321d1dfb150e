// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/jinja/text_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {

std::string stripText(std::string_view text, const std::string* characters, bool left, bool right) {
  const auto goes = [&](char32_t point) {
    return characters == nullptr ? isWhiteSpace(point) || (point >= 0x1C && point <= 0x1F)
                                 : characters->find(utf8Of(point)) != std::string::npos;
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!goes(nextCodePoint(text, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    size_t previous = end;
    if (!goes(previousCodePoint(text, previous))) break;
    end = previous;
  }
  return std::string(text.substr(begin, end - begin));
}

namespace {

Values splitAtSpace(std::string_view text, int64_t most, bool from_right) {
  // The words of the text; those beyond the most stay together, with the space between them.
  struct Word {
    size_t begin, end;
  };
  std::vector<Word> words;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool space = isWhiteSpace(nextCodePoint(text, at));
    if (!space && !in_word) words.push_back({begin, at});
    if (!space) words.back().end = at;
    in_word = !space;
  }
  Values parts;
  const auto push = [&](size_t begin, size_t end) { parts.emplace_back(std::string(text.substr(begin, end - begin))); };
  const bool all = most < 0 || words.size() <= static_cast<size_t>(most);
  const size_t alone = all ? words.size() : static_cast<size_t>(most);
  if (all) {
    for (const Word& word : words) push(word.begin, word.end);
  } else if (from_right) {
    const size_t together = words.size() - alone;
    push(words[0].begin, words[together - 1].end);
    if (words[0].begin > 0) parts[0] = Value(std::string(text.substr(0, words[together - 1].end)));
    for (size_t i = together; i < words.size(); ++i) push(words[i].begin, words[i].end);
  } else {
    for (size_t i = 0; i < alone; ++i) push(words[i].begin, words[i].end);
    push(words[alone].begin, text.size());
  }
  return parts;
}

}  // namespace

Values splitText(std::string_view text, const std::string* separator, int64_t most, bool from_right) {
  if (separator == nullptr) return splitAtSpace(text, most, from_right);
  std::vector<std::string> parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.emplace_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    } else {
      parts.emplace_back(text.substr(0, at));
      text = text.substr(at + separator->size());
    }
  }
  parts.emplace_back(text);
  if (from_right) std::ranges::reverse(parts);
  Values values;
  for (std::string& part : parts) values.emplace_back(std::move(part));
  return values;
}

Values splitLines(std::string_view text, bool keep_ends) {
  Values lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t point = nextCodePoint(text, at);
    const bool breaks =
        (point >= '\n' && point <= '\r') || (point >= 0x1C && point <= 0x1E) || point == 0x85 || point == 0x2028 || point == 0x2029;
    if (!breaks) continue;
    if (point == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(std::string(text.substr(begin, (keep_ends ? at : end) - begin)));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(std::string(text.substr(begin)));
  return lines;
}

std::string replaceText(std::string_view text, std::string_view from, std::string_view to, int64_t most) {
  std::string result;
  int64_t done = 0;
  if (from.empty()) {
    // Before each character and at the end.
    for (size_t at = 0; at <= text.size(); ++done) {
      if (most < 0 || done < most) result += to;
      checkLength(result.size());
      if (at == text.size()) break;
      const size_t length = utf8Length(text[at]);
      result += text.substr(at, length);
      at += length;
    }
    return result;
  }
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string_view::npos && (most < 0 || done < most); at = text.find(from, begin), ++done) {
    result += text.substr(begin, at - begin);
    result += to;
    checkLength(result.size());
    begin = at + from.size();
  }
  result += text.substr(begin);
  return result;
}

int64_t countText(std::string_view text, std::string_view part) {
  if (part.empty()) return static_cast<int64_t>(countCodePoints(text)) + 1;
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::string capitalText(std::string_view text) {
  if (text.empty()) return {};
  const size_t first = utf8Length(text[0]);
  return upperCase(text.substr(0, first)) + lowerCase(text.substr(first));
}

std::string titleText(std::string_view text) {
  std::string result;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool letter = isLetter(nextCodePoint(text, at));
    const std::string_view character = text.substr(begin, at - begin);
    result += !letter ? std::string(character) : in_word ? lowerCase(character) : upperCase(character);
    in_word = letter;
  }
  return result;
}

Value joinTexts(const Value& items, std::string_view between, bool strict) {
  std::string text;
  size_t count = 0;
  for (const Value& item : items.iterate()) {
    if (strict && item.text() == nullptr) {
      failRender(fmt::format("sequence item {}: expected str instance, {} found", count, item.typeName()));
    }
    if (count++ > 0) text += between;
    text += item.str();
    checkLength(text.size());
  }
  return Value(std::move(text));
}

std::string indentText(std::string_view text, std::string_view indent, bool first, bool blank) {
  std::string result = first ? std::string(indent) : std::string();
  const std::string whole = std::string(text) + "\n";
  const Values lines = splitLines(whole, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result += "\n";
    if (i > 0 && (blank || !lines[i].text()->empty())) result += indent;
    result += *lines[i].text();
    checkLength(result.size());
  }
  return result;
}

}  // namespace lockstep::text::jinja
