// SPDX-License-Identifier: Apache-2.0
// What the reader's IR computes, on the reference backend: against expected values, against constant evaluation, and after writing and
// reading again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "backends/reference/reference.h"
#include "tests/backends/conformance.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

using conformance::Words;

/// Runs one workgroup of the module's text, and of the text written from it, and expects the same; returns binding 0.
Words run(const std::string& source, const Words& buffer) {
  static const std::unique_ptr<Backend> backend = makeReference();
  const kernel::Module module = readGood(source), again = readGood(write(module));
  const auto first = conformance::runKernel(*backend, module, {buffer}, {1, 1, 1});
  const auto second = conformance::runKernel(*backend, again, {buffer}, {1, 1, 1});
  if (!first.ok() || !second.ok()) {
    ADD_FAILURE() << toString(first.ok() ? second.diagnostics() : first.diagnostics()) << source;
    return Words(buffer.size());
  }
  EXPECT_EQ((*first)[0], (*second)[0]) << source << "\nwas written as\n" << write(module);
  return (*first)[0];
}

TEST(Meaning, floatParts_putTogetherGiveTheNumber) {
  const std::string source = R"(
    @group(0) @binding(0) var<storage, read_write> out: array<f32>;
    @compute @workgroup_size(1) fn main() {
      for (var i = 0u; i < 12; i++) {
        let x = out[i];
        let f = frexp(x);
        let m = modf(vec2(x, -x));
        out[12 + i] = f.fract;
        out[24 + i] = f32(f.exp);
        out[36 + i] = m.fract.x;
        out[48 + i] = m.whole.y;
      }
    })";
  constexpr std::array<float, 12> kNumbers{0.0f,   1.0f,  -1.0f,          0.5f,   20.0f,   -3.75f,
                                           1e-30f, 3e38f, 1.1754944e-38f, 1e-40f, -1e-45f, 65504.5f};
  Words words(60);
  for (size_t i = 0; i < kNumbers.size(); ++i) words[i] = std::bit_cast<uint32_t>(kNumbers[i]);
  const Words out = run(source, words);
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    const auto result = [&](size_t row) { return std::bit_cast<float>(out[row * 12 + i]); };
    int exponent = 0;
    EXPECT_EQ(result(1), std::frexp(kNumbers[i], &exponent)) << kNumbers[i];
    EXPECT_EQ(result(2), static_cast<float>(exponent)) << kNumbers[i];
    EXPECT_EQ(result(3), kNumbers[i] - std::trunc(kNumbers[i])) << kNumbers[i];
    EXPECT_EQ(result(4), -std::trunc(kNumbers[i])) << kNumbers[i];
  }
}

TEST(Meaning, swizzles_areAssignedComponentByComponent) {
  const std::string source = R"(
    @group(0) @binding(0) var<storage, read_write> out: array<vec4u>;
    fn put(p: ptr<function, vec3u>) { p.zx = p.xz; (*p).y += 5; }
    @compute @workgroup_size(1) fn main() {
      let i = out[0].w;
      out[0].zyx = vec3(1, 2, 3);
      out[1].yz *= vec2(10u, 100u);
      out[1].wz.y += 7;
      out[2].zyx[i] = 9;
      out[2].rgb[2] = 8;
      var v = vec3u(1, 2, 3);
      put(&v);
      out[3] = vec4(v, 0);
      out[3].wx.x++;
      out[4].xy = out[4].yx;
    })";
  const Words out = run(source, {0, 0, 0, 1, 1, 1, 1, 1, 5, 5, 5, 5, 0, 0, 0, 0, 11, 12, 13, 14});
  EXPECT_EQ(out, (Words{3, 2, 1, 1, 1, 10, 107, 1, 5, 9, 8, 5, 3, 7, 1, 1, 12, 11, 13, 14}));
}

TEST(Meaning, statements_doWhatWgslSays) {
  const std::string source = R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<private> calls: u32;
    fn effect(result: bool) -> bool { calls += 1; return result; }
    fn next() -> u32 { calls += 1; return calls; }
    fn swap(a: ptr<function, u32>, b: ptr<function, u32>) { let t = *a; *a = *b; *b = t; }
    @compute @workgroup_size(1) fn main() {
      // Short circuits: two of the four calls happen.
      _ = effect(false) && effect(true);
      _ = effect(true) || effect(false);
      out[0] = calls;
      // Operands are evaluated from left to right, reads included.
      calls = 10;
      out[1] = calls * 100 + next() * 10 + calls;
      // The place of a compound assignment is found once.
      calls = 1;
      out[next()] += 5;
      out[3] = calls;
      // continue runs the continuing block; break does not.
      var i = 0u;
      var sum = 0u;
      loop {
        if i == 2 { continue; }
        if i == 5 { break; }
        sum += i;
        continuing { i += 1; }
      }
      out[4] = sum * 100 + i;
      for (var k = 0u; k < 6; k++) {
        switch k { case 1, 3: { continue; } case 4: { break; } default: { out[5] += 1; } }
        out[5] += 10;
      }
      // A variable starts anew each time its declaration runs.
      for (var k = 0; k < 3; k++) { var fresh: u32; fresh += 1; out[6] += fresh; }
      var a = 7u;
      var b = 9u;
      swap(&a, &b);
      out[7] = a * 10 + b;
      var v = vec3<u32>(1, 2, 3);
      v = v.zxy;
      v[a - 8] *= 5;
      out[8] = v.x * 100 + v.y * 10 + v.z;
      let shadow = 1u;
      { let shadow = 2u; out[9] = shadow; }
      out[9] += shadow * 10;
      while true { if out[10] >= 3 { break; } out[10]++; }
    }
  )";
  // [5]: k = 0, 2, 5 count 11 each and k = 4 counts 10.
  const Words expected{2, 10 * 100 + 11 * 10 + 11, 5, 2, 8 * 100 + 5, 43, 3, 97, 3 * 100 + 5 * 10 + 2, 12, 3};
  EXPECT_EQ(run(source, Words(11)), expected);
}

TEST(Meaning, ldexp_roundsOnceOverTheWholeRange) {
  // 2^127 * 1.99 by -256, a subnormal result with rounding, subnormal to normal, and far outside on both sides.
  const std::string source = R"(
    @group(0) @binding(0) var<storage, read_write> out: array<f32, 6>;
    @compute @workgroup_size(1) fn main() {
      var exponents = array(-256, -130, 150, -1000, 0, -252);
      for (var i = 0; i < 6; i++) { out[i] = ldexp(out[i], exponents[i]); }
    }
  )";
  const Words in{0x7f7fffffu, 0x3f800003u, 0x00000001u, 0x7f7fffffu, 0x80000001u, 0x7f7fffffu};
  const auto wanted = [&](size_t i, int exponent) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::ldexp(static_cast<double>(std::bit_cast<float>(in[i])), exponent)));
  };
  EXPECT_EQ(run(source, in), (Words{wanted(0, -256), wanted(1, -130), wanted(2, 150), 0, in[4], wanted(5, -252)}));
}

/// An expression over A = 0.75, B = -1.5, C = 2.5 (f32), I = -13 (i32) and U = 0x80FF7F01 (u32) that gives f32.
constexpr const char* kFloatExpressions[] = {
    "A + B * C - B / C % A",
    "-B",
    "abs(B)",
    "floor(B)",
    "ceil(B)",
    "round(C)",
    "trunc(B)",
    "fract(B)",
    "sign(B)",
    "saturate(C)",
    "sqrt(C)",
    "inverseSqrt(C)",
    "exp(A)",
    "exp2(B)",
    "log(C)",
    "log2(C)",
    "pow(C, B)",
    "sin(A)",
    "cos(C)",
    "tan(A)",
    "asin(A)",
    "acos(A)",
    "atan(B)",
    "atan2(A, B)",
    "sinh(A)",
    "cosh(A)",
    "tanh(B)",
    "asinh(B)",
    "acosh(C)",
    "atanh(A)",
    "degrees(A)",
    "radians(C)",
    "step(A, C)",
    "fma(A, B, C)",
    "smoothstep(B, C, A)",
    "smoothstep(C, B, A)",
    "mix(A, B, C)",
    "ldexp(A, I)",
    "min(A, B)",
    "max(A, B)",
    "clamp(C, B, A)",
    "quantizeToF16(A + C)",
    "dot(vec3(A, B, C), vec3(C, A, B))",
    "cross(vec3(A, B, C), vec3(C, A, B)).x",
    "cross(vec3(A, B, C), vec3(C, A, B)).y",
    "cross(vec3(A, B, C), vec3(C, A, B)).z",
    "length(vec2(A, B))",
    "length(B)",
    "distance(vec2(A, B), vec2(C, A))",
    "normalize(vec3(A, B, C)).y",
    "reflect(vec2(A, B), vec2(C, A)).x",
    "refract(vec2(A, B), vec2(0.6, 0.8), A).x",
    "refract(vec2(A, B), vec2(0.6, 0.8), C).y",
    "faceForward(vec2(A, B), vec2(C, A), vec2(A, C)).x",
    "determinant(mat2x2(A, B, C, 2))",
    "determinant(mat3x3(A, B, C, 1, 2, A, C, C, B))",
    "determinant(mat4x4(A, B, C, 1, 2, A, C, C, B, 3, B, A, 4, 1, 1, C))",
    "(transpose(mat2x3(A, B, C, 1, 2, 3)) * vec3(A, B, C)).x",
    "(vec2(A, B) * mat3x2(A, B, C, 1, 2, 3)).z",
    "((mat2x2(A, B, C, 1) + mat2x2(C, C, A, B)) * 2 - mat2x2(A, B, C, 1))[1].x",
    "(mat2x3(A, B, C, 1, 2, 3) * mat3x2(A, B, C, 1, 2, 3))[2].y",
    "select(A, B, C > A)",
    "select(vec2(A, B), vec2(C, A), vec2((A < B), (A > B))).y",
    "f32(I)",
    "f32(U)",
    "f32(C > A)",
    "bitcast<f32>(I & 0x3fffffff)",
    "unpack2x16float(pack2x16float(vec2(A, B))).y",
    "unpack2x16snorm(U).x",
    "unpack2x16unorm(U).y",
    "unpack4x8snorm(U).w",
    "unpack4x8unorm(U).z",
    "vec4(vec2(A, B), C, 1).wzyx[2]",
    "vec3(A, B, C).zx.y",
    "array(A, B, C)[1]",
};
/// The same, giving i32 or u32 (which are compared as u32).
constexpr const char* kIntegerExpressions[] = {
    "U + 7",
    "U * U",
    "u32(I)",
    "U / 7 + U % 7",
    "u32(I / 4)",
    "u32(I % 4)",
    "u32(I >> 2u)",
    "U >> 3",
    "(U & 0xffff) << 4",
    "U & 255",
    "U | 254",
    "U ^ 0xffff",
    "~U",
    "u32(-I)",
    "u32(abs(I))",
    "u32(sign(I))",
    "min(U, 5)",
    "u32(max(I, 5))",
    "u32(clamp(I, -5, 5))",
    "countLeadingZeros(U >> 5)",
    "countTrailingZeros(U)",
    "countOneBits(U)",
    "reverseBits(U)",
    "firstLeadingBit(U >> 1)",
    "u32(firstLeadingBit(I))",
    "firstTrailingBit(U)",
    "extractBits(U, 4, 9)",
    "u32(extractBits(I, 1, 5))",
    "insertBits(U, 5, 8, 7)",
    "u32(dot(vec2(I, 3), vec2(4, I)))",
    "u32(C)",
    "u32(i32(B))",
    "u32(B)",
    "bitcast<u32>(B)",
    "pack2x16float(vec2(A, B))",
    "pack2x16snorm(vec2(A, B))",
    "pack2x16unorm(vec2(A, B))",
    "pack4x8snorm(vec4(A, B, C, -A))",
    "pack4x8unorm(vec4(A, B, C, -A))",
    "pack4xI8(vec4(I, 5, 300, -1))",
    "pack4xU8(vec4(U, 5, 300, 1))",
    "pack4xI8Clamp(vec4(I, 500, 300, -1000))",
    "pack4xU8Clamp(vec4(U, 5, 300, 1))",
    "u32(unpack4xI8(U).z)",
    "unpack4xU8(U).w",
    "u32(dot4I8Packed(U, 0x01FF02FE))",
    "dot4U8Packed(U, 0x01FF02FE)",
    "u32(all(vec2((A < C), (B < C))))",
    "u32(any(vec2((A > C), (B > C))))",
    "u32((A < C) & (B < C))",
    "u32(A < C && (B > C || C != A))",
};

std::string kernelOf(const std::string& expression, bool is_float, bool constant) {
  const std::string values =
      constant ? "const A = 0.75f; const B = -1.5f; const C = 2.5f; const I = -13i; const U = 0x80FF7F01u;"
               : "let A = bitcast<f32>(out[0]); let B = bitcast<f32>(out[1]); let C = bitcast<f32>(out[2]); let I = i32(out[3]); "
                 "let U = out[4];";
  const std::string value = is_float ? fmt::format("bitcast<u32>(f32({}))", expression) : fmt::format("u32({})", expression);
  return fmt::format(
      "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() {{ {} out[5] = {}; }}\n",
      values, value);
}

TEST(Meaning, constantEvaluation_agreesWithTheBackend) {
  const Words buffer{
      conformance::bitsOf(0.75F), conformance::bitsOf(-1.5F), conformance::bitsOf(2.5F), static_cast<uint32_t>(-13), 0x80FF7F01u, 0};
  for (const char* expression : kFloatExpressions) {
    const float constant = conformance::floatOf(run(kernelOf(expression, true, true), buffer)[5]);
    const float computed = conformance::floatOf(run(kernelOf(expression, true, false), buffer)[5]);
    EXPECT_NEAR(constant, computed, 4e-6 * std::max(1.0F, std::abs(constant))) << expression;
  }
  for (const char* expression : kIntegerExpressions) {
    const uint32_t constant = run(kernelOf(expression, false, true), buffer)[5],
                   computed = run(kernelOf(expression, false, false), buffer)[5];
    EXPECT_EQ(constant, computed) << expression;
  }
}

}  // namespace
}  // namespace lockstep::wgsl::testing
