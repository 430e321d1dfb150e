// SPDX-License-Identifier: Apache-2.0
#include "examples/data/text.h"

#include <fmt/format.h>

#include <array>

#include "frontend/data/random.h"
#include "frontend/io/file.h"

namespace lockstep::examples {
namespace {

constexpr std::array kBelowTwenty{"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                  "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                  "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array kTens{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};

/// A number below a thousand, in words.
std::string hundreds(uint32_t number) {
  std::string words;
  if (number >= 100) words = fmt::format("{} hundred", kBelowTwenty[number / 100]);
  number %= 100;
  if (number == 0) return words;
  if (!words.empty()) words += ' ';
  if (number < 20) return words + kBelowTwenty[number];
  words += kTens[number / 10];
  return number % 10 == 0 ? words : fmt::format("{}-{}", words, kBelowTwenty[number % 10]);
}

std::string numbers() {
  constexpr size_t kLines = 8000;
  Random random(1);
  std::string text;
  for (size_t i = 0; i < kLines; ++i) text += spelledNumber(static_cast<uint32_t>(random.below(1'000'000))) + '\n';
  return text;
}

}  // namespace

std::string spelledNumber(uint32_t number) {
  if (number == 0) return "0 zero";
  const uint32_t thousands = number / 1000, rest = number % 1000;
  std::string words = thousands == 0 ? "" : hundreds(thousands) + " thousand";
  if (rest > 0) words += (words.empty() ? "" : " ") + hundreds(rest);
  return fmt::format("{} {}", number, words);
}

Text loadText(const std::string& path, size_t shortest) {
  const std::string text = path.empty() ? numbers() : io::readTextFile(path).orThrow();
  std::vector<int32_t> tokens;
  for (const char character : text) {
    const auto byte = static_cast<uint8_t>(character);
    tokens.push_back(byte < kCharacters ? byte : '?');
  }
  const size_t tested = tokens.size() / 10;
  if (tested < shortest) {
    throw Error(fail("data.text", fmt::format("'{}' has {} characters, wanted {} or more", path, tokens.size(), 10 * shortest), {},
                     "--data names a file of text, of which a tenth is kept for tests")
                    .diagnostics);
  }
  const auto middle = tokens.end() - static_cast<std::ptrdiff_t>(tested);
  return {{tokens.begin(), middle}, {middle, tokens.end()}};
}

std::string textOf(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

}  // namespace lockstep::examples
