// SPDX-License-Identifier: Apache-2.0
// Private: the parts of tokenizer.json around its model, each read from its object into a function. Whatever an object has that is not
// known is an error, so nothing of a file is left out silently.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/json_value.h"
#include "frontend/text/regex.h"
#include "ir/support/result.h"

namespace lockstep::text {

using Normalizer = std::function<Result<std::string>(std::string)>;

/// A piece of the text on its way to the model.
struct Piece {
  std::string text;
  bool at_start = false;  ///< begins where the whole text begins
};
using PreTokenizer = std::function<Result<std::vector<Piece>>(std::vector<Piece>)>;

/// Adds the ids that belong around those of the text.
using PostProcessor = std::function<std::vector<uint32_t>(std::vector<uint32_t>)>;

/// Bytes that are not UTF-8 become U+FFFD in Whole text. While text is streamed they stay as they are, since the next token may complete
/// them.
enum class DecodeMode : uint8_t { Whole, Stream };
using Decoder = std::function<Result<std::vector<std::string>>(std::vector<std::string>, DecodeMode)>;

/// `value` is null where the file has none; then the function does nothing, and the decoder joins with spaces.
Result<Normalizer> readNormalizer(const JsonValue* value, const std::string& file, const std::string& place);
Result<PreTokenizer> readPreTokenizer(const JsonValue* value, const std::string& file, const std::string& place);
Result<PostProcessor> readPostProcessor(const JsonValue* value, const std::string& file, const std::string& place);
Result<Decoder> readDecoder(const JsonValue* value, const std::string& file, const std::string& place);

/// Whether a text on its way may have so many bytes. Each part may make it longer, and a file may repeat them, so that without an end a
/// short text would take all memory. Code: tokenizer.limit.
Status checkLength(size_t bytes);

/// {"String": ..} or {"Regex": ..}, or the text itself.
class Pattern {
 public:
  static Result<Pattern> read(const JsonValue& value, const std::string& file, const std::string& place);
  static Result<Pattern> ofRegex(std::string_view regex);
  [[nodiscard]] Result<std::vector<Match>> matches(std::string_view text) const;
  [[nodiscard]] Result<std::string> replace(std::string_view text, std::string_view content) const;

 private:
  std::string string_;
  std::vector<Regex> regex_;  ///< one or none
};

enum class SplitBehavior : uint8_t { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };
/// Cuts each piece at the matches. Inverted, what lies between the matches counts as them.
std::vector<Piece> splitPiece(const Piece& piece, const std::vector<Match>& matches, bool invert, SplitBehavior behavior);

/// GPT-2's characters for the 256 bytes: printable ones stand for themselves, the others are moved to U+0100 and above.
const std::array<std::string, 256>& byteLevelAlphabet();
std::string toByteLevel(std::string_view bytes);
/// The bytes of the characters, or the text as it is where one of them stands for no byte.
std::string fromByteLevel(std::string_view text);
/// What GPT-2 cuts its text with.
std::string_view byteLevelPattern();

/// "Prepend" of {"type": "Prepend", ..}; `what` names the kind of object in messages.
Result<std::string> typeOf(JsonFields& fields);
/// "Sequence": the parts in `key`, each read by `read`.
template <class Part, class Read>
Result<std::vector<Part>> readParts(JsonFields& fields, std::string_view key, const Read& read) {
  LS_TRY(const JsonArray* values, fields.array(key));
  std::vector<Part> parts;
  for (size_t i = 0; i < values->size(); ++i) {
    LS_TRY(Part part, read(&(*values)[i], fields.file(), fields.placeOf(key) + "[" + std::to_string(i) + "]"));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace lockstep::text
