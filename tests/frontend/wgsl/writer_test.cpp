// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ir/kernel/builder.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

using kernel::Op;

void expectRoundTrip(const kernel::Module& module) {
  const std::string text = write(module);
  const kernel::Module again = readGood(text);
  const std::string second = write(again);
  EXPECT_EQ(second, text);
  EXPECT_EQ(withoutNames(readGood(second)), withoutNames(again));
}

TEST(Writer, everyDataFile_roundTrips) {
  for (const auto& path : dataFiles()) {
    SCOPED_TRACE(path.filename());
    const std::string source = readFile(path);
    expectRoundTrip(readGood(source, optionsOf(source)));
  }
}

TEST(Writer, aSmallKernel_readsLikeSourceText) {
  const std::string source =
      "struct Params {\n"
      "  n: u32,\n"
      "  @align(16) scale: f32,\n"
      "}\n"
      "\n"
      "@group(0) @binding(0) var<uniform> params: Params;\n"
      "@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;\n"
      "@group(0) @binding(2) var<storage, read_write> y: array<f32>;\n"
      "\n"
      "fn scaled(value: f32) -> f32 {\n"
      "  return value * params.scale;\n"
      "}\n"
      "\n"
      "@compute @workgroup_size(64, 1, 1)\n"
      "fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
      "  let i = id.x;\n"
      "  if i >= params.n {\n"
      "    return;\n"
      "  }\n"
      "  var sum: f32 = 0.0f;\n"
      "  var k: u32 = 0u;\n"
      "  for (; k < 4u; k = k + 1u) {\n"
      "    let v0 = scaled(x[i][k]);\n"
      "    sum = sum + v0;\n"
      "  }\n"
      "  if sum < 0.0f {\n"
      "    sum = -sum;\n"
      "  } else if sum > 8.0f {\n"
      "    sum = 8.0f;\n"
      "  } else {\n"
      "    sum = (sum - 1.0f) * 2.0f;\n"
      "  }\n"
      "  y[i] = sum;\n"
      "}\n";
  EXPECT_EQ(write(readGood(source)), source);
}

TEST(Writer, readsAreNotMovedPastWrites) {
  const std::string source =
      "var<private> a: i32;\n"
      "\n"
      "fn next() -> i32 {\n"
      "  let old = a;\n"
      "  a = old + 1i;\n"
      "  return old;\n"
      "}\n"
      "\n"
      "fn f() -> i32 {\n"
      "  let v0 = a;\n"
      "  let v1 = next();\n"
      "  return v0 + v1 + a;\n"
      "}\n";
  EXPECT_EQ(
      write(readGood(
          "var<private> a: i32; fn next() -> i32 { let old = a; a = old + 1; return old; } fn f() -> i32 { return a + next() + a; }")),
      source);
}

TEST(Writer, templateListAmbiguity_isAvoided) {
  const kernel::Module module =
      readGood("fn g(a: bool, b: bool) -> bool { return a; } fn f(a: i32, b: i32, c: i32) -> bool { return g((a < b), (c > (b))); }");
  const std::string text = write(module);
  EXPECT_NE(text.find("g((a < b), (c > b))"), std::string::npos) << text;
  expectRoundTrip(module);
}

TEST(Writer, modulesOfTheBuilder_roundTrip) {
  kernel::Builder b;
  const auto array = b.types().array(b.types().f32(), 0);
  const auto buffer = b.global({.name = "in.data",
                                .value = {},
                                .type = array,
                                .space = kernel::AddressSpace::Storage,
                                .access = kernel::Access::ReadWrite,
                                .initializer = {}});
  const auto f = b.function("fn", b.types().voidType());
  const auto id = b.parameter(f, "id", b.types().vector(kernel::Scalar::U32, 3), kernel::Builtin::GlobalInvocationId);
  b.setWorkgroupSize(f, {32, 1, 1});
  b.enterFunction(f);
  const auto i = b.extract(id, 0u);
  b.name(i, "let");
  b.forRange(b.u32(0), i, b.u32(1), "vec3", [&](kernel::ValueId k) {
    const auto p = b.access(buffer, {k});
    const auto x = b.load(p);
    b.name(x, "x");
    const auto y = b.make(Op::Max, {x, b.f32(-std::numeric_limits<float>::infinity())});
    b.name(y, "x");
    const auto selected = b.make(Op::Select, {x, y, b.make(Op::Lt, {x, b.f32(-0.0f)})});
    b.store(p, b.make(Op::Sub, {selected, b.make(Op::Neg, {b.f32(-1.5f)})}));
    b.store(p, b.convert(b.types().f32(), b.scalar(kernel::Scalar::I32, 0x80000000u)));
  });
  b.switchOn(i, {{.selectors = {1, 2}}, {.selectors = {}, .is_default = true}}, [&](size_t at) {
    if (at == 0) b.breakLoop();
  });
  b.returnVoid();
  const kernel::Module module = b.take();
  ASSERT_TRUE(kernel::validate(module).ok());
  const std::string text = write(module);
  EXPECT_NE(text.find("let x_1 = max(x, bitcast<f32>(bits_ff800000));"), std::string::npos) << text;
  expectRoundTrip(module);
}

TEST(Writer, constantsThatWgslRejects_areHidden) {
  // Defined in the IR, errors in constant expressions of WGSL.
  kernel::Builder b;
  const auto f = b.function("f", b.types().u32());
  const auto x = b.parameter(f, "x", b.types().u32());
  b.enterFunction(f);
  auto sum = b.make(Op::Div, {x, b.u32(0)});
  sum = b.make(Op::Add, {sum, b.make(Op::Shl, {x, b.u32(35)})});
  sum = b.make(Op::Add, {sum, b.make(Op::Clamp, {x, b.u32(5), b.u32(2)})});
  sum = b.make(Op::Add, {sum, b.make(Op::ExtractBits, {x, b.u32(30), b.u32(9)})});
  sum = b.make(Op::Add, {sum, b.convert(b.types().u32(), b.make(Op::Log, {b.f32(0)}))});
  sum = b.make(Op::Add, {sum, b.make(Op::Rem, {b.u32(7), b.u32(0)})});
  b.returnValue(sum);
  const kernel::Module module = b.take();
  ASSERT_TRUE(kernel::validate(module).ok());
  const kernel::Module again = readGood(write(module));
  const std::string text = kernel::print(again);
  for (const char* line : {"div %x, 0u", "shl %x, 35u", "clamp %x, 5u, 2u", "extract_bits %x, 30u, 9u", "log 0.0f", "rem 7u, 0u"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

// Its shortest decimal, 3.4028235e+38, is above it, and Tint refuses that.
TEST(Writer, theLargestFloat_isExact) {
  for (const char* value : {"0x1.fffffep+127f", "-0x1.fffffep+127f"}) {
    const kernel::Module module = readGood(std::string("fn f() -> f32 { return ") + value + "; }");
    EXPECT_NE(write(module).find(std::string("return ") + value), std::string::npos) << write(module);
    expectRoundTrip(module);
  }
}

TEST(Writer, endlessLoops_stayAcceptable) {
  expectRoundTrip(readGood("fn f() { while true { } }"));
  expectRoundTrip(readGood("fn f(x: i32) { var i = 0; for (; true; i++) { switch x { case 1: { break; } default: { } } } }"));
}

TEST(Writer, namesStay_unlessTheTextNeedsTheWord) {
  // The text of f needs neither the function `a` nor the builtin `dot`, and none of them is called by it.
  const kernel::Module module = readGood(
      "var<private> x: f32; fn a() {}\n"
      "fn f(a: f32, dot: f32) -> f32 { let length = a + dot; return length * length; }\n"
      "fn g(y: f32) -> f32 { let z = max(x, y); return z * z; }");
  const std::string text = write(module);
  EXPECT_NE(text.find("fn f(a: f32, dot: f32) -> f32 {\n  let length = a + dot;\n"), std::string::npos) << text;
  EXPECT_NE(text.find("let z = max(x, y);"), std::string::npos) << text;
  expectRoundTrip(module);
}

TEST(Writer, wordsOfTheTextAreTaken_onlyWhereItHasThem) {
  const std::string text = write(readGood("@group(0) @binding(0) var<storage> uniform: array<i32>; fn f() -> i32 { return uniform[0]; }"));
  EXPECT_NE(text.find("var<storage, read> uniform: array<i32>;"), std::string::npos) << text;
  // `u32` is of no type here until the writer says the type of x.
  expectRoundTrip(readGood("var<private> u32 = array(1f); fn f() -> f32 { let x = select(1u, 2u, u32[0] > 0); return u32[x]; }"));
}

TEST(Writer, manyEqualNames_takeLinearTime) {
  std::string source = "fn f(n: i32) -> i32 { var sum = n;";
  for (int i = 0; i < 20000; ++i) source += " { let x = sum * 3; sum += x + x; }";
  const kernel::Module module = readGood(source + " return sum; }");
  EXPECT_NE(write(module).find("let x_19999 = sum * 3i;"), std::string::npos);
}

TEST(Writer, anAddressInPassing_isNoPlaceOfItsOwn) {
  const std::string source = "struct S { a: array<array<i32, 4>, 4> } fn f(i: u32) -> i32 { var s: S; ";
  EXPECT_EQ(print(readGood(source + "(&(&s.a)[i])[2] = 1; return (*&(*&s).a)[1][i]; }")),
            print(readGood(source + "s.a[i][2] = 1; return s.a[1][i]; }")));
}

TEST(Writer, placesAreWrittenOnce) {
  const std::string source =
      "@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;\n"
      "\n"
      "fn next() -> f32 {\n"
      "  return 1.0f;\n"
      "}\n"
      "\n"
      "fn f(i: u32) {\n"
      "  y[i].x += 2.0f;\n"
      "  y[i].y = next();\n"
      "  _ = y[i].z;\n"
      "}\n";
  EXPECT_EQ(write(readGood(source)), source);
}

TEST(Writer, longExpressions_areSplit) {
  kernel::Builder b;
  const auto f = b.function("f", b.types().f32());
  kernel::ValueId x = b.parameter(f, "x", b.types().f32());
  b.enterFunction(f);
  for (int i = 0; i < 2000; ++i) x = b.make(Op::Sqrt, {x});
  b.returnValue(x);
  const kernel::Module module = b.take();
  const std::string text = write(module);
  size_t longest = 0;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    longest = std::max(longest, text.find('\n', begin) - begin);
  EXPECT_LT(longest, 120u);
  expectRoundTrip(module);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
