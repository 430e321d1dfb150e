// SPDX-License-Identifier: Apache-2.0
#include "tests/ir/text_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <vector>

namespace lockstep {
namespace {

std::vector<std::string> splitLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string mutateLines(const std::string& text, std::mt19937& random) {
  std::vector<std::string> lines = splitLines(text);
  if (lines.empty()) return text;
  auto pick = [&] { return random() % lines.size(); };
  auto at = static_cast<std::ptrdiff_t>(pick());
  switch (random() % 3) {
    case 0:
      std::swap(lines[pick()], lines[pick()]);
      break;
    case 1:
      lines.insert(lines.begin() + at, lines[pick()]);
      break;
    case 2:
      lines.erase(lines.begin() + at);
      break;
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

std::string mutateOnce(std::string text, std::mt19937& random) {
  static const std::array<std::string, 26> kPieces{
      "{",   "}",  "[",     "]",     "%x",   "%0",      "@c0",   "@",   "=",     ",",          "\"",       "-1", "0", "9223372036854775807",
      "1e9", "99", "yield", "group", "f32[", "sidecar", "level", "%2:", "false", "4294967295", "\"name\"", "nan"};
  if (text.empty()) return text;
  size_t at = random() % text.size();
  switch (random() % 6) {
    case 0:
      text[at] = static_cast<char>(random() % 256);
      return text;
    case 1:
      text.erase(at, 1 + random() % 4);
      return text;
    case 2:
      text.insert(at, kPieces[random() % kPieces.size()]);
      return text;
    case 3: {  // a word or a number becomes another piece of the text
      size_t from = random() % text.size();
      text.replace(at, 1 + random() % 6, text.substr(from, 1 + random() % 6));
      return text;
    }
    case 4: {  // a digit becomes another one: stays syntactically right, so that it reaches the deeper checks
      size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random() % 10);
      return text;
    }
    default:
      return mutateLines(text, random);
  }
}

}  // namespace

std::string readData(const std::string& name) {
  std::ifstream file(std::string(LOCKSTEP_TEXT_DATA "/") + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string mutate(std::string text, std::mt19937& random) {
  for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) text = mutateOnce(std::move(text), random);
  return text;
}

bool reports(const Failure& failure, const std::string& code, uint32_t line) {
  return std::any_of(failure.diagnostics.begin(), failure.diagnostics.end(),
                     [&](const Diagnostic& diagnostic) { return diagnostic.code == code && (line == 0 || diagnostic.where.line == line); });
}

uint32_t lineOf(const std::string& text, const std::string& part) {
  std::vector<std::string> lines = splitLines(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(part) != std::string::npos) return static_cast<uint32_t>(i + 1);
  }
  return 0;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the text does not hold: " << from;
    return text;
  }
  return text.replace(at, from.size(), to);
}

}  // namespace lockstep
