// SPDX-License-Identifier: Apache-2.0
// `print`, which WGSL does not have: what it takes, that it is an effect, and that it is written as it was read.
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

size_t countPrints(const kernel::Module& module) {
  size_t count = 0;
  for (const kernel::Instruction& instruction : module.instructions) count += instruction.op == kernel::Op::Print ? 1 : 0;
  return count;
}

TEST(Print, takesScalarsAndVectors) {
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
      {"fn f() { print(); }", "1:10 wgsl.type: 'print' takes at least one value"},
      {"fn f() { print(1, mat2x2f()); }", "1:19 wgsl.type: 'print' takes scalars and vectors, not mat2x2<f32>"},
      {"fn f() { var x = 1; print(&x); }", "1:27 wgsl.type: 'print' takes scalars and vectors, not ptr<function, i32>"},
      {"fn f() { print(array(1, 2)); }", "1:16 wgsl.type: 'print' takes scalars and vectors, not array<abstract-int, 2>"},
      {"fn f() { print<i32>(1); }", "1:10 wgsl.type: 'print' takes no template list"},
      {"fn f() { print(5000000000); }", "1:16 wgsl.constant: value 5000000000 does not fit i32"},
      {"fn f() { let x = print(1); }", "1:18 wgsl.type: this call returns nothing that could be used"},
      {"const a = print(1);", "1:11 wgsl.constant: 'print' cannot be called at module scope"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Print, isWrittenWhereItWas) {
  const std::string source =
      "var<private> a: i32;\n"
      "\n"
      "fn f(x: vec2<f32>) {\n"
      "  print(a, x.x);\n"
      "  a = a + 1i;\n"
      "  print(a);\n"
      "}\n";
  EXPECT_EQ(write(readGood(source)), source);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
