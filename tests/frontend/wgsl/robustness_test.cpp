// SPDX-License-Identifier: Apache-2.0
// No input makes the reader crash or hang; what it accepts is valid.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

void expectAnswer(const std::string& source) {
  const auto module = read(source);
  if (!module.ok()) {
    EXPECT_FALSE(module.diagnostics().empty());
    EXPECT_FALSE(renderDiagnostics(module.diagnostics(), source).empty());
    return;
  }
  EXPECT_TRUE(kernel::validate(*module).ok()) << source;
  EXPECT_TRUE(read(write(*module)).ok()) << source << "\nwas written as\n" << write(*module);
}

std::string repeated(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Robustness, everyPrefixOfEveryFile_isAnswered) {
  for (const auto& path : dataFiles()) {
    const std::string source = readFile(path);
    for (size_t length = 0; length < source.size(); length += 7) expectAnswer(source.substr(0, length));
  }
}

TEST(Robustness, mutatedFiles_areAnswered) {
  std::mt19937 random(20240607);
  constexpr std::string_view kTokens[] = {"(", ")", "{",  "}",    "<",  ">",   ";", "&", "*", "vec3",  "1",    "0x",
                                          ".", "@", "if", "loop", "fn", "ptr", "-", "=", ",", "array", "\xff", "f"};
  for (const auto& path : dataFiles()) {
    const std::string source = readFile(path);
    for (int i = 0; i < 60; ++i) {
      std::string mutant = source;
      for (int k = 0; k < 3; ++k) {
        const size_t at = random() % mutant.size();
        if (random() % 2 == 0) {
          mutant.erase(at, 1 + random() % 9);
        } else {
          mutant.insert(at, kTokens[random() % std::size(kTokens)]);
        }
      }
      expectAnswer(mutant);
    }
  }
}

TEST(Robustness, deepNesting_isRefused) {
  constexpr size_t kDepth = 20000;
  const std::string kDeep[] = {
      "const a = " + repeated("(", kDepth) + "1" + repeated(")", kDepth) + ";",
      "const a = " + repeated("-", kDepth) + "1;",
      "const a = " + repeated("- ", kDepth) + "1;",
      "const a = " + repeated("f(", kDepth) + "1;",
      "const a = x" + repeated("[0]", kDepth) + ";",
      "const a = x" + repeated(".x", kDepth) + ";",
      "alias a = " + repeated("array<", kDepth) + "i32" + repeated(">", kDepth) + ";",
      "fn f() { " + repeated("{", kDepth) + repeated("}", kDepth) + " }",
      "fn f() { " + repeated("if true {", kDepth) + repeated("}", kDepth) + " }",
      "fn f() { " + repeated("loop {", kDepth),
      "fn f() { " + repeated("if true {} else ", kDepth) + "{} }",
      repeated("/*", kDepth),
      repeated("fn f() {", kDepth),
      repeated("a<", kDepth),
      repeated("struct S {", kDepth),
      repeated("@a(", kDepth),
  };
  for (const std::string& source : kDeep) {
    const auto module = read(source);
    EXPECT_FALSE(module.ok()) << source.substr(0, 40);
  }
}

TEST(Robustness, aSwitch_hasAtMost16383Selectors) {
  const auto switchOf = [](int count) {
    std::string source = "fn f(x: i32) { switch x {\n";
    for (int i = 0; i < count; ++i) source += fmt::format("case {}: {{}}\n", i);
    return source + "default: {} } }";
  };
  EXPECT_EQ(firstError(switchOf(16383)), "accepted");
  EXPECT_EQ(firstError(switchOf(16384)), "16385:6 wgsl.limit: a switch has at most 16383 case selectors, this one has 16384");
}

TEST(Robustness, aFunction_hasAtMost255Parameters) {
  const auto functionOf = [](int count) {
    std::string source = "fn f(";
    for (int i = 0; i < count; ++i) source += fmt::format("p{}: i32,\n", i);
    return source + ") {}";
  };
  EXPECT_EQ(firstError(functionOf(255)), "accepted");
  EXPECT_EQ(firstError(functionOf(256)), "256:1 wgsl.limit: a function has at most 255 parameters, 'f' has 256");
  EXPECT_NE(firstError(functionOf(20000)).find("'f' has 20000"), std::string::npos);
}

TEST(Robustness, aStruct_hasAtMost16383Members) {
  const auto structOf = [](int count) {
    std::string source = "struct S {\n";
    for (int i = 0; i < count; ++i) source += fmt::format("m{}: i32,\n", i);
    return source + "}";
  };
  EXPECT_EQ(firstError(structOf(16383)), "accepted");
  EXPECT_EQ(firstError(structOf(16384)), "16385:1 wgsl.limit: a struct has at most 16383 members, 'S' has 16384");
}

TEST(Robustness, longButFlatInput_isAccepted) {
  readGood("const a = 0" + repeated(" + 1", 20000) + "; const_assert a == 20000;");
  readGood("fn f(x: i32) -> i32 { return x" + repeated(" + x", 20000) + "; }");
  readGood("fn f(x: bool) -> bool { return x" + repeated(" || x", 5000) + "; }");
  std::string functions = "fn f0() {}\n";
  for (int i = 1; i < 3000; ++i) functions += fmt::format("fn f{}() {{ f{}(); }}\n", i, i - 1);
  readGood(functions);
}

TEST(Robustness, deepNestingWithinTheLimit_isAccepted) {
  readGood("const a = " + repeated("(", 120) + "1" + repeated(")", 120) + ";");
  readGood("fn f() { " + repeated("{", 120) + repeated("}", 120) + " }");
  readGood("fn f(x: bool) { " + repeated("if x {", 60) + repeated("}", 60) + " }");
}

TEST(Robustness, declarationChains_areFollowedOrRefused) {
  std::string chain = "const a0 = 1;\n", reversed;
  for (int i = 1; i < 5000; ++i) {
    chain += fmt::format("const a{} = a{} + 1;\n", i, i - 1);
    reversed = fmt::format("const a{} = a{} + 1;\n", i, i - 1) + reversed;
  }
  readGood(chain);
  const std::string error = firstError(reversed + "const a0 = 1;");
  EXPECT_NE(error.find("too many declarations"), std::string::npos) << error;
}

TEST(Robustness, hugeTypesAndConstants_areRefused) {
  EXPECT_NE(firstError("var<private> a: array<array<array<f32, 65536>, 65536>, 65536>;").find("wgsl.limit"), std::string::npos);
  std::string doubling = "const a0 = array(1, 2);";
  for (int i = 1; i < 40; ++i) doubling += fmt::format("const a{} = array(a{}, a{});", i, i - 1, i - 1);
  EXPECT_NE(firstError(doubling), "accepted");
  std::string structs = "struct S0 { a: i32, b: i32 }";
  for (int i = 1; i < 64; ++i) structs += fmt::format("struct S{} {{ a: S{}, b: S{} }}", i, i - 1, i - 1);
  EXPECT_NE(firstError(structs).find("wgsl.limit"), std::string::npos);
  EXPECT_EQ(firstError("const a = array<array<f32, 1000>, 1000>(); const_assert a[999][999] == 0;"), "accepted");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
