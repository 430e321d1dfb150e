// SPDX-License-Identifier: Apache-2.0
// Private: the tokens that are found in a text before anything else happens to it, the longest of those that begin first.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/text/pipeline.h"
#include "ir/support/result.h"

namespace lockstep::text {

struct AddedToken {
  uint32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no word goes on before or after it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< is found in the normalised text
  bool special = false;
};

/// A part of a text: an added token, or what lies between two.
struct TextPart {
  size_t begin = 0, end = 0;
  std::optional<uint32_t> id;
};

/// Which added tokens a text may contain.
enum class SpecialTokens : uint8_t { Find, LeaveAsText };

/// Finds texts of a set from left to right, the longest first.
class TextSet {
 public:
  void add(std::string_view text, size_t index);
  struct Found {
    size_t begin = 0, end = 0, index = 0;
  };
  /// The first at or after `from`.
  [[nodiscard]] std::optional<Found> find(std::string_view text, size_t from) const;

 private:
  std::unordered_map<uint64_t, uint32_t> edges_;  ///< (node, byte) to node
  std::vector<std::optional<size_t>> ends_ = {std::nullopt};
  std::array<bool, 256> begins_{};
};

class AddedTokens {
 public:
  static Result<AddedTokens> read(const JsonValue* value, const std::string& file);
  /// Makes the set of tokens that are found in normalised text, each normalised itself.
  Status normalizeWith(const Normalizer& normalizer);
  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }
  [[nodiscard]] std::vector<TextPart> split(std::string_view text, bool normalized, SpecialTokens special) const;

 private:
  std::vector<AddedToken> tokens_;
  TextSet raw_, normalized_;
};

}  // namespace lockstep::text
