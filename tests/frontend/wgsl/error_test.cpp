// SPDX-License-Identifier: Apache-2.0
// What the reader says about wrong programs, and where.
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

struct Case {
  const char* source;
  const char* expected;
};

TEST(Errors, syntax_isReportedAtTheToken) {
  constexpr Case kCases[] = {
      {"fn f( {", "1:7 wgsl.syntax: expected a name for the parameter, found '{'"},
      {"fn f() { let x = 1 }", "1:20 wgsl.syntax: expected ';' after the statement, found '}'"},
      {"fn f() { let x; }", "1:15 wgsl.syntax: 'let' needs a value"},
      {"fn f() {", "1:9 wgsl.syntax: expected '}' to close the block, found 'end of file'"},
      {"let x = 1;", "1:1 wgsl.syntax: 'let' is not allowed at module scope"},
      {"fn f() { x + 1; }", "1:12 wgsl.syntax: expected '=' after the expression, found '+'"},
      {"fn f() { override x = 1; }", "1:10 wgsl.syntax: 'override' is only allowed at module scope"},
      {"fn while() {}", "1:4 wgsl.syntax: expected a name for the function, found 'while'"},
      {"fn module() {}", "1:4 wgsl.syntax: 'module' is a reserved word"},
      {"fn __f() {}", "1:4 wgsl.syntax: name '__f' starts with two underscores"},
      {"fn f() { var a: vec2<f32; }", "1:21 wgsl.syntax: expected ';' after the statement, found '<'"},
      {"fn f() {}\nenable f16;", "2:1 wgsl.syntax: 'enable' must come before all declarations"},
      {"enable f16;;\nenable subgroups;", "2:1 wgsl.syntax: 'enable' must come before all declarations"},
      {"var<private> x = 012;", "1:18 wgsl.syntax: decimal integer literal has a leading zero"},
      {"fn f() { loop { continuing { break; } } }", "1:30 wgsl.flow: 'break' is not allowed in a continuing block"},
      {"fn f() { loop { continuing { } break; } }", "1:32 wgsl.syntax: 'continuing' must be the last statement of a loop body"},
      {"fn f() { if true { break if true; } }", "1:26 wgsl.syntax: 'break if' is only allowed at the end of a continuing block"},
      {"const a = 1 $ 2;", "1:13 wgsl.syntax: character '$' is not part of WGSL"},
      {"/* never closed", "1:1 wgsl.syntax: block comment is not closed"},
      {"@compute const a = 1;", "1:1 wgsl.syntax: attributes are not allowed on this declaration"},
      {"@compute @workgroup_size(1) fn f() { discard; }",
       "1:38 wgsl.unsupported: 'discard' belongs to fragment shaders, and only compute shaders are supported"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, mixedOperators_needParentheses) {
  constexpr const char* kBad[] = {"a & b == c", "a && b || c", "a || b && c", "a < b < c", "a == b == c", "a << b << c", "a + b << c",
                                  "a << b + c", "a & b | c",   "a & b + c",   "a + b & c", "a ^ b & c",   "a && b & c",  "a >> b * c"};
  for (const char* expression : kBad) {
    const std::string error = firstError(std::string("fn f(a: i32, b: i32, c: i32) { _ = ") + expression + "; }");
    EXPECT_NE(error.find("need parentheses when they are mixed"), std::string::npos) << expression << " gave " << error;
  }
  constexpr const char* kGood[] = {"a & b & c",
                                   "(a & b) == c",
                                   "a + b * c - a",
                                   "a < b && b < c && a < c",
                                   "(a << 1u) << 2u",
                                   "a << 1u == b",
                                   "a + b < c - a",
                                   "a | (b & c)",
                                   "a * b % c",
                                   "-a - -b",
                                   "a--b",
                                   "a---b--c",
                                   "--a",
                                   "-(--a)",
                                   "a * ---b",
                                   "a == b || a != c"};
  for (const char* expression : kGood) readGood(std::string("fn f(a: i32, b: i32, c: i32) { _ = ") + expression + "; }");
}

TEST(Errors, identifiers_areThoseOfUnicode) {
  for (const char* name : {"Δέλτα", "réflexion", "Кызыл", "朝焼け", "سلام", "гⷶ", "_x", "a_", "ⅷ", "𐐨"}) {
    readGood(std::string("const ") + name + " = 1;");
  }
  constexpr Case kCases[] = {
      {"const a→b = 1;", "1:8 wgsl.syntax: character '→' (U+2192) is not part of WGSL"},
      {"const a\U00031789 = 1;", "1:8 wgsl.syntax: character '\U00031789' (U+31789) is not part of WGSL"},  // newer than Unicode 14
      {"const ·a = 1;", "1:7 wgsl.syntax: character '·' (U+00B7) is not part of WGSL"},
      {"const 😀 = 1;", "1:7 wgsl.syntax: character '😀' (U+1F600) is not part of WGSL"},
      {"const a =\u00A01;", "1:10 wgsl.syntax: character '\u00A0' (U+00A0) is not part of WGSL"},  // looks like a space
      {"\uFEFFconst a = 1;", "1:1 wgsl.syntax: a byte order mark (U+FEFF) is not allowed"},
      {"const a\xC0\x80 = 1;", "1:8 wgsl.syntax: byte 0xc0 is not UTF-8 text"},
      {"const a\xE0\x80\x80 = 1;", "1:8 wgsl.syntax: byte 0xe0 is not UTF-8 text"},
      {"const a\xED\xA0\x80 = 1;", "1:8 wgsl.syntax: byte 0xed is not UTF-8 text"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, names_areResolved) {
  constexpr Case kCases[] = {
      {"fn f() { x = 1; }", "1:10 wgsl.name: 'x' is not declared"},
      {"fn f() { { let x = 1; } _ = x; }", "1:29 wgsl.name: 'x' is not declared"},
      {"fn f() { let x = 1; let x = 2; }", "1:25 wgsl.name: 'x' is declared twice in this scope"},
      {"fn f(a: i32) { let a = 2; }", "1:20 wgsl.name: 'a' is declared twice in this scope"},
      {"fn f() {} fn f() {}", "1:14 wgsl.name: 'f' is declared twice in this module"},
      {"const a = b; const b = a;", "1:7 wgsl.name: 'a' depends on itself"},
      {"struct S { a: S }", "1:8 wgsl.name: 'S' depends on itself"},
      {"struct S { a: i32, a: i32 }", "1:20 wgsl.name: struct 'S' has two members 'a'"},
      {"fn f() { _ = f; }", "1:14 wgsl.name: 'f' is a function, not a value"},
      {"fn f() { _ = f32; }", "1:14 wgsl.name: 'f32' is a type, not a value"},
      {"fn f(v: vec2<f32>) { _ = v.z; }", "1:28 wgsl.name: 'z' does not name components of vec2<f32>"},
      {"fn f(v: vec4<f32>) { _ = v.xg; }", "1:28 wgsl.name: 'xg' does not name components of vec4<f32>"},
      {"struct S { a: i32 } fn f(s: S) { _ = s.b; }", "1:40 wgsl.name: struct 'S' has no member 'b'"},
      {"fn f() { g(); } fn g() { f(); }", "1:26 wgsl.flow: call of 'f' makes a recursion, which WGSL does not allow"},
      {"fn f() { f(); }", "1:10 wgsl.flow: call of 'f' makes a recursion, which WGSL does not allow"},
      {"@group(0) @binding(0) var t: texture_2d<f32>;", "1:30 wgsl.unsupported: 'texture_2d' is not supported"},
      {"var<private> read: i32; @group(0) @binding(0) var<storage, read> b: i32;",
       "1:60 wgsl.name: 'read' is a declaration here, not a word of WGSL"},
      {"enable nothing;", "1:8 wgsl.name: WGSL has no extension 'nothing'"},
      {"requires nothing;", "1:10 wgsl.name: WGSL has no language feature 'nothing'"},
      {"enable chromium_internal_graphite;", "1:8 wgsl.unsupported: extension 'chromium_internal_graphite' is not supported"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, types_areChecked) {
  constexpr Case kCases[] = {
      {"fn f() -> i32 { return 1.5; }", "1:24 wgsl.type: returned value has type abstract-float, but i32 is needed"},
      {"fn f() -> f32 { return 1i; }", "1:24 wgsl.type: returned value has type i32, but f32 is needed"},
      {"fn f() { return 1; }", "1:10 wgsl.type: this function returns nothing"},
      {"fn f() -> i32 { return; }", "1:17 wgsl.type: this function returns i32"},
      {"fn f(a: i32, b: u32) { _ = a + b; }", "1:28 wgsl.type: operator '+' does not take operands of types i32 and u32"},
      {"fn f(a: u32) { _ = -a; }", "1:20 wgsl.type: operator '-' does not take an operand of type u32"},
      {"fn f(a: f32) { _ = ~a; }", "1:20 wgsl.type: operator '~' does not take an operand of type f32"},
      {"fn f(a: f32) { _ = !a; }", "1:20 wgsl.type: operator '!' does not take an operand of type f32"},
      {"fn f(a: f32) { _ = a << 1u; }", "1:20 wgsl.type: operator '<<' does not take operands of types f32 and u32"},
      {"fn f(a: i32) { _ = a << 1i; }", "1:20 wgsl.type: operator '<<' does not take operands of types i32 and i32"},
      {"fn f(a: bool) { _ = a + a; }", "1:21 wgsl.type: operator '+' does not take operands of types bool and bool"},
      {"fn f(a: bool) { _ = a ^ a; }", "1:21 wgsl.type: operator '^' does not take operands of types bool and bool"},
      {"fn f(a: i32) { if a { } }", "1:19 wgsl.type: condition of 'if' has type i32, but bool is needed"},
      {"fn f(a: vec2<f32>, b: vec3<f32>) { _ = a * b; }",
       "1:40 wgsl.type: operator '*' does not take operands of types vec2<f32> and vec3<f32>"},
      {"fn f() { let a = 1; a = 2; }", "1:21 wgsl.type: 'a' cannot be assigned, because it is not a variable"},
      {"fn f(a: i32) { a++; }", "1:16 wgsl.type: 'a' cannot be assigned, because it is not a variable"},
      {"fn f() { var a = 1.0; a++; }", "1:23 wgsl.type: only i32 and u32 can be incremented and decremented, not f32"},
      {"@group(0) @binding(0) var<storage> b: array<f32>; fn f() { b[0] = 1; }", "1:60 wgsl.type: this memory is read-only"},
      {"fn f() { var v: vec2<f32>; v.xx = vec2(1.0); }", "1:28 wgsl.type: component 'x' would be assigned twice"},
      {"fn f() { var v: vec2<f32>; v.xy = vec3(1.0); }",
       "1:35 wgsl.type: assigned value has type vec3<abstract-float>, but vec2<f32> is needed"},
      {"fn f(v: vec2<f32>) { v.xy = vec2(1.0); }", "1:22 wgsl.type: the left side of an assignment must be a variable or a part of one"},
      {"fn f() { var a: array<i32>; }", "1:14 wgsl.type: 'a' cannot have type array<i32>"},
      {"fn f() { var a: atomic<i32>; }", "1:14 wgsl.type: 'a' cannot have type atomic<i32>"},
      {"var<workgroup> a: atomic<i32>; fn f() { _ = a; }", "1:45 wgsl.type: a value of type atomic<i32> cannot be read as a whole"},
      {"var<uniform> a: i32;", "1:14 wgsl.attribute: variable 'a' needs @group and @binding"},
      {"var a: i32;", "1:5 wgsl.type: variable 'a' needs an address space"},
      {"var<function> a: i32;", "1:15 wgsl.type: a module-scope variable cannot be in the function address space"},
      {"var<workgroup> a: i32 = 1;", "1:25 wgsl.type: a variable in address space workgroup takes no initializer"},
      {"@group(0) @binding(0) var<uniform> a: bool;", "1:36 wgsl.type: type bool cannot be shared with a buffer"},
      {"@group(0) @binding(0) var<uniform> a: array<f32, 4>;",
       "1:36 wgsl.type: array stride 4 of array<f32, 4> in a uniform buffer is not a multiple of 16"},
      {"fn f() { _ = vec3<f32>(1.0, 2.0); }", "1:14 wgsl.type: vec3<f32> needs 3 components, 2 are given"},
      {"fn f() { _ = vec3<f32>(1i); }", "1:24 wgsl.type: component has type i32, but f32 is needed"},
      {"fn f() { _ = array<i32, 2>(1, 2, 3); }", "1:14 wgsl.type: array<i32, 2> needs 2 values, 3 are given"},
      {"fn f() { _ = max(1, true); }", "1:14 wgsl.type: 'max' does not take arguments of types (abstract-int, bool)"},
      {"fn f() { _ = max(1); }", "1:14 wgsl.type: 'max' takes 2 arguments, 1 are given"},
      {"fn g(a: i32) {} fn f() { g(1.5); }", "1:28 wgsl.type: argument 'a' has type abstract-float, but i32 is needed"},
      {"fn g(a: i32) {} fn f() { g(); }", "1:26 wgsl.type: function 'g' takes 1 arguments, 0 are given"},
      {"fn f() { sqrt(2.0); }", "1:10 wgsl.type: the result of 'sqrt' must be used"},
      {"@must_use fn g() -> i32 { return 1; } fn f() { g(); }", "1:48 wgsl.type: the result of 'g' must be used"},
      {"fn f() { var v: vec2<f32>; let p = &v.x; }", "1:36 wgsl.type: the address of a vector component cannot be taken"},
      {"fn f() { let p = &1; }", "1:18 wgsl.type: '&' needs a variable or a part of one"},
      {"fn f(a: f32) { _ = a[0]; }", "1:20 wgsl.type: a value of type f32 cannot be indexed"},
      {"fn f(a: vec2<f32>) { _ = a[1.0]; }", "1:28 wgsl.type: index has type abstract-float, but i32 or u32 is needed"},
      {"fn f(a: f16) {}", "1:9 wgsl.type: f16 is used without being enabled"},
      {"fn f() { _ = 1h; }", "1:14 wgsl.type: f16 is used without being enabled"},
      {"fn f() { _ = bitcast<vec2<f32>>(1u); }", "1:14 wgsl.type: u32 cannot be bitcast to vec2<f32>"},
      {"fn f() { let x: u32 = (1 - 2) + 1u; }", "1:23 wgsl.constant: value -1 does not fit u32"},
      {"@compute @workgroup_size(1) fn f(a: u32) {}", "1:34 wgsl.attribute: entry point parameter 'a' needs @builtin"},
      {"@compute fn f() {}", "1:13 wgsl.attribute: compute shader 'f' needs @workgroup_size"},
      {"@fragment fn f() {}", "1:1 wgsl.unsupported: fragment shaders are not supported, only compute shaders are"},
      {"@compute @workgroup_size(0) fn f() {}", "1:26 wgsl.attribute: workgroup size 0 is not positive"},
      {"@compute @workgroup_size(1) fn f(@builtin(local_invocation_id) a: vec3<i32>) {}",
       "1:34 wgsl.type: builtin value 'local_invocation_id' has type vec3<u32>, not vec3<i32>"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, constants_areChecked) {
  constexpr Case kCases[] = {
      {"fn f(i: i32) { _ = i / 0; }", "1:24 wgsl.constant: division by zero"},
      {"fn f(i: i32) { _ = i << 32u; }", "1:25 wgsl.constant: shift count 32 is not below 32"},
      {"fn f(i: u32) { _ = extractBits(i, 30u, 4u); }", "1:20 wgsl.constant: offset + count is above 32"},
      {"fn f(x: f32) { _ = clamp(x, 2.0, 1.0); }", "1:20 wgsl.constant: the low bound of clamp is above the high bound"},
      {"fn f() { var a: array<i32, 4>; _ = a[4]; }", "1:38 wgsl.constant: index 4 is outside array<i32, 4>"},
      {"fn f() { var a: array<i32, 4>; _ = a[-1]; }", "1:38 wgsl.constant: index -1 is outside array<i32, 4>"},
      {"fn f(x: f32) { _ = ldexp(x, 129); }", "1:29 wgsl.constant: the exponent of ldexp is above 128"},
      {"override n: i32; fn f(x: i32) { _ = n / 0; }", "1:41 wgsl.constant: division by zero"},
      {"fn f(i: i32) { _ = array(1, 7414502693)[i]; }", "1:20 wgsl.constant: value 7414502693 does not fit i32"},
      {"fn f(i: i32) { _ = vec2(1, 7414502693)[i]; }", "1:20 wgsl.constant: value 7414502693 does not fit i32"},
      {"fn f(i: u32) { _ = 7414502693 << i; }", "1:20 wgsl.constant: value 7414502693 does not fit i32"},
      {"const_assert 1 > 2;", "1:14 wgsl.constant: assertion failed"},
      {"fn f(x: i32) { const_assert x > 2; }", "1:29 wgsl.constant: const_assert needs a constant bool expression"},
      {"fn f(x: i32) { const y = x; }", "1:26 wgsl.constant: value of const 'y' is not a constant expression"},
      {"fn f() { var a: array<f32, 0>; }", "1:28 wgsl.type: array count 0 is not positive"},
      {"override n = 4; fn f() { var a: array<f32, n>; }", "1:30 wgsl.type: 'a' cannot have type array<f32, n>"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, immediateData_isChecked) {
  constexpr Case kCases[] = {
      {"var<immediate> a: array<u32, 2>;", "1:16 wgsl.type: type array<u32, 2> holds an array, which immediate data cannot have"},
      {"struct S { a: array<u32, 2> } var<immediate> a: S;", "1:46 wgsl.type: type S holds an array, which immediate data cannot have"},
      {"var<immediate> a: bool;", "1:16 wgsl.type: type bool cannot be shared with the host"},
      {"var<immediate> a: atomic<u32>;",
       "1:16 wgsl.type: type atomic<u32> holds atomics, which need workgroup memory or read_write storage"},
      {"var<immediate> a: u32 = 1;", "1:25 wgsl.type: a variable in address space immediate takes no initializer"},
      {"var<immediate, read> a: u32;", "1:16 wgsl.type: only variables in storage take an access mode"},
      {"@group(0) @binding(0) var<immediate> a: u32;", "1:1 wgsl.attribute: a variable in address space immediate has no group or binding"},
      {"var<immediate> a: u32; fn f() { a = 1; }", "1:33 wgsl.type: this memory is read-only"},
      {"fn f() { var<immediate> a: u32; }", "1:14 wgsl.type: "},
      {"fn f(p: ptr<immediate, array<u32, 2>>) { }",
       "1:24 wgsl.type: no pointer to immediate memory: type array<u32, 2> holds an array, which immediate data cannot have"},
      {"var<immediate> a: u32; var<immediate> b: u32; fn g() -> u32 { return a; } @compute @workgroup_size(1) fn f() { _ = g() + b; }",
       "1:39 wgsl.attribute: 'b' is the second immediate variable of entry point 'f', which can have one"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source).substr(0, std::string_view(c.expected).size()), c.expected) << c.source;
  // Each entry point may have one of its own, and a name that shadows the word is only a name.
  readGood(
      "var<immediate> a: u32; var<immediate> b: u32; @compute @workgroup_size(1) fn f() { _ = a; } @compute @workgroup_size(1) fn g() "
      "{ _ = b; }");
  readGood("fn f(immediate: u32) -> u32 { return immediate; }");
  readGood(
      "enable f16; requires immediate_address_space; struct S { a: vec2h, b: mat3x2f } var<immediate> s: S; fn f() -> f16 { return s.a.y; "
      "}");
}

TEST(Errors, flow_isChecked) {
  constexpr Case kCases[] = {
      {"fn f() -> i32 { if true { return 1; } }", "1:39 wgsl.flow: function 'f' can end without returning a value"},
      {"fn f(c: bool) -> i32 { loop { if c { return 1; } continuing { break if c; } } }",
       "1:79 wgsl.flow: function 'f' can end without returning a value"},
      {"fn f() { loop { } }", "1:10 wgsl.flow: this loop never ends"},
      {"fn f() { for (;;) { } }", "1:10 wgsl.flow: this loop never ends"},
      {"fn f() { break; }", "1:10 wgsl.flow: 'break' is not inside a loop or switch"},
      {"fn f() { continue; }", "1:10 wgsl.flow: 'continue' is not inside a loop"},
      {"fn f() { switch 1 { default: { continue; } } }", "1:32 wgsl.flow: 'continue' is not inside a loop"},
      {"fn f(a: i32) { switch a { case 1: {} } }", "1:16 wgsl.flow: switch needs exactly one default, it has 0"},
      {"fn f(a: i32) { switch a { case 1, 1: {} default: {} } }", "1:35 wgsl.flow: case 1 appears twice in this switch"},
      {"fn f(a: f32) { switch a { default: {} } }", "1:23 wgsl.type: switch selector has type f32, but i32 or u32 is needed"},
      {"fn f(a: i32) { switch a { case 1u: {} default: {} } }", "1:32 wgsl.type: case selector has type u32, but i32 is needed"},
      {"fn f() { loop { if true { continue; } let x = 1; continuing { _ = x; break if true; } } }",
       "1:67 wgsl.flow: 'x' may not be used here, because a continue can skip its declaration"},
      {"fn f() { loop { break; continuing { return; } } }", "1:37 wgsl.flow: 'return' is not allowed in a continuing block"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, severalMistakes_areAllReported) {
  const std::string source =
      "fn f() -> i32 { let a = ; return 1; }\n"
      "fn g() { x = ; y; }\n"
      "struct S { a i32 }\n"
      "fn h() {}\n";
  const auto module = read(source);
  ASSERT_FALSE(module.ok());
  ASSERT_EQ(module.diagnostics().size(), 4u) << toString(module.diagnostics());
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(module.diagnostics()[i].where.line, i == 0 ? 1u : i == 3 ? 3u : 2u);

  const auto semantic = read("fn f(a: i32) -> u32 {\n  let b = a + 1u;\n  let c: f32 = a;\n  _ = b + c;\n  return d;\n}\n");
  ASSERT_FALSE(semantic.ok());
  // Line 4 uses what failed before and says nothing of its own.
  ASSERT_EQ(semantic.diagnostics().size(), 3u) << toString(semantic.diagnostics());
  EXPECT_EQ(semantic.diagnostics()[0].where.line, 2u);
  EXPECT_EQ(semantic.diagnostics()[1].where.line, 3u);
  EXPECT_EQ(semantic.diagnostics()[2].where.line, 5u);
}

TEST(Errors, separatorsMissingAtTheEndOfALine_areReportedThere) {
  const std::string source =
      "const a = 1\nfn f() -> i32 {\n  let x = a\n  return y\n}\nstruct S { a: i32\n b: f32 }\nstruct T { a b, c: i23 }";
  const std::vector<Diagnostic> diagnostics = check(source, {.file_name = "k", .overrides = {}});
  ASSERT_EQ(diagnostics.size(), 5u) << toString(diagnostics);
  EXPECT_EQ(toString(diagnostics[0]), "k:1:12: error: wgsl.syntax: expected ';' after the declaration");
  EXPECT_EQ(toString(diagnostics[1]), "k:3:12: error: wgsl.syntax: expected ';' after the statement");
  EXPECT_EQ(toString(diagnostics[2]), "k:4:11: error: wgsl.syntax: expected ';' after the statement");
  EXPECT_EQ(toString(diagnostics[3]), "k:6:18: error: wgsl.syntax: expected ',' after the member");
  EXPECT_EQ(toString(diagnostics[4]), "k:8:14: error: wgsl.syntax: expected ':' after the member name, found 'b'");
  // Nothing was skipped, so the rest is checked as well.
  const std::vector<Diagnostic> checked = check("fn f() -> i32 {\n  let x = 1\n  return y;\n}", {.file_name = "k", .overrides = {}});
  ASSERT_EQ(checked.size(), 2u) << toString(checked);
  EXPECT_EQ(toString(checked[1]), "k:3:10: error: wgsl.name: 'y' is not declared");
}

TEST(Errors, remedies_nameWhatWasMeant) {
  const auto remedy = [](const std::string& source) {
    const std::vector<Diagnostic> diagnostics = check(source);
    return diagnostics.empty() ? "accepted" : diagnostics.front().remedy;
  };
  EXPECT_EQ(remedy("fn f() { let counter = 1; _ = countr; }"), "did you mean 'counter'?");
  EXPECT_EQ(remedy("fn f() { _ = sqt(2.0); }"), "did you mean 'sqrt'?");
  EXPECT_EQ(remedy("var<private> a: bol;"), "did you mean 'bool'?");
  EXPECT_EQ(remedy("struct S { width: i32 } fn f(s: S) { _ = s.widht; }"), "did you mean 'width'?");
  EXPECT_EQ(remedy("struct S { a: i32, b: i32 } fn f(s: S) { _ = s.c; }"), "it has a, b");
  EXPECT_EQ(remedy("@compute @workgroupsize(1) fn f() {}"), "did you mean 'workgroup_size'?");
  EXPECT_EQ(remedy("fn f() { _ = entirely_different; }"), "");
}

TEST(Errors, rendering_showsTheLineAndACaret) {
  const std::string source = "fn f() {\n\tlet é = 1; x = é;\n}\n";
  const auto module = read(source, {.file_name = "k.wgsl", .overrides = {}});
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(renderDiagnostics(module.diagnostics(), source),
            "k.wgsl:2:13: error: wgsl.name: 'x' is not declared\n\tlet é = 1; x = é;\n\t           ^\n");
}

TEST(Errors, rendering_marksTheWholePlaceAndShowsNotes) {
  const std::string source = "const ab = 1;\nconst ab = 2;\nconst c = f16();";
  const auto module = read(source, {.file_name = "k.wgsl", .overrides = {}});
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(renderDiagnostics(module.diagnostics(), source),
            "k.wgsl:2:7: error: wgsl.name: 'ab' is declared twice in this module\n"
            "const ab = 2;\n"
            "      ^~\n"
            "  k.wgsl:1:7: note: first declared here\n"
            "const ab = 1;\n"
            "      ^~\n"
            "k.wgsl:3:11: error: wgsl.type: f16 is used without being enabled\n"
            "const c = f16();\n"
            "          ^~~~~\n"
            "  help: write 'enable f16;' at the top of the module\n");
}

TEST(Errors, attributes_standWhereTheyBelong) {
  constexpr Case kCases[] = {
      {"@must_use @must_use fn f() -> i32 { return 1; }", "1:11 wgsl.attribute: attribute 'must_use' is given twice"},
      {"@must_use() fn f() -> i32 { return 1; }", "1:1 wgsl.attribute: attribute 'must_use' takes no arguments"},
      {"@aid(1) override a = 1;", "1:1 wgsl.attribute: 'aid' is not an attribute of WGSL"},
      {"@group(0) override a = 1;", "1:1 wgsl.attribute: attribute 'group' is not allowed on an override"},
      {"@id(1) @id(2) override a = 1;", "1:8 wgsl.attribute: attribute 'id' is given twice"},
      {"@group(0) @group(1) @binding(0) var<uniform> a: i32;", "1:11 wgsl.attribute: attribute 'group' is given twice"},
      {"@compute @compute @workgroup_size(1) fn f() {}", "1:10 wgsl.attribute: attribute 'compute' is given twice"},
      {"@compute @workgroup_size(1, 1, 1, 1) fn f() {}", "1:10 wgsl.attribute: attribute 'workgroup_size' needs 1 to 3 arguments"},
      {"struct S { @size(4) @size(8) a: i32 }", "1:21 wgsl.attribute: attribute 'size' is given twice"},
      {"struct S { @align(2) a: i32 }", "1:12 wgsl.attribute: alignment 2 is below the 4 that type i32 needs"},
      {"struct S { @align(8) a: array<vec3f, 2> }", "1:12 wgsl.attribute: alignment 8 is below the 16 that type array<vec3<f32>, 2> needs"},
      {"struct S { @align(3) a: i32 }", "1:12 wgsl.attribute: alignment 3 is not a power of two"},
      {"struct S { @group(0) a: i32 }", "1:12 wgsl.attribute: attribute 'group' is not allowed on a struct member"},
      {"fn f() { @size(4) var a: i32; }", "1:10 wgsl.attribute: attribute 'size' is not allowed on a local variable"},
      {"fn f() { @must_use f(); }", "1:10 wgsl.syntax: attributes are not allowed on this statement"},
      {"fn f() { @compute if true {} }", "1:10 wgsl.attribute: attribute 'compute' is not allowed on a statement"},
      {"@compute @workgroup_size(1) fn f(@builtin((local_invocation_index)) i: u32) {}",
       "1:34 wgsl.attribute: attribute 'builtin' needs the name of a builtin value"},
      {"fn f(@builtin(local_invocation_index) i: u32) {}", "1:6 wgsl.attribute: attribute 'builtin' is not allowed on a parameter"},
      {"struct S { @invariant a: vec4f }", "1:12 wgsl.attribute: attribute 'invariant' needs @builtin(position)"},
      {"struct S { @location(0) a: bool }", "1:12 wgsl.type: a value of type bool cannot have a location"},
      {"struct S { @builtin(position) a: vec3f }", "1:12 wgsl.type: builtin value 'position' cannot have type vec3<f32>"},
      {"struct S { @location(0) a: f32 } @compute @workgroup_size(1) fn f(s: S) {}",
       "1:67 wgsl.attribute: member 'a' of entry point parameter 's' belongs to vertex and fragment shaders"},
      {"struct S { @location(0) a: f32, @builtin(position) @invariant p: vec4f }", "accepted"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

TEST(Errors, fragmentFunctions_onlyMatterWhenReached) {
  const std::string helper = "fn slope(x: f32) -> f32 { return dpdx(x); } fn twice(x: f32) -> f32 { return slope(x) * 2; }\n";
  EXPECT_EQ(firstError(helper), "accepted");
  EXPECT_EQ(firstError(helper + "@compute @workgroup_size(1) fn main() {}"), "accepted");
  EXPECT_EQ(firstError(helper + "@compute @workgroup_size(1) fn main() { _ = twice(1); }"),
            "1:34 wgsl.unsupported: 'dpdx' belongs to fragment shaders, and only compute shaders are supported");
  // What cannot be made is left out, and so is what calls it.
  EXPECT_EQ(readGood(helper + "fn kept() {}").functions.size(), 1u);
}

TEST(Errors, bindings_mayBeSharedByEntryPoints) {
  const std::string vars = "@group(0) @binding(0) var<uniform> a: i32; @group(0) @binding(0) var<uniform> b: i32;\n";
  EXPECT_EQ(firstError(vars + "fn f() { _ = a; _ = b; }"), "accepted");
  EXPECT_EQ(firstError(vars + "@compute @workgroup_size(1) fn f() { _ = a; } @compute @workgroup_size(1) fn g() { _ = b; }"), "accepted");
  EXPECT_EQ(firstError(vars + "fn use_a() { _ = a; } @compute @workgroup_size(1) fn f() { use_a(); _ = b; }"),
            "1:79 wgsl.attribute: 'b' has the same group and binding as another variable of entry point 'f'");
}

TEST(Errors, pointerTypes_needAVariableThatCouldExist) {
  constexpr Case kCases[] = {
      {"alias p = ptr<private, atomic<u32>>;",
       "1:24 wgsl.type: no pointer to private memory: type atomic<u32> holds atomics, which need workgroup memory or read_write storage"},
      {"alias p = ptr<workgroup, array<i32>>;",
       "1:26 wgsl.type: no pointer to workgroup memory: type array<i32> is runtime-sized, which only storage buffers can be"},
      {"alias p = ptr<uniform, bool>;", "1:24 wgsl.type: no pointer to uniform memory: type bool cannot be shared with a buffer"},
      {"override n = 4; alias p = ptr<workgroup, array<i32, n>>;", "accepted"},
      {"alias p = ptr<storage, array<i32>, read_write>;", "accepted"},
      {"var<storage, read, read> x: i32;", "1:20 wgsl.type: var takes an address space and an access mode, and nothing else"},
  };
  for (const Case& c : kCases) EXPECT_EQ(firstError(c.source), c.expected) << c.source;
}

}  // namespace
}  // namespace lockstep::wgsl::testing
