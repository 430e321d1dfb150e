// SPDX-License-Identifier: Apache-2.0
// Alias analysis, uniformity analysis and diagnostic filters: what they refuse, where, and with which explanation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

std::string places(const Diagnostic& diagnostic) {
  std::string text = fmt::format("{}:{} {}: {}", diagnostic.where.line, diagnostic.where.column, diagnostic.code, diagnostic.message);
  for (const Note& note : diagnostic.notes) text += fmt::format("\n{}:{} {}", note.where.line, note.where.column, note.message);
  return text;
}

/// The first error with its notes, one per line.
std::string explained(const std::string& source) {
  const Result<kernel::Module> module = read(source);
  return module.ok() ? "accepted" : places(module.diagnostics().front());
}

/// Severity, place and message of each warning, one per line.
std::string warningsOf(const std::string& source) {
  std::vector<Warning> warnings;
  const Result<kernel::Module> module = read(source, {.overrides = {}, .warnings = &warnings});
  EXPECT_TRUE(module.ok()) << toString(module.diagnostics());
  std::string text;
  for (const Warning& warning : warnings) {
    text += fmt::format("{} {}\n", warning.severity == Severity::Info ? "info" : "warning", places(warning.diagnostic));
  }
  return text;
}

/// `statements` in a compute shader, from the third line on.
std::string shader(const std::string& statements, const std::string& declarations = "") {
  return fmt::format(
      "@group(0) @binding(0) var<storage, read_write> rw: array<u32>; @group(0) @binding(1) var<storage> ro: u32; {}\n"
      "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3u) {{\n{}\n}}\n",
      declarations, statements);
}

TEST(Alias, twoArguments_areNamedWithTheirUses) {
  EXPECT_EQ(explained("var<private> x: array<i32, 4>;\n"
                      "fn put(to: ptr<private, i32>, src: ptr<private, i32>) { *to = *src; }\n"
                      "fn f() { put(&x[0], &x[1]); }"),
            "3:21 wgsl.alias: arguments 'to' and 'src' of 'put' point into the same variable 'x', and one of them is written\n"
            "3:14 argument 'to'\n"
            "2:57 written through 'to' here\n"
            "2:63 read through 'src' here");
}

TEST(Alias, anArgumentAndAName_areNamedWithTheirUses) {
  EXPECT_EQ(explained("var<workgroup> x: i32;\n"
                      "fn inner() -> i32 { return x; }\n"
                      "fn add(to: ptr<workgroup, i32>) { *to += inner(); }\n"
                      "fn f() { let p = &x; add(p); }"),
            "4:26 wgsl.alias: argument 'to' of 'add' points into 'x', which the function also uses by its name, and writes\n"
            "3:35 written through 'to' here\n"
            "3:42 read 'x' here");
}

TEST(Alias, whatIsReadOnlyOrUnused_isAccepted) {
  constexpr const char* kGood[] = {
      "var<private> x: i32; fn g(a: ptr<private, i32>, b: ptr<private, i32>) -> i32 { return *a + *b; } fn f() { _ = g(&x, &x); }",
      "var<private> x: i32; fn g(a: ptr<private, i32>, b: ptr<private, i32>) { *a = 1; let c = &*b; } fn f() { g(&x, &x); }",
      "fn g(a: ptr<function, i32>, b: ptr<function, i32>) { *a = *b; } fn f() { var x = 1; var y = 2; g(&x, &y); }",
      "var<private> x: i32; var<private> y: i32; fn g(a: ptr<private, i32>) { *a = x; } fn f() { g(&y); }",
      "var<private> x: i32; fn f() { let p = &x; let q = &x; *p = *q; }",
  };
  for (const char* source : kGood) EXPECT_EQ(firstError(source), "accepted") << source;
}

TEST(Alias, localVariablesAndAtomics_count) {
  EXPECT_EQ(firstError("fn g(a: ptr<function, i32>, b: ptr<function, i32>) { *a = *b; } fn f() { var x = 1; g(&x, &x); }"),
            "1:91 wgsl.alias: arguments 'a' and 'b' of 'g' point into the same variable 'x', and one of them is written");
  EXPECT_EQ(
      firstError(
          "var<workgroup> x: atomic<u32>; fn g(a: ptr<workgroup, atomic<u32>>) { atomicStore(a, atomicLoad(&x)); } fn f() { g(&x); }"),
      "1:116 wgsl.alias: argument 'a' of 'g' points into 'x', which the function also uses by its name, and writes");
}

TEST(Uniformity, aBarrierInABranch_isExplainedFromTheValueOn) {
  EXPECT_EQ(explained(shader("let odd = lane % 2;\nif odd == 1 {\n  workgroupBarrier();\n}")),
            "5:3 wgsl.uniformity: 'workgroupBarrier' needs uniform control flow, but perhaps not all invocations come here\n"
            "4:4 control flow depends on this\n"
            "3:1 'odd' gets its value here\n"
            "3:11 'lane' is local_invocation_index, which differs between invocations");
  EXPECT_EQ(explained(shader("for (var i = 0u; i < rw[0]; i++) {\n  storageBarrier();\n}")),
            "4:3 wgsl.uniformity: 'storageBarrier' needs uniform control flow, but perhaps not all invocations come here\n"
            "3:18 control flow depends on this\n"
            "3:22 'rw' is in read_write storage, which other invocations may write");
}

TEST(Uniformity, requirementsOfFunctions_arriveAtTheirCalls) {
  EXPECT_EQ(explained(shader("outer(rw[1]);", "fn inner(x: u32) { if x > 0 { workgroupBarrier(); } }\nfn outer(y: u32) { inner(y + 1); }")),
            "4:7 wgsl.uniformity: argument 'y' of 'outer' must be uniform, but may differ between invocations\n"
            "2:26 'inner' needs it here\n"
            "1:138 'workgroupBarrier' needs it here\n"
            "4:7 'rw' is in read_write storage, which other invocations may write");
  EXPECT_EQ(explained(shader("if pick() > 0 { workgroupBarrier(); }", "var<private> p: u32;\nfn pick() -> u32 { return p; }")),
            "4:17 wgsl.uniformity: 'workgroupBarrier' needs uniform control flow, but perhaps not all invocations come here\n"
            "4:4 control flow depends on this\n"
            "4:4 the result of 'pick' may differ between invocations\n"
            "2:27 'p' is in private memory, which each invocation has for itself");
}

struct Verdict {
  const char* statements;
  bool good;
};

TEST(Uniformity, controlFlow_followsTheRules) {
  constexpr Verdict kCases[] = {
      {"workgroupBarrier();", true},
      {"if group.x > 0 { workgroupBarrier(); }", true},
      {"if lane > 0 { } workgroupBarrier();", true},
      {"if lane > 0 { return; } workgroupBarrier();", false},
      {"if lane > 0 { return; } else { return; } workgroupBarrier();", true},
      {"if ro > 0 { return; } workgroupBarrier();", true},
      {"if ro > 0 && lane > 0 { workgroupBarrier(); }", false},
      {"if ro > 0 || ro > 3 { workgroupBarrier(); }", true},
      {"switch lane { case 1: { workgroupBarrier(); } default: { } }", false},
      {"switch ro { case 1: { workgroupBarrier(); } default: { } }", true},
      {"switch ro { case 1: { if lane > 0 { break; } workgroupBarrier(); } default: { } }", false},
      {"switch lane { case 1: { } default: { } } workgroupBarrier();", true},
      {"loop { if lane > 0 { break; } workgroupBarrier(); }", false},
      {"loop { workgroupBarrier(); if lane > 0 { break; } }", false},
      {"loop { workgroupBarrier(); if ro > 0 { break; } }", true},
      {"loop { workgroupBarrier(); if lane > 0 { break; } else { return; } }", true},
      {"loop { workgroupBarrier(); if lane > 0 { break; } else { return; } } workgroupBarrier();", false},
      {"loop { workgroupBarrier(); if lane > 0 { break; } else { continue; } }", false},
      {"loop { if lane > 0 { break; } else { break; } continuing { workgroupBarrier(); } } workgroupBarrier();", true},
      {"loop { if lane > 0 { break; } } workgroupBarrier();", true},
      {"loop { if lane > 0 { return; } if ro > 0 { break; } } workgroupBarrier();", false},
      {"loop { if lane > 0 { continue; } if ro > 0 { break; } continuing { workgroupBarrier(); } }", false},
      {"loop { continuing { workgroupBarrier(); break if lane > 0; } }", false},
      {"loop { continuing { workgroupBarrier(); break if ro > 0; } }", true},
      {"while lane > ro { } workgroupBarrier();", true},
      {"return; if lane > 0 { workgroupBarrier(); }", true},
      {"loop { return; let dead = lane; continuing { if dead > 0 { workgroupBarrier(); } } }", true},
  };
  for (const Verdict& c : kCases) EXPECT_EQ(firstError(shader(c.statements)) == "accepted", c.good) << c.statements;
}

TEST(Uniformity, variables_haveTheValueOfTheirLastAssignment) {
  constexpr Verdict kCases[] = {
      {"var x = lane; x = 1; if x > 0 { workgroupBarrier(); }", true},
      {"var x = 1u; x += lane; if x > 0 { workgroupBarrier(); }", false},
      {"var x = 1u; if lane > 0 { x = 2; } if x > 0 { workgroupBarrier(); }", false},
      {"var x = 1u; if ro > 0 { x = 2; } else { x = ro; } if x > 0 { workgroupBarrier(); }", true},
      {"var x = lane; if ro > 0 { x = 2; } else { x = ro; } if x > 0 { workgroupBarrier(); }", true},
      {"var x = lane; if ro > 0 { x = 2; } if x > 0 { workgroupBarrier(); }", false},
      {"var x = lane; if ro > 0 { x = 2; } else { return; } if x > 0 { workgroupBarrier(); }", true},
      {"var x = 0u; for (var i = 0u; i < 4; i++) { if x > 0 { workgroupBarrier(); } x = lane; }", false},
      {"var x = 0u; for (var i = 0u; i < 4; i++) { x = 1; if x > 0 { workgroupBarrier(); } x = lane; }", true},
      {"var x = 0u; loop { x = lane; if ro > 1 { break; } x = 2; if ro > 0 { break; } } if x > 0 { workgroupBarrier(); }", false},
      {"var x = lane; loop { if ro > 1 { x = 1; break; } x = 2; if ro > 0 { break; } } if x > 0 { workgroupBarrier(); }", true},
      {"var x = lane; loop { if ro > 1 { break; } x = 2; if ro > 0 { break; } } if x > 0 { workgroupBarrier(); }", false},
      {"var x = 1u; loop { if ro > 2 { x = lane; continue; } x = 3; continuing { x = x; break if ro > 1; } } if x > 0 { "
       "workgroupBarrier(); }",
       false},
      {"var x = lane; switch ro { case 1: { x = 1; } case 2: { x = 2; break; } default: { x = 3; } } if x > 0 { workgroupBarrier(); }",
       true},
      {"var x = lane; switch ro { case 1: { x = 1; } case 2: { break; } default: { x = 3; } } if x > 0 { workgroupBarrier(); }", false},
      {"var x: array<u32, 4>; x[lane % 4] = 1; if x[0] > 0 { workgroupBarrier(); }", false},
      {"var x: array<u32, 4>; x[0] = lane; x[1] = 1; if x[1] > 0 { workgroupBarrier(); }", false},
      {"var x: array<u32, 4>; x[0] = lane; x = array<u32, 4>(); if x[1] > 0 { workgroupBarrier(); }", true},
      {"var x: vec4u; let p = &x; *p = vec4(lane); if x.xy.x > 0 { workgroupBarrier(); }", false},
      {"var x: u32; put(&x, lane); if x > 0 { workgroupBarrier(); }", false},
      {"var x = lane; put(&x, ro); if x > 0 { workgroupBarrier(); }", true},
      {"var x = lane; if take(&x) > 0 { workgroupBarrier(); }", false},
      {"var x = ro; if take(&x) > 0 { workgroupBarrier(); }", true},
      {"var x: array<u32, 4>; x[0] = lane; put(&x[1], ro); if x[1] > 0 { workgroupBarrier(); }", false},
      {"if workgroupUniformLoad(&shared_value) > 0 { workgroupBarrier(); }", true},
      {"if shared_value > 0 { workgroupBarrier(); }", false},
      {"_ = workgroupUniformLoad(&shared_array[lane]);", false},
      {"if atomicAdd(&counter, 1) > 0 { workgroupBarrier(); }", false},
      {"if arrayLength(&rw) > 0 { workgroupBarrier(); }", true},
  };
  const char* declarations =
      "fn put(p: ptr<function, u32>, v: u32) { *p = v; } fn take(p: ptr<function, u32>) -> u32 { return *p; } "
      "var<workgroup> shared_value: u32; var<workgroup> shared_array: array<u32, 64>; var<workgroup> counter: atomic<u32>;";
  for (const Verdict& c : kCases) EXPECT_EQ(firstError(shader(c.statements, declarations)) == "accepted", c.good) << c.statements;
}

TEST(Uniformity, derivativesAndDiscard_areLegalWhereNoComputeShaderComes) {
  EXPECT_EQ(firstError("fn f(x: f32) -> f32 { discard; return dpdx(x); }"), "accepted");
  EXPECT_EQ(firstError("var<private> p: f32; fn f() -> f32 { if p > 0 { return dpdx(p); } return 1; }"),
            "1:56 wgsl.uniformity: 'dpdx' needs uniform control flow, but perhaps not all invocations come here");
  EXPECT_EQ(
      firstError("diagnostic(off, derivative_uniformity); var<private> p: f32; fn f() -> f32 { if p > 0 { return dpdx(p); } return 1; }"),
      "accepted");
}

/// Every variable is assigned before every way out of a loop, many times over: quadratic work would take minutes.
TEST(Uniformity, largeFunctions_takeLinearTime) {
  constexpr int kCount = 20000;
  std::string declarations, body = "loop {\n", uses;
  for (int i = 0; i < kCount; ++i) {
    declarations += fmt::format("var v{} = 0u;\n", i);
    body += fmt::format("v{0} = ro + v{1}; if v{0} > 3 {{ break; }} if v{1} > 5 {{ continue; }}\n", i, (i + 7) % kCount);
    if (i % 100 == 0) uses += fmt::format("if v{} > 1 {{ workgroupBarrier(); }}\n", i);
  }
  // What takes quadratic time here exceeds the time limit of tests.
  EXPECT_EQ(firstError(shader(declarations + body + "}\n" + uses)), "accepted");
  const std::string one_differs = shader(declarations + body + "v9 = lane;\n}\n" + uses);
  EXPECT_NE(firstError(one_differs).find("wgsl.uniformity"), std::string::npos);
}

/// Each function calls the one before twice.
TEST(Uniformity, chainsOfCalls_takeLinearTime) {
  std::string functions = "fn f0(x: u32, p: ptr<function, u32>) -> u32 { if x > 0 { workgroupBarrier(); } *p += x; return *p; }\n";
  for (int i = 1; i < 300; ++i) {
    functions += fmt::format("fn f{0}(x: u32, p: ptr<function, u32>) -> u32 {{ return f{1}(x, p) + f{1}(x + 1, p); }}\n", i, i - 1);
  }
  EXPECT_EQ(firstError(shader("var v: u32; if f299(ro, &v) + v > 0 { workgroupBarrier(); }", functions)), "accepted");
  EXPECT_EQ(explained(shader("var v: u32; _ = f299(lane, &v);", functions)).substr(0, 112),
            "303:22 wgsl.uniformity: argument 'x' of 'f299' must be uniform, but may differ between invocations\n300:61 'f298'");
}

TEST(Filters, unknownRules_areWarnings) {
  EXPECT_EQ(warningsOf("diagnostic(off, tea.leaves);\n@diagnostic(info, nonsense) fn f() {}"),
            "warning 1:17 wgsl.name: 'tea.leaves' is not a diagnostic rule that is known\n"
            "warning 2:19 wgsl.name: 'nonsense' is not a diagnostic rule that is known\n");
  std::vector<Warning> warnings;
  const std::string source = "diagnostic(off, nonsense);";
  ASSERT_TRUE(read(source, {.overrides = {}, .warnings = &warnings}).ok());
  EXPECT_EQ(renderWarnings(warnings, source).substr(0, 36), "kernel.wgsl:1:17: warning: wgsl.name");
}

TEST(Filters, mistakes_areErrors) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"diagnostic(none, subgroup_uniformity);", "1:12 wgsl.syntax: 'none' is not a severity"},
      {"diagnostic(off subgroup_uniformity);", "1:16 wgsl.syntax: expected ',' after the severity, found 'subgroup_uniformity'"},
      {"diagnostic(off, active);", "1:17 wgsl.syntax: 'active' is a reserved word"},
      {"diagnostic(off, mine.trait);", "1:22 wgsl.syntax: 'trait' is a reserved word"},
      {"diagnostic(off, 3);", "1:17 wgsl.syntax: expected the name of a diagnostic rule, found '3'"},
      {"diagnostic(off, subgroup_uniformity); diagnostic(info, subgroup_uniformity);",
       "1:39 wgsl.attribute: rule 'subgroup_uniformity' already has another severity"},
      {"@diagnostic(off, derivative_uniformity) @diagnostic(off, derivative_uniformity) fn f() {}",
       "1:41 wgsl.attribute: rule 'derivative_uniformity' is filtered twice at one place"},
      {"fn f() { @diagnostic(off, subgroup_uniformity) let x = 1; }",
       "1:10 wgsl.attribute: attribute 'diagnostic' is not allowed on a local variable"},
      {"fn f() { @must_use { } }", "1:10 wgsl.attribute: attribute 'must_use' is not allowed on a statement"},
      {"@diagnostic(off, subgroup_uniformity) var<private> x: i32;",
       "1:1 wgsl.attribute: attribute 'diagnostic' is not allowed on a variable"},
  };
  for (const auto& [source, expected] : kCases) EXPECT_EQ(firstError(source), expected) << source;
  constexpr const char* kGood[] = {
      "diagnostic(off, subgroup_uniformity,); diagnostic(off, subgroup_uniformity); fn f() {}",
      "fn f() { @diagnostic(off, subgroup_uniformity) if true @diagnostic(error, subgroup_uniformity) { } else @diagnostic(off, a.b) { } }",
      "fn f() { loop @diagnostic(off, derivative_uniformity) { break; continuing @diagnostic(info, derivative_uniformity) { } } }",
      "fn f() @diagnostic(off, derivative_uniformity) { switch 1 @diagnostic(off, derivative_uniformity) { default {} } }",
      "fn f() { switch 1 { default @diagnostic(off, a) {} } }",
  };
  for (const char* source : kGood) EXPECT_EQ(firstError(source), "accepted") << source;
}

TEST(Filters, barriers_cannotBeSwitchedOff) {
  EXPECT_EQ(firstError("diagnostic(off, subgroup_uniformity);\ndiagnostic(off, derivative_uniformity);\n" +
                       shader("if lane > 0 { workgroupBarrier(); }")),
            "5:15 wgsl.uniformity: 'workgroupBarrier' needs uniform control flow, but perhaps not all invocations come here");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
