// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/syntax/words.h"

namespace lockstep::wgsl {
namespace {

constexpr std::array kReserved = std::to_array<std::string_view>({
    "NULL",
    "Self",
    "abstract",
    "active",
    "alignas",
    "alignof",
    "as",
    "asm",
    "asm_fragment",
    "async",
    "attribute",
    "auto",
    "await",
    "become",
    "cast",
    "catch",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "coherent",
    "column_major",
    "common",
    "compile",
    "compile_fragment",
    "concept",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "crate",
    "debugger",
    "decltype",
    "delete",
    "demote",
    "demote_to_helper",
    "do",
    "dynamic_cast",
    "enum",
    "explicit",
    "export",
    "extends",
    "extern",
    "external",
    "fallthrough",
    "filter",
    "final",
    "finally",
    "friend",
    "from",
    "fxgroup",
    "get",
    "goto",
    "groupshared",
    "highp",
    "impl",
    "implements",
    "import",
    "inline",
    "instanceof",
    "interface",
    "layout",
    "lowp",
    "macro",
    "macro_rules",
    "match",
    "mediump",
    "meta",
    "mod",
    "module",
    "move",
    "mut",
    "mutable",
    "namespace",
    "new",
    "nil",
    "noexcept",
    "noinline",
    "nointerpolation",
    "non_coherent",
    "noncoherent",
    "noperspective",
    "null",
    "nullptr",
    "of",
    "operator",
    "package",
    "packoffset",
    "partition",
    "pass",
    "patch",
    "pixelfragment",
    "precise",
    "precision",
    "premerge",
    "priv",
    "protected",
    "pub",
    "public",
    "readonly",
    "ref",
    "regardless",
    "register",
    "reinterpret_cast",
    "require",
    "resource",
    "restrict",
    "self",
    "set",
    "shared",
    "sizeof",
    "smooth",
    "snorm",
    "static",
    "static_assert",
    "static_cast",
    "std",
    "subroutine",
    "super",
    "target",
    "template",
    "this",
    "thread_local",
    "throw",
    "trait",
    "try",
    "type",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unless",
    "unorm",
    "unsafe",
    "unsized",
    "use",
    "using",
    "varying",
    "virtual",
    "volatile",
    "wgsl",
    "where",
    "with",
    "writeonly",
    "yield",
});

template <size_t N>
constexpr bool isGrouped(const std::array<std::string_view, N>& words) {
  return groupsOf(words).back() == N;
}
static_assert(isGrouped(kWords) && isGrouped(kReserved));

constexpr auto kWordGroups = groupsOf(kWords), kReservedGroups = groupsOf(kReserved);

/// Their first bytes are the same.
bool beginsWith(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (size_t i = 1; i < word.size(); ++i) {
    if (text[i] != word[i]) return false;
  }
  return true;
}

/// The first word of the text's group that `fits`, as an index; the size of the table if none does.
template <size_t N, class Fits>
size_t findInGroup(const std::array<std::string_view, N>& words, const std::array<uint8_t, 129>& groups, std::string_view text,
                   const Fits& fits) {
  const auto byte = text.empty() ? 0x80u : static_cast<unsigned char>(text.front());
  if (byte >= 0x80) return N;
  for (size_t i = groups[byte]; i < groups[byte + 1u]; ++i) {
    if (fits(words[i])) return i;
  }
  return N;
}

}  // namespace

Word findKeyword(std::string_view text) {
  const size_t at =
      findInGroup(kWords, kWordGroups, text, [&](std::string_view word) { return word.size() == text.size() && beginsWith(text, word); });
  return at < kWords.size() ? Word::at(at) : Word();
}

Word findPunctuation(std::string_view text) {
  const size_t at = findInGroup(kWords, kWordGroups, text, [&](std::string_view word) { return beginsWith(text, word); });
  return at < kWords.size() ? Word::at(at) : Word();
}

bool isReservedWord(std::string_view word) {
  return findInGroup(kReserved, kReservedGroups, word,
                     [&](std::string_view each) { return each.size() == word.size() && beginsWith(word, each); }) < kReserved.size();
}

}  // namespace lockstep::wgsl
