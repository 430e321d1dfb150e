// SPDX-License-Identifier: Apache-2.0
// What WGSL promises that every implementation takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

std::string list(size_t count, const std::function<std::string(size_t)>& item) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += (i == 0 ? "" : ", ") + item(i);
  return out;
}

std::string repeated(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Limits, wide_thingsAreAccepted) {
  readGood("struct S { " + list(1023, [](size_t i) { return fmt::format("m{}: i32", i); }) +
           " } @group(0) @binding(0) var<storage> s: S; fn f() -> i32 { return s.m1022; }");
  readGood("fn f(" + list(255, [](size_t i) { return fmt::format("p{}: i32", i); }) +
           ") -> i32 { return p254; } fn g() -> i32 { return f(" + list(255, [](size_t i) { return std::to_string(i); }) + "); }");
  readGood("fn f(x: i32) -> i32 { switch x { case " + list(1023, [](size_t i) { return std::to_string(i); }) +
           ": { return 1; } default: { return 2; } } }");
  readGood("fn f(i: i32) -> i32 { return array(" + list(2047, [](size_t i) { return std::to_string(i); }) + ")[i]; }");
  readGood("fn f(i: i32) -> i32 { return array(" + list(2047, [](size_t) { return std::string("i"); }) + ")[i]; }");
  readGood("var<private> a: array<u32, 2048>; fn f() { var b: array<u32, 2048>; b = a; a = b; }");
  readGood("var<workgroup> a: array<u32, 4096>; fn f() { a[4095] = 1; }");
}

TEST(Limits, deep_thingsAreAccepted) {
  readGood("fn f() { " + repeated("{", 126) + repeated("}", 126) + " }");
  readGood("fn f(x: bool) { " + repeated("if x {", 126) + repeated("}", 126) + " }");
  readGood("fn f(x: bool) { " + repeated("loop { break; ", 126) + repeated("}", 126) + " }");
  readGood("fn f(x: bool) { " + repeated("while x {", 126) + repeated("}", 126) + " }");
  readGood("fn f(x: i32) { " + repeated("switch x { default { ", 63) + repeated("} }", 63) + " }");
  readGood("fn f(x: i32) -> i32 { return " + repeated("(", 127) + "x" + repeated(")", 127) + "; }");
  readGood("fn f(x: bool) { " + repeated("if x {} else ", 200) + "{} }");
  std::string types = "struct S0 { a: i32 }\n";
  for (int i = 1; i < 14; ++i) types += fmt::format("struct S{} {{ a: S{} }}\n", i, i - 1);
  readGood(types + "var<private> s: S13;");
}

TEST(Limits, longLinesAndManyNames_takeLinearTime) {
  // One line of more than a megabyte, and as many types and members as that has room for.
  std::string source = "fn f(x: i32) -> i32 { var y = x;";
  for (int i = 0; i < 60000; ++i) source += " y = y * 3 + x;";
  EXPECT_TRUE(read(source + " return y; }").ok());
  std::string structs;
  for (int i = 0; i < 10000; ++i) structs += fmt::format("struct S{} {{ a: array<i32, {}> }}\n", i, i + 1);
  EXPECT_TRUE(check(structs).empty());
  EXPECT_TRUE(check("struct S { " + list(16383, [](size_t i) { return fmt::format("m{}: i32", i); }) + " }").empty());
}

}  // namespace
}  // namespace lockstep::wgsl::testing
