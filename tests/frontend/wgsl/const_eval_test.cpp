// SPDX-License-Identifier: Apache-2.0
// Constant expressions: value and type as the initializer of a private variable.
#include <gtest/gtest.h>

#include "ir/kernel/literal.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

/// "7i" for `3 + 4`; composites as their elements in braces; the first error when there is one.
std::string evaluate(const std::string& expression) {
  const std::string source = "enable f16; var<private> v = " + expression + ";";
  const Result<kernel::Module> module = read(source);
  if (!module.ok()) return module.diagnostics().front().message;
  const kernel::GlobalVariable& variable = module->globals.front();
  const std::function<std::string(kernel::ValueId, kernel::TypeId)> text = [&](kernel::ValueId id, kernel::TypeId type) -> std::string {
    const kernel::Type& t = module->types[type];
    if (t.kind == kernel::TypeKind::Scalar) return kernel::formatScalar(t.scalar, id.valid() ? (*module)[id].bits : 0);
    if (!id.valid() || (*module)[id].elements.empty()) return module->types.toString(type) + "{}";
    std::string list;
    for (const kernel::ValueId element : (*module)[id].elements)
      list += (list.empty() ? "" : ", ") + text(element, (*module)[element].type);
    return module->types.toString(type) + "{" + list + "}";
  };
  return text(variable.initializer, variable.type);
}

struct Case {
  const char* expression;
  const char* expected;
};

TEST(ConstEval, abstractNumbers_areExact) {
  constexpr Case kCases[] = {
      {"1 + 2", "3i"},
      {"1 + 2.5", "3.5f"},
      {"1u + 2", "3u"},
      {"1 + 2.5h", "3.5h"},
      {"-2147483648", "-2147483648i"},
      {"2147483648", "value 2147483648 does not fit i32"},
      {"2147483648 - 1", "2147483647i"},
      {"9223372036854775807 + 1", "the result does not fit an abstract integer"},
      {"9223372036854775807 * 2", "the result does not fit an abstract integer"},
      {"0.1 + 0.2", "0.3f"},
      {"(1 << 40) >> 38", "4i"},
      {"1 << 63", "shift of 1 by 63 loses bits"},
      {"(-1 << 63) >> 63", "-1i"},
      {"1 << 64", "shift of 1 by 64 loses bits"},
      {"0 << 4294967295u", "0i"},
      {"5 >> 64", "0i"},
      {"-5 >> 4294967295u", "-1i"},
      {"7 / 2", "3i"},
      {"-7 / 2", "-3i"},
      {"-7 % 2", "-1i"},
      {"7.5 % 2", "1.5f"},
      {"-7.5 % 2.0", "-1.5f"},
      {"1 / 0", "division by zero"},
      {"1.0 / 0.0", "division by zero"},
      {"--7", "7i"},
      {"1---2", "-1i"},
      {"1e308 % 1e-40", "the quotient of the operands overflows"},
      {"65504h + 1h", "the result is not a finite f16"},
      {"max(65505.0, 1h)", "value 65505 does not fit f16"},
      {"smoothstep(-3.4e38f, -1f, 3.4e38f)", "the result is not a finite f32"},
      {"1e308 * 10.0", "the result is not a finite abstract-float"},
      {"3.5e38", "value 3.5e+38 does not fit f32"},
      {"f16(70000.0)", "value 70000 does not fit f16"},
      {"0x1p-149 * 1.0", "1e-45f"},
      {"~0", "-1i"},
      {"!true", "false"},
      {"-0.0", "-0.0f"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

TEST(ConstEval, concreteIntegers_wrap) {
  constexpr Case kCases[] = {
      {"2147483647i + 1i", "-2147483648i"},
      {"4294967295u + 1u", "0u"},
      {"0u - 1u", "4294967295u"},
      {"65536i * 65536i", "0i"},
      {"-i32(-2147483648)", "-2147483648i"},
      {"abs(i32(-2147483648))", "-2147483648i"},
      {"i32(-2147483648) / -1i", "division overflows"},
      {"i32(-2147483648) % -1i", "division overflows"},
      {"5u / 0u", "division by zero"},
      {"1i << 31u", "shift of 1 by 31 loses bits"},
      {"1u << 31u", "2147483648u"},
      {"1u << 32u", "shift by 32 is not less than the width of u32"},
      {"-8i >> 1u", "-4i"},
      {"0xF0u & 0x3Cu", "48u"},
      {"0xF0u | 0x0Fu", "255u"},
      {"6i ^ 3i", "5i"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

TEST(ConstEval, conversions_followWgsl) {
  constexpr Case kCases[] = {
      {"i32(3e9f)", "2147483520i"},
      {"i32(-3e9f)", "-2147483648i"},
      {"u32(-1.5f)", "0u"},
      {"u32(5e9f)", "4294967040u"},
      {"u32(-1i)", "4294967295u"},
      {"u32(-1)", "value -1 does not fit u32"},
      {"i32(2.9)", "2i"},
      {"i32(4294967295u)", "-1i"},
      {"f32(16777217)", "16777216.0f"},
      {"bool(0.0)", "false"},
      {"bool(-0.0f)", "false"},
      {"f32(true)", "1.0f"},
      {"bitcast<f32>(0x3F800000u)", "1.0f"},
      {"bitcast<u32>(1.0f)", "1065353216u"},
      {"bitcast<i32>(4294967295u)", "-1i"},
      {"bitcast<u32>(4294967295)", "4294967295u"},
      {"bitcast<vec2<u32>>(vec2(4000000000, 1))", "vec2<u32>{4000000000u, 1u}"},
      {"bitcast<i32>(vec2(1, -2))", "-1073726464i"},
      {"bitcast<vec2<u32>>(vec4(1, 1.0, 0, 0))", "vec2<u32>{1006648320u, 0u}"},
      {"bitcast<f16>(3)", "3.0h"},
      {"bitcast<u32>(-1)", "value -1 does not fit u32"},
      {"bitcast<i32>(4294967295)", "value 4294967295 does not fit i32"},
      {"bitcast<f32>(0x7F800000u)", "the bits are not a finite f32"},
      {"bitcast<u32>(vec2<f16>(1.0h, 2.0h))", "1073757184u"},
      {"vec3<f32>(vec3<i32>(1, 2, 3))", "vec3<f32>{1.0f, 2.0f, 3.0f}"},
      {"vec4(1, vec2(2.5, 3), 4)", "vec4<f32>{1.0f, 2.5f, 3.0f, 4.0f}"},
      {"vec2<u32>(7)", "vec2<u32>{7u, 7u}"},
      {"array(1, 2.5, 3)", "array<f32, 3>{1.0f, 2.5f, 3.0f}"},
      {"array<vec2<i32>, 2>()", "array<vec2<i32>, 2>{}"},
      {"mat2x2(1, 2, 3, 4)", "mat2x2<f32>{vec2<f32>{1.0f, 2.0f}, vec2<f32>{3.0f, 4.0f}}"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

TEST(ConstEval, composites_indexAndSwizzle) {
  constexpr Case kCases[] = {
      {"array(10, 20, 30)[1]", "20i"},
      {"array(10, 20, 30)[3]", "index 3 is outside array<abstract-int, 3>"},
      {"vec4(1, 2, 3, 4).wzyx", "vec4<i32>{4i, 3i, 2i, 1i}"},
      {"vec4(1, 2, 3, 4).bg", "vec2<i32>{3i, 2i}"},
      {"vec3(1, 2, 3).y", "2i"},
      {"vec3(1.0, 2.0, 3.0)[2]", "3.0f"},
      {"vec2(1, 2) + vec2(3, 4) * 2", "vec2<i32>{7i, 10i}"},
      {"vec2(1, 2) < vec2(2, 2)", "vec2<bool>{true, false}"},
      {"mat2x2(1, 2, 3, 4) * vec2(1, 10)", "vec2<f32>{31.0f, 42.0f}"},
      {"vec2(1, 10) * mat2x2(1, 2, 3, 4)", "vec2<f32>{21.0f, 43.0f}"},
      {"(mat2x2(1, 2, 3, 4) * mat2x2(0, 1, 1, 0))[0]", "vec2<f32>{3.0f, 4.0f}"},
      {"transpose(mat2x3(1, 2, 3, 4, 5, 6))[2]", "vec2<f32>{3.0f, 6.0f}"},
      {"determinant(mat2x2(1, 2, 3, 4))", "-2.0f"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

TEST(ConstEval, logical_operatorsShortCircuit) {
  constexpr Case kCases[] = {
      {"false && (1 / 0 == 1)", "false"},
      {"true || (1u << 40u) == 1u", "true"},
      {"true && (1 / 0 == 1)", "division by zero"},
      {"false && (1u == 1i)", "operator '==' does not take operands of types u32 and i32"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

TEST(ConstEval, builtins_haveWgslValues) {
  constexpr Case kCases[] = {
      {"max(1, 2.5)", "2.5f"},
      {"min(3u, 2)", "2u"},
      {"clamp(7, 1, 5)", "5i"},
      {"clamp(1i, 5i, 2i)", "the low bound of clamp is above the high bound"},
      {"sign(-2.5)", "-1.0f"},
      {"floor(-1.5)", "-2.0f"},
      {"round(2.5)", "2.0f"},
      {"round(3.5)", "4.0f"},
      {"fract(-0.25)", "0.75f"},
      {"dot4U8Packed(0x01020304u, 0x01010101u)", "10u"},
      {"dot4U8Packed(vec2(1u), vec2(1u))", "'dot4U8Packed' does not take arguments of types (vec2<u32>, vec2<u32>)"},
      {"sqrt(4)", "2.0f"},
      {"sqrt(-1f)", "the result is not a finite f32"},
      {"log(0f)", "the result is not a finite f32"},
      {"acos(2f)", "the result is not a finite f32"},
      {"pow(2, 10)", "1024.0f"},
      {"pow(-2f, 2f)", "the base of pow is outside its domain"},
      {"exp2(3)", "8.0f"},
      {"determinant(mat2x2(1245.0, -65.0, -734.0, 436.0)) == 495110.0", "true"},
      {"determinant(mat3x3(1.0, 2, 3, 4, 5, 6, 7, 8, 10)) == -3.0", "true"},
      {"determinant(mat4x4(2.0, 0, 0, 1, 0, 3, 0, 0, 0, 0, 5, 0, 1, 0, 0, 1)) == 15.0", "true"},
      {"ldexp(1.5, 3)", "12.0f"},
      {"ldexp(1f, 129)", "the exponent of ldexp is above 128"},
      {"step(1.0, 1.0)", "1.0f"},
      {"smoothstep(0, 2, 1)", "0.5f"},
      {"smoothstep(1, 1, 1)", "the edges of smoothstep are equal"},
      {"mix(1.0, 3.0, 0.25)", "1.5f"},
      {"mix(vec2(0, 2), vec2(4, 4), 0.5)", "vec2<f32>{2.0f, 3.0f}"},
      {"dot(vec3(1, 2, 3), vec3(4, 5, 6))", "32i"},
      {"cross(vec3(1, 0, 0), vec3(0, 1, 0))", "vec3<f32>{0.0f, 0.0f, 1.0f}"},
      {"length(vec2(3, 4))", "5.0f"},
      {"distance(1.0, 4.0)", "3.0f"},
      {"normalize(vec2(0.0, 2.0))", "vec2<f32>{0.0f, 1.0f}"},
      {"normalize(vec2f(0))", "a vector of length zero cannot be normalized"},
      {"reflect(vec2(1.0, -1.0), vec2(0.0, 1.0))", "vec2<f32>{1.0f, 1.0f}"},
      {"faceForward(vec2(1.0), vec2(1.0, 0.0), vec2(-1.0, 0.0))", "vec2<f32>{1.0f, 1.0f}"},
      {"all(vec2(true, false))", "false"},
      {"any(vec2(true, false))", "true"},
      {"select(1, 2, true)", "2i"},
      {"select(vec2(1, 2), vec2(3, 4), vec2(false, true))", "vec2<i32>{1i, 4i}"},
      {"countLeadingZeros(1u)", "31u"},
      {"countTrailingZeros(8)", "3i"},
      {"countOneBits(255u)", "8u"},
      {"firstLeadingBit(0u)", "4294967295u"},
      {"firstLeadingBit(-1)", "-1i"},
      {"firstTrailingBit(12u)", "2u"},
      {"reverseBits(1u)", "2147483648u"},
      {"extractBits(0xABCDu, 4u, 8u)", "188u"},
      {"extractBits(-1i, 0u, 4u)", "-1i"},
      {"extractBits(1u, 30u, 4u)", "offset + count is above 32"},
      {"insertBits(0u, 5u, 4u, 4u)", "80u"},
      {"quantizeToF16(1.00048828125f)", "1.0f"},
      {"pack2x16float(vec2(1.0, -2.0))", "3221240832u"},
      {"unpack2x16float(3221240832u)", "vec2<f32>{1.0f, -2.0f}"},
      {"pack4x8unorm(vec4(0.0, 1.0, 0.5, 2.0))", "4286643968u"},
      {"pack4x8snorm(vec4(-1.0, 1.0, 0.0, 0.0))", "32641u"},
      {"unpack4xI8(0x7F80FF01u)", "vec4<i32>{1i, -1i, -128i, 127i}"},
      {"dot4I8Packed(0x01020304u, 0xFF010101u)", "8i"},
      {"dot4U8Packed(0x01020304u, 0xFF010101u)", "264u"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

TEST(ConstEval, modfAndFrexp_giveStructs) {
  constexpr Case kCases[] = {
      {"refract(vec2(0, -1), vec2(0, 1), 1f).y", "-1.0f"},
      {"mix(vec2(0, 2), vec2(1), 0.5h).x", "0.5h"},
      {"mix(vec2(0f), vec2(1), 0.5).x", "0.5f"},
      {"modf(-2.75).fract", "-0.75f"},
      {"modf(-2.75).whole", "-2.0f"},
      {"modf(3).whole", "3.0f"},
      {"modf(2.5h).fract", "0.5h"},
      {"modf(vec2(1.5, 2.25f)).fract", "vec2<f32>{0.5f, 0.25f}"},
      {"frexp(20.0).fract", "0.625f"},
      {"frexp(20.0).exp", "5i"},
      {"frexp(0x1p-140f).exp", "-139i"},
      {"frexp(0.0).exp", "0i"},
      {"frexp(vec2h(8, -0.75)).exp", "vec2<i32>{4i, 0i}"},
      {"frexp(1e300).exp", "997i"},
      {"frexp(1i).exp", "'frexp' does not take arguments of types (i32)"},
      {"array(modf(0.5).fract, 1)", "array<f32, 2>{0.5f, 1.0f}"},
      {"abs(-9223372036854775807 - 1) == -9223372036854775807 - 1", "true"},
      {"-(-9223372036854775807 - 1) == -9223372036854775807 - 1", "true"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
  // The structs have no names, but values of them can be kept.
  readGood(
      "fn f(x: f32) -> f32 { let a = modf(x); var b = frexp(x); b = frexp(a.whole); let c = modf(1.5); return a.fract + b.fract + c.whole; "
      "}");
  EXPECT_EQ(firstError("var<private> a: __modf_result_f32;"), "1:17 wgsl.name: '__modf_result_f32' is not declared");
  EXPECT_EQ(firstError("fn f(x: f32) { modf(x); }"), "1:16 wgsl.type: the result of 'modf' must be used");
}

TEST(ConstEval, precedence_isWgsls) {
  constexpr Case kCases[] = {
      {"2 + 3 * 4", "14i"},       {"2 - 3 - 4", "-5i"},     {"-2 * -3", "6i"},
      {"7 - -7", "14i"},          {"12 / 2 / 3", "2i"},     {"1 + 2 < 4", "true"},
      {"1 < 2 && 3 < 4", "true"}, {"1 << 2u == 4", "true"}, {"1 == 2 || 3 != 4", "true"},
      {"(1 | 2) == 3", "true"},   {"1 | 2 | 4", "7i"},      {"!true == false", "true"},
      {"-vec2(1, 2).y", "-2i"},   {"10 - 2 % 3", "8i"},     {"- - 5", "5i"},
      {"~1 & 7", "6i"},
  };
  for (const Case& c : kCases) EXPECT_EQ(evaluate(c.expression), c.expected) << c.expression;
}

}  // namespace
}  // namespace lockstep::wgsl::testing
