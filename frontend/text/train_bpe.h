// SPDX-License-Identifier: Apache-2.0
// Learns a byte-level BPE from a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::text {

struct BpeTraining {
  /// Special tokens, the 256 bytes, and merges until this many tokens are there.
  size_t vocabulary_size = 1024;
  /// The first ids, in this order. Where they occur in the text they are not learned from.
  std::vector<std::string> special_tokens = {};
  /// A pair that occurs fewer times is not merged, so the vocabulary may stay smaller.
  uint64_t least_count = 2;
};

/// A tokenizer.json in Hugging Face's format, the same for the same text: of pairs that occur equally often, the one with the smaller ids
/// is merged first. Tokenizer::parse() reads it. code "tokenizer.train"
Result<std::string> trainByteLevelBpe(std::string_view text, const BpeTraining& training);

}  // namespace lockstep::text
