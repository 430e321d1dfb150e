// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {

Status checkLength(size_t bytes) {
  constexpr size_t kMostBytes = size_t{1} << 28;
  if (bytes <= kMostBytes) return Success{};
  return fail("tokenizer.limit", fmt::format("the parts of the tokenizer make a text of {} bytes, and the most is {}", bytes, kMostBytes),
              {}, "give it less text at a time; where a short text becomes that long, tokenizer.json is damaged");
}

Result<Pattern> Pattern::read(const JsonValue& value, const std::string& file, const std::string& place) {
  Pattern pattern;
  if (value.string() != nullptr) {
    pattern.string_ = *value.string();
    return pattern;
  }
  LS_TRY(JsonFields fields, JsonFields::of(value, file, place));
  const bool is_regex = fields.find("Regex") != nullptr;
  LS_TRY(pattern.string_, fields.text(is_regex ? "Regex" : "String"));
  LS_CHECK(fields.onlyThese());
  if (is_regex) {
    LS_TRY(Regex regex, Regex::compile(pattern.string_, file));
    pattern.regex_.push_back(std::move(regex));
  }
  return pattern;
}

Result<Pattern> Pattern::ofRegex(std::string_view regex) {
  Pattern pattern;
  LS_TRY(Regex compiled, Regex::compile(regex, ""));
  pattern.regex_.push_back(std::move(compiled));
  return pattern;
}

Result<std::vector<Match>> Pattern::matches(std::string_view text) const {
  if (!regex_.empty()) return regex_[0].matches(text);
  std::vector<Match> found;
  if (string_.empty()) return found;
  for (size_t at = text.find(string_); at != std::string_view::npos; at = text.find(string_, at + string_.size())) {
    found.push_back({.begin = at, .end = at + string_.size()});
  }
  return found;
}

Result<std::string> Pattern::replace(std::string_view text, std::string_view content) const {
  LS_TRY(const std::vector<Match> found, matches(text));
  LS_CHECK(checkLength(text.size() + found.size() * content.size()));
  std::string result;
  size_t done = 0;
  for (const Match& match : found) {
    result += text.substr(done, match.begin - done);
    result += content;
    done = match.end;
  }
  result += text.substr(done);
  return result;
}

std::vector<Piece> splitPiece(const Piece& piece, const std::vector<Match>& matches, bool invert, SplitBehavior behavior) {
  struct Part {
    size_t begin, end;
    bool is_match;
  };
  std::vector<Part> parts;
  size_t done = 0;
  for (const Match& match : matches) {
    if (match.begin > done) parts.push_back({done, match.begin, invert});
    parts.push_back({match.begin, match.end, !invert});
    done = match.end;
  }
  if (done < piece.text.size()) parts.push_back({done, piece.text.size(), invert});

  std::vector<Part> kept;
  bool previous = false;
  const auto extends = [&](const Part& part) {
    return !kept.empty() && (behavior == SplitBehavior::Contiguous ? part.is_match == previous : part.is_match && !previous);
  };
  switch (behavior) {
    case SplitBehavior::Isolated:
      kept = std::move(parts);
      break;
    case SplitBehavior::Removed:
      std::ranges::copy_if(parts, std::back_inserter(kept), [](const Part& part) { return !part.is_match; });
      break;
    case SplitBehavior::Contiguous:
    case SplitBehavior::MergedWithPrevious:
      for (const Part& part : parts) {
        if (extends(part)) {
          kept.back().end = part.end;
        } else {
          kept.push_back(part);
        }
        previous = part.is_match;
      }
      break;
    case SplitBehavior::MergedWithNext:
      std::ranges::reverse(parts);
      for (const Part& part : parts) {
        if (extends(part)) {
          kept.back().begin = part.begin;
        } else {
          kept.push_back(part);
        }
        previous = part.is_match;
      }
      std::ranges::reverse(kept);
      break;
  }
  std::vector<Piece> pieces;
  pieces.reserve(kept.size());
  for (const Part& part : kept) {
    if (part.begin == part.end) continue;
    pieces.push_back({.text = piece.text.substr(part.begin, part.end - part.begin), .at_start = piece.at_start && part.begin == 0});
  }
  return pieces;
}

const std::array<std::string, 256>& byteLevelAlphabet() {
  static const std::array<std::string, 256> alphabet = [] {
    std::array<std::string, 256> made;
    char32_t moved = 0x100;
    for (size_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      made[byte] = utf8Of(printable ? static_cast<char32_t>(byte) : moved++);
    }
    return made;
  }();
  return alphabet;
}

std::string toByteLevel(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size() * 2);
  for (const char byte : bytes) result += byteLevelAlphabet()[static_cast<unsigned char>(byte)];
  return result;
}

std::string fromByteLevel(std::string_view text) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> made;
    for (size_t byte = 0; byte < 256; ++byte) {
      size_t at = 0;
      made[nextCodePoint(byteLevelAlphabet()[byte], at)] = static_cast<char>(byte);
    }
    return made;
  }();
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const auto found = bytes.find(nextCodePoint(text, at));
    if (found == bytes.end()) return std::string(text);
    result += found->second;
  }
  return result;
}

std::string_view byteLevelPattern() { return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"; }

Result<std::string> typeOf(JsonFields& fields) { return fields.text("type"); }

}  // namespace lockstep::text
