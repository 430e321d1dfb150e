// SPDX-License-Identifier: Apache-2.0
// Small kernels with the mistakes of real ones, and what the compiler says about each: where, in which words, with which remedy.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>

#include "frontend/wgsl/check/limits.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

std::string defect(const std::string& name) {
  return readFile(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/frontend/wgsl/defects" / (name + ".wgsl"));
}

/// "line:column+length code: message", a line "  line:column+length note" for each note and one "  help: remedy".
std::string describe(const Diagnostic& d) {
  std::string text = fmt::format("{}:{}+{} {}: {}\n", d.where.line, d.where.column, d.length, d.code, d.message);
  for (const Note& note : d.notes) text += fmt::format("  {}:{}+{} {}\n", note.where.line, note.where.column, note.length, note.message);
  return d.remedy.empty() ? text : text + fmt::format("  help: {}\n", d.remedy);
}

std::string errorsOf(const std::string& source) {
  std::string text;
  for (const Diagnostic& diagnostic : check(source)) text += describe(diagnostic);
  return text;
}

/// Of a module that is good; `groups` as `lockstep run` gives them.
std::string warningsOf(const std::string& source, std::array<uint32_t, 3> groups = {}) {
  std::vector<Warning> warnings;
  const auto module = read(source, {.file_name = "k", .overrides = {}, .groups = groups, .warnings = &warnings});
  EXPECT_TRUE(module.ok()) << toString(module.diagnostics());
  std::string text;
  for (const Warning& warning : warnings) text += describe(warning.diagnostic);
  return text;
}

/// Warnings for a dispatch of one workgroup whose uniform buffers hold these words.
std::string warningsWith(const std::string& source, const std::vector<uint32_t>& uniform) {
  std::vector<Warning> warnings;
  const auto contents = [&](const kernel::Module&, const kernel::GlobalVariable&) {
    const auto bytes = std::as_bytes(std::span(uniform));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto module = read(source, {.file_name = "k", .overrides = {}, .groups = {1, 1, 1}, .uniforms = contents, .warnings = &warnings});
  EXPECT_TRUE(module.ok()) << toString(module.diagnostics());
  std::string text;
  for (const Warning& warning : warnings) text += describe(warning.diagnostic);
  return text;
}

std::string limitsOf(const std::string& source) {
  const auto reflection = reflect(source);
  std::string text;
  if (!reflection.ok()) return toString(reflection.diagnostics());
  for (const Diagnostic& diagnostic : checkLimits(*reflection, portableLimits())) text += describe(diagnostic);
  return text;
}

TEST(Defects, localsThatHideABuffer_areNamedWithIt) {
  EXPECT_EQ(errorsOf(defect("hidden_resource")),
            "9:35+11 wgsl.type: a value of type u32 cannot be indexed\n"
            "  8:7+5 'batch' is this local\n"
            "  4:42+5 it hides this 'batch' of the module\n"
            "  help: rename the local 'batch', or what it hides\n");
  EXPECT_EQ(errorsOf("fn g() {} fn f() { let g = 1; g(); }"),
            "1:31+1 wgsl.type: 'g' is a value and cannot be called\n"
            "  1:24+1 'g' is this local\n"
            "  1:4+1 it hides this 'g' of the module\n"
            "  help: rename the local 'g', or what it hides\n");
  EXPECT_EQ(errorsOf("fn f(a: f32) { _ = a[0]; }"), "1:20+4 wgsl.type: a value of type f32 cannot be indexed\n");
}

TEST(Defects, ternaries_areNamed_andReadOn) {
  const std::string help = "  help: write select(no, yes, condition), which evaluates both values, or an 'if'\n";
  EXPECT_EQ(errorsOf(defect("ternary")), "6:22+1 wgsl.syntax: WGSL has no '?:'\n" + help + "6:37+1 wgsl.syntax: WGSL has no '?:'\n" + help +
                                             "7:18+4 wgsl.name: 'gain' is not declared\n  help: did you mean 'main'?\n");
  EXPECT_EQ(errorsOf("fn f(a: bool) -> i32 { return a ? 1; }"),
            "1:33+1 wgsl.syntax: WGSL has no '?:'\n" + help + "1:36+1 wgsl.syntax: expected ':' between the values, found ';'\n");
}

TEST(Defects, indicesBeforeTheFirst_areWarnedAbout) {
  EXPECT_EQ(
      warningsOf(defect("index_before_first")),
      "9:37+17 lint.index: the index wraps: 'b * rows + t - 1u' is 4294967295 when 'b * rows + t' is 0\n"
      "  help: put it into an 'if' that tests 'b * rows + t >= 1u' (select() evaluates both of its values), or write max(b * rows + t, "
      "1u) - 1u; diagnostic(off, lockstep.index); silences this\n");
}

constexpr std::string_view kBody = R"(@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> n: u32;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) { let t = id.x; )";

bool warns(const std::string& statements) { return !warningsOf(std::string(kBody) + statements + " }").empty(); }

TEST(Defects, indexWraps_speaksOnlyWhereItIsCertain) {
  for (const char* statements : {
           "x[t - 1] = 1;",
           "x[i * n - 1u] = 1;",
           "for (var k = 0u; k < n; k++) { x[k - 2] = 1; }",
           "x[t] = select(0, x[t - 1u], t > 0);",
           "if (t < n) { x[t - 1] = 1; }",
           "if (t >= n) { return; } let before = t - 1; x[before] = 1;",
           "if (x[t] > 0) { x[i - 1] = 1; }",
       }) {
    EXPECT_TRUE(warns(statements)) << statements;
  }
  for (const char* statements : {
           "if (t > 0) { x[t - 1] = 1; }",
           "if (t == 0) { return; } x[t - 1] = 1;",
           "if (t == 0) { x[0] = 1; } else { x[t - 1] = 1; }",
           "if (t < 1) { if (n > 3) { return; } else { return; } } x[t - 1] = 1;",
           "x[max(t, 1) - 1] = 1;",
           "if (t > n) { x[t - 1] = 1; }",
           "if (t % 2 == 1) { x[t - 1] = 1; }",
           "let later = t != 0; if (later && x[t] > 0) { x[t - 1] = 1; }",
           "if (t > 0 && x[t - 1] > 0) { x[t] = 1; }",
           "let before = t - 1; if (before < n) { x[before] = 1; }",
           "switch t { case 0: {} default: { x[t - 1] = 1; } }",
           "for (var k = 1u; k < n; k++) { x[k - 1] = 1; }",
           "for (var k = 0u; k < n; k++) { if (k == 0) { continue; } x[k - 1] = 1; }",
           "for (var k = 0u; k < n; k++) { if (k > 0) { x[k - 1] = 1; } }",
           "for (var k = t; k > 0; k--) { x[k - 1] = 1; }",
           "if (all(id.xy > vec2u(0))) { x[t - 1] = 1; }",
           "if (min(t, i) > 0) { x[t - 1] = 1; }",
           "if (x[t] > 0 || t == 0) { return; } x[t - 1] = 1;",
           "x[n - 1] = 1;",
           "x[arrayLength(&x) - 1 - t] = 1;",
           "x[63 - i] = 1;",
           "x[(t - 1) & 63] = 1;",
           "x[(t + 63) % 64] = 1;",
           "x[(t + 1) * 4 - 1] = 1;",
           "var k = n; while (k > 0) { k--; x[k] = 1; }",
           "var k = 0u; loop { if (k >= n) { break; } continuing { k++; } } x[k - 1] = 1;",
           "x[select(t - 1, 0, t == 0)] = 1;",
       }) {
    EXPECT_FALSE(warns(statements)) << statements;
  }
}

TEST(Defects, lints_areSwitchedOffByTheirRules) {
  const std::string source = std::string(kBody) + "x[t - 1] = 1; }";
  EXPECT_EQ(warningsOf("diagnostic(off, lockstep.index_wraps);\n" + source), "");
  EXPECT_EQ(warningsOf(std::string(kBody) + "@diagnostic(off, lockstep.index_wraps) { x[t - 1] = 1; } }"), "");
  EXPECT_TRUE(
      errorsOf("diagnostic(error, lockstep.index_wraps);\n" + source).starts_with("5:110+5 lint.index: the index wraps: 't - 1' is"))
      << errorsOf("diagnostic(error, lockstep.index_wraps);\n" + source);
  const auto refused = read("diagnostic(error, lockstep.index_wraps);\n" + source);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().code, "lint.index");
}

TEST(Defects, barriersBehindAReturn_pointToTheBuiltin) {
  EXPECT_EQ(errorsOf(defect("return_before_barrier")),
            "9:3+18 wgsl.uniformity: 'workgroupBarrier' needs uniform control flow, but perhaps not all invocations come here\n"
            "  7:6+17 control flow depends on this\n"
            "  7:7+2 'id' is global_invocation_id, which differs between invocations\n"
            "  help: move the call to where all invocations come, or let the conditions depend on workgroup_id, which is uniform\n");
}

TEST(Defects, barriersInABranch_pointToTheBuiltin) {
  EXPECT_EQ(errorsOf(defect("barrier_in_branch")),
            "10:7+18 wgsl.uniformity: 'workgroupBarrier' needs uniform control flow, but perhaps not all invocations come here\n"
            "  8:8+16 control flow depends on this\n"
            "  8:9+4 'lane' is local_invocation_index, which differs between invocations\n"
            "  help: move the call to where all invocations come, or let the conditions depend on workgroup_id, which is uniform\n");
}

TEST(Defects, productsThatDoNotFit_areWarnedAboutOnceTheDispatchIsKnown) {
  EXPECT_EQ(warningsOf(defect("product_too_large")), "");
  EXPECT_EQ(warningsOf(defect("product_too_large"), {2048, 1, 1}), "");
  EXPECT_EQ(warningsOf(defect("product_too_large"), {4096, 1, 1}),
            "7:9+24 lint.index: the index wraps: 'group.x * length * width' reaches 8587837440, more than u32 can hold\n"
            "  help: split the buffer or the dispatch, so that offsets stay below 2^32; diagnostic(off, lockstep.index); silences "
            "this\n");
  // An unknown bound around says nothing for sure; a known one does.
  EXPECT_FALSE(warns("if (i < n) { x[i * 100000000u] = 1; }"));
  EXPECT_FALSE(warns("if (i < 40) { x[i * 100000000u] = 1; }"));
  EXPECT_TRUE(warns("if (i < 50) { x[i * 100000000u] = 1; }"));
  EXPECT_FALSE(warns("x[(i * 100000000u) % 64] = 1;"));
}

TEST(Defects, lintsKnowWhatUniformBuffersHold) {
  const std::string source =
      "struct Size { rows: u32, dims: vec2u, strides: array<vec4i, 2> }\n"
      "@group(0) @binding(0) var<uniform> size: Size;\n"
      "@group(0) @binding(1) var<storage, read_write> x: array<f32>;\n"
      "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {\n"
      "  let dims = size.dims;\n"
      "  if (i < size.rows) { x[i * dims.y * u32(size.strides[1].z)] = 1; }\n"
      "}\n";
  std::vector<uint32_t> words(12);
  const auto set = [&](uint32_t rows, uint32_t height, uint32_t stride) {
    words[0] = rows;
    words[3] = height;
    words[10] = stride;
  };
  EXPECT_EQ(warningsWith(source, {}), "");
  set(64, 65536, 1040);
  EXPECT_EQ(warningsWith(source, words), "");
  set(64, 65536, 1041);
  EXPECT_TRUE(warningsWith(source, words)
                  .starts_with("6:26+35 lint.index: the index wraps: 'i * dims.y * u32(size.strides[1].z)' reaches "
                               "4298047488, more than u32 can hold\n"))
      << warningsWith(source, words);
  set(63, 65536, 1041);
  EXPECT_EQ(warningsWith(source, words), "");
  set(0, 65536, 1041);
  EXPECT_EQ(warningsWith(source, words), "");
  // Nobody gets to the index: not in a loop without rounds, and not behind a condition that does not hold.
  for (const char* unreached :
       {"if (n > 3) { x[t - 1] = 1; }", "for (var k = 0u; k < n; k++) { x[k - 2] = 1; }", "if (n == 3) { x[t - 1] = 1; }",
        "if (n != 0) { x[t - 1] = 1; }", "if (n <= 0) { return; } x[t - 1] = 1;"}) {
    const std::string text = std::string(kBody) + unreached + " }";
    EXPECT_NE(warningsOf(text), "") << unreached;
    EXPECT_EQ(warningsWith(text, {0}), "") << unreached;
  }
  EXPECT_NE(warningsWith(std::string(kBody) + "if (n == 0) { x[t - 1] = 1; } }", {0}), "");
}

TEST(Defects, limits_areNamedWithValueMaximumAndRemedy) {
  EXPECT_EQ(limitsOf(defect("many_buffers")),
            "13:49+0 wgsl.limit: entry point 'main': the number of storage buffers is 12, but portable allows at most 8 "
            "(maxStorageBuffersPerShaderStage)\n"
            "  help: put arrays of one type into one buffer with offsets, or split the entry point\n");
  EXPECT_EQ(limitsOf(defect("large_binding")),
            "3:48+0 wgsl.limit: entry point 'main': the smallest binding of a storage buffer is 268435456, but portable allows at most "
            "134217728 (maxStorageBufferBindingSize)\n"
            "  help: split the buffer, or bind a part of it in each of several dispatches\n");
}

TEST(Defects, entryPoints_haveTheBindingsThatTheyUse) {
  const auto reflection = reflect(defect("two_passes"));
  ASSERT_TRUE(reflection.ok()) << toString(reflection.diagnostics());
  ASSERT_EQ(reflection->entry_points.size(), 2u);
  EXPECT_EQ(reflection->entry_points[0].bindings, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(reflection->entry_points[1].bindings, (std::vector<size_t>{1, 2}));
}

TEST(Defects, lints_followSharedOperandsOnce) {
  // Each operand is used twice, by many indices, below many conditions. An analysis that walks expressions as trees would never end.
  std::string text = std::string(kBody) + "let a0 = t + i;\n";
  for (int i = 1; i < 60; ++i) text += fmt::format("let a{0} = a{1} * a{1} + a{1};\n", i, i - 1);
  for (int i = 0; i < 500; ++i) text += fmt::format("if (x[a{} - {}u] < 0) {{ return; }} if (a{} > n) {{ return; }}\n", i % 60, i, i % 60);
  EXPECT_EQ(warningsOf(text + "}"), "");
}

TEST(Defects, goodModules_haveNoLints) {
  std::vector<std::filesystem::path> files = dataFiles();
  for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_SHADERS)) {
    if (entry.path().extension() == ".wgsl") files.push_back(entry.path());
  }
  ASSERT_GT(files.size(), 8u);
  for (const std::filesystem::path& file : files) {
    const std::string source = readFile(file);
    std::vector<Warning> warnings;
    ReadOptions options = optionsOf(source);
    options.warnings = &warnings;
    options.overrides_are_constants = source.find("override") != std::string::npos && file.parent_path().filename() == "shaders";
    (void)read(source, options);
    for (const Warning& warning : warnings) EXPECT_NE(warning.diagnostic.code, "lint.index") << file << ": " << warning.diagnostic.message;
  }
}

}  // namespace
}  // namespace lockstep::wgsl::testing
