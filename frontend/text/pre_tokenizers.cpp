// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

constexpr const char* kPreTokenizers =
    "ByteLevel, Split, Metaspace, Digits, Whitespace, WhitespaceSplit, Punctuation, CharDelimiterSplit, Sequence";

using CutPiece = std::function<Result<std::vector<Piece>>(Piece)>;

PreTokenizer eachPiece(CutPiece cut) {
  return [cut = std::move(cut)](std::vector<Piece> pieces) -> Result<std::vector<Piece>> {
    std::vector<Piece> result;
    result.reserve(pieces.size());
    for (Piece& piece : pieces) {
      LS_TRY(std::vector<Piece> parts, cut(std::move(piece)));
      for (Piece& part : parts) {
        if (!part.text.empty()) result.push_back(std::move(part));
      }
    }
    return result;
  };
}

/// Each code point that `wanted` takes is a match of its own.
template <class Wanted>
std::vector<Match> matchesOf(std::string_view text, const Wanted& wanted) {
  std::vector<Match> matches;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (wanted(nextCodePoint(text, at))) matches.push_back({.begin = begin, .end = at});
  }
  return matches;
}

template <class Wanted>
PreTokenizer splitAt(Wanted wanted, SplitBehavior behavior) {
  return eachPiece([wanted, behavior](const Piece& piece) -> Result<std::vector<Piece>> {
    return splitPiece(piece, matchesOf(piece.text, wanted), false, behavior);
  });
}

Result<SplitBehavior> readBehavior(JsonFields& fields, std::string_view otherwise) {
  static const std::map<std::string, SplitBehavior> names = {{"Removed", SplitBehavior::Removed},
                                                             {"Isolated", SplitBehavior::Isolated},
                                                             {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
                                                             {"MergedWithNext", SplitBehavior::MergedWithNext},
                                                             {"Contiguous", SplitBehavior::Contiguous}};
  Result<std::string> name = otherwise.empty() ? fields.text("behavior") : fields.text("behavior", otherwise);
  if (!name) return name.failure();
  const auto found = names.find(*name);
  if (found == names.end()) return fields.unsupported(fmt::format("{}: the behavior '{}' is not known", fields.placeOf("behavior"), *name));
  return found->second;
}

Result<PreTokenizer> readByteLevel(JsonFields& fields) {
  LS_TRY(const bool prefix, fields.boolean("add_prefix_space", true));
  LS_TRY(const bool cut, fields.boolean("use_regex", true));
  fields.ignore("trim_offsets");
  LS_TRY(const Pattern pattern, Pattern::ofRegex(byteLevelPattern()));
  return eachPiece([=](Piece piece) -> Result<std::vector<Piece>> {
    if (prefix && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    std::vector<Piece> pieces;
    if (cut) {
      LS_TRY(const std::vector<Match> matches, pattern.matches(piece.text));
      pieces = splitPiece(piece, matches, false, SplitBehavior::Isolated);
    } else {
      pieces.push_back(std::move(piece));
    }
    for (Piece& part : pieces) part.text = toByteLevel(part.text);
    return pieces;
  });
}

/// The older files have add_prefix_space instead of prepend_scheme, and str_rep, which says `replacement` once more.
struct MetaspaceSettings {
  std::string replacement, scheme;
};
Result<MetaspaceSettings> readMetaspaceSettings(JsonFields& fields) {
  MetaspaceSettings settings;
  LS_TRY(settings.replacement, fields.text("replacement", "\xE2\x96\x81"));
  if (countCodePoints(settings.replacement) != 1) return fields.wrong(fields.placeOf("replacement") + " is not one character");
  LS_TRY(const bool prefix, fields.boolean("add_prefix_space", true));
  LS_TRY(settings.scheme, fields.text("prepend_scheme", prefix ? "always" : "never"));
  if (settings.scheme != "always" && settings.scheme != "first" && settings.scheme != "never") {
    return fields.unsupported(fmt::format("{} is '{}'", fields.placeOf("prepend_scheme"), settings.scheme), "known: always, first, never");
  }
  LS_TRY(const std::string repeated, fields.text("str_rep", settings.replacement));
  if (repeated != settings.replacement) return fields.unsupported(fields.placeOf("str_rep") + " differs from the replacement");
  return settings;
}

Result<PreTokenizer> readMetaspace(JsonFields& fields) {
  LS_TRY(const MetaspaceSettings settings, readMetaspaceSettings(fields));
  LS_TRY(const bool cut, fields.boolean("split", true));
  return eachPiece([=](Piece piece) -> Result<std::vector<Piece>> {
    std::string text;
    for (const char c : piece.text) {
      if (c == ' ') {
        text += settings.replacement;
      } else {
        text += c;
      }
    }
    const bool wanted = settings.scheme == "always" || (settings.scheme == "first" && piece.at_start);
    if (wanted && !text.starts_with(settings.replacement)) text.insert(0, settings.replacement);
    piece.text = std::move(text);
    if (!cut) return std::vector<Piece>{std::move(piece)};
    size_t at = 0;
    const char32_t mark = nextCodePoint(settings.replacement, at);
    return splitPiece(piece, matchesOf(piece.text, [mark](char32_t point) { return point == mark; }), false, SplitBehavior::MergedWithNext);
  });
}

Result<PreTokenizer> readSplit(JsonFields& fields) {
  LS_TRY(const JsonValue* value, fields.required("pattern"));
  LS_TRY(const Pattern pattern, Pattern::read(*value, fields.file(), fields.placeOf("pattern")));
  LS_TRY(const SplitBehavior behavior, readBehavior(fields, ""));
  LS_TRY(const bool invert, fields.boolean("invert", false));
  return eachPiece([=](const Piece& piece) -> Result<std::vector<Piece>> {
    LS_TRY(const std::vector<Match> matches, pattern.matches(piece.text));
    return splitPiece(piece, matches, invert, behavior);
  });
}

/// Runs of word characters, and runs of what is neither that nor white space.
std::vector<Piece> wordsOf(const Piece& piece) {
  const auto classOf = [](char32_t point) { return isWordPart(point) ? 1 : isWhiteSpace(point) ? 0 : 2; };
  std::vector<Piece> words;
  int previous = 0;
  for (size_t at = 0; at < piece.text.size();) {
    const size_t begin = at;
    const int kind = classOf(nextCodePoint(piece.text, at));
    if (kind != 0 && (kind != previous || words.empty())) words.push_back({.text = {}, .at_start = piece.at_start && begin == 0});
    if (kind != 0) words.back().text += piece.text.substr(begin, at - begin);
    previous = kind;
  }
  return words;
}

}  // namespace

Result<PreTokenizer> readPreTokenizer(const JsonValue* value, const std::string& file, const std::string& place) {
  if (value == nullptr || value->isNull())
    return PreTokenizer([](std::vector<Piece> pieces) -> Result<std::vector<Piece>> { return pieces; });
  LS_TRY(JsonFields fields, JsonFields::of(*value, file, place));
  LS_TRY(const std::string type, typeOf(fields));
  PreTokenizer result;
  if (type == "ByteLevel") {
    LS_TRY(result, readByteLevel(fields));
  } else if (type == "Metaspace") {
    LS_TRY(result, readMetaspace(fields));
  } else if (type == "Split") {
    LS_TRY(result, readSplit(fields));
  } else if (type == "Digits") {
    LS_TRY(const bool single, fields.boolean("individual_digits", false));
    result = splitAt(isNumeric, single ? SplitBehavior::Isolated : SplitBehavior::Contiguous);
  } else if (type == "Whitespace") {
    result = eachPiece([](const Piece& piece) -> Result<std::vector<Piece>> { return wordsOf(piece); });
  } else if (type == "WhitespaceSplit") {
    result = splitAt(isWhiteSpace, SplitBehavior::Removed);
  } else if (type == "Punctuation") {
    LS_TRY(const SplitBehavior behavior, readBehavior(fields, "Isolated"));
    result = splitAt(isPunctuation, behavior);
  } else if (type == "CharDelimiterSplit") {
    LS_TRY(const std::string delimiter, fields.text("delimiter"));
    if (countCodePoints(delimiter) != 1) return fields.wrong(fields.placeOf("delimiter") + " is not one character");
    size_t at = 0;
    const char32_t mark = nextCodePoint(delimiter, at);
    result = splitAt([mark](char32_t point) { return point == mark; }, SplitBehavior::Removed);
  } else if (type == "Sequence") {
    LS_TRY(const std::vector<PreTokenizer> parts, readParts<PreTokenizer>(fields, "pretokenizers", readPreTokenizer));
    result = [parts](std::vector<Piece> pieces) -> Result<std::vector<Piece>> {
      for (const PreTokenizer& part : parts) {
        LS_TRY(pieces, part(std::move(pieces)));
        size_t bytes = 0;
        for (const Piece& piece : pieces) bytes += piece.text.size();
        LS_CHECK(checkLength(bytes));
      }
      return pieces;
    };
  } else {
    return fields.unsupported(fmt::format("{}: the pre-tokenizer '{}' is not supported", place, type),
                              fmt::format("supported: {}", kPreTokenizers));
  }
  LS_CHECK(fields.onlyThese());
  return result;
}

}  // namespace lockstep::text
