// SPDX-License-Identifier: Apache-2.0
// Subgroup and quad functions: what the reader takes, what it says about the rest, and what the writer makes of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

std::string inFunction(std::string_view statement) {
  return fmt::format("enable subgroups; override o = 1; fn f(x: f32, v: vec3<i32>, i: i32, u: u32, b: bool, m: mat2x2<f32>) {{\n{}\n}}",
                     statement);
}

TEST(Subgroups, functions_areRead) {
  constexpr const char* kNumeric[] = {"subgroupAdd",
                                      "subgroupExclusiveAdd",
                                      "subgroupInclusiveAdd",
                                      "subgroupMul",
                                      "subgroupExclusiveMul",
                                      "subgroupInclusiveMul",
                                      "subgroupMin",
                                      "subgroupMax",
                                      "quadSwapX",
                                      "quadSwapY",
                                      "subgroupBroadcastFirst",
                                      "quadSwapDiagonal"};
  for (const char* name : kNumeric) readGood(inFunction(fmt::format("_ = {0}(x) + {0}(1.5); _ = {0}(v); _ = {0}(u) + {0}(1u);", name)));
  for (const char* name : {"subgroupAnd", "subgroupOr", "subgroupXor"})
    readGood(inFunction(fmt::format("_ = {0}(v); _ = {0}(3) + i;", name)));
  for (const char* name : {"subgroupShuffleXor", "subgroupShuffleUp", "subgroupShuffleDown"})
    readGood(inFunction(fmt::format("_ = {0}(v, u); _ = {0}(x, 3);", name)));
  constexpr const char* kOthers[] = {"let a: bool = subgroupElect();",
                                     "let a: bool = subgroupAll(b); let c: bool = subgroupAny(x < 1);",
                                     "let a: vec4<u32> = subgroupBallot(b);",
                                     "let a: f32 = subgroupBroadcast(x, 127) + subgroupBroadcast(x, 2 - 1) + subgroupBroadcast(x, 3u);",
                                     "let a: vec3<i32> = subgroupShuffle(v, i) + subgroupShuffle(v, u);",
                                     "let a: vec3<i32> = subgroupShuffle(v, 5) + subgroupShuffle(v, o);",
                                     "const lane = 1i; let a: u32 = quadBroadcast(u, 3) + quadBroadcast(u, lane);"};
  for (const char* statement : kOthers) readGood(inFunction(statement));
  readGood("enable f16; enable subgroups; fn f(h: vec4<f16>) -> vec4<f16> { return subgroupMax(subgroupShuffle(h, 1)); }");
  readGood("fn subgroupAdd(x: i32) -> i32 { return x; } fn f() { _ = subgroupAdd(1); }");
}

TEST(Subgroups, builtinValues_areRead) {
  readGood(
      "enable subgroups; requires subgroup_id; requires linear_indexing;\n"
      "struct In { @builtin(subgroup_size) size: u32, @builtin(num_subgroups) count: u32 }\n"
      "@compute @workgroup_size(8) fn f(in: In, @builtin(subgroup_id) s: u32, @builtin(subgroup_invocation_id) i: u32,\n"
      "  @builtin(workgroup_index) w: u32, @builtin(global_invocation_index) g: u32) {}");
  readGood("@compute @workgroup_size(8) fn f(@builtin(workgroup_index) w: u32, @builtin(global_invocation_index) g: u32) {}");
}

TEST(Subgroups, sizes_areRead) {
  const auto sizeOf = [](const std::string& source, std::map<std::string, double> overrides = {}) {
    return readGood(source, {.file_name = "k", .overrides = std::move(overrides)}).functions[0].subgroup_size;
  };
  const std::string enable = "enable subgroup_size_control; const n = 2i; override lanes = 16u; override wide = 64;\n";
  EXPECT_EQ(sizeOf(enable + "@compute @workgroup_size(64) fn f() {}"), 0u);
  EXPECT_EQ(sizeOf(enable + "@compute @workgroup_size(64) @subgroup_size(32) fn f() {}"), 32u);
  EXPECT_EQ(sizeOf(enable + "@subgroup_size(n * 2,) @workgroup_size(4) @compute fn f() {}"), 4u);
  EXPECT_EQ(sizeOf(enable + "@compute @workgroup_size(n * 64, 1) @subgroup_size(128u) fn f() {}"), 128u);
  const std::string overridden = enable + "@compute @workgroup_size(wide) @subgroup_size(lanes) fn f() {}";
  EXPECT_EQ(sizeOf(overridden), 16u);
  EXPECT_EQ(sizeOf(overridden, {{"lanes", 8}, {"wide", 24}}), 8u);
  EXPECT_TRUE(check(overridden).empty());
  EXPECT_EQ(roundTripProblem(readGood(overridden)), "");
  // The word is one in attributes only.
  readGood("const subgroup_size = 1; fn f() { let x = subgroup_size; }");
}

TEST(Subgroups, sizes_enableSubgroupsToo) {
  const std::string enable = "enable subgroup_size_control;\n", entry = "@compute @workgroup_size(32) @subgroup_size(32) ";
  const auto capabilities = [](const std::string& source) { return readGood(source).capabilities; };
  EXPECT_TRUE(capabilities(enable + entry + "fn f() {}").empty());
  for (const char* function : {"fn f() { _ = subgroupElect(); }", "fn f(@builtin(subgroup_size) size: u32) {}"}) {
    EXPECT_EQ(capabilities(enable + entry + function), std::vector{kernel::Capability::Subgroups}) << function;
    EXPECT_EQ(roundTripProblem(readGood(enable + entry + function)), "") << function;
  }
  const std::string written =
      "enable subgroup_size_control;\n"
      "\n"
      "@compute @workgroup_size(32, 1, 1) @subgroup_size(32)\n"
      "fn main() {\n"
      "}\n";
  EXPECT_EQ(write(readGood(written)), written);
}

TEST(Subgroups, mistakesInSizes_areReported) {
  const auto entry = [](std::string_view attributes) {
    return fmt::format("enable subgroup_size_control; override o = 32; override p = 64; var<private> v = 4;\n@compute {} fn f() {{}}",
                       attributes);
  };
  struct Case {
    const char* attributes;
    const char* expected;
  };
  constexpr Case kCases[] = {
      {"@workgroup_size(32) @subgroup_size", "2:30 wgsl.attribute: attribute 'subgroup_size' needs one argument"},
      {"@workgroup_size(32) @subgroup_size(4, 8)", "2:30 wgsl.attribute: attribute 'subgroup_size' needs one argument"},
      {"@workgroup_size(32) @subgroup_size(8) @subgroup_size(8)", "2:48 wgsl.attribute: attribute 'subgroup_size' is given twice"},
      {"@workgroup_size(32) @subgroup_size(8.0)", "2:45 wgsl.attribute: subgroup size is not an integer that is known at compile time"},
      {"@workgroup_size(32) @subgroup_size(v)", "2:45 wgsl.attribute: subgroup size is not an integer that is known at compile time"},
      {"@workgroup_size(32) @subgroup_size(2)", "2:45 wgsl.attribute: subgroup size 2 is not a power of two from 4 to 128"},
      {"@workgroup_size(24) @subgroup_size(12)", "2:45 wgsl.attribute: subgroup size 12 is not a power of two from 4 to 128"},
      {"@workgroup_size(256) @subgroup_size(256)", "2:46 wgsl.attribute: subgroup size 256 is not a power of two from 4 to 128"},
      {"@workgroup_size(32) @subgroup_size(-32)", "2:45 wgsl.attribute: subgroup size -32 is not a power of two from 4 to 128"},
      {"@workgroup_size(48) @subgroup_size(32)", "2:10 wgsl.attribute: a workgroup of 48 x 1 x 1 cannot be split into subgroups of 32"},
      {"@workgroup_size(32, 2) @subgroup_size(32)",
       "2:10 wgsl.unsupported: a workgroup of 32 x 2 x 1 cannot be split into subgroups of 32"},
      {"@workgroup_size(p) @subgroup_size(128)", "2:10 wgsl.override: a workgroup of 64 x 1 x 1 cannot be split into subgroups of 128"},
      {"@subgroup_size(32)", "2:32 wgsl.attribute: compute shader 'f' needs @workgroup_size"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(entry(c.attributes)), c.expected) << c.attributes;
  EXPECT_EQ(firstError(entry("@workgroup_size(64) @subgroup_size(o)"), {.file_name = "k", .overrides = {{"o", 33}}}),
            "2:45 wgsl.override: subgroup size 33 is not a power of two from 4 to 128");
  EXPECT_TRUE(check(entry("@workgroup_size(p) @subgroup_size(128)")).empty());
  EXPECT_EQ(firstError("enable subgroup_size_control; @subgroup_size(8) fn f() {}"),
            "1:31 wgsl.attribute: function 'f' has @subgroup_size but not @compute");
  EXPECT_EQ(firstError("enable subgroup_size_control; fn f(@subgroup_size(8) x: u32) {}"),
            "1:36 wgsl.attribute: attribute 'subgroup_size' is not allowed on a parameter");
  const Result<kernel::Module> not_enabled = read("enable subgroups; @compute @workgroup_size(8) @subgroup_size(8) fn f() {}");
  ASSERT_FALSE(not_enabled.ok());
  EXPECT_EQ(not_enabled.diagnostics().front().message, "attribute 'subgroup_size' is used without being enabled");
  EXPECT_EQ(not_enabled.diagnostics().front().remedy, "write 'enable subgroup_size_control;' at the top of the module");
}

TEST(Subgroups, mistakes_areReportedAtTheArgument) {
  struct Case {
    const char* statement;
    const char* expected;
  };
  constexpr Case kCases[] = {
      {"_ = subgroupAdd(b);", "2:5 wgsl.type: 'subgroupAdd' does not take arguments of types (bool)"},
      {"_ = subgroupAdd(m);", "2:5 wgsl.type: 'subgroupAdd' does not take arguments of types (mat2x2<f32>)"},
      {"_ = subgroupAnd(x);", "2:5 wgsl.type: 'subgroupAnd' does not take arguments of types (f32)"},
      {"_ = subgroupAdd();", "2:5 wgsl.type: 'subgroupAdd' takes 1 arguments, 0 are given"},
      {"_ = subgroupElect(b);", "2:5 wgsl.type: 'subgroupElect' takes 0 arguments, 1 are given"},
      {"_ = subgroupShuffle(x);", "2:5 wgsl.type: 'subgroupShuffle' takes 2 arguments, 1 are given"},
      {"subgroupAdd(x);", "2:1 wgsl.type: the result of 'subgroupAdd' must be used"},
      {"const c = subgroupAdd(1);", "2:11 wgsl.constant: value of const 'c' is not a constant expression"},
      {"_ = subgroupBroadcast(x, u);", "2:26 wgsl.constant: the lane of 'subgroupBroadcast' is not a constant expression"},
      {"_ = subgroupBroadcast(x, o);", "2:26 wgsl.constant: the lane of 'subgroupBroadcast' is not a constant expression"},
      {"_ = subgroupBroadcast(x, 128);", "2:26 wgsl.constant: the lane of 'subgroupBroadcast' is 128, not in 0..127"},
      {"_ = subgroupBroadcast(x, -1);", "2:26 wgsl.constant: the lane of 'subgroupBroadcast' is -1, not in 0..127"},
      {"_ = subgroupBroadcast(x, 1.0);", "2:26 wgsl.type: the lane of 'subgroupBroadcast' has type abstract-float, not i32 or u32"},
      {"_ = quadBroadcast(x, 4u);", "2:22 wgsl.constant: the lane of 'quadBroadcast' is 4, not in 0..3"},
      {"_ = subgroupShuffle(x, 128);", "2:24 wgsl.constant: the lane of 'subgroupShuffle' is 128, not in 0..127"},
      {"_ = subgroupShuffle(x, x);", "2:24 wgsl.type: the lane of 'subgroupShuffle' has type f32, not i32 or u32"},
      {"_ = subgroupShuffleXor(x, i);", "2:27 wgsl.type: the mask of 'subgroupShuffleXor' has type i32, not u32"},
      {"_ = subgroupShuffleUp(x, 200);", "2:26 wgsl.constant: the delta of 'subgroupShuffleUp' is 200, not in 0..127"},
      {"_ = subgroupAll(1);", "2:17 wgsl.type: "},
  };
  for (const Case& c : kCases)
    EXPECT_TRUE(firstError(inFunction(c.statement)).starts_with(c.expected)) << firstError(inFunction(c.statement));
  EXPECT_EQ(firstError("fn f() { _ = subgroupAdd(1); }"), "1:14 wgsl.type: 'subgroupAdd' is used without subgroups being enabled");
  EXPECT_EQ(firstError("enable subgroups; override o = subgroupAll(true);"),
            "1:32 wgsl.constant: 'subgroupAll' cannot be called at module scope");
  EXPECT_EQ(firstError("@compute @workgroup_size(1) fn f(@builtin(subgroup_id) s: u32) {}"),
            "1:34 wgsl.attribute: builtin value 'subgroup_id' needs subgroups");
}

TEST(Subgroups, writer_keepsOperationsWhereTheyStand) {
  const std::string source =
      "enable subgroups;\n"
      "diagnostic(off, subgroup_uniformity);\n"
      "\n"
      "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
      "\n"
      "@compute @workgroup_size(64, 1, 1)\n"
      "fn main(@builtin(subgroup_invocation_id) lane: u32, @builtin(workgroup_index) group: u32) {\n"
      "  let sum = subgroupExclusiveAdd(lane);\n"
      "  if lane < 3u {\n"
      "    return;\n"
      "  }\n"
      "  let near = subgroupShuffleXor(sum, 1u);\n"
      "  out[group] = near + sum;\n"
      "}\n";
  EXPECT_EQ(write(readGood(source)), source);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
