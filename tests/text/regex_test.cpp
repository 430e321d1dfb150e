// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/regex.h"

#include <gtest/gtest.h>

#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

using Texts = std::vector<std::string>;

Texts found(const std::string& pattern, const std::string& text) {
  Texts texts;
  for (const Match& match : Regex::compile(pattern, "").orThrow().matches(text).orThrow())
    texts.push_back(text.substr(match.begin, match.end - match.begin));
  return texts;
}
std::string refusal(const std::string& pattern) {
  const Result<Regex> regex = Regex::compile(pattern, "");
  return regex ? "no error" : regex.diagnostics()[0].code;
}

TEST(Regex, classes_are_those_of_Oniguruma) {
  const std::string spaces = "\xC2\x85\xC2\xA0\xE1\x9A\x80\xE2\x80\xA8\xE3\x80\x80\v";
  EXPECT_EQ(found("\\s+", spaces), Texts{spaces});
  EXPECT_EQ(found("[\\s]+", spaces), Texts{spaces});
  EXPECT_EQ(found("\\s", "\xE1\xA0\x8E\xE2\x80\x8B\xEF\xBB\xBF"), Texts{});  // U+180E, U+200B and U+FEFF are no white space
  EXPECT_EQ(found("\\w+", "n\xC3\xA4h_e\xCC\x81 1\xD9\xA3-x"), (Texts{"n\xC3\xA4h_e\xCC\x81", "1\xD9\xA3", "x"}));
  EXPECT_EQ(found("\\h+", "xyzAf0 9"), (Texts{"Af0", "9"}));
  EXPECT_EQ(found("\\v", "\n\v\f"), Texts{"\v"});
  EXPECT_EQ(found("a.b", "a\nb"), Texts{});
  EXPECT_EQ(found("(?m)a.b", "a\nb"), Texts{"a\nb"});
  EXPECT_EQ(found("^b$", "a\nb\nc"), Texts{"b"});
  EXPECT_EQ(found("\\bm\\S*", "am mn m\xC3\xA4"), (Texts{"mn", "m\xC3\xA4"}));
  EXPECT_EQ(found("\\u0041", "A"), Texts{"A"});
  EXPECT_EQ(found("x{,2}y", "xxxy"), Texts{"xxy"});
  EXPECT_EQ(found("(?i:'s)", "'\xC5\xBF"), Texts{"'\xC5\xBF"});  // the long s is an s in another case
  EXPECT_EQ(found("[]a]+", "]a["), Texts{"]a"});
}

TEST(Regex, sets_with_a_name_and_scripts_are_those_of_Oniguruma) {
  EXPECT_EQ(found("\\w+", "m\xC2\xB2 \xC2\xBDx \xE2\x81\xB4"), (Texts{"m\xC2\xB2", "\xC2\xBDx"}));  // not U+2074, a superscript elsewhere
  EXPECT_EQ(found("[\\w]+|\\B.", "m\xC2\xB2"), (Texts{"m", "\xC2\xB2"}));                           // it is none in a set
  EXPECT_EQ(found("[[:word:]]+", "m\xC2\xB2"), Texts{"m"});
  EXPECT_EQ(found("[[:punct:]]+", "a+\xE2\x82\xAC=b"), Texts{"+\xE2\x82\xAC="});
  EXPECT_EQ(found("[[:alpha:]]+", "e\xCC\x81\xE2\x85\xA3 1"), (Texts{"e", "\xE2\x85\xA3"}));  // no marks; the number four is alphabetic
  EXPECT_EQ(found("[[:alnum:]]+",
                  "a\xC2\xB2"
                  "1"),
            (Texts{"a", "1"}));
  EXPECT_EQ(found("[[:upper:][:digit:]]+", "aB1\xE2\x85\xA3"), Texts{"B1\xE2\x85\xA3"});
  EXPECT_EQ(found("[^[:space:]]+",
                  "a\xE1\xA0\x8E"
                  "b"),
            Texts{"a\xE1\xA0\x8E"
                  "b"});
  EXPECT_EQ(found("[[:^alpha:]]+", "a1b"), Texts{"1"});
  EXPECT_EQ(found("\\p{Han}+", "\xE4\xBD\xA0\xE3\x80\x81\xE5\xA5\xBD"), (Texts{"\xE4\xBD\xA0", "\xE5\xA5\xBD"}));  // U+3001 is common
  EXPECT_EQ(found("[\\p{Hiragana}\\p{Nd}]+",
                  "\xE3\x81\x82"
                  "1\xE3\x83\xBC"),
            Texts{"\xE3\x81\x82"
                  "1"});
  EXPECT_EQ(found("\\P{Latin}+|\\p{^Han}", "a1"), (Texts{"a", "1"}));
}

TEST(Regex, empty_matches_move_on) {
  EXPECT_EQ(found("b*", "abb\xC3\xA4"), (Texts{"", "bb", ""}));
  EXPECT_EQ(found("", ""), Texts{""});
}

TEST(Regex, what_differs_and_cannot_be_rewritten_is_refused) {
  for (const char* pattern : {"[a[b]]", "[a&&b]", "a{1,2}+", "[\\W]", "(*UTF)a", "(?C1)a", "\\Qa\\E", "a\\Kb", "(?R)", "(", "a\\", "[a",
                              "\\p{NoSuchClass}", "\\pL", "[\\pL]", "[[:^alnum:]]", "[[:wide:]]", "\\C", "\\u12"}) {
    EXPECT_EQ(refusal(pattern), "tokenizer.regex") << pattern;
  }
}

TEST(Split, behaviors_are_those_of_Hugging_Face) {
  const Piece piece{.text = "the-final--countdown", .at_start = true};
  const std::vector<Match> dashes = {{3, 4}, {9, 10}, {10, 11}};
  const auto texts = [&](SplitBehavior behavior, bool invert = false) {
    Texts all;
    for (const Piece& part : splitPiece(piece, dashes, invert, behavior)) all.push_back(part.text);
    return all;
  };
  EXPECT_EQ(texts(SplitBehavior::Removed), (Texts{"the", "final", "countdown"}));
  EXPECT_EQ(texts(SplitBehavior::Isolated), (Texts{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(texts(SplitBehavior::MergedWithPrevious), (Texts{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(texts(SplitBehavior::MergedWithNext), (Texts{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(texts(SplitBehavior::Contiguous), (Texts{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(texts(SplitBehavior::Removed, true), (Texts{"-", "-", "-"}));
}

TEST(Unicode, normal_forms) {
  EXPECT_EQ(normalize("A\xCC\x8A", NormalForm::Nfc), "\xC3\x85");
  EXPECT_EQ(normalize("\xC3\x85", NormalForm::Nfd), "A\xCC\x8A");
  EXPECT_EQ(normalize("\xEF\xAC\x81", NormalForm::Nfkc), "fi");
  EXPECT_EQ(normalize("\xEF\xAC\x81", NormalForm::Nfc), "\xEF\xAC\x81");
  EXPECT_EQ(normalize("a\xCC\x81\xCC\xA3", NormalForm::Nfd), "a\xCC\xA3\xCC\x81");
  EXPECT_EQ(normalize("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", NormalForm::Nfc), "\xED\x95\x9C");
  EXPECT_EQ(normalize(std::string("\0\xC3\x85", 3), NormalForm::Nfc), std::string("\0\xC3\x85", 3));
}

TEST(Unicode, parts_of_characters) {
  EXPECT_EQ(incompleteUtf8Tail("a\xF0\x9F\x91"), 3u);
  EXPECT_EQ(incompleteUtf8Tail("a\xE4\xBD"), 2u);
  EXPECT_EQ(incompleteUtf8Tail("a\xE4\xBD\xA0"), 0u);
  EXPECT_EQ(incompleteUtf8Tail("a\xFF"), 0u);
  EXPECT_EQ(incompleteUtf8Tail("\x80\x80\x80\x80"), 0u);
  EXPECT_EQ(lossyUtf8("a\xF0\x9F\x91z\x80\xC0\xAF"), "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(validUtf8Prefix("\xED\xA0\x80"), 0u);
  EXPECT_EQ(validUtf8Prefix("\xF4\x8F\xBF\xBF"), 4u);
  EXPECT_EQ(lowerCase("\xC4\xB0\xC3\x84"), "i\xCC\x87\xC3\xA4");
}

}  // namespace
}  // namespace lockstep::text
