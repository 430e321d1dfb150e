// SPDX-License-Identifier: Apache-2.0
// One libFuzzer program: LOCKSTEP_FUZZ_ENTRY names the function of entries.h. Half of the mutations edit words rather than bytes, because
// bytes seldom turn one accepted text into another.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/entries.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Words = std::vector<std::string>;

/// Names and numbers as wholes, every other character as a word of its own.
Words wordsOf(const char* data, size_t size) {
  const auto isName = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  Words words;
  for (size_t i = 0; i < size;) {
    size_t end = i + 1;
    while (isName(data[i]) && end < size && isName(data[end])) ++end;
    words.emplace_back(data + i, end - i);
    i = end;
  }
  return words;
}

class Editor {
 public:
  explicit Editor(unsigned seed) : random_(seed) {}

  void edit(Words& words) {
    const size_t at = pick(words.size());
    switch (pick(6)) {
      case 0:
        words[at] = words[pick(words.size())];
        break;
      case 1:
        std::swap(words[at], words[pick(words.size())]);
        break;
      case 2:
        words.erase(place(words, at), place(words, std::min(words.size(), at + 1 + pick(4))));
        break;
      case 3:
        words.insert(place(words, at), Words{words[pick(words.size())]}.front());
        break;
      default:
        copyStatement(words, at);
    }
  }
  size_t pick(size_t count) { return random_() % count; }

 private:
  static Words::iterator place(Words& words, size_t at) { return words.begin() + static_cast<ptrdiff_t>(at); }

  /// What lies between two ends of statements stands again at the end of another one.
  void copyStatement(Words& words, size_t at) {
    const auto ends = [](const std::string& word) { return word == ";" || word == "\n" || word == "{" || word == "}"; };
    const auto from = place(words, at);
    const auto to = std::find_if(from, words.end(), ends);
    if (to == words.end()) return;
    const Words statement(from, to + 1);
    const auto behind = std::find_if(place(words, pick(words.size())), words.end(), ends);
    if (behind != words.end()) words.insert(behind + 1, statement.begin(), statement.end());
  }

  std::minstd_rand random_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Editor editor(seed);
  if (size == 0 || editor.pick(2) == 0) return LLVMFuzzerMutate(data, size, max_size);
  Words words = wordsOf(reinterpret_cast<const char*>(data), size);
  for (size_t edits = 1 + editor.pick(3); edits > 0 && !words.empty(); --edits) editor.edit(words);
  std::string text;
  for (const std::string& word : words) text += word;
  if (text.empty() || text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::fuzz::LOCKSTEP_FUZZ_ENTRY(std::as_bytes(std::span(data, size)));
  return 0;
}
