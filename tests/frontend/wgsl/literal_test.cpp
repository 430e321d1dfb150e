// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "frontend/wgsl/syntax/token.h"

namespace lockstep::wgsl {
namespace {

struct Case {
  const char* text;
  LiteralKind kind;
  int64_t integer;
  double number;
};

TEST(Literal, goodNumbers_areRead) {
  constexpr Case kCases[] = {
      {"0", LiteralKind::AbstractInt, 0, 0},
      {"42i", LiteralKind::I32, 42, 0},
      {"4294967295u", LiteralKind::U32, 4294967295, 0},
      {"0xFFu", LiteralKind::U32, 255, 0},
      {"0x1f", LiteralKind::AbstractInt, 31, 0},
      {"9223372036854775807", LiteralKind::AbstractInt, INT64_MAX, 0},
      {"1.5", LiteralKind::AbstractFloat, 0, 1.5},
      {".5", LiteralKind::AbstractFloat, 0, 0.5},
      {"1.", LiteralKind::AbstractFloat, 0, 1.0},
      {"0f", LiteralKind::F32, 0, 0},
      {"1f", LiteralKind::F32, 0, 1},
      {"1e3", LiteralKind::AbstractFloat, 0, 1000},
      {"1E+3f", LiteralKind::F32, 0, 1000},
      {"1.5e-2h", LiteralKind::F16, 0, 0.0149993896484375},
      {"0.1f", LiteralKind::F32, 0, 0.10000000149011612},
      {"0x1p4", LiteralKind::AbstractFloat, 0, 16},
      {"0x1.8p0f", LiteralKind::F32, 0, 1.5},
      {"0x.8p1", LiteralKind::AbstractFloat, 0, 1},
      {"0x1p-149f", LiteralKind::F32, 0, 1.401298464324817e-45},
      {"0x1.8", LiteralKind::AbstractFloat, 0, 1.5},
      {"0x1.00000000000008p0", LiteralKind::AbstractFloat, 0, 1},
      {"0x1.00000000000008000000001p0", LiteralKind::AbstractFloat, 0, 0x1.0000000000001p0},
      {"0x1p-5000", LiteralKind::AbstractFloat, 0, 0},
      {"1e-400", LiteralKind::AbstractFloat, 0, 0},
      {"1e-60f", LiteralKind::F32, 0, 0},
      {"65504h", LiteralKind::F16, 0, 65504},
  };
  for (const Case& c : kCases) {
    Literal literal;
    std::string error;
    const std::string text = std::string(c.text) + " rest";
    EXPECT_EQ(readNumber(text, literal, error), std::string_view(c.text).size()) << c.text;
    EXPECT_EQ(error, "") << c.text;
    EXPECT_EQ(literal.kind, c.kind) << c.text;
    EXPECT_EQ(literal.integer, c.integer) << c.text;
    EXPECT_EQ(literal.number, c.number) << c.text;
  }
}

TEST(Literal, badNumbers_areReported) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"012", "decimal integer literal has a leading zero"},
      {"00f", "decimal literal has a leading zero"},
      {"2147483648i", "literal is too large for i32"},
      {"4294967296u", "literal is too large for u32"},
      {"9223372036854775808", "literal is too large for abstract integer"},
      {"99999999999999999999999", "literal is too large for abstract integer"},
      {"1e40f", "literal is too large for f32"},
      {"1e400", "literal is too large for abstract float"},
      {"0x1p1024", "literal is too large for abstract float"},
      {"0x1.fffffffffffff8p1023", "literal is too large for abstract float"},
      {"65505h", "literal is too large for f16"},
      {"65520h", "literal is too large for f16"},
      {"1.5u", "suffix 'u' does not fit a floating-point literal"},
      {"0x1.0000000001p0f", "hexadecimal literal is not exactly representable as f32"},
      {"0x1p-150f", "hexadecimal literal is not exactly representable as f32"},
      {"0x1p128f", "literal is too large for f32"},
      {"1x", "malformed number '1x'"},
      {"1e", "malformed number '1e'"},
      {"0x", "malformed number '0x'"},
      {"1uu", "malformed number '1uu'"},
  };
  for (const auto& [text, message] : kCases) {
    Literal literal;
    std::string error;
    readNumber(text, literal, error);
    EXPECT_EQ(error, message) << text;
  }
}

TEST(Tokens, templateLists_areFound) {
  const auto kinds = [](std::string_view text) {
    const Source source(text, "t");
    Reporter reporter(source);
    std::string out;
    for (const Token& token : tokenize(source, reporter)) {
      out += token.kind == TokenKind::TemplateStart ? '[' : token.kind == TokenKind::TemplateEnd ? ']' : '.';
    }
    return reporter.failed() ? "failed" : out;
  };
  EXPECT_EQ(kinds("a<b>"), ".[.].");
  EXPECT_EQ(kinds("a<b<c>>"), ".[.[.]].");
  EXPECT_EQ(kinds("a < b; c > d"), "........");
  EXPECT_EQ(kinds("f(a < b, c > d)"), "...[...]...");
  EXPECT_EQ(kinds("a<b && c>d"), "........");
  EXPECT_EQ(kinds("a[b<c]>d"), ".........");
  EXPECT_EQ(kinds("a<(b>c)>"), ".[.....].");
  EXPECT_EQ(kinds("vec2<f32>=x"), ".[.]...");
  EXPECT_EQ(kinds("/* a /* b */ < */ a<b>//>"), ".[.].");
  EXPECT_EQ(kinds("/* open"), "failed");
  EXPECT_EQ(kinds("a $ b"), "failed");
}

}  // namespace
}  // namespace lockstep::wgsl
