// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/syntax/format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "frontend/wgsl/syntax/token.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

std::string formatted(std::string_view text) {
  Result<std::string> result = format(text);
  EXPECT_TRUE(result.ok()) << text << renderDiagnostics(result.diagnostics(), text);
  return result.ok() ? *result : std::string();
}

std::vector<std::string> tokensOf(std::string_view text) {
  const Source source(text, "k.wgsl");
  Reporter reporter(source);
  std::vector<std::string> words;
  for (const Token& token : tokenize(source, reporter)) words.emplace_back(token.text);
  return words;
}

struct Case {
  const char *source, *expected;
};

TEST(Format, layout) {
  constexpr Case kCases[] = {
      {"", ""},
      {"\n\n  ", ""},
      {"enable   f16;const a=1;", "enable f16;\nconst a = 1;\n"},
      {"fn f(){}", "fn f() {}\n"},
      {"fn f(){print ( \"a  // \\\" b\",\"x =\",1);}", "fn f() {\n  print(\"a  // \\\" b\", \"x =\", 1);\n}\n"},
      {"fn f( a : ptr<function,i32> , b:f32 )->f32{return -b;}", "fn f(a: ptr<function, i32>, b: f32) -> f32 {\n  return -b;\n}\n"},
      {"@group(0)@binding(1)var<storage,read_write>x:array<vec4<f32>,4>;",
       "@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>, 4>;\n"},
      {"@compute @workgroup_size(8,\n8)\nfn main(){}", "@compute @workgroup_size(8,\n  8)\nfn main() {}\n"},
      {"struct S{a:array<i32,4>,@align(16) b:f32,}", "struct S {\n  a: array<i32, 4>,\n  @align(16) b: f32,\n}\n"},
      {"fn f(){if(a<b){x();}else if(c){y();}else{z();}}",
       "fn f() {\n  if (a < b) {\n    x();\n  } else if (c) {\n    y();\n  } else {\n    z();\n  }\n}\n"},
      {"fn f(){for(var i=0u;i<10u;i++){g(i);}while a{b--;}}",
       "fn f() {\n  for (var i = 0u; i < 10u; i++) {\n    g(i);\n  }\n  while a {\n    b--;\n  }\n}\n"},
      {"fn f(){loop{i+=1;continuing{break if(i>4);}}}",
       "fn f() {\n  loop {\n    i += 1;\n    continuing {\n      break if (i > 4);\n    }\n  }\n}\n"},
      {"fn f(){switch i{case 1,2:{a();}default{}}}",
       "fn f() {\n  switch i {\n    case 1, 2: {\n      a();\n    }\n    default {}\n  }\n}\n"},
      {"fn f(){_=a- --a;_=!!c;_=a&&b;_=- --a;}", "fn f() {\n  _ = a - --a;\n  _ = !!c;\n  _ = a && b;\n  _ = - --a;\n}\n"},
      {"fn f(){*p=*p-1;(*p)++;x[i]=&y;z=a- -b*!c;w=- -a;_=~a;}",
       "fn f() {\n  *p = *p - 1;\n  (*p)++;\n  x[i] = &y;\n  z = a - -b * !c;\n  w = - -a;\n  _ = ~a;\n}\n"},
      {"fn f(){let a=g(1,\n2)+\n   h[3];}", "fn f() {\n  let a = g(1,\n    2) +\n    h[3];\n}\n"},
  };
  for (const Case& c : kCases) EXPECT_EQ(formatted(c.source), c.expected) << c.source;
}

TEST(Format, comments_stay_where_they_are) {
  constexpr Case kCases[] = {
      {"// a\nconst a=1; // b\n// c", "// a\nconst a = 1; // b\n// c\n"},
      {"const a=1;\n\n\n\n// b\n\nconst b=2;", "const a = 1;\n\n// b\n\nconst b = 2;\n"},
      {"fn f(){ // a\n  // b\n\n  x(); // c\n  // d\n}", "fn f() { // a\n  // b\n\n  x(); // c\n  // d\n}\n"},
      {"fn f(/* a */x:i32/*b*/){}", "fn f( /* a */ x: i32 /*b*/ ) {}\n"},
      {"fn f(a:i32, // first\nb:i32){}", "fn f(a: i32, // first\n  b: i32) {}\n"},
      {"/* a /* b */\n   c */\nconst a=1;", "/* a /* b */\n   c */\nconst a = 1;\n"},
      {"/* a */ const a=1;", "/* a */ const a = 1;\n"},
      {"fn f(){/* empty */}", "fn f() { /* empty */ }\n"},
      {"fn f(){\n\n  x();\n\n\n  y();\n\n}", "fn f() {\n  x();\n\n  y();\n}\n"},
  };
  for (const Case& c : kCases) EXPECT_EQ(formatted(c.source), c.expected) << c.source;
}

TEST(Format, syntaxErrors_areReported) {
  const Result<std::string> result = format("fn f( {", "bad.wgsl");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "wgsl.syntax");
  EXPECT_EQ(result.diagnostics().front().where.file, "bad.wgsl");
}

TEST(Format, texts_keepTheirTokens_andAreStable) {
  size_t texts = 0;
  for (const char* folder : {"/tests/frontend/wgsl/data", "/shaders", "/shaders/shared", "/tests/fuzz/corpus/wgsl"}) {
    const std::filesystem::path path = std::string(LOCKSTEP_SOURCE_DIR) + folder;
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() != ".wgsl") continue;
      const std::string text = readFile(entry.path());
      const Result<std::string> once = format(text);
      if (!once.ok()) continue;  // a text that is wrong on purpose
      EXPECT_EQ(tokensOf(*once), tokensOf(text)) << entry.path();
      EXPECT_EQ(formatted(*once), *once) << entry.path();
      ++texts;
    }
  }
  EXPECT_GT(texts, 10u);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
