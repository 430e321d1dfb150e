// SPDX-License-Identifier: Apache-2.0
// Text as tokens, one per character: numbers in words that are made up, or a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::examples {

/// Tokens of a text: a character of ASCII is its own number, every other byte is '?'.
constexpr int64_t kCharacters = 128;

/// "4207 four thousand two hundred seven"; below a million.
std::string spelledNumber(uint32_t number);

struct Text {
  std::vector<int32_t> train, test;  ///< the first nine tenths, and the rest
};
/// The file at `path`; where that is empty, 8000 lines of random numbers in words, always the same. Throws Error "data.text" when a part
/// has fewer than `shortest` characters.
Text loadText(const std::string& path, size_t shortest);

/// The characters of tokens.
std::string textOf(std::span<const int32_t> tokens);

}  // namespace lockstep::examples
