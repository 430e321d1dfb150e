// SPDX-License-Identifier: Apache-2.0
#include "examples/data/language_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "examples/data/conversations.h"
#include "frontend/io/file.h"
#include "frontend/text/unicode.h"

namespace lockstep::examples {
namespace {

constexpr size_t kDocuments = 4000, kMostHeldOut = 32 << 10;

bool continuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// The first good place from `wanted` on; `wanted` itself, or the character after it, where there is none before the text ends.
size_t cutAt(const std::string& text, size_t wanted) {
  for (const std::string& end : {std::string(kTextEnd) + "\n", std::string(kTextEnd), std::string("\n")}) {
    const size_t found = text.find(end, wanted);
    // Not so far that little is left.
    if (found != std::string::npos && found + end.size() < wanted + (text.size() - wanted) / 2) return found + end.size();
  }
  while (wanted < text.size() && continuesCharacter(text[wanted])) ++wanted;
  return wanted;
}

}  // namespace

std::string nameOfText(const std::string& path) { return path.empty() ? "the text of the sample" : fmt::format("'{}'", path); }

LanguageText loadLanguageText(const std::string& path) {
  const std::string text = path.empty() ? madeUpText(kDocuments) : io::readTextFile(path).orThrow();
  const auto wrong = [&](const std::string& message, const std::string& remedy) {
    return Error(fail("data.text", fmt::format("{} {}", nameOfText(path), message), {}, remedy).diagnostics);
  };
  if (const size_t valid = text::validUtf8Prefix(text); valid < text.size())
    throw wrong(fmt::format("is not UTF-8 at byte {}", valid), "convert it to UTF-8");
  const size_t tested = std::min(text.size() / 10, kMostHeldOut);
  if (tested == 0) throw wrong(fmt::format("has {} bytes", text.size()), "--text names a file of text, of which a tenth is kept for tests");
  const size_t cut = cutAt(text, text.size() - tested);
  return {.train = text.substr(0, cut), .heldout = text.substr(cut)};
}

}  // namespace lockstep::examples
