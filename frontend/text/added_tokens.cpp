// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

bool endsWithWord(std::string_view text) {
  size_t end = text.size();
  return end > 0 && isWordPart(previousCodePoint(text, end));
}

bool startsWithWord(std::string_view text) {
  size_t at = 0;
  return !text.empty() && isWordPart(nextCodePoint(text, at));
}

size_t withSpaceBefore(std::string_view text, size_t begin, size_t least) {
  while (begin > least) {
    size_t previous = begin;
    if (!isWhiteSpace(previousCodePoint(text, previous))) break;
    begin = previous;
  }
  return begin;
}

size_t withSpaceBehind(std::string_view text, size_t end) {
  while (end < text.size()) {
    size_t next = end;
    if (!isWhiteSpace(nextCodePoint(text, next))) break;
    end = next;
  }
  return end;
}

Result<AddedToken> readAddedToken(const JsonValue& value, const std::string& file, const std::string& place) {
  LS_TRY(JsonFields fields, JsonFields::of(value, file, place));
  AddedToken token;
  LS_TRY(const int64_t id, fields.integer("id", -1));
  if (id < 0 || id > INT32_MAX) return fields.wrong(fields.placeOf("id") + " is not the id of a token");
  token.id = static_cast<uint32_t>(id);
  LS_TRY(token.content, fields.text("content"));
  LS_TRY(token.single_word, fields.boolean("single_word", false));
  LS_TRY(token.lstrip, fields.boolean("lstrip", false));
  LS_TRY(token.rstrip, fields.boolean("rstrip", false));
  LS_TRY(token.special, fields.boolean("special", false));
  LS_TRY(token.normalized, fields.boolean("normalized", !token.special));
  LS_CHECK(fields.onlyThese());
  return token;
}

}  // namespace

void TextSet::add(std::string_view text, size_t index) {
  if (text.empty()) return;
  begins_[static_cast<unsigned char>(text[0])] = true;
  uint32_t node = 0;
  for (const char c : text) {
    const uint64_t edge = (static_cast<uint64_t>(node) << 8) | static_cast<unsigned char>(c);
    const auto [found, is_new] = edges_.emplace(edge, static_cast<uint32_t>(ends_.size()));
    if (is_new) ends_.emplace_back();
    node = found->second;
  }
  if (!ends_[node]) ends_[node] = index;
}

std::optional<TextSet::Found> TextSet::find(std::string_view text, size_t from) const {
  if (edges_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Found> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto edge = edges_.find((static_cast<uint64_t>(node) << 8) | static_cast<unsigned char>(text[at]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ends_[node]) longest = Found{.begin = begin, .end = at + 1, .index = *ends_[node]};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

Result<AddedTokens> AddedTokens::read(const JsonValue* value, const std::string& file) {
  AddedTokens added;
  if (value == nullptr) return added;
  if (value->array() == nullptr) return fail("tokenizer.file", "added_tokens is not an array", {.file = file});
  for (size_t i = 0; i < value->array()->size(); ++i) {
    LS_TRY(AddedToken token, readAddedToken((*value->array())[i], file, fmt::format("added_tokens[{}]", i)));
    if (!token.normalized) added.raw_.add(token.content, i);
    added.tokens_.push_back(std::move(token));
  }
  return added;
}

Status AddedTokens::normalizeWith(const Normalizer& normalizer) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].normalized) continue;
    LS_TRY(const std::string content, normalizer(tokens_[i].content));
    normalized_.add(content, i);
  }
  return Success{};
}

std::vector<TextPart> AddedTokens::split(std::string_view text, bool normalized, SpecialTokens special) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  const TextSet& set = normalized ? normalized_ : raw_;
  size_t from = 0;
  std::pair<size_t, size_t> spaces;  // the last run that was looked at, so that many tokens in one do not each go over it
  while (const std::optional<TextSet::Found> found = set.find(text, from)) {
    from = found->end;
    const AddedToken& token = tokens_[found->index];
    if (token.special && special == SpecialTokens::LeaveAsText) continue;
    if (token.single_word && (endsWithWord(text.substr(0, found->begin)) || startsWithWord(text.substr(found->end)))) continue;
    // White space that another token took may be the start of this one. As in Hugging Face's library it then counts for both.
    const size_t begin = token.lstrip ? std::max(withSpaceBefore(text, found->begin, done), done) : found->begin;
    size_t end = found->end;
    if (token.rstrip) {
      if (end < spaces.first || end > spaces.second) spaces = {end, withSpaceBehind(text, end)};
      end = spaces.second;
    }
    if (begin >= end) continue;
    if (begin > done) parts.push_back({.begin = done, .end = begin, .id = std::nullopt});
    parts.push_back({.begin = begin, .end = end, .id = token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({.begin = done, .end = text.size(), .id = std::nullopt});
  return parts;
}

}  // namespace lockstep::text
