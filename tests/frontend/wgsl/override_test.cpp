// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

constexpr const char* kSource =
    "override tile: u32 = 8;\n"
    "override twice = tile * 2;\n"
    "@id(7) override rate: f32;\n"
    "override flag = false;\n"
    "var<workgroup> w: array<f32, twice>;\n"
    "@compute @workgroup_size(tile, twice) fn main() { w[tile] = select(rate, 0.0, flag); }\n";

TEST(Overrides, values_areSubstituted) {
  const kernel::Module module = readGood(kSource, {.file_name = "k", .overrides = {{"tile", 4}, {"7", 0.5}, {"flag", 1}}});
  EXPECT_EQ(*module.findFunction("main")->workgroup_size, (std::array<uint32_t, 3>{4, 8, 1}));
  EXPECT_EQ(module.types.toString(module.globals[0].type), "array<f32, 8>");
  const std::string text = kernel::print(module);
  EXPECT_NE(text.find("access @w, 4u"), std::string::npos) << text;
  EXPECT_NE(text.find(", 0.0f\n"), std::string::npos) << text;
}

TEST(Overrides, missingAndUnfitValues_areReported) {
  const auto error = [](std::map<std::string, double> overrides) {
    return firstError(kSource, {.file_name = "k", .overrides = std::move(overrides)});
  };
  EXPECT_EQ(error({}), "3:17 wgsl.override: override 'rate' has no default and no value is given for it");
  EXPECT_EQ(error({{"rate", 1}}), "1:1 wgsl.override: a value is given for override 'rate', which the module does not have");
  EXPECT_EQ(error({{"7", 1}, {"tile", -1}}), "1:10 wgsl.override: value -1 given for override 'tile' does not fit u32");
  EXPECT_EQ(error({{"7", 1}, {"tile", 1.5}}), "1:10 wgsl.override: value 1.5 given for override 'tile' does not fit u32");
  EXPECT_EQ(error({{"7", 1e60}}), "3:17 wgsl.override: value 1e+60 given for override 'rate' does not fit f32");
  EXPECT_EQ(error({{"7", 1}, {"tile", 0}}), "5:30 wgsl.override: array count 0 is not positive");
  EXPECT_EQ(error({{"7", 1}}), "accepted");
}

TEST(Overrides, givenValue_hidesAnErrorOfTheDefault) {
  EXPECT_EQ(firstError("override a = 0; override b = 1 / a;", {}), "1:30 wgsl.override: division by zero");
  EXPECT_EQ(firstError("override a = 0; override b = 1 / a;", {.file_name = "k", .overrides = {{"b", 3}}}), "accepted");
}

TEST(Overrides, asConstants_sizeAnyArray) {
  const std::string source = "override n = 4; fn f() -> f32 { var a: array<f32, n * 2>; return a[n]; }";
  EXPECT_EQ(firstError(source), "1:37 wgsl.type: 'a' cannot have type array<f32, n * 2>");
  const kernel::Module module = readGood(source, {.file_name = "k", .overrides = {{"n", 2}}, .overrides_are_constants = true});
  EXPECT_NE(kernel::print(module).find("ptr<function, array<f32, 4>>"), std::string::npos);
}

TEST(Overrides, check_givesThemNoValue) {
  EXPECT_TRUE(check(kSource).empty());
  EXPECT_TRUE(check("override a = 0; override b = 1 / a; alias T = array<i32, a>;").empty());
  EXPECT_TRUE(check("override n: u32; var<workgroup> w: array<i32, n>; fn f() -> i32 { return w[1000]; }").empty());
  // What is wrong without any value is wrong.
  EXPECT_EQ(check("override a: i32 = 1 / 0;").size(), 1u);
  EXPECT_EQ(check("override a: i32; fn f() { _ = a + 1u; }").size(), 1u);
  EXPECT_EQ(check("override n: u32; var<workgroup> a: array<i32, n>; fn f(p: ptr<workgroup, array<i32, n>>) { f(&a); }").size(), 1u)
      << "only the recursion";
  EXPECT_NE(
      check("override n: u32; var<workgroup> a: array<i32, n + 1>; fn f(p: ptr<workgroup, array<i32, n + 1>>) {} fn g() { f(&a); }").size(),
      0u);
}

TEST(Overrides, types_doNotDependOnValues) {
  // An abstract value that an override picks is converted first, with or without the override's value.
  EXPECT_EQ(firstError("override o = 0; @compute @workgroup_size(1) fn f() { let x: u32 = vec2(1, 2)[o]; }"),
            "1:67 wgsl.type: initializer has type i32, but u32 is needed");
  EXPECT_EQ(firstError("override o = 31u; @compute @workgroup_size(1) fn f() { _ = 1 << o; }"),
            "1:60 wgsl.override: shift of 1 by 31 loses bits");
}

TEST(Overrides, onlyWhatEntryPointsReach_needsValues) {
  const std::string source =
      "override a: i32; override b: i32; override c = 1 / b;\n"
      "fn useA() -> i32 { return a; } fn useC() -> i32 { return c; }\n"
      "@compute @workgroup_size(1) fn one() { _ = useA(); }\n"
      "@compute @workgroup_size(1) fn two() { _ = useC(); }\n";
  const auto error = [&](const std::string& entry_point, std::map<std::string, double> overrides) {
    return firstError(source, {.file_name = "k", .overrides = std::move(overrides), .entry_point = entry_point});
  };
  EXPECT_EQ(error("one", {{"a", 1}}), "accepted");
  EXPECT_EQ(error("two", {{"a", 1}}), "1:27 wgsl.override: override 'b' has no default and no value is given for it");
  EXPECT_EQ(error("two", {{"b", 0}}), "1:48 wgsl.override: division by zero");
  EXPECT_EQ(error("", {{"b", 1}}), "1:10 wgsl.override: override 'a' has no default and no value is given for it");
  EXPECT_EQ(error("three", {{"b", 1}}), "1:1 wgsl.name: the module has no compute entry point 'three'");
  const kernel::Module module = readGood(source, {.file_name = "k", .overrides = {{"a", 1}}, .entry_point = "one"});
  EXPECT_NE(module.findFunction("useA"), nullptr);
  EXPECT_EQ(module.functions.size(), 2u) << "functions that lack values are left out";
}

TEST(Overrides, shortCircuits_hideErrors) {
  const std::string source = "override on: bool; override zero = 0; @compute @workgroup_size(1) fn f() { _ = on && 1 / zero == 1; }";
  EXPECT_EQ(firstError(source, {.file_name = "k", .overrides = {{"on", 0}}}), "accepted");
  EXPECT_EQ(firstError(source, {.file_name = "k", .overrides = {{"on", 1}}}), "1:86 wgsl.override: division by zero");
}

TEST(Overrides, constants_cannotUseThem) {
  EXPECT_EQ(firstError("override a = 1; const b = a;"), "1:27 wgsl.constant: value of const 'b' is not a constant expression");
  EXPECT_EQ(firstError("override a = 1; fn f() { switch 1i { case a: {} default: {} } }"),
            "1:43 wgsl.constant: case selector is not a constant expression");
  EXPECT_EQ(firstError("override a: vec2<f32>;"), "1:10 wgsl.type: override 'a' cannot have type vec2<f32>");
  EXPECT_EQ(firstError("@id(1) override a = 1; @id(1) override b = 2;"), "1:24 wgsl.attribute: override id 1 is used twice");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
