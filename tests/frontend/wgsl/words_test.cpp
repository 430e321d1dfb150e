// SPDX-License-Identifier: Apache-2.0
// Keywords, reserved words, identifiers, blank space and comments.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// Every kind of declaration with one name.
std::vector<std::string> declarations(const std::string& name) {
  constexpr const char* kForms[] = {
      "const {} = 1;",
      "override {} = 1;",
      "var<private> {} = 1;",
      "alias {} = i32;",
      "struct {} {{ a: i32 }}",
      "struct S {{ {}: i32 }}",
      "fn {}() {{}}",
      "fn f({}: i32) {{}}",
      "fn f() {{ let {} = 1; }}",
      "fn f() {{ var {} = 1; }}",
      "fn f() {{ const {} = 1; }}",
  };
  std::vector<std::string> out;
  for (const char* form : kForms) out.push_back(fmt::format(fmt::runtime(form), name));
  return out;
}

TEST(Words, keywordsAndReservedWords_areNoNames) {
  const std::string keywords =
      "alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop override "
      "requires return struct switch true var while";
  const std::string reserved =
      "NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class co_await co_return "
      "co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate debugger "
      "decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter final "
      "finally friend from fxgroup get goto groupshared highp impl implements import inline instanceof interface layout lowp macro "
      "macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent "
      "noncoherent noperspective null nullptr of operator package packoffset partition pass patch pixelfragment precise precision premerge "
      "priv protected pub public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth "
      "snorm static static_assert static_cast std subroutine super target template this thread_local throw trait try type typedef typeid "
      "typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield";
  for (const std::string& word : words(keywords + " " + reserved + " _ __ __a")) {
    for (const std::string& text : declarations(word)) EXPECT_NE(firstError(text), "accepted") << text;
  }
}

TEST(Words, contextDependentNames_areNames) {
  for (const std::string& word : words(
           "align binding builtin compute group id location must_use size workgroup_size vertex flat center position read write function "
           "storage uniform workgroup off info warning error derivative_uniformity vec3 f32 array ptr sampler texture_2d sin f16 subgroups "
           "bool _a a_ a__ _1")) {
    for (const std::string& text : declarations(word)) EXPECT_EQ(firstError(text), "accepted") << text;
  }
  EXPECT_EQ(firstError("var<private> private = 1;"), "1:5 wgsl.name: 'private' is a declaration here, not a word of WGSL");
}

TEST(Words, blanks_separateAndEndLines) {
  for (const char* blank : {" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u200E", "\u200F", "\u2028", "\u2029"}) {
    EXPECT_EQ(firstError(fmt::format("const{}a{}={}1;", blank, blank, blank)), "accepted");
  }
  for (const char* end : {"\n", "\v", "\f", "\r", "\r\n", "\u0085", "\u2028", "\u2029"}) {
    EXPECT_NE(firstError(fmt::format("// comment{}x", end)), "accepted");
    EXPECT_EQ(firstError(fmt::format("// comment{}const a = 1;", end)), "accepted");
  }
  for (const char* inside : {" ", "\t", "\u200E", "\u200F", "/* ", "*/", "\""}) {
    EXPECT_EQ(firstError(fmt::format("// comment{}x", inside)), "accepted");
  }
  EXPECT_EQ(firstError("/* a /* b */ c */ const a = 1;"), "accepted");
  EXPECT_EQ(firstError("/* a /* b */ const a = 1;"), "1:1 wgsl.syntax: block comment is not closed");
  using namespace std::string_literals;
  EXPECT_EQ(firstError("// a\0b"s), "1:5 wgsl.syntax: a null character is not allowed");
  EXPECT_EQ(firstError("/* a\0b */"s), "1:5 wgsl.syntax: a null character is not allowed");
  EXPECT_EQ(firstError("/* a\xFF */"), "1:5 wgsl.syntax: byte 0xff is not UTF-8 text");
}

TEST(Words, templateLists_areFound) {
  for (const char* text : {
           "fn f(a: i32, b: i32, c: i32) { _ = a < b; _ = (a < b) || (c > a); }",
           "const a = array<array<i32, 2>, 3>();",
           "const a = array<vec2<f32>, select(2, 3, 4 > 3)>();",
           "const a = array<i32, (4 >> 1)>();",
           "fn f(a: i32, b: i32) { var x = vec2<i32>(a, b)>=vec2<i32>(b); }",
           "var<private> a: array<vec4<f32>, 3>= array<vec4<f32>, 3>();",
           "fn f(a: i32, b: i32) -> bool { return a<b && b>(a); }",
       }) {
    EXPECT_EQ(firstError(text), "accepted") << text;
  }
  // Reads as one call of a<b, b>(c).
  EXPECT_NE(firstError("fn g(x: bool, y: bool) {} fn f(a: i32, b: i32, c: i32) { g(a < b, b > (c)); }"), "accepted");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
