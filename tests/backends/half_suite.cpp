// SPDX-License-Identifier: Apache-2.0
// f16: 16-bit words in every address space, arithmetic that rounds each result, conversions and bit casts.
#include <cmath>

#include <fmt/format.h>

#include "ir/support/narrow_float.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

/// Two halves a word, the first one low.
Words packed(const std::vector<uint16_t>& halves) {
  Words words((halves.size() + 1) / 2);
  for (size_t k = 0; k < halves.size(); ++k) words[k / 2] |= uint32_t{halves[k]} << (k % 2 * 16);
  return words;
}
uint16_t halfAt(const Words& words, size_t k) { return static_cast<uint16_t>(words[k / 2] >> (k % 2 * 16)); }

double valueOf(uint16_t bits) { return static_cast<double>(halfToFloat(bits)); }
uint16_t halfOf(double value) { return doubleToHalf(value); }

/// Signs, all exponents, some mantissas; no NaN, no infinity.
std::vector<uint16_t> finiteHalves() {
  std::vector<uint16_t> halves;
  for (uint32_t sign = 0; sign < 2; ++sign) {
    for (uint32_t exponent = 0; exponent < 31; exponent += 2) {
      for (const uint32_t mantissa : {0u, 1u, 0x155u, 0x3ffu})
        halves.push_back(static_cast<uint16_t>(sign << 15 | exponent << 10 | mantissa));
    }
  }
  return halves;
}

TEST_P(Conformance, half_odd_number_of_elements) {
  if (!backend_->device().profile.f16) GTEST_SKIP() << "the device has no f16";
  // Each of 64 invocations writes one half of a word; nothing else of the buffer changes.
  const std::string text = R"(enable f16
var @in: array<f16> {access = read, binding = 0, group = 0, space = storage}
var @out: array<f16> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [16, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %n: u32 = array_length @in
  %last: u32 = sub %n, 1u
  %from: u32 = sub %last, %i
  %p: ptr<storage, f16, read> = access @in, %from
  %x: f16 = load %p
  %q: ptr<storage, f16, read_write> = access @out, %i
  store %q, %x
}
)";
  std::vector<uint16_t> in(64);
  for (size_t k = 0; k < in.size(); ++k) in[k] = halfOf(static_cast<double>(k) * 0.25);
  const std::vector<Words> out = run(text, {packed(in), Words(34, 0xdeadbeef)}, {4, 1, 1});
  for (size_t k = 0; k < in.size(); ++k) EXPECT_EQ(halfAt(out[1], k), in[63 - k]) << k;
  EXPECT_EQ(out[1][32], 0xdeadbeefu);
  EXPECT_EQ(out[1][33], 0xdeadbeefu);
}

TEST_P(Conformance, half_layout_beside_words) {
  if (!backend_->device().profile.f16) GTEST_SKIP() << "the device has no f16";
  const std::string text = R"(enable f16
struct Item { a: f16 {offset = 0} b: f16 {offset = 2} n: u32 {offset = 4} v: vec3<f16> {offset = 8} c: f16 {offset = 14} m: mat2x3<f16> {offset = 16} }
var @items: array<Item> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [2, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %j: u32 = add %i, 2u
  %from: ptr<storage, Item, read_write> = access @items, %i
  %item: Item = load %from
  %to: ptr<storage, Item, read_write> = access @items, %j
  store %to, %item
  %lane: ptr<storage, f16, read_write> = access @items, %j, 5u, %i, 1u
  store %lane, 1.0h
  %n: ptr<storage, u32, read_write> = access @items, %j, 2u
  store %n, 7u
}
)";
  Words items(4 * 8);
  for (size_t k = 0; k < 16; ++k) items[k] = 0x30003400u + static_cast<uint32_t>(k) * 0x00010100u;
  for (size_t k = 16; k < 32; ++k) items[k] = 0xffffffffu;
  Words wanted = items;
  for (size_t i = 0; i < 2; ++i) {
    const size_t from = i * 8, to = from + 16;
    // Word 5 and 7 hold the third row of a column and, in their high half, padding, which keeps what it had.
    for (size_t k = 0; k < 8; ++k) wanted[to + k] = k == 5 || k == 7 ? 0xffff0000u | (items[from + k] & 0xffffu) : items[from + k];
    wanted[to + 1] = 7;
    uint32_t& column = wanted[to + 4 + 2 * i];
    column = (column & 0xffffu) | 0x3c000000u;
  }
  EXPECT_EQ(run(text, {items})[0], wanted);
}

TEST_P(Conformance, half_workgroup_and_private_memory) {
  if (!backend_->device().profile.f16) GTEST_SKIP() << "the device has no f16";
  // Lane i writes its half of the shared array, and reads its neighbour's; the private array is indexed at run time.
  const std::string text = R"(enable f16
var @shared: array<f16, 8> {space = workgroup}
var @out: array<f16> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %i: u32 {builtin = local_invocation_index}) {workgroup_size = [8, 1, 1]} {
  %g: u32 = extract %gid, 0u
  %mine: ptr<workgroup, f16, read_write> = access @shared, %i
  %h: f16 = convert %g
  store %mine, %h
  workgroup_barrier
  %xor: u32 = xor %i, 1u
  %other: ptr<workgroup, f16, read_write> = access @shared, %xor
  %x: f16 = load %other
  %list: ptr<function, array<f16, 3>> = var
  %k: u32 = rem %i, 3u
  %at: ptr<function, f16> = access %list, %k
  store %at, 0.5h
  %first: ptr<function, f16> = access %list, 1u
  %y: f16 = load %first
  %sum: f16 = add %x, %y
  %to: ptr<storage, f16, read_write> = access @out, %g
  store %to, %sum
}
)";
  const std::vector<Words> out = run(text, {Words(16)}, {4, 1, 1});
  for (uint32_t g = 0; g < 32; ++g) {
    const double wanted = static_cast<double>(g ^ 1u) + (g % 8 % 3 == 1 ? 0.5 : 0.0);
    EXPECT_EQ(halfAt(out[0], g), halfOf(wanted)) << g;
  }
}

/// Each op on all pairs, against the real result rounded once.
TEST_P(Conformance, half_arithmetic_rounds_each_result) {
  if (!backend_->device().profile.f16) GTEST_SKIP() << "the device has no f16";
  struct Row {
    const char* op;
    double (*real)(double, double);
  };
  constexpr Row kRows[] = {{"add", [](double x, double y) { return x + y; }},
                           {"sub", [](double x, double y) { return x - y; }},
                           {"mul", [](double x, double y) { return x * y; }},
                           {"max", [](double x, double y) { return std::max(x, y); }},
                           {"min", [](double x, double y) { return std::min(x, y); }}};
  const std::vector<uint16_t> values = finiteHalves();
  std::vector<uint16_t> a, b;
  for (const uint16_t x : values) {
    for (const uint16_t y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const Row& row : kRows) {
    const std::string text = fmt::format(R"(enable f16
var @a: array<f16> {{access = read, binding = 0, group = 0, space = storage}}
var @b: array<f16> {{access = read, binding = 1, group = 0, space = storage}}
var @out: array<f16> {{access = read_write, binding = 2, group = 0, space = storage}}
fn @main(%gid: vec3<u32> {{builtin = global_invocation_id}}) {{workgroup_size = [64, 1, 1]}} {{
  %i: u32 = extract %gid, 0u
  %p: ptr<storage, f16, read> = access @a, %i
  %x: f16 = load %p
  %q: ptr<storage, f16, read> = access @b, %i
  %y: f16 = load %q
  %z: f16 = {} %x, %y
  %to: ptr<storage, f16, read_write> = access @out, %i
  store %to, %z
}}
)",
                                         row.op);
    ASSERT_EQ(a.size() % 64, 0u);
    const std::vector<Words> out = run(text, {packed(a), packed(b), Words(a.size() / 2)}, {static_cast<uint32_t>(a.size() / 64), 1, 1});
    for (size_t k = 0; k < a.size(); ++k) {
      const double wanted = valueOf(halfOf(row.real(valueOf(a[k]), valueOf(b[k])))), found = valueOf(halfAt(out[2], k));
      // WGSL leaves results beyond the largest f16 open, lets subnormals be flushed, and fixes no rounding mode.
      const double smallest = 6.103515625e-05;
      if (!GetParam().exact &&
          (std::isinf(wanted) || std::abs(valueOf(a[k])) < smallest || std::abs(valueOf(b[k])) < smallest || std::abs(wanted) < smallest)) {
        continue;
      }
      if (GetParam().exact) {
        ASSERT_EQ(found, wanted) << row.op << " " << valueOf(a[k]) << " " << valueOf(b[k]);
      } else {
        ASSERT_NEAR(found, wanted, std::abs(wanted) * 0x1p-10) << row.op << " " << valueOf(a[k]) << " " << valueOf(b[k]);
      }
    }
  }
}

TEST_P(Conformance, half_conversions_and_bit_casts) {
  if (!backend_->device().profile.f16) GTEST_SKIP() << "the device has no f16";
  const std::string text = R"(enable f16
var @out: array<u32> {access = read_write, binding = 0, group = 0, space = storage}
fn @main() {workgroup_size = [1, 1, 1]} {
  %p0: ptr<storage, u32, read_write> = access @out, 0u
  %w: u32 = load %p0
  %h: vec2<f16> = bitcast %w
  %x: f16 = extract %h, 0u
  %y: f16 = extract %h, 1u
  %n: i32 = convert %x
  %u: u32 = bitcast %n
  %p1: ptr<storage, u32, read_write> = access @out, 1u
  store %p1, %u
  %m: u32 = convert %y
  %p2: ptr<storage, u32, read_write> = access @out, 2u
  store %p2, %m
  %big: f16 = convert 2049.0f
  %from: f16 = convert -7i
  %pair: vec2<f16> = construct %big, %from
  %bits: u32 = bitcast %pair
  %p3: ptr<storage, u32, read_write> = access @out, 3u
  store %p3, %bits
  %four: vec4<f16> = construct %y, %x, %from, %big
  %two: vec2<u32> = bitcast %four
  %high: u32 = extract %two, 1u
  %p4: ptr<storage, u32, read_write> = access @out, 4u
  store %p4, %high
  %b: bool = convert %x
  %one: f16 = convert %b
  %wide: f32 = convert %one
  %f: u32 = bitcast %wide
  %p5: ptr<storage, u32, read_write> = access @out, 5u
  store %p5, %f
}
)";
  // -2.75 and 5.5; 2049 is halfway between 2048 and 2050 and goes to the even one.
  const Words out = run(text, {{0x4580c180u, 0, 0, 0, 0, 0}})[0];
  EXPECT_EQ(static_cast<int32_t>(out[1]), -2);
  EXPECT_EQ(out[2], 5u);
  EXPECT_EQ(out[3], 0xc7006800u);
  EXPECT_EQ(out[4], 0x6800c700u);
  EXPECT_EQ(out[5], bitsOf(1.0f));
}

}  // namespace
}  // namespace lockstep::conformance
