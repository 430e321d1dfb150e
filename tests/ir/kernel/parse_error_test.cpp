// SPDX-License-Identifier: Apache-2.0
// What the reader rejects, and where it points.
#include <gtest/gtest.h>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

using testing::inEntryPoint;
using testing::kFirstBodyLine;

struct ErrorCase {
  std::string name, text, code;
  uint32_t line, column;
};

std::string repeat(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

ErrorCase module(std::string name, const std::string& lines, std::string code, uint32_t line, uint32_t column) {
  return {std::move(name), "lockstep.kernel 1\n" + lines, std::move(code), line, column};
}

/// `line` counts from the first line of the body.
ErrorCase body(std::string name, const std::string& lines, std::string code, uint32_t line, uint32_t column) {
  return {std::move(name), inEntryPoint(lines), std::move(code), kFirstBodyLine + line - 1, column};
}

std::vector<ErrorCase> errorCases() {
  return {
      {"empty_text", "", "text.syntax", 1, 1},
      {"other_language", "lockstep.graph 1\n", "text.syntax", 1, 1},
      {"later_version", "lockstep.kernel 2\n", "kernel.version", 1, 17},
      {"open_string", "lockstep.kernel 1\nmodule \"abc\n", "text.string", 2, 8},
      module("unknown_declaration", "let @x: f32\n", "text.syntax", 2, 1),
      module("unknown_capability", "enable ray_tracing\n", "kernel.name", 2, 8),
      module("struct_twice", "struct S {\n a: f32\n}\nstruct S {\n a: f32\n}\n", "kernel.name", 5, 8),
      module("struct_open", "struct S {\n a: f32\n", "text.syntax", 4, 1),
      module("member_without_type", "struct S {\n a f32\n}\n", "text.syntax", 3, 4),
      module("unknown_type", "var @x: vec5<f32> {space = private}\n", "text.syntax", 2, 13),
      module("unknown_struct", "var @x: T {space = private}\n", "kernel.name", 2, 9),
      module("matrix_of_integers", "var @x: mat2x2<i32> {space = private}\n", "kernel.name", 2, 16),
      module("atomic_of_floats", "var @x: atomic<f32> {space = private}\n", "kernel.name", 2, 16),
      module("array_of_none", "var @x: array<f32, 0> {space = private}\n", "kernel.literal", 2, 20),
      module("array_of_negative", "var @x: array<f32, -1> {space = private}\n", "kernel.literal", 2, 20),
      module("array_too_long", "var @x: array<f32, 4294967296> {space = private}\n", "kernel.literal", 2, 20),
      module("types_too_deep", "var @x: " + repeat("array<", 100) + "f32" + repeat(">", 100) + " {space = private}\n", "text.syntax", 2,
             399),
      module("variable_twice", "var @x: f32 {space = private}\nvar @x: f32 {space = private}\n", "kernel.name", 3, 5),
      module("variable_without_space", "var @x: f32\n", "kernel.syntax", 2, 5),
      module("unknown_space", "var @x: f32 {space = heap}\n", "kernel.name", 2, 22),
      module("unknown_attribute", "var @x: f32 {space = private, colour = 3}\n", "kernel.name", 2, 31),
      module("attribute_twice", "var @x: f32 {space = private, space = private}\n", "kernel.name", 2, 31),
      module("attributes_open", "var @x: f32 {space = private\n", "text.syntax", 3, 1),
      module("function_twice", "fn @f() {\n}\nfn @f() {\n}\n", "kernel.name", 4, 4),
      module("parameter_twice", "fn @f(%a: f32, %a: f32) {\n}\n", "kernel.name", 2, 16),
      module("unknown_builtin", "fn @f(%a: u32 {builtin = lane}) {\n}\n", "kernel.name", 2, 26),
      module("workgroup_of_two_axes", "fn @f() {workgroup_size = [1, 2]} {\n}\n", "text.syntax", 2, 32),
      module("function_open", "fn @f() {\n", "text.syntax", 3, 1),
      body("unknown_operation", "  frobnicate %i\n", "kernel.name", 1, 3),
      body("unknown_value", "  %0: u32 = add %i, %j\n", "kernel.name", 1, 21),
      body("own_result", "  %a: u32 = add %a, %i\n", "kernel.name", 1, 17),
      body("unknown_variable", "  %0: f32 = load @nowhere\n", "kernel.name", 1, 18),
      body("unknown_function", "  call @later()\n", "kernel.name", 1, 8),
      body("value_twice", "  %a: u32 = add %i, %i\n  %a: u32 = add %i, %i\n", "kernel.name", 2, 3),
      body("parameter_hidden", "  %i: u32 = add 1u, 2u\n", "kernel.name", 1, 3),
      body("value_of_another_function", "  %0: f32 = neg %x\n", "kernel.name", 1, 17),
      body("missing_type", "  %a = add %i, %i\n", "text.syntax", 1, 6),
      body("number_without_suffix", "  %a: u32 = add %i, 3\n", "text.syntax", 2, 1),
      body("suffix_apart", "  %a: u32 = add %i, 3 u\n", "text.syntax", 1, 23),
      body("negative_unsigned", "  %a: u32 = add %i, -3u\n", "kernel.literal", 1, 21),
      body("integer_too_large", "  %a: i32 = add 2147483648i, 1i\n", "kernel.literal", 1, 17),
      body("float_too_large", "  %a: f32 = neg 1e39f\n", "kernel.literal", 1, 17),
      body("infinity_by_name", "  %a: f32 = neg inf\n", "text.syntax", 2, 1),
      body("bits_too_wide", "  %a: f16 = neg f16(0x10000)\n", "kernel.literal", 1, 21),
      body("constant_element_type", "  %a: vec2<f32> = neg vec2<f32>(1.0f, 2i)\n", "kernel.literal", 1, 39),
      body("constant_too_short", "  %a: vec2<f32> = neg vec2<f32>(1.0f)\n", "text.syntax", 1, 37),
      body("constant_without_elements", "  %a: f32 = neg array<f32>(1.0f)\n", "text.syntax", 1, 27),
      body("swizzle_too_wide", "  %a: vec2<u32> = swizzle %gid {components = xyz}\n", "kernel.literal", 1, 46),
      body("swizzle_of_colours", "  %a: vec2<u32> = swizzle %gid {components = rg}\n", "kernel.literal", 1, 46),
      body("else_twice", "  if true {\n  } else {\n  } else {\n  }\n", "kernel.name", 3, 5),
      body("case_without_selector", "  switch %i {\n    case {\n    }\n  }\n", "text.syntax", 2, 10),
      body("case_of_another_type", "  switch %i {\n    case 1i {\n    }\n  }\n", "kernel.literal", 2, 10),
      body("blocks_too_deep", repeat("if true {\n", 300), "kernel.nesting", 256, 9),
      body("stray_brace", "  }\n  }\n", "text.syntax", 2, 3),
      body("stray_punctuation", "  ; \n", "text.syntax", 1, 3),
  };
}

TEST(ParseError, each_mistake_has_a_code_and_a_place) {
  for (const ErrorCase& each : errorCases()) {
    Result<Module> module = parse(each.text, "bad.kir");
    ASSERT_FALSE(module.ok()) << each.name;
    ASSERT_EQ(module.diagnostics().size(), 1u) << each.name;
    const Diagnostic& diagnostic = module.diagnostics()[0];
    EXPECT_EQ(diagnostic.code, each.code) << each.name << "\n" << toString(diagnostic);
    EXPECT_EQ(diagnostic.where.file, "bad.kir") << each.name;
    EXPECT_EQ(diagnostic.where.line, each.line) << each.name << "\n" << toString(diagnostic);
    EXPECT_EQ(diagnostic.where.column, each.column) << each.name << "\n" << toString(diagnostic);
  }
}

// Shared structs nested 64 deep have 2^64 leaves; layout, naming and checking must not visit them one by one.
TEST(ParseError, nested_structs_take_linear_time) {
  std::string text = "lockstep.kernel 1\nstruct S0 {\n  a: f32\n}\n";
  for (int i = 1; i < 60; ++i) {
    std::string part = "S" + std::to_string(i - 1);
    text += "struct S" + std::to_string(i) + " {\n  a: " + part + "\n  b: " + part + "\n}\n";
  }
  Result<Module> module = parse(text + "var @x: S59 {space = private}\n");
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  EXPECT_FALSE(validate(*module).ok());
}

}  // namespace
}  // namespace lockstep::kernel
