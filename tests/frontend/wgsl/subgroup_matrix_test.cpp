// SPDX-License-Identifier: Apache-2.0
// Subgroup matrices: what the reader takes and makes of it, what it says about the rest, what analyses say, and what the writer writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

constexpr std::string_view kDeclarations =
    "enable f16; enable chromium_experimental_subgroup_matrix; override o = 8u; struct Held { n: u32, words: array<u32> }\n"
    "alias L = subgroup_matrix_left<f16, 16, 8>; alias R = subgroup_matrix_right<f16, 8, 16>; alias S = subgroup_matrix_result<f32, 8, "
    "8>;\n"
    "alias LB = subgroup_matrix_left<bf16, 16, 8>; alias RB = subgroup_matrix_right<bf16, 8, 16>; alias H = subgroup_matrix_result<f16, 8, "
    "8>;\n"
    "alias LF = subgroup_matrix_left<f32, 8, 8>;\n"
    "@group(0) @binding(0) var<storage, read> halves: array<f16>; @group(0) @binding(1) var<storage, read_write> sums: array<f32>;\n"
    "@group(0) @binding(2) var<storage, read> packed: Held; @group(0) @binding(3) var<storage, read> pairs: array<vec2<u32>>;\n"
    "var<workgroup> tile: array<vec4<f16>, 64>; var<workgroup> small: array<f32, 4>; var<workgroup> odd: array<vec3<f32>, 64>;\n"
    "@group(0) @binding(4) var<storage, read_write> bits: array<u32>; var<workgroup> words: array<vec4<u32>, 16>; "
    "var<workgroup> sized: array<f32, o>; var<private> own: array<f32, 64>; var<workgroup> one: f32;\n";

/// `statements` from the tenth line on.
std::string inFunction(std::string_view statements) {
  return fmt::format("{}fn f(x: f32, h: f16, u: u32, i: i32, b: bool, l: L, r: R, s: S, hs: H, lb: LB, rb: RB, lf: LF) {{\n{}\n}}\n",
                     kDeclarations, statements);
}

void expectFragment(const std::string& statements, std::string_view fragment) {
  const std::string text = kernel::print(readGood(inFunction(statements)));
  EXPECT_NE(text.find(fragment), std::string::npos) << statements << "\nhas no " << fragment << " in\n" << text;
}

TEST(SubgroupMatrices, enabling_makesACapability) {
  using enum kernel::Capability;
  const auto capabilities = [](const std::string& source) { return readGood(source).capabilities; };
  EXPECT_EQ(capabilities("enable chromium_experimental_subgroup_matrix; fn f() {}"), std::vector{SubgroupMatrices});
  EXPECT_EQ(capabilities("enable chromium_experimental_subgroup_matrix, subgroups, f16; fn f() {}"),
            (std::vector{F16, Subgroups, SubgroupMatrices}));
  readGood("fn f() { let bf16 = 1; let subgroup_matrix_left = bf16; } fn subgroupMatrixAdd() {} fn g() { subgroupMatrixAdd(); }");
}

TEST(SubgroupMatrices, variablesAndValues_areRead) {
  readGood(
      "enable chromium_experimental_subgroup_matrix; const n = 4u * 2; alias M = subgroup_matrix_result<f32, n, 16>;\n"
      "var<private> p: M; var<private> q: array<M, 2> = array<M, 2>(M(), M());\n"
      "fn take(m: M, a: array<M, 2>) -> M { p = m; q[1] = a[0]; return q[n - 7]; }\n"
      "fn change(m: ptr<function, M>) { *m = M(2); }\n"
      "fn f(x: f32) { var a: M; var b = array<M, 2>(); const c = M(); let d = array(a, M(x)); b[0] = take(c, d); change(&a); }");
  expectFragment("var a: array<subgroup_matrix_left<bf16, 64, 1>, 3>;",
                 "%a: ptr<function, array<subgroup_matrix_left<bf16, 64, 1>, 3>> = var\n");
  expectFragment("let m = S(x);", "%m: subgroup_matrix_result<f32, 8, 8> = construct %x\n");
  expectFragment("let m = H(1);", "%m: subgroup_matrix_result<f16, 8, 8> = construct 1.0h\n");
  expectFragment("var m = S();", "= var zero<subgroup_matrix_result<f32, 8, 8>>\n");
}

TEST(SubgroupMatrices, functions_becomeInstructions) {
  const std::string accumulate = "subgroup_matrix_multiply_accumulate ";
  expectFragment("_ = subgroupMatrixLoad<L, row_major>(&tile, u, 4);",
                 ": subgroup_matrix_left<f16, 16, 8> = subgroup_matrix_load @tile, %u, 4u\n");
  expectFragment("_ = subgroupMatrixLoad<R, col_major>(&halves, 3, u);",
                 ": subgroup_matrix_right<f16, 8, 16> = subgroup_matrix_load @halves, 3u, %u {column_major = true}\n");
  expectFragment("_ = subgroupMatrixLoad<LB, row_major>(&packed.words, u * 1, u);",
                 ": subgroup_matrix_left<bf16, 16, 8> = subgroup_matrix_load %0, %1, %u\n");
  expectFragment("_ = subgroupMatrixLoad<RB, col_major>(&pairs, u, u);",
                 ": subgroup_matrix_right<bf16, 8, 16> = subgroup_matrix_load @pairs, %u, %u {column_major = true}\n");
  expectFragment("_ = subgroupMatrixLoad<L, col_major>(&pairs, u, u);",
                 ": subgroup_matrix_left<f16, 16, 8> = subgroup_matrix_load @pairs, %u, %u {column_major = true}\n");
  expectFragment("_ = subgroupMatrixLoad<LF, row_major>(&bits, u, u);",
                 ": subgroup_matrix_left<f32, 8, 8> = subgroup_matrix_load @bits, %u, %u\n");
  expectFragment("subgroupMatrixStore<row_major>(&bits, u, s, u);", "subgroup_matrix_store @bits, %u, %s, %u\n");
  expectFragment("subgroupMatrixStore<row_major>(&words, 0, s, 2);", "subgroup_matrix_store @words, 0u, %s, 2u\n");
  // A runtime i32 keeps its bits; a constant one is a constant.
  expectFragment("subgroupMatrixStore<row_major>(&sums, i, s, 8i);",
                 "  %0: u32 = bitcast %i\n"
                 "  subgroup_matrix_store @sums, %0, %s, 8u\n");
  expectFragment("_ = subgroupMatrixLoad<LF, row_major>(&sums, 3000000000, i);", "= subgroup_matrix_load @sums, 3000000000u, %0\n");
  expectFragment("let row_major = 1u; subgroupMatrixStore<col_major>(&sums, row_major, s, u);",
                 "subgroup_matrix_store @sums, 1u, %s, %u {");
  expectFragment("subgroupMatrixStore<col_major>(&sums, u, s, 8u);", "subgroup_matrix_store @sums, %u, %s, 8u {column_major = true}\n");
  expectFragment("let p = &tile; subgroupMatrixStore<row_major>(p, u, hs, u);", "subgroup_matrix_store @tile, %u, %hs, %u\n");
  expectFragment("let m = subgroupMatrixMultiply<f32>(l, r);", "%m: subgroup_matrix_result<f32, 8, 8> = " + accumulate + "%l, %r, ");
  expectFragment("let m: H = subgroupMatrixMultiply<f16>(l, r);", "%m: subgroup_matrix_result<f16, 8, 8> = " + accumulate + "%l, %r, ");
  expectFragment("let m: S = subgroupMatrixMultiply<f32>(lb, rb);", "%m: subgroup_matrix_result<f32, 8, 8> = " + accumulate + "%lb, %rb, ");
  expectFragment("let m = subgroupMatrixMultiplyAccumulate(lb, rb, s);", accumulate + "%lb, %rb, %s\n");
  expectFragment("let m = subgroupMatrixAdd(l, l);", "%m: subgroup_matrix_left<f16, 16, 8> = subgroup_matrix_add %l, %l\n");
  expectFragment("let m = subgroupMatrixScalarMultiply(hs, 2);",
                 "%m: subgroup_matrix_result<f16, 8, 8> = subgroup_matrix_scale %hs, 2.0h\n");
  expectFragment("let m = subgroupMatrixRowMax(s);", "%m: subgroup_matrix_result<f32, 8, 8> = subgroup_matrix_row_max %s\n");
  expectFragment("let m = subgroupMatrixRowSum(hs);", "%m: subgroup_matrix_result<f16, 8, 8> = subgroup_matrix_row_sum %hs\n");
  expectFragment("let m = subgroupMatrixConvert<subgroup_matrix_left<f16, 8, 8>>(s);",
                 "%m: subgroup_matrix_left<f16, 8, 8> = subgroup_matrix_convert %s\n");
  expectFragment("let m = subgroupMatrixConvert<subgroup_matrix_left<bf16, 8, 8>>(subgroupMatrixRowMax(s));",
                 "  %0: subgroup_matrix_result<f32, 8, 8> = subgroup_matrix_row_max %s\n"
                 "  %m: subgroup_matrix_left<bf16, 8, 8> = subgroup_matrix_convert %0\n");
  expectFragment("let m = subgroupMatrixScalarAdd(s, x);",
                 "  %0: subgroup_matrix_result<f32, 8, 8> = construct %x\n"
                 "  %m: subgroup_matrix_result<f32, 8, 8> = subgroup_matrix_add %s, %0\n");
  expectFragment("let m = subgroupMatrixScalarSubtract(s, x);",
                 "  %0: f32 = neg %x\n"
                 "  %1: subgroup_matrix_result<f32, 8, 8> = construct %0\n"
                 "  %m: subgroup_matrix_result<f32, 8, 8> = subgroup_matrix_add %s, %1\n");
  expectFragment("let m = subgroupMatrixScalarSubtract(hs, 2);", "%0: subgroup_matrix_result<f16, 8, 8> = construct -2.0h\n");
}

struct Case {
  const char* statement;
  const char* expected;
};

TEST(SubgroupMatrices, mistakesInTypes_areReported) {
  constexpr Case kCases[] = {
      {"var m: subgroup_matrix_left<f32, 8>;",
       "10:8 wgsl.type: 'subgroup_matrix_left' needs a component type, a number of columns and a number of rows"},
      {"var m = subgroup_matrix_left();", "10:9 wgsl.type: the type of 'subgroup_matrix_left' cannot be inferred"},
      {"var m: subgroup_matrix_left<bool, 8, 8>;", "10:29 wgsl.type: 'subgroup_matrix_left' cannot have components of type bool"},
      {"var m: subgroup_matrix_left<u32, 8, 8>;",
       "10:29 wgsl.unsupported: 'subgroup_matrix_left' with components of type u32 is not supported"},
      {"var m: subgroup_matrix_left<i8, 8, 8>;", "10:29 wgsl.unsupported: 'i8' is not supported"},
      {"var m: subgroup_matrix_result<bf16, 8, 8>;", "10:31 wgsl.type: 'subgroup_matrix_result' cannot have components of type bf16"},
      {"var m: subgroup_matrix_left<f32, 0, 8>;", "10:34 wgsl.type: a subgroup matrix has 1 to 64 columns, not 0"},
      {"var m: subgroup_matrix_left<f32, 8, 65>;", "10:37 wgsl.type: a subgroup matrix has 1 to 64 rows, not 65"},
      {"var m: subgroup_matrix_left<f32, u, 8>;", "10:34 wgsl.type: the number of columns is not a constant expression"},
      {"var m: subgroup_matrix_left<f32, 8, 8.0>;",
       "10:37 wgsl.type: the number of rows has type abstract-float, but i32 or u32 is needed"},
      {"var m: bf16;", "10:8 wgsl.type: bf16 is the component type of subgroup_matrix_left and subgroup_matrix_right, and nothing else"},
      {"_ = bf16(1);", "10:5 wgsl.type: bf16 is the component type of "},
      {"var m: vec2<bf16>;", "10:13 wgsl.type: bf16 is the component type of "},
      {"_ = S(x, x);", "10:5 wgsl.type: subgroup_matrix_result<f32, 8, 8> is filled with one scalar, 2 are given"},
      {"_ = S(h);", "10:7 wgsl.type: component has type f16, but f32 is needed"},
      {"_ = LB(x);", "10:5 wgsl.type: subgroup_matrix_left<bf16, 16, 8> can only be constructed as zero"},
      {"_ = s + s;", "10:5 wgsl.type: operator '+' does not take operands of types "},
      {"_ = lb[0];", "10:5 wgsl.type: a value of type subgroup_matrix_left<bf16, 16, 8> cannot be indexed"},
      {"var m = rb; m[u] = 1;", "10:13 wgsl.type: a value of type subgroup_matrix_right<bf16, 8, 16> cannot be indexed"},
      {"_ = s[-1];", "10:7 wgsl.constant: index -1 is outside subgroup_matrix_result<f32, 8, 8>"},
      {"_ = s[x];", "10:7 wgsl.type: index has type f32, but i32 or u32 is needed"},
      {"_ = s[0][0];", "10:5 wgsl.type: a value of type f32 cannot be indexed"},
      {"_ = s.x;", "10:7 wgsl.type: a value of type subgroup_matrix_result<f32, 8, 8> has no member 'x'"},
      {"s[0] = x;", "10:1 wgsl."},
      {"var m = s; m[0] = h;", "10:19 wgsl.type: "},
      {"var m = s; let p = &m[0];", "10:20 wgsl.type: the address of an element of a subgroup matrix cannot be taken"},
      {"print(s);", "10:7 wgsl.type: 'print' takes values and texts, not subgroup_matrix_result<f32, 8, 8>"},
      {"let m: S = hs;",
       "10:12 wgsl.type: initializer has type subgroup_matrix_result<f16, 8, 8>, but subgroup_matrix_result<f32, 8, 8> is needed"},
      {"let p: ptr<workgroup, S> = &one;", "10:23 wgsl.type: no pointer to workgroup memory: type subgroup_matrix_result<f32, 8, 8> "},
  };
  for (const Case& c : kCases) {
    const std::string found = firstError(inFunction(c.statement));
    EXPECT_TRUE(found.starts_with(c.expected)) << c.statement << "\n" << found;
  }
  const std::string enable = "enable chromium_experimental_subgroup_matrix; alias M = subgroup_matrix_left<f32, 8, 8>;\n";
  EXPECT_EQ(firstError(enable + "struct T { m: array<M, 2> }"),
            "2:12 wgsl.unsupported: member 'm' cannot have type array<subgroup_matrix_left<f32, 8, 8>, 2>");
  for (const char* place : {"<workgroup>", "<storage>", "<uniform>"}) {
    const std::string binding = place[1] == 'w' ? "" : "@group(0) @binding(0) ";
    const std::string found = firstError(fmt::format("{}{}var{} m: M;", enable, binding, place));
    EXPECT_NE(found.find("holds subgroup matrices, which only function and private variables can have"), std::string::npos) << found;
  }
  EXPECT_EQ(firstError("enable chromium_experimental_subgroup_matrix; alias M = subgroup_matrix_left<f16, 8, 8>;"),
            "1:78 wgsl.type: f16 is used without being enabled");
}

TEST(SubgroupMatrices, mistakesInCalls_areReported) {
  constexpr Case kCases[] = {
      {"_ = subgroupMatrixLoad(&halves, u, u);",
       "10:5 wgsl.type: subgroupMatrixLoad needs a type and a direction, as in subgroupMatrixLoad<subgroup_matrix_left<f32, 8, 8>, "
       "row_major>("},
      {"_ = subgroupMatrixLoad<L>(&halves, u, u);", "10:5 wgsl.type: subgroupMatrixLoad needs a type and a direction, as in "},
      {"subgroupMatrixStore(&sums, u, s, u);",
       "10:1 wgsl.type: subgroupMatrixStore needs a direction, as in subgroupMatrixStore<row_major>(&array, offset, matrix, stride)"},
      {"_ = subgroupMatrixLoad<L>(&halves, u, true, u);", "10:39 wgsl.type: 'subgroupMatrixLoad' takes the direction in its template list"},
      {"_ = subgroupMatrixLoad<L>(&halves, u, b, u);", "10:39 wgsl.type: 'subgroupMatrixLoad' takes the direction in its template list"},
      {"subgroupMatrixStore(&sums, u, s, true, u);", "10:34 wgsl.type: 'subgroupMatrixStore' takes the direction in its template list"},
      {"_ = subgroupMatrixLoad<L, column_major>(&halves, u, u);",
       "10:27 wgsl.type: 'column_major' is not a direction in which a matrix lies in memory"},
      {"_ = subgroupMatrixLoad<L, true>(&halves, u, u);", "10:27 wgsl.type: 'true' is not a direction "},
      {"let col_major = 1; _ = subgroupMatrixLoad<L, col_major>(&halves, u, u);",
       "10:46 wgsl.name: 'col_major' is a declaration here, not a word of WGSL"},
      {"subgroupMatrixStore<sums>(&sums, u, s, u);", "10:21 wgsl.name: 'sums' is a declaration here, not a word of WGSL"},
      {"_ = row_major;", "10:5 wgsl.name: "},
      {"_ = subgroupMatrixMultiply(l, r);",
       "10:5 wgsl.type: subgroupMatrixMultiply needs a type, as in subgroupMatrixMultiply<f32>(left, right)"},
      {"_ = subgroupMatrixAdd<f32>(s, s);", "10:5 wgsl.type: 'subgroupMatrixAdd' takes no template list"},
      {"_ = subgroupMatrixLoad<f16, row_major>(&halves, u, u);", "10:24 wgsl.type: 'subgroupMatrixLoad' gives a subgroup matrix, not f16"},
      {"_ = subgroupMatrixLoad<L, L, row_major>(&halves, u, u);",
       "10:5 wgsl.type: subgroupMatrixLoad needs a type and a direction, as in "},
      {"_ = subgroupMatrixLoad<L, row_major>(&halves, u);", "10:5 wgsl.type: 'subgroupMatrixLoad' takes 3 arguments, 2 are given"},
      {"_ = subgroupMatrixLoad<LF, row_major>(small, u, u);",
       "10:39 wgsl.type: 'subgroupMatrixLoad' takes a pointer to an array in workgroup memory or storage, not array<f32, 4>"},
      {"_ = subgroupMatrixLoad<LF, row_major>(&own, u, u);",
       "10:39 wgsl.type: 'subgroupMatrixLoad' takes a pointer to an array in workgroup "},
      {"_ = subgroupMatrixLoad<LF, row_major>(&one, u, u);",
       "10:39 wgsl.type: 'subgroupMatrixLoad' takes a pointer to an array in workgroup "},
      {"_ = subgroupMatrixLoad<LF, row_major>(&halves, u, u);",
       "10:39 wgsl.type: array<f16> does not hold the components of subgroup_matrix_left<f32, 8, 8>"},
      {"_ = subgroupMatrixLoad<LF, row_major>(&odd, u, u);",
       "10:39 wgsl.unsupported: array<vec3<f32>, 64> does not hold the components of subgroup_matrix_left<f32, 8, 8>"},
      {"_ = subgroupMatrixLoad<LB, row_major>(&halves, u, u);",
       "10:39 wgsl.unsupported: array<f16> does not hold the components of subgroup_matrix_left<bf16, 16, 8>"},
      {"_ = subgroupMatrixLoad<LF, row_major>(&small, u, u);",
       "10:39 wgsl.type: array<f32, 4> is smaller than a row of subgroup_matrix_left<f32, 8, 8>, which takes 8 elements"},
      {"_ = subgroupMatrixLoad<subgroup_matrix_left<f16, 6, 8>, row_major>(&tile, u, u);",
       "10:68 wgsl.type: a row of subgroup_matrix_left<f16, 6, 8> has 6 components, which are no whole elements of array<vec4<f16>, 64>"},
      {"_ = subgroupMatrixLoad<subgroup_matrix_left<f16, 8, 6>, col_major>(&pairs, u, u);",
       "10:68 wgsl.type: a column of subgroup_matrix_left<f16, 8, 6> has 6 components, which are no whole elements of array<vec2<u32>>"},
      {"_ = subgroupMatrixLoad<L, row_major>(&halves, x, u);",
       "10:47 wgsl.type: the offset of 'subgroupMatrixLoad' has type f32, not i32 or u32"},
      {"_ = subgroupMatrixLoad<L, row_major>(&halves, u, 1.5);",
       "10:50 wgsl.type: the stride of 'subgroupMatrixLoad' has type abstract-float, not i32 or u32"},
      {"_ = subgroupMatrixLoad<L, row_major>(&halves, -1, u);",
       "10:47 wgsl.constant: the offset of 'subgroupMatrixLoad' is -1, which is negative"},
      {"subgroupMatrixStore<row_major>(&sums, u, s, -8i);",
       "10:45 wgsl.constant: the stride of 'subgroupMatrixStore' is -8, which is negative"},
      {"_ = subgroupMatrixLoad<L, row_major>(&halves, 5000000000, u);", "10:47 wgsl.constant: "},
      {"subgroupMatrixLoad<L, row_major>(&halves, u, u);", "10:1 wgsl.type: the result of 'subgroupMatrixLoad' must be used"},
      {"subgroupMatrixStore<row_major>(&halves, u, hs, u);", "10:32 wgsl.type: this memory is read-only"},
      {"subgroupMatrixStore<row_major>(&sums, u, hs, u);",
       "10:32 wgsl.unsupported: array<f32> does not hold the components of subgroup_matrix_result<f16, 8, 8>"},
      {"subgroupMatrixStore<row_major>(&packed.words, u, lb, u);",
       "10:1 wgsl.type: 'subgroupMatrixStore' does not take subgroup_matrix_left<bf16, 16, 8>"},
      {"subgroupMatrixStore<row_major>(&sums, u, x, u);", "10:1 wgsl.type: 'subgroupMatrixStore' does not take arguments of types ("},
      {"_ = subgroupMatrixMultiply<f32>(r, l);", "10:5 wgsl.type: 'subgroupMatrixMultiply' does not take arguments of types ("},
      {"_ = subgroupMatrixMultiply<f32>(l, subgroup_matrix_right<f16, 8, 8>());",
       "10:5 wgsl.type: subgroup_matrix_left<f16, 16, 8> and subgroup_matrix_right<f16, 8, 8> cannot be multiplied: the left one has 16 "
       "columns, the right one 8 rows"},
      {"_ = subgroupMatrixMultiply<f32>(l, rb);",
       "10:5 wgsl.type: subgroup_matrix_left<f16, 16, 8> and subgroup_matrix_right<bf16, 8, 16> cannot be multiplied: their components "
       "have different types"},
      {"_ = subgroupMatrixMultiply<f16>(lb, rb);", "10:28 wgsl.type: products of bf16 are not added up in f16"},
      {"_ = subgroupMatrixMultiply<f16>(lf, subgroup_matrix_right<f32, 8, 8>());",
       "10:28 wgsl.type: products of f32 are not added up in f16"},
      {"_ = subgroupMatrixMultiply<u32>(l, r);",
       "10:28 wgsl.type: 'subgroupMatrixMultiply' takes the component type of the result, not u32"},
      {"_ = subgroupMatrixMultiplyAccumulate(lb, rb, hs);", "10:46 wgsl.type: products of bf16 are not added up in f16"},
      {"_ = subgroupMatrixMultiplyAccumulate(l, r, subgroup_matrix_result<f32, 8, 16>());",
       "10:44 wgsl.type: the product of subgroup_matrix_left<f16, 16, 8> and subgroup_matrix_right<f16, 8, 16> is "
       "subgroup_matrix_result<f32, 8, 8>, to which subgroup_matrix_result<f32, 8, 16> cannot be added"},
      {"_ = subgroupMatrixRowMax(l);",
       "10:5 wgsl.type: 'subgroupMatrixRowMax' takes a subgroup_matrix_result, not subgroup_matrix_left<f16, 16, 8>"},
      {"_ = subgroupMatrixRowSum(lb);", "10:5 wgsl.type: 'subgroupMatrixRowSum' does not take subgroup_matrix_left<bf16, 16, 8>"},
      {"_ = subgroupMatrixRowSum(x);", "10:5 wgsl.type: 'subgroupMatrixRowSum' does not take arguments of types (f32)"},
      {"_ = subgroupMatrixRowSum(s, s);", "10:5 wgsl.type: 'subgroupMatrixRowSum' takes 1 arguments, 2 are given"},
      {"_ = subgroupMatrixRowMax<S>(s);", "10:5 wgsl.type: 'subgroupMatrixRowMax' takes no template list"},
      {"subgroupMatrixRowMax(s);", "10:1 wgsl.type: the result of 'subgroupMatrixRowMax' must be used"},
      {"_ = subgroupMatrixConvert(s);",
       "10:5 wgsl.type: subgroupMatrixConvert needs a type, as in subgroupMatrixConvert<subgroup_matrix_left<f16, 8, 8>>(result)"},
      {"_ = subgroupMatrixConvert<L>(x);", "10:5 wgsl.type: 'subgroupMatrixConvert' does not take arguments of types (f32)"},
      {"_ = subgroupMatrixConvert<L>(hs);",
       "10:30 wgsl.type: 'subgroupMatrixConvert' takes a subgroup_matrix_result of f32, not subgroup_matrix_result<f16, 8, 8>"},
      {"_ = subgroupMatrixConvert<L>(lf);",
       "10:30 wgsl.type: 'subgroupMatrixConvert' takes a subgroup_matrix_result of f32, not subgroup_matrix_left<f32, 8, 8>"},
      {"_ = subgroupMatrixConvert<LF>(s);",
       "10:27 wgsl.type: 'subgroupMatrixConvert' gives a subgroup_matrix_left of f16 or bf16, not subgroup_matrix_left<f32, 8, 8>"},
      {"_ = subgroupMatrixConvert<R>(s);",
       "10:27 wgsl.type: 'subgroupMatrixConvert' gives a subgroup_matrix_left of f16 or bf16, not subgroup_matrix_right<f16, 8, 16>"},
      {"_ = subgroupMatrixConvert<f16>(s);",
       "10:27 wgsl.type: 'subgroupMatrixConvert' gives a subgroup_matrix_left of f16 or bf16, not f16"},
      {"_ = subgroupMatrixConvert<L>(s);",
       "10:27 wgsl.type: subgroup_matrix_result<f32, 8, 8> and subgroup_matrix_left<f16, 16, 8> do not have the same columns and rows"},
      {"subgroupMatrixConvert<subgroup_matrix_left<f16, 8, 8>>(s);", "10:1 wgsl.type: the result of 'subgroupMatrixConvert' must be used"},
      {"_ = subgroupMatrixRow(s);", "10:5 wgsl.type: 'subgroupMatrixRow' takes 2 arguments, 1 are given"},
      {"_ = subgroupMatrixRow(s, i);", "10:26 wgsl.type: argument has type i32, but u32 is needed"},
      {"_ = subgroupMatrixColumn(x, u);", "10:5 wgsl.type: 'subgroupMatrixColumn' does not take arguments of types (f32, u32)"},
      {"_ = subgroupMatrixColumn(lb, u);", "10:5 wgsl.type: 'subgroupMatrixColumn' does not take subgroup_matrix_left<bf16, 16, 8>"},
      {"subgroupMatrixRow(s, u);", "10:1 wgsl.type: the result of 'subgroupMatrixRow' must be used"},
      {"subgroupMatrixStore<row_major>(&bits, u, hs, u);",
       "10:32 wgsl.unsupported: array<u32> does not hold the components of subgroup_matrix_result<f16, 8, 8>"},
      {"_ = subgroupMatrixAdd(s, hs);",
       "10:5 wgsl.type: 'subgroupMatrixAdd' takes two matrices of one type, not subgroup_matrix_result<f32, 8, 8> and "
       "subgroup_matrix_result<f16, 8, 8>"},
      {"_ = subgroupMatrixAdd(lb, lb);", "10:5 wgsl.type: 'subgroupMatrixAdd' does not take subgroup_matrix_left<bf16, 16, 8>"},
      {"_ = subgroupMatrixScalarMultiply(lb, 1);", "10:5 wgsl.type: 'subgroupMatrixScalarMultiply' does not take "},
      {"_ = subgroupMatrixScalarAdd(s, h);", "10:32 wgsl.type: argument has type f16, but f32 is needed"},
      {"_ = subgroupMatrixScalarAdd(x, x);", "10:5 wgsl.type: 'subgroupMatrixScalarAdd' does not take arguments of types (f32, f32)"},
  };
  for (const Case& c : kCases) {
    const std::string found = firstError(inFunction(c.statement));
    EXPECT_TRUE(found.starts_with(c.expected)) << c.statement << "\n" << found;
  }
  EXPECT_EQ(firstError("enable chromium_experimental_subgroup_matrix; alias M = subgroup_matrix_result<f32, 8, 8>;\n"
                       "var<private> p = subgroupMatrixAdd(M(), M());"),
            "2:18 wgsl.constant: 'subgroupMatrixAdd' cannot be called at module scope");
}

TEST(SubgroupMatrices, theDirectionAsAnArgument_isRefusedWithTheRemedy) {
  const auto remedy = [](std::string_view statement) { return read(inFunction(statement)).diagnostics().front().remedy; };
  EXPECT_EQ(remedy("_ = subgroupMatrixLoad<L>(&halves, u, true, u);"), "write subgroupMatrixLoad<L, col_major>(array, offset, stride)");
  EXPECT_EQ(remedy("_ = subgroupMatrixLoad<L>(&halves, u, b, u);"), "write subgroupMatrixLoad<L, row_major>(array, offset, stride)");
  EXPECT_EQ(remedy("subgroupMatrixStore(&sums, u, s, 1 < 2, u);"), "write subgroupMatrixStore<col_major>(array, offset, matrix, stride)");
  EXPECT_EQ(remedy("subgroupMatrixStore(&sums, u, s, false, u);"), "write subgroupMatrixStore<row_major>(array, offset, matrix, stride)");
  EXPECT_EQ(remedy("subgroupMatrixStore<column_major>(&sums, u, s, u);"), "use row_major or col_major");
}

TEST(SubgroupMatrices, withoutTheExtension_areRefusedWithTheRemedy) {
  for (const char* source : {"fn f(m: subgroup_matrix_left<f32, 8, 8>) {}", "fn f() { subgroupMatrixAdd(1, 1); }"}) {
    const Result<kernel::Module> module = read(source);
    ASSERT_FALSE(module.ok()) << source;
    const Diagnostic& first = module.diagnostics().front();
    EXPECT_NE(first.message.find("is used without subgroup matrices being enabled"), std::string::npos) << first.message;
    EXPECT_EQ(first.remedy, "write 'enable chromium_experimental_subgroup_matrix;' at the top of the module");
  }
}

TEST(SubgroupMatrices, extents_mayComeFromOverrides) {
  const std::string source =
      "enable chromium_experimental_subgroup_matrix; override k = 8; override n = 16; override first = 0;\n"
      "alias L = subgroup_matrix_left<f32, k, 8>; alias R = subgroup_matrix_right<f32, n, k * 1>;\n"
      "var<workgroup> a: array<f32, k * 8>; @group(0) @binding(0) var<storage> b: array<f32>;\n"
      "fn f(s: subgroup_matrix_result<f32, 16, 8>) -> subgroup_matrix_result<f32, n, 8> {\n"
      "  return subgroupMatrixMultiplyAccumulate(subgroupMatrixLoad<L, row_major>(&a, 0, 8), subgroupMatrixLoad<R, col_major>(&b, first, "
      "8), s);\n"
      "}";
  const auto with = [](std::map<std::string, double> overrides) {
    return ReadOptions{.file_name = "k", .overrides = std::move(overrides)};
  };
  EXPECT_TRUE(check(source).empty()) << toString(check(source));
  EXPECT_NE(kernel::print(readGood(source)).find("subgroup_matrix_right<f32, 16, 8>"), std::string::npos);
  const std::string turned = kernel::print(readGood(source, with({{"k", 4}, {"first", 1}})));
  EXPECT_NE(turned.find("subgroup_matrix_right<f32, 16, 4> = subgroup_matrix_load @b, 1u, 8u {column_major = true}\n"), std::string::npos)
      << turned;
  EXPECT_NE(turned.find("subgroup_matrix_left<f32, 4, 8> = subgroup_matrix_load @a, 0u, 8u\n"), std::string::npos) << turned;
  EXPECT_EQ(firstError(source, with({{"k", 65}})), "2:37 wgsl.override: a subgroup matrix has 1 to 64 columns, not 65");
  EXPECT_TRUE(firstError(source, with({{"n", 8}})).starts_with("5:135 wgsl.override: the product of "))
      << firstError(source, with({{"n", 8}}));
  const ReadOptions constants{.file_name = "k", .overrides = {{"k", 2}}, .overrides_are_constants = true};
  EXPECT_NE(kernel::print(readGood(source, constants)).find("subgroup_matrix_left<f32, 2, 8>"), std::string::npos);
  // What does not depend on the values is wrong without them.
  const std::string wrong = "enable chromium_experimental_subgroup_matrix; override k: u32;\n";
  EXPECT_EQ(check(wrong + "fn f(l: subgroup_matrix_left<f32, k, 8>) { let m: subgroup_matrix_left<f32, k, 4> = l; }").size(), 1u);
  EXPECT_EQ(check(wrong + "fn f(l: subgroup_matrix_left<f32, k, 8>) { let m: subgroup_matrix_left<f32, 4, 8> = l; }").size(), 0u);
  const std::string converts =
      wrong + "fn f(s: subgroup_matrix_result<f32, k, 8>) { _ = subgroupMatrixConvert<subgroup_matrix_left<bf16, 4, ";
  EXPECT_EQ(check(converts + "8>>(s); }").size(), 0u);
  EXPECT_EQ(check(converts + "4>>(s); }").size(), 1u);
}

std::string inShader(std::string_view statements, std::string_view attributes = "") {
  return fmt::format(
      "enable chromium_experimental_subgroup_matrix; alias M = subgroup_matrix_result<f32, 8, 8>;\n"
      "@group(0) @binding(0) var<storage, read_write> out: array<f32>; var<workgroup> tile: array<f32, 64>;\n"
      "fn put(p: ptr<workgroup, array<f32, 64>>, m: M) {{ subgroupMatrixStore<row_major>(p, 0, m, 8); }}\n"
      "fn fetch(p: ptr<workgroup, array<f32, 64>>) -> M {{ return subgroupMatrixLoad<M, row_major>(p, 0, 8); }}\n"
      "fn both(p: ptr<workgroup, array<f32, 64>>, q: ptr<workgroup, array<f32, 64>>) {{ put(p, fetch(q)); }}\n"
      "@compute @workgroup_size(64) {} fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3<u32>) "
      "{{\n{}\n}}\n",
      attributes, statements);
}

TEST(SubgroupMatrices, elements_areIndexedByTheInvocationThatHoldsThem) {
  const std::string result = "subgroup_matrix_result<f32, 8, 8>";
  expectFragment("let e = s[2];", "%e: f32 = extract %s, 2i\n");
  expectFragment("let e = s[u];", "%e: f32 = extract %s, %u\n");
  expectFragment("let e = l[i];", "%e: f16 = extract %l, %i\n");
  expectFragment("let m = subgroupMatrixAdd(s, s); let e = m[1u];", "%e: f32 = extract %m, 1u\n");
  expectFragment("var m = s; let e = m[3];",
                 "  %0: ptr<function, f32> = access %m, 3i\n"
                 "  %e: f32 = load %0\n");
  expectFragment("var m = s; m[u] = x;",
                 "  %0: ptr<function, f32> = access %m, %u\n"
                 "  store %0, %x\n");
  expectFragment("var m = array<S, 2>(s, s); m[1][u] += x;", "  %1: ptr<function, f32> = access %m, 1i, %u\n");
  expectFragment("var m = s; let p = &m; (*p)[0] = p[1];", "= access %m, 1i\n");
  // A constant that is no constant expression is not refused.
  expectFragment("let past = -1; let e = s[past];", "%e: f32 = extract %s, %1\n");
  expectFragment("let zero = S(); let e = zero[u] + x;", "%e: f32 = add 0.0f, %x\n");
  expectFragment("let at = subgroupMatrixRow(s, u) * 8 + subgroupMatrixColumn(s, 1);",
                 "  %0: u32 = subgroup_matrix_row %s, %u\n"
                 "  %1: u32 = mul %0, 8u\n"
                 "  %2: u32 = subgroup_matrix_column %s, 1u\n");
  EXPECT_TRUE(check(inFunction("const e = S()[0]; const_assert e == 0;")).empty());
}

TEST(SubgroupMatrices, elements_needASubgroupSize) {
  const auto module = [](std::string_view size, std::string_view statement) {
    return fmt::format(
        "enable chromium_experimental_subgroup_matrix; enable subgroup_size_control; override lanes = 32;\n"
        "alias M = subgroup_matrix_result<f32, 8, 8>; var<private> m: M;\n"
        "fn touch() {{ {} }}\n"
        "@compute @workgroup_size(64) fn other() {{ m = M(1); }}\n"
        "@compute @workgroup_size(64) {} fn main() {{ touch(); }}\n",
        statement, size);
  };
  for (const char* statement :
       {"m[0] = 1;", "let x = m[1];", "let row = subgroupMatrixRow(m, 0);", "let column = subgroupMatrixColumn(m, 0);"}) {
    const std::string found = firstError(module("", statement));
    EXPECT_NE(found.find("elements of a subgroup matrix need an entry point with a subgroup size, and 'main' has none"), std::string::npos)
        << statement << "\n"
        << found;
    for (const char* size : {"@subgroup_size(32)", "@subgroup_size(lanes)"}) {
      const std::string good = module(size, statement);
      EXPECT_TRUE(check(good).empty()) << toString(check(good));
      EXPECT_TRUE(read(good, {.file_name = "k", .overrides = {}, .entry_point = "main"}).ok()) << good;
    }
  }
  readGood(module("", "m = M(2);"));
  // The compiler states it for its templates.
  const Result<kernel::Module> templated = read(module("", "m[0] = 1;"), {.overrides = {}, .overrides_are_constants = true});
  EXPECT_TRUE(templated.ok());
}

TEST(SubgroupMatrices, functions_needUniformControlFlow) {
  const auto refused = [](std::string_view function) {
    return fmt::format("wgsl.uniformity: '{}' needs uniform control flow, but perhaps not all invocations come here", function);
  };
  EXPECT_EQ(firstError(inShader("if i < 32 { subgroupMatrixStore<row_major>(&out, 0, M(), 8); }")),
            "7:13 " + refused("subgroupMatrixStore"));
  EXPECT_EQ(firstError(inShader("if i < 32 { _ = subgroupMatrixLoad<M, row_major>(&out, 0, 8); }")),
            "7:17 " + refused("subgroupMatrixLoad"));
  EXPECT_EQ(firstError(inShader("if out[0] < 1 { _ = subgroupMatrixAdd(M(), M()); }")), "7:21 " + refused("subgroupMatrixAdd"));
  EXPECT_EQ(firstError(inShader("if i < 32 { _ = subgroupMatrixScalarAdd(M(), 1); }")), "7:17 " + refused("subgroupMatrixScalarAdd"));
  EXPECT_EQ(firstError(inShader("if i < 32 { _ = subgroupMatrixRowMax(M()); }")), "7:17 " + refused("subgroupMatrixRowMax"));
  EXPECT_EQ(firstError(inShader("if i < 32 { _ = subgroupMatrixRowSum(M()); }")), "7:17 " + refused("subgroupMatrixRowSum"));
  EXPECT_EQ(firstError(inShader("if i < 32 { _ = subgroupMatrixConvert<subgroup_matrix_left<bf16, 8, 8>>(M()); }")),
            "7:17 " + refused("subgroupMatrixConvert"));
  EXPECT_EQ(firstError(inShader("if i < 32 { put(&tile, M()); }")), "7:13 " + refused("put"));
  readGood(inShader("if group.x < 32 { put(&tile, M()); }"));
  // These tell of the invocation alone.
  readGood("enable subgroup_size_control;\n" +
           inShader("var m = M(); if i < 32 { m[0] = f32(subgroupMatrixRow(m, i)); }", "@subgroup_size(32)"));
  readGood("diagnostic(off, subgroup_uniformity);\n" + inShader("if i < 32 { put(&tile, M()); }"));
}

TEST(SubgroupMatrices, loadsAndStores_areUsesOfWhatThePointerPointsTo) {
  EXPECT_EQ(firstError(inShader("both(&tile, &tile);")),
            "7:13 wgsl.alias: arguments 'p' and 'q' of 'both' point into the same variable 'tile', and one of them is written");
}

TEST(SubgroupMatrices, kernels_haveNoFindings) {
  std::vector<Warning> warnings;
  const std::string source = inShader(
      "let base = group.x * 64;\n"
      "tile[i] = out[base + i];\n"
      "workgroupBarrier();\n"
      "let m = subgroupMatrixScalarMultiply(fetch(&tile), 2);\n"
      "workgroupBarrier();\n"
      "put(&tile, m);\n"
      "workgroupBarrier();\n"
      "var sum = 0.0;\n"
      "for (var k = 0u; k < 64; k++) { sum += exp(tile[k]); }\n"
      "out[base + i] = exp(tile[i]) / sum;");
  EXPECT_TRUE(check(source, {.file_name = "k", .overrides = {}, .warnings = &warnings}).empty());
  std::string found;
  for (const Warning& warning : warnings) found += warning.diagnostic.message + "\n";
  // 'both' is there for another test.
  EXPECT_EQ(found, "no entry point reaches function 'both'\n");
  warnings.clear();
  // Without an id of an invocation: the invocations of a subgroup do it together.
  check(
      "enable chromium_experimental_subgroup_matrix; alias M = subgroup_matrix_result<f32, 8, 8>;\n"
      "@group(0) @binding(0) var<storage> a: array<f32>; @group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
      "@compute @workgroup_size(32) fn main(@builtin(workgroup_id) group: vec3<u32>) {\n"
      "  subgroupMatrixStore<row_major>(&b, group.x * 64, subgroupMatrixLoad<M, row_major>(&a, group.x * 64, 8), 8);\n"
      "  b[group.x * 64] = 1;\n"
      "}\n",
      {.file_name = "k", .overrides = {}, .warnings = &warnings});
  for (const Warning& warning : warnings) ADD_FAILURE() << warning.diagnostic.message;
  warnings.clear();
  // How many elements an invocation holds is not known here, and each has its own.
  check(
      "enable chromium_experimental_subgroup_matrix, subgroup_size_control; alias M = subgroup_matrix_result<f32, 8, 8>;\n"
      "@group(0) @binding(0) var<storage, read_write> a: array<f32>; var<workgroup> rows: array<f32, 8>;\n"
      "@compute @workgroup_size(32) @subgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {\n"
      "  if i < 8 { rows[i] = f32(i); }\n"
      "  workgroupBarrier();\n"
      "  var m = subgroupMatrixLoad<M, row_major>(&a, 0, 8);\n"
      "  for (var e = 0u; e < 2; e++) { m[e] = fma(m[e], rows[subgroupMatrixRow(m, e)], m[1]); }\n"
      "  subgroupMatrixStore<row_major>(&a, 0, m, 8);\n"
      "}\n",
      {.file_name = "k", .overrides = {}, .warnings = &warnings});
  for (const Warning& warning : warnings) ADD_FAILURE() << warning.diagnostic.message;
}

TEST(SubgroupMatrices, written_areReadAsTheSame) {
  const std::string source =
      "enable chromium_experimental_subgroup_matrix;\n"
      "diagnostic(off, subgroup_uniformity);\n"
      "\n"
      "@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;\n"
      "@group(0) @binding(1) var<storage, read_write> c: array<f32>;\n"
      "var<private> kept: array<subgroup_matrix_result<f32, 8, 8>, 2>;\n"
      "\n"
      "fn product(left: subgroup_matrix_left<bf16, 16, 8>, right: subgroup_matrix_right<bf16, 8, 16>) -> subgroup_matrix_result<f32, 8, 8> "
      "{\n"
      "  return subgroupMatrixMultiplyAccumulate(left, right, subgroup_matrix_result<f32, 8, 8>());\n"
      "}\n"
      "\n"
      "@compute @workgroup_size(32, 1, 1)\n"
      "fn main(@builtin(workgroup_id) group: vec3<u32>) {\n"
      "  var sum: subgroup_matrix_result<f32, 8, 8>;\n"
      "  let left = subgroupMatrixLoad<subgroup_matrix_left<bf16, 16, 8>, row_major>(&a, group.x, 2u);\n"
      "  let right = subgroupMatrixLoad<subgroup_matrix_right<bf16, 8, 16>, col_major>(&a, 64u, group.y + 2u);\n"
      "  sum = subgroupMatrixMultiplyAccumulate(left, right, sum);\n"
      "  kept[1u] = subgroup_matrix_result<f32, 8, 8>(2.0f);\n"
      "  let more = subgroupMatrixAdd(sum, kept[1u]);\n"
      "  sum = subgroupMatrixScalarMultiply(more, f32(group.z));\n"
      "  let largest = subgroupMatrixRowMax(sum);\n"
      "  sum = subgroupMatrixRowSum(largest);\n"
      "  let factor = subgroupMatrixConvert<subgroup_matrix_left<bf16, 8, 8>>(sum);\n"
      "  sum = subgroupMatrixMultiplyAccumulate(factor, subgroup_matrix_right<bf16, 8, 8>(), largest);\n"
      "  subgroupMatrixStore<col_major>(&c, group.x * 64u, sum, 8u);\n"
      "}\n";
  EXPECT_EQ(write(readGood(source)), source);
  EXPECT_EQ(roundTripProblem(readGood(source)), "");
  const std::string elements =
      "enable chromium_experimental_subgroup_matrix;\n"
      "enable subgroup_size_control;\n"
      "diagnostic(off, subgroup_uniformity);\n"
      "\n"
      "@group(0) @binding(0) var<storage, read_write> c: array<u32>;\n"
      "\n"
      "@compute @workgroup_size(64, 1, 1) @subgroup_size(32)\n"
      "fn main(@builtin(workgroup_id) group: vec3<u32>) {\n"
      "  let m = subgroupMatrixLoad<subgroup_matrix_result<f32, 8, 8>, row_major>(&c, 0u, 8u);\n"
      "  var sum: subgroup_matrix_result<f32, 8, 8> = m;\n"
      "  sum[0u] += m[1i];\n"
      "  let column = subgroupMatrixColumn(m, group.x);\n"
      "  let at = group.y;\n"
      "  sum[at] = f32(column + subgroupMatrixRow(m, 1u));\n"
      "  subgroupMatrixStore<col_major>(&c, 64u, sum, 8u);\n"
      "}\n";
  EXPECT_EQ(write(readGood(elements)), elements);
  EXPECT_EQ(roundTripProblem(readGood(elements)), "");
  // A name that would hide a direction is changed.
  const std::string named =
      "lockstep.kernel 1\nenable subgroup_matrices\n"
      "var @col_major: array<f32> {access = read_write, binding = 0, group = 0, space = storage}\n"
      "fn @f(%m: subgroup_matrix_result<f32, 8, 8>, %row_major: u32) {\n"
      "  subgroup_matrix_store @col_major, %row_major, %m, 8u\n"
      "  subgroup_matrix_store @col_major, %row_major, %m, 8u {column_major = true}\n"
      "  return\n}\n";
  const std::string renamed = write(kernel::parse(named).orThrow());
  EXPECT_NE(renamed.find("subgroupMatrixStore<row_major>(&col_major_1, row_major_1, m, 8u);"), std::string::npos) << renamed;
  EXPECT_EQ(write(readGood(renamed)), renamed);
  constexpr const char* kStatements[] = {
      "_ = subgroupMatrixLoad<R, col_major>(&halves, 3, u); _ = subgroupMatrixLoad<LB, row_major>(&packed.words, u, u);",
      "let p = &packed.words; _ = subgroupMatrixLoad<LB, row_major>(p, u * 4, u); subgroupMatrixStore<col_major>(&tile, u, hs, 2);",
      "var m = array<S, 2>(s, subgroupMatrixMultiply<f32>(lb, rb)); m[u] = subgroupMatrixScalarSubtract(m[0], sums[u]);",
      "var m = subgroupMatrixScalarAdd(hs, 2); m = subgroupMatrixScalarSubtract(m, 0); let z = S(); subgroupMatrixStore<row_major>(&sums, "
      "u, "
      "z, 8);",
      "_ = subgroupMatrixScalarAdd(subgroupMatrixAdd(s, S(x)), -x); _ = H(1); var d = H(h); d = H();",
      "_ = subgroupMatrixLoad<LF, col_major>(&bits, u, i); subgroupMatrixStore<row_major>(&words, 0, s, 2);",
      "_ = subgroupMatrixRowSum(subgroupMatrixRowMax(hs)); _ = subgroupMatrixConvert<subgroup_matrix_left<f16, 8, 8>>(S());",
      "_ = s[0]; _ = s[u]; _ = l[i] + h; let m = subgroupMatrixAdd(s, s); let e = m[2u] * m[u + 1]; sums[0] = e;",
      "var m = s; m[3] = m[u]; m[u] += x; m[0] = -m[1] * 2; let p = &m; (*p)[i] = x;",
      "var m = array<S, 2>(s, s); m[1][u] += x; m[u][0] = m[0][i]; let k = m; _ = k[1][2];",
      "let at = subgroupMatrixRow(s, u) * 8 + subgroupMatrixColumn(hs, 1); sums[at] = s[u] * sums[subgroupMatrixRow(s, 0)];",
      "var m = s; for (var e = 0u; e < 2; e++) { m[e] = fma(m[e], x, sums[subgroupMatrixColumn(m, e)]); }",
  };
  for (const char* statement : kStatements) EXPECT_EQ(roundTripProblem(readGood(inFunction(statement))), "") << statement;
  EXPECT_EQ(write(readGood("enable chromium_experimental_subgroup_matrix; fn f(m: subgroup_matrix_left<bf16, 8, 8>) {}")).find("f16;"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
