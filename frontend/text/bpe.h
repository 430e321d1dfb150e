// SPDX-License-Identifier: Apache-2.0
// Private: the model of a tokenizer. A piece of text becomes characters, and the pair of neighbours whose merge comes first in the list is
// merged, the leftmost of equal ones, until no pair has a merge.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/text/json_value.h"
#include "ir/support/result.h"

namespace lockstep::text {

/// Finds std::string keys by std::string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Vocabulary = std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>>;

class Bpe {
 public:
  static Result<Bpe> read(const JsonValue* model, const std::string& file);

  /// Adds the ids of a piece, in O(n log n). A character that has no token, where the file has no unk_token and no byte tokens, gives none;
  /// the return value is how many of these there were.
  size_t encode(std::string_view piece, std::vector<uint32_t>& ids) const;
  /// With ignore_merges a piece that is a token by itself is that token.
  [[nodiscard]] std::optional<uint32_t> wholePiece(std::string_view piece) const;
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Merge {
    uint32_t rank = 0, result = 0;
  };
  Status readVocabulary(JsonFields& fields);
  Status readMerges(JsonFields& fields);
  Status addMerge(std::string_view left, std::string_view right, const JsonFields& fields, size_t rank);
  size_t addCharacters(std::string_view piece, std::vector<uint32_t>& ids) const;
  bool addFallbackBytes(std::string_view character, std::vector<uint32_t>& ids) const;
  void merge(std::vector<uint32_t>& ids) const;
  [[nodiscard]] const Merge* mergeOf(uint32_t left, uint32_t right) const;

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;
  std::vector<std::optional<uint32_t>> byte_ids_;  ///< of <0x00> to <0xFF>
  std::optional<uint32_t> unknown_;
  std::string prefix_, suffix_;
  bool byte_fallback_ = false, fuse_unknown_ = false, ignore_merges_ = false;
};

}  // namespace lockstep::text
