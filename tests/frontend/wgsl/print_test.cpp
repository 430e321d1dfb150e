// SPDX-License-Identifier: Apache-2.0
// `print`, which WGSL does not have: what it takes, that it is an effect, and that it is written as it was read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

size_t countPrints(const kernel::Module& module) {
  size_t count = 0;
  for (const kernel::Instruction& instruction : module.instructions) count += instruction.op == kernel::Op::Print ? 1 : 0;
  return count;
}

TEST(Print, takesTextsAndWhatCanBeConstructed) {
  for (const char* statement : {
           "print(1);",
           "print(1.5, 2u, true, -3i, 1.0f);",
           "print(vec2(1), vec3(1.5), vec4<bool>(true), id);",
           "let x = buf[id.x]; print(id.x, x, x * 2.0);",
           "print(atomicAdd(&counter, 1u));",
           "if id.x == 3 { print(id.yz); }",
           "for (var i = 0; i < 3; i++) { print(i); }",
           "print(f(2));",
           "{ let print = 1; _ = print; } print(2);",
           "print(mat2x2f(), array(1, 2), array<vec3f, 2>());",
           "var s = S(); print(s, s.c, s.c[1]);",
           "print(\"here\");",
           "print(\"\");",
           "print(\"say \\\"\\\\ é\", 1, \"sum =\", buf[0] + buf[1], id);",
           "print(\"=\", id.x, \"a = b =\", id.y, \"-\\\\ =\", f(1) * 2);",
       }) {
    SCOPED_TRACE(statement);
    const kernel::Module module = readGood(inShader(statement) + "var<workgroup> counter: atomic<u32>;");
    EXPECT_EQ(countPrints(module), 1u);
    EXPECT_EQ(roundTripProblem(module), "");
  }
  EXPECT_EQ(countPrints(readGood("enable f16; fn f(x: f16) { print(x, vec2h(x)); print(1.5h); }")), 2u);
}

TEST(Print, isANameLikeAnyOther) {
  EXPECT_EQ(countPrints(readGood("fn print(x: mat2x2f) {} fn f() { print(mat2x2f()); }")), 0u);
  EXPECT_EQ(countPrints(readGood("requires chromium_print; fn f() { print(1); }")), 1u);
}

TEST(Print, needsNoUniformControlFlow_andGivesNothing) {
  struct Case {
    const char* source;
    const char* expected;
  };
  constexpr Case kCases[] = {
      {"@compute @workgroup_size(8) fn f(@builtin(local_invocation_index) i: u32) { if i > 2 { print(i); } workgroupBarrier(); }",
       "accepted"},
      {"fn f() { print(); }", "1:10 wgsl.type: 'print' takes at least one value or text"},
      {"fn f() { var x = 1; print(&x); }", "1:27 wgsl.type: 'print' takes values and texts, not ptr<function, i32>"},
      {"fn f() { print(array<f32, 4097>()); }",
       "1:16 wgsl.type: 'print' shows at most 4096 numbers of a value, and array<f32, 4097> has more"},
      {"@group(0) @binding(0) var<storage> b: array<f32>; fn f() { print(b); }",
       "1:66 wgsl.type: a value of type array<f32> cannot be read as a whole"},
      {"fn f() { print(1, \"b\"); }", "1:19 wgsl.type: a text is the first argument, or names the value after it and ends with '='"},
      {"fn f() { print(1, \"b =\"); }", "1:19 wgsl.type: a text that ends with '=' names the value after it, and there is none"},
      {"fn f() { print(\"b =\", \"a\"); }", "1:16 wgsl.type: a text that ends with '=' names the value after it, and there is none"},
      {"fn f() { print(\"b); }", "1:16 wgsl.syntax: the text is not closed; it ends on its line, with '\"'"},
      {"const a = \"b\";", "1:11 wgsl.type: a text can only be an argument of print"},
      {"fn g(x: f32) {} fn f() { g(\"b\"); }", "1:28 wgsl.type: a text can only be an argument of print"},
      {"fn f() -> f32 { return abs(\"b\"); }", "1:28 wgsl.type: a text can only be an argument of print"},
      {"fn f() { print<i32>(1); }", "1:10 wgsl.type: 'print' takes no template list"},
      {"fn f() { print(5000000000); }", "1:16 wgsl.constant: value 5000000000 does not fit i32"},
      {"fn f() { let x = print(1); }", "1:18 wgsl.type: this call returns nothing that could be used"},
      {"const a = print(1);", "1:11 wgsl.constant: 'print' cannot be called at module scope"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

std::vector<std::string> labelsOf(const std::string& statement) {
  const kernel::Module module = readGood(inShader(statement));
  for (const kernel::Instruction& instruction : module.instructions) {
    if (instruction.op == kernel::Op::Print) return instruction.labels;
  }
  return {};
}

TEST(Print, namesAreTheExpressionsAsTheyAreWritten) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labelsOf("print(1, -2.5, true, 3u, .5);"), Labels());
  EXPECT_EQ(labelsOf("print(id.x,  buf[ id.x ]\n   * 2.0);"), (Labels{"", "id.x", "buf[ id.x ] * 2.0"}));
  EXPECT_EQ(labelsOf("print(\"step\", id, 1 + 1, 4);"), (Labels{"step", "id", "1 + 1", ""}));
  EXPECT_EQ(labelsOf("print(\"the  sum  =\", id.x + id.y, \"=\", id);"), (Labels{"", "the  sum", ""}));
  EXPECT_EQ(labelsOf("print(\"a \\\"b\\\" \\\\ = \");"), (Labels{"a \"b\" \\ = "}));
  const std::string sum = "id.x + id.y + id.z + id.x + id.y + id.z + id.x + id.y + id.z + id.x";
  EXPECT_EQ(labelsOf("print(" + sum + ");"), (Labels{"", sum.substr(0, 57) + "..."}));
}

TEST(Print, isWrittenWhereItWas) {
  const std::string source =
      "var<private> a: i32;\n"
      "\n"
      "fn f(x: vec2<f32>) {\n"
      "  print(\"before =  \", a, x.x);\n"
      "  a = a + 1i;\n"
      "  print(\"now =\", a);\n"
      "  print(\"done\");\n"
      "}\n";
  EXPECT_EQ(write(readGood(source)), source);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
