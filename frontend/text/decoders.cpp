// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

constexpr const char* kDecoders = "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, BPEDecoder, Sequence";
using Tokens = std::vector<std::string>;

std::string joined(const Tokens& tokens, std::string_view between = "") {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += between;
    text += tokens[i];
  }
  return text;
}

std::optional<char> fallbackByte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

/// A run of bytes is text when all of it is UTF-8, else each byte is a replacement character.
Result<Tokens> joinFallbackBytes(Tokens tokens, DecodeMode mode) {
  Tokens result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (mode == DecodeMode::Stream || validUtf8Prefix(bytes) == bytes.size()) {
      result.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) result.emplace_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = fallbackByte(token)) {
      bytes += *byte;
    } else {
      flush();
      result.push_back(std::move(token));
    }
  }
  flush();
  return result;
}

std::string stripEnds(std::string_view text, std::string_view content, int64_t start, int64_t stop) {
  for (int64_t i = 0; i < start && text.starts_with(content); ++i) text.remove_prefix(content.size());
  for (int64_t i = 0; i < stop && text.ends_with(content); ++i) text.remove_suffix(content.size());
  return std::string(text);
}

Result<Decoder> readStrip(JsonFields& fields) {
  LS_TRY(const std::string content, fields.text("content"));
  if (countCodePoints(content) != 1) return fields.wrong(fields.placeOf("content") + " is not one character");
  LS_TRY(const int64_t start, fields.integer("start", 0));
  LS_TRY(const int64_t stop, fields.integer("stop", 0));
  return Decoder([=](Tokens tokens, DecodeMode /*mode*/) -> Result<Tokens> {
    for (std::string& token : tokens) token = stripEnds(token, content, start, stop);
    return tokens;
  });
}

Result<Decoder> readReplace(JsonFields& fields) {
  LS_TRY(const JsonValue* value, fields.required("pattern"));
  LS_TRY(const Pattern pattern, Pattern::read(*value, fields.file(), fields.placeOf("pattern")));
  LS_TRY(const std::string content, fields.text("content"));
  return Decoder([=](Tokens tokens, DecodeMode /*mode*/) -> Result<Tokens> {
    for (std::string& token : tokens) {
      // Bytes of a stream are not yet text for a regular expression.
      LS_TRY(token, pattern.replace(validUtf8Prefix(token) == token.size() ? token : lossyUtf8(token), content));
    }
    return tokens;
  });
}

Result<Decoder> readMetaspaceDecoder(JsonFields& fields) {
  LS_TRY(const std::string replacement, fields.text("replacement", "\xE2\x96\x81"));
  if (countCodePoints(replacement) != 1) return fields.wrong(fields.placeOf("replacement") + " is not one character");
  LS_TRY(const bool prefix, fields.boolean("add_prefix_space", true));
  LS_TRY(const std::string scheme, fields.text("prepend_scheme", prefix ? "always" : "never"));
  fields.ignore("split");
  fields.ignore("str_rep");
  return Decoder([=](Tokens tokens, DecodeMode /*mode*/) -> Result<Tokens> {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string space = i == 0 && scheme != "never" ? "" : " ";
      std::string text;
      for (size_t at = 0; at < tokens[i].size();) {
        if (tokens[i].compare(at, replacement.size(), replacement) == 0) {
          text += space;
          at += replacement.size();
        } else {
          text += tokens[i][at++];
        }
      }
      tokens[i] = std::move(text);
    }
    return tokens;
  });
}

}  // namespace

Result<Decoder> readDecoder(const JsonValue* value, const std::string& file, const std::string& place) {
  if (value == nullptr || value->isNull()) {
    return Decoder([](const Tokens& tokens, DecodeMode /*mode*/) -> Result<Tokens> { return Tokens{joined(tokens, " ")}; });
  }
  LS_TRY(JsonFields fields, JsonFields::of(*value, file, place));
  LS_TRY(const std::string type, typeOf(fields));
  Decoder result;
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.ignore(key);
    result = [](const Tokens& tokens, DecodeMode mode) -> Result<Tokens> {
      std::string bytes;
      for (const std::string& token : tokens) bytes += fromByteLevel(token);
      return Tokens{mode == DecodeMode::Stream ? bytes : lossyUtf8(bytes)};
    };
  } else if (type == "ByteFallback") {
    result = joinFallbackBytes;
  } else if (type == "Fuse") {
    result = [](const Tokens& tokens, DecodeMode /*mode*/) -> Result<Tokens> { return Tokens{joined(tokens)}; };
  } else if (type == "Strip") {
    LS_TRY(result, readStrip(fields));
  } else if (type == "Replace") {
    LS_TRY(result, readReplace(fields));
  } else if (type == "Metaspace") {
    LS_TRY(result, readMetaspaceDecoder(fields));
  } else if (type == "BPEDecoder") {
    LS_TRY(const std::string suffix, fields.text("suffix", "</w>"));
    LS_TRY(const Pattern pattern, Pattern::read(JsonValue(suffix), file, fields.placeOf("suffix")));
    result = [pattern](Tokens tokens, DecodeMode /*mode*/) -> Result<Tokens> {
      for (size_t i = 0; i < tokens.size(); ++i) {
        LS_TRY(tokens[i], pattern.replace(tokens[i], i + 1 == tokens.size() ? "" : " "));
      }
      return tokens;
    };
  } else if (type == "Sequence") {
    LS_TRY(const std::vector<Decoder> parts, readParts<Decoder>(fields, "decoders", readDecoder));
    result = [parts](Tokens tokens, DecodeMode mode) -> Result<Tokens> {
      for (const Decoder& part : parts) {
        LS_TRY(tokens, part(std::move(tokens), mode));
      }
      return tokens;
    };
  } else {
    return fields.unsupported(fmt::format("{}: the decoder '{}' is not supported", place, type), fmt::format("supported: {}", kDecoders));
  }
  LS_CHECK(fields.onlyThese());
  return result;
}

}  // namespace lockstep::text
