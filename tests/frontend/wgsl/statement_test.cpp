// SPDX-License-Identifier: Apache-2.0
// Every statement, type and builtin that the reader accepts gives a valid module.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

TEST(Statements, everyForm_isRead) {
  constexpr const char* kBodies[] = {
      "",
      ";",
      "{ let a = 1; { let a = 2; _ = a; } _ = a; }",
      "var a: i32; var b = 1u; var<function> c: f32 = 2; a = i32(b) + i32(c);",
      "var a = 1; a += 2; a -= 1; a *= 3; a /= 2; a %= 2; a &= 1; a |= 4; a ^= 2; a <<= 1u; a >>= 2u; a++; a--;",
      "var v = vec3<f32>(); v.x = 1.0; v[1] = 2.0; v *= 2.0; v += vec3(1.0); v.z += v.x; _ = v.zyx;",
      "var m = mat3x3<f32>(); m[0] = vec3(1.0); m[1].y = 2.0; m[2][id.x] = 3.0; m = m * m; m *= 2.0; m = m + m; m -= m; _ = m * m[0];",
      "var s: S; s.a = 1.0; s.b.y = 2.0; s.c[id.x] += 1; let t = s; _ = t.c[id.y]; s = S(1.0, vec3(2.0), array(1, 2, 3, 4));",
      "if id.x < 4 { out[0] = 1; } else if id.x < 8 { out[0] = 2; } else { out[0] = 3; }",
      "if (id.x < 4 && buf[id.x] > 0.0) || id.y == 2 { out[0] = 1; }",
      "for (var i = 0; i < 4; i++) { if i == 2 { continue; } out[i] = i; }",
      "for (var i = 0u; ; i += 2u) { if i > 7u { break; } }",
      "var i = 0; for (; i < 3;) { i++; }",
      "var i = 0; while i < 3 { i += 1; if i == 2 { break; } }",
      "var i = 0; loop { if i > 3 { break; } continuing { i++; } }",
      "var i = 0; loop { let j = i * 2; continuing { i += j + 1; break if i > 10; } }",
      "loop { return; }",
      "_ = 9223372036854775807; _ = 1e300; _ = vec2(1e300, 1) * 2;",
      "loop { if id.x > 3 { continue; } return; continuing { out[1] = 2; } }",
      "loop { if id.x > 1 { return; } else { return; } continuing { break if id.y > 3; } }",
      "loop { loop { return; } continuing { break if id.y > 3; } } out[0] = 1;",
      "loop { return; let dead = 1; continuing { out[0] = dead; } }",
      "for (var i = 0; ; i++) { break; } for (var i = 0; ; i++) { if i > 3 { continue; } break; }",
      "for (var i = 0; i < 3; i++) { loop { return; } }",
      "switch id.x { case 0, 1u: { out[0] = 1; } case 2 { break; } default: { return; } }",
      "switch i32(id.x) { case -1, default { } case 3 { out[0] = 3; } }",
      "for (var i = 0; i < 9; i++) { switch i { case 3: { continue; } default: { break; } } out[i] = 1; }",
      "return; out[0] = 1;",
      "let z = vec2<i32>(); _ = z.yx; let one = vec3(1.0); _ = one.xxyy; _ = one.z; let s = S(); _ = s.b.y; _ = vec4(z, z);",
      "let i = 9; var a: array<i32, 4>; a[i] = array(1, 2)[i]; let k = -1; out[k] = 1 / (i - 9); out[0] = 1 << u32(i * 4);",
      "let a = f(1); f(2); _ = f(3); _ = 1 + 2;",
      "const_assert 1 + 1 == 2; const n = 4; var a: array<f32, n * 2>; a[7] = 1;",
      "let p = &out[id.x]; *p = 3; *p += 1; let q = p; (*q)++; out[1] = *p;",
      "var s: S; let p = &s; p.a = 1.0; (*p).b = vec3(1.0); p.c[1] = 2; let pc = &p.c; pc[id.x] = 4;",
      "let t = array(1, 2, 3)[id.x % 3]; let v = vec4(1.0, 2.0, 3.0, 4.0)[id.x]; _ = f32(t) + v;",
      "let n = arrayLength(&buf); let last = buf[n - 1]; _ = last;",
      "let b = (bool(id.x) & true) | false; let c = !b && (b || false); _ = vec2(b, c) == vec2(true);",
      "let v = vec2<f32>(id.xy) * 0.5 / vec2(2.0, f32(id.z)); _ = v % 2.0; _ = -v; _ = 1.0 - v; _ = v < vec2(1.0);",
      "_ = bitcast<vec2<f32>>(id.xy); _ = bitcast<i32>(id.x); _ = vec3<f32>(id); _ = vec4<i32>(vec3<i32>(id), 1); _ = u32(1.5 * buf[0]);",
      "_ = mat2x2<f32>(buf[0], buf[1], buf[2], buf[3]) * vec2(buf[4]); _ = mat2x3<f32>(vec3(buf[0]), vec3(1.0));",
      "_ = transpose(mat2x3<f32>(vec3(buf[0]), vec3(1.0)));",
  };
  for (const char* body : kBodies) {
    SCOPED_TRACE(body);
    readGood(inShader(body));
  }
}

TEST(Statements, declarations_areRead) {
  constexpr const char* kModules[] = {
      "",
      ";;",
      "alias V = vec3<f32>; alias A = array<V, 4>; fn f(a: A) -> V { return a[1] + V(1, 2, 3); }",
      "fn f(c: bool) -> i32 { loop { loop { return 1; } continuing { break if c; } } }",
      "const a = b * 2; const b = 3; var<private> x: array<i32, a>;",
      "var<private> x = vec3(1, 2, 3); var<private> y: mat2x2<f32>; fn f() { x.y = 2; y[1] = vec2(1.0); }",
      "struct A { x: f32, @align(16) y: f32, @size(32) z: vec2<u32>, } struct B { a: A, b: array<A, 2> } "
      "@group(1) @binding(2) var<storage, read_write> b: B; fn f() { b.b[1].y = b.a.x; }",
      "struct R { n: u32, data: array<vec4<f32>> } @group(0) @binding(0) var<storage> r: R; "
      "fn f(i: u32) -> f32 { return r.data[min(i, arrayLength(&r.data) - 1)].w; }",
      "struct U { a: vec3<f32>, b: f32, c: array<vec4<f32>, 3> } @group(0) @binding(0) var<uniform> u: U; fn f() -> f32 { return u.c[1].y "
      "+ u.b; }",
      "var<workgroup> w: array<atomic<u32>, 8>; fn f(i: u32) -> u32 { atomicStore(&w[0], 1); return atomicAdd(&w[i], 2u) + "
      "atomicLoad(&w[1]); }",
      "var<workgroup> w: atomic<i32>; fn f() -> bool { atomicMax(&w, 3); atomicMin(&w, 1); atomicAnd(&w, 1); atomicOr(&w, 2); "
      "atomicXor(&w, 3); "
      "atomicSub(&w, 1); _ = atomicExchange(&w, 4); let r = atomicCompareExchangeWeak(&w, 1, 2); return r.exchanged && r.old_value == 1; }",
      "var<workgroup> w: f32; fn f() -> f32 { workgroupBarrier(); storageBarrier(); return workgroupUniformLoad(&w); }",
      "fn inc(p: ptr<function, i32>) { *p += 1; } fn f() { var a = 1; inc(&a); let p = &a; inc(p); }",
      "var<workgroup> t: array<f32, 16>; fn put(p: ptr<workgroup, array<f32, 16>>, i: u32) { (*p)[i] = 1; p[i + 1] = 2; } fn f() { put(&t, "
      "2); }",
      "fn f(p: ptr<storage, array<f32>, read_write>) { (*p)[0] = f32(arrayLength(p)); }",
      "fn late() -> i32 { return later(2); } fn later(x: i32) -> i32 { return x * k; } const k = 7;",
      "enable f16; fn f(a: f16, v: vec3<f16>) -> f16 { return a * v.x + 1.5h + f16(2); } fn g(x: vec2h) -> vec2f { return vec2f(x); }",
      "requires unrestricted_pointer_parameters; diagnostic(off, derivative_uniformity); fn f() {}",
      "enable subgroups; @compute @workgroup_size(8) fn f(@builtin(subgroup_size) s: u32, @builtin(subgroup_invocation_id) i: u32) {}",
      "struct In { @builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32 } "
      "var<private> x: u32; @compute @workgroup_size(4, 2) fn f(in: In, @builtin(num_workgroups) n: vec3<u32>) { x = in.id.x + in.index + "
      "n.y; }",
      "@must_use fn g() -> i32 { return 1; } fn f() { _ = g(); let x = g(); }",
      "fn max_of(a: f32, b: f32) -> f32 { let max = a; return max; }",
      "fn été(ñ: i32) -> i32 { return ñ; } fn f() -> i32 { return été(2); }",
      "const_assert vec2(1, 2).y == 2; const x = array(vec2(1, 2), vec2(3.5, 4)); const_assert x[1].x == 3.5;",
      "fn f() -> i32 { switch 1 { case 1: { return 1; } default: { return 2; } } }",
      "fn f(x: f32) -> f32 { if x > 0 { return 1; } else { return 2; } }",
      "fn f() -> i32 { loop { return 1; } }",
      "fn f(c: bool) -> i32 { for (;;) { if c { return 1; } } }",
  };
  for (const char* source : kModules) {
    SCOPED_TRACE(source);
    readGood(source);
  }
}

TEST(Statements, builtinFunctions_areRead) {
  constexpr const char* kFloat[] = {"acos", "acosh",   "asin",  "asinh",    "atan",          "atanh", "ceil",        "cos",
                                    "cosh", "degrees", "exp",   "exp2",     "floor",         "fract", "inverseSqrt", "log",
                                    "log2", "radians", "round", "saturate", "sin",           "sinh",  "sqrt",        "tan",
                                    "tanh", "trunc",   "abs",   "sign",     "quantizeToF16", "length"};
  for (const char* name : kFloat) {
    SCOPED_TRACE(name);
    readGood(fmt::format("fn f(x: f32, v: vec3<f32>) {{ _ = {0}(x); _ = {0}(v); _ = {0}(x + 1); }}", name));
  }
  constexpr const char* kCalls[] = {
      "atan2(x, 1)",
      "pow(v, v)",
      "step(0.5, x)",
      "fma(x, x, 1.0)",
      "smoothstep(0.0, 1.0, x)",
      "mix(x, 1.0, 0.5)",
      "mix(v, v, x)",
      "mix(v, v, v)",
      "min(x, 1)",
      "max(i, 2)",
      "clamp(u, 1, 5)",
      "clamp(v, vec3(0.0), vec3(1.0))",
      "abs(i)",
      "abs(u)",
      "sign(i)",
      "ldexp(x, i)",
      "ldexp(v, vec3(i))",
      "countLeadingZeros(u)",
      "countOneBits(i)",
      "countTrailingZeros(u)",
      "firstLeadingBit(i)",
      "firstTrailingBit(u)",
      "reverseBits(u)",
      "extractBits(i, 1u, u)",
      "insertBits(u, 3u, 1u, 2u)",
      "dot(v, v)",
      "dot(vec2(i), vec2(1))",
      "cross(v, v)",
      "distance(v, v)",
      "distance(x, 1.0)",
      "normalize(v)",
      "reflect(v, v)",
      "refract(v, v, x)",
      "faceForward(v, v, v)",
      "transpose(m)",
      "determinant(m)",
      "determinant(mat2x2<f32>(x, x, x, x))",
      "determinant(mat4x4<f32>(vec4(x), vec4(1.0), vec4(2.0), vec4(x)))",
      "all(v < v)",
      "any(v < v)",
      "all(x < 1)",
      "select(x, 1.0, i < 3)",
      "select(v, vec3(1.0), v < vec3(0.5))",
      "select(v, vec3(1.0), i < 3)",
      "pack2x16float(v.xy)",
      "pack2x16snorm(v.xy)",
      "pack2x16unorm(v.xy)",
      "pack4x8snorm(v.xyzx)",
      "pack4x8unorm(v.xyzx)",
      "pack4xI8(vec4(i))",
      "pack4xU8(vec4(u))",
      "pack4xI8Clamp(vec4(i))",
      "pack4xU8Clamp(vec4(u))",
      "unpack2x16float(u)",
      "unpack2x16snorm(u)",
      "unpack2x16unorm(u)",
      "unpack4x8snorm(u)",
      "unpack4x8unorm(u)",
      "unpack4xI8(u)",
      "unpack4xU8(u)",
      "dot4I8Packed(u, 1u)",
      "dot4U8Packed(u, u)",
      "bitcast<u32>(x)",
      "bitcast<vec3<i32>>(v)",
      "m * v",
      "v * m",
      "m * m",
      "m * x",
      "x * m",
      "m + m",
      "m - m",
  };
  for (const char* call : kCalls) {
    SCOPED_TRACE(call);
    readGood(fmt::format("fn f(x: f32, v: vec3<f32>, i: i32, u: u32, m: mat3x3<f32>) {{ let result = {}; }}", call));
  }
}

TEST(Statements, functions_keepTheirNamesAndOrderCalleesFirst) {
  const kernel::Module module = readGood(
      "@compute @workgroup_size(1) fn main() { _ = load_a(0u, 1u); }\n"
      "fn load_a(batch: u32, row: u32) -> f32 { return scale(f32(batch + row)); }\n"
      "fn scale(x: f32) -> f32 { return x * 2.0; }\n"
      "fn unused_hook(value: f32) -> f32 { return value; }\n");
  std::vector<std::string> names;
  for (const kernel::Function& function : module.functions) names.push_back(function.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "load_a", "main", "unused_hook"}));
  const kernel::Function* load = module.findFunction("load_a");
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(module[load->parameters[0].value].name, "batch");
  EXPECT_EQ(module[load->parameters[1].value].name, "row");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
