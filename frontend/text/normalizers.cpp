// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

constexpr const char* kNormalizers = "NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip, StripAccents, ByteLevel, Sequence";

std::string stripSpace(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!isWhiteSpace(nextCodePoint(text, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    size_t previous = end;
    if (!isWhiteSpace(previousCodePoint(text, previous))) break;
    end = previous;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string withoutMarks(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t point = nextCodePoint(text, at);
    if (!isMark(point)) appendUtf8(result, point);
  }
  return result;
}

Normalizer simple(std::string (*function)(std::string_view)) {
  return [function](const std::string& text) -> Result<std::string> { return function(text); };
}

}  // namespace

Result<Normalizer> readNormalizer(const JsonValue* value, const std::string& file, const std::string& place) {
  if (value == nullptr || value->isNull()) return Normalizer([](std::string text) -> Result<std::string> { return text; });
  LS_TRY(JsonFields fields, JsonFields::of(*value, file, place));
  LS_TRY(const std::string type, typeOf(fields));
  static const std::map<std::string, NormalForm> forms = {
      {"NFC", NormalForm::Nfc}, {"NFD", NormalForm::Nfd}, {"NFKC", NormalForm::Nfkc}, {"NFKD", NormalForm::Nfkd}};
  Normalizer normalizer;
  if (const auto form = forms.find(type); form != forms.end()) {
    normalizer = [form = form->second](const std::string& text) -> Result<std::string> { return normalize(text, form); };
  } else if (type == "Lowercase") {
    normalizer = simple(lowerCase);
  } else if (type == "StripAccents") {
    normalizer = simple(withoutMarks);
  } else if (type == "ByteLevel") {
    normalizer = simple(toByteLevel);
  } else if (type == "Strip") {
    LS_TRY(const bool left, fields.boolean("strip_left", true));
    LS_TRY(const bool right, fields.boolean("strip_right", true));
    normalizer = [left, right](const std::string& text) -> Result<std::string> { return stripSpace(text, left, right); };
  } else if (type == "Prepend") {
    LS_TRY(const std::string prefix, fields.text("prepend"));
    normalizer = [prefix](const std::string& text) -> Result<std::string> { return text.empty() ? text : prefix + text; };
  } else if (type == "Replace") {
    LS_TRY(const JsonValue* pattern_value, fields.required("pattern"));
    LS_TRY(const Pattern pattern, Pattern::read(*pattern_value, file, fields.placeOf("pattern")));
    LS_TRY(const std::string content, fields.text("content"));
    normalizer = [pattern, content](const std::string& text) { return pattern.replace(text, content); };
  } else if (type == "Sequence") {
    LS_TRY(const std::vector<Normalizer> parts, readParts<Normalizer>(fields, "normalizers", readNormalizer));
    normalizer = [parts](std::string text) -> Result<std::string> {
      for (const Normalizer& part : parts) {
        LS_TRY(text, part(std::move(text)));
        LS_CHECK(checkLength(text.size()));
      }
      return text;
    };
  } else {
    return fields.unsupported(fmt::format("{}: the normalizer '{}' is not supported", place, type),
                              fmt::format("supported: {}", kNormalizers));
  }
  LS_CHECK(fields.onlyThese());
  return normalizer;
}

}  // namespace lockstep::text
