// SPDX-License-Identifier: Apache-2.0
// What Oniguruma and PCRE2 mean differently:
//   \s    PCRE2 adds U+180E                     \w    PCRE2 10.42 leaves out marks, connectors and small numbers of Latin-1
//   \h    a hexadecimal digit; PCRE2: a space   \v    a vertical tab; PCRE2: any line break
//   (?m)  '.' takes line breaks; PCRE2: (?s)    [a[b]], [a&&b], x{1,2}+  sets of sets and a repeated repetition: refused
//   [:punct:] and others: PCRE2 has other characters in them
//   \p{Han} and other scripts: PCRE2 adds what is also used in the script, such as U+3001
//   \pL   the text pL; PCRE2: \p{L}; refused
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "frontend/text/regex.h"

namespace lockstep::text {
namespace {

// Oniguruma asks a table of Latin-1, which has superscripts and fractions as well, but not for sets.
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kWordSet = kWord.substr(0, kWord.find("\\x{B2}"));
constexpr std::string_view kHexSet = "0-9a-fA-F";

/// The members of [:name:], and of [:^name:] where they can be written as members, too.
struct NamedSet {
  std::string_view name, members, others = {};
};
constexpr std::array kNamedSets{
    NamedSet{"alnum", "\\p{Alphabetic}\\p{Nd}"},
    NamedSet{"alpha", "\\p{Alphabetic}", "\\P{Alphabetic}"},
    NamedSet{"ascii", "\\x00-\\x7F", "\\x{80}-\\x{10FFFF}"},
    NamedSet{"blank", "\\p{Zs}\\t"},
    NamedSet{"cntrl", "\\p{Cc}", "\\P{Cc}"},
    NamedSet{"digit", "\\p{Nd}", "\\P{Nd}"},
    NamedSet{"graph", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"},
    NamedSet{"lower", "\\p{Lowercase}", "\\P{Lowercase}"},
    NamedSet{"print", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}"},
    NamedSet{"punct", "\\p{P}\\p{S}"},
    NamedSet{"space", "\\p{White_Space}", "\\P{White_Space}"},
    NamedSet{"upper", "\\p{Uppercase}", "\\P{Uppercase}"},
    NamedSet{"word", kWordSet},
    NamedSet{"xdigit", kHexSet},
};

bool isScript(std::string_view name) {
  const std::string pattern = fmt::format("\\p{{sc:{}}}", name);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &offset, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

class SyntaxReader {
 public:
  explicit SyntaxReader(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> read() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        LS_CHECK(escape());
      } else if (in_set_) {
        LS_CHECK(inSet());
      } else {
        LS_CHECK(outside());
      }
    }
    return out_;
  }

 private:
  [[nodiscard]] Failure refuse(const std::string& what) const { return fail("tokenizer.regex", what); }
  [[nodiscard]] bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void copy(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }

  Status outside() {
    if (follows("(*") || follows("(?C") || follows("(?R") || follows("(?&") || follows("(?P>")) {
      return refuse(fmt::format("has '{}', which is not supported", pattern_.substr(at_, 3)));
    }
    if (follows("(?")) return group();
    if (pattern_[at_] == '[') {
      in_set_ = true;
      set_is_empty_ = true;
      copy(1);
      if (follows("^")) copy(1);
      return Success{};
    }
    if (pattern_[at_] == '{') return repetition();
    copy(1);
    return Success{};
  }

  /// "(?flags)" and "(?flags:" with Ruby's m as PCRE2's s; other groups stay.
  Status group() {
    size_t end = at_ + 2;
    while (end < pattern_.size() && (std::string_view("imx-").find(pattern_[end]) != std::string_view::npos)) ++end;
    if (end == at_ + 2 || end >= pattern_.size() || (pattern_[end] != ')' && pattern_[end] != ':')) {
      copy(2);
      return Success{};
    }
    std::string flags(pattern_.substr(at_, end + 1 - at_));
    std::ranges::replace(flags, 'm', 's');
    out_ += flags;
    at_ = end + 1;
    return Success{};
  }

  Status repetition() {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) {
      copy(1);
      return Success{};
    }
    const std::string_view inner = pattern_.substr(at_ + 1, close - at_ - 1);
    const bool counts = !inner.empty() && std::ranges::all_of(inner, [](char c) { return (c >= '0' && c <= '9') || c == ','; });
    if (!counts) {
      copy(1);
      return Success{};
    }
    if (close + 1 < pattern_.size() && pattern_[close + 1] == '+') {
      return refuse("has '+' after '{..}', which repeats the repetition in Ruby's syntax and is not supported");
    }
    // {,3} is {0,3}, which PCRE2 10.42 takes as text.
    out_ += inner.starts_with(',') ? fmt::format("{{0{}}}", inner) : fmt::format("{{{}}}", inner);
    at_ = close + 1;
    return Success{};
  }

  Status inSet() {
    if (pattern_[at_] == ']' && !set_is_empty_) {
      in_set_ = false;
    } else if (follows("[:")) {
      return namedSet();
    } else if (pattern_[at_] == '[') {
      return refuse("has a set inside of a set, which is not supported");
    } else if (follows("&&")) {
      return refuse("has '&&' in a set, which is not supported");
    }
    set_is_empty_ = false;
    copy(1);
    return Success{};
  }

  Status namedSet() {
    const size_t close = pattern_.find(":]", at_);
    if (close == std::string_view::npos) return refuse("has '[:' without ':]'");
    std::string_view name = pattern_.substr(at_ + 2, close - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const auto* found = std::ranges::find(kNamedSets, name, &NamedSet::name);
    const std::string_view members = found == kNamedSets.end() ? "" : negated ? found->others : found->members;
    if (members.empty()) return refuse(fmt::format("has '{}', which is not supported", pattern_.substr(at_, close + 2 - at_)));
    out_ += members;
    set_is_empty_ = false;
    at_ = close + 2;
    return Success{};
  }

  /// "\\p{name}", of which `at_` is the begin. A script is what is written in it alone.
  Status property() {
    const size_t close = pattern_.find('}', at_);
    if (pattern_.substr(at_ + 2, 1) != "{" || close == std::string_view::npos)
      return refuse(fmt::format("has '{}' without '{{..}}'", pattern_.substr(at_, 2)));
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    out_ += fmt::format("{}{{{}{}{}}}", pattern_.substr(at_, 2), negated ? "^" : "", isScript(name) ? "sc:" : "", name);
    at_ = close + 1;
    return Success{};
  }

  void set(bool negated, std::string_view members) { out_ += fmt::format("[{}{}]", negated ? "^" : "", members); }

  Status escape() {
    if (at_ + 1 >= pattern_.size()) return refuse("ends with a backslash");
    const char letter = pattern_[at_ + 1];
    const bool in_set = in_set_;
    set_is_empty_ = false;
    switch (letter) {
      case 'p':
      case 'P':
        return property();
      case 's':
        out_ += "\\p{White_Space}";
        break;
      case 'S':
        out_ += "\\P{White_Space}";
        break;
      case 'd':
        out_ += "\\p{Nd}";
        break;
      case 'D':
        out_ += "\\P{Nd}";
        break;
      case 'v':
        out_ += "\\x0B";
        break;
      case 'w':
      case 'h': {
        const std::string_view word = in_set ? kWordSet : kWord, members = letter == 'w' ? word : kHexSet;
        if (in_set) {
          out_ += members;
        } else {
          set(false, members);
        }
        break;
      }
      case 'W':
      case 'H':
        if (in_set) return refuse(fmt::format("has '\\{}' in a set, which is not supported", letter));
        set(true, letter == 'W' ? kWord : kHexSet);
        break;
      case 'b':
        if (in_set) {
          out_ += "\\x08";
        } else {
          out_ += fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord);
        }
        break;
      case 'B':
        out_ += fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord);
        break;
      case 'u': {
        const std::string_view digits = pattern_.substr(at_ + 2, 4);
        if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
          return refuse("has '\\u' without four hexadecimal digits");
        }
        out_ += fmt::format("\\x{{{}}}", digits);
        at_ += 4;
        break;
      }
      case 'Q':
      case 'E':
      case 'C':
      case 'g':
      case 'K':
        return refuse(fmt::format("has '\\{}', which is not supported", letter));
      default:
        out_ += pattern_.substr(at_, 2);
        break;
    }
    at_ += 2;
    return Success{};
  }

  std::string_view pattern_;
  std::string out_;
  size_t at_ = 0;
  bool in_set_ = false, set_is_empty_ = false;
};

}  // namespace

Result<std::string> toPcre2(std::string_view pattern) { return SyntaxReader(pattern).read(); }

}  // namespace lockstep::text
