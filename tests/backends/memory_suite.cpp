// SPDX-License-Identifier: Apache-2.0
// Memory: layouts, dynamic indices, workgroup memory with barriers, atomics, large grids.
#include <algorithm>

#include "ir/kernel/guard_accesses.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

Words iota(uint32_t count, uint32_t first = 0) {
  Words words(count);
  for (uint32_t k = 0; k < count; ++k) words[k] = first + k;
  return words;
}

/// A kernel that reads, writes and counts at indices of which half lie outside, in storage, workgroup and function memory and in values.
constexpr const char* kOutside = R"(lockstep.kernel 1
var @index: array<i32, 4> {access = read, binding = 0, group = 0, space = storage}
var @out: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
var @count: array<atomic<u32>, 4> {access = read_write, binding = 2, group = 0, space = storage}
var @shared: array<u32, 4> {space = workgroup}
fn @main(%lid: u32 {builtin = local_invocation_index}) {workgroup_size = [4, 1, 1]} {
  %w: ptr<workgroup, u32> = access @shared, %lid
  %ten: u32 = add %lid, 10u
  store %w, %ten
  workgroup_barrier
  %pi: ptr<storage, i32> = access @index, %lid
  %i: i32 = load %pi
  %local: ptr<function, vec4<u32>> = var vec4<u32>(20u, 21u, 22u, 23u)
  %pl: ptr<function, u32> = access %local, %i
  %l: u32 = load %pl
  %ps: ptr<workgroup, u32> = access @shared, %i
  %s: u32 = load %ps
  %v: u32 = extract vec4<u32>(30u, 31u, 32u, 33u), %i
  %pc: ptr<storage, atomic<u32>, read_write> = access @count, %i
  %c: u32 = atomic_add %pc, 1u
  %at: u32 = mul %lid, 3u
  %at1: u32 = add %at, 1u
  %at2: u32 = add %at, 2u
  %o0: ptr<storage, u32, read_write> = access @out, %at
  store %o0, %l
  %o1: ptr<storage, u32, read_write> = access @out, %at1
  store %o1, %s
  %o2: ptr<storage, u32, read_write> = access @out, %at2
  store %o2, %v
  %far: u32 = add %lid, 12u
  %o3: ptr<storage, u32, read_write> = access @out, %far
  store %o3, 7u
}
)";

TEST_P(Conformance, accesses_out_of_bounds_under_each_policy) {
  const kernel::Module module = kernel::parse(kOutside).orThrow();
  // 0, 3, 4 and -1; the last store is inside for the first invocation only.
  const std::vector<Words> buffers{{0, 3, 4, ~0u}, Words(13), Words(4)};
  const std::vector<Words> clamped = run(kernel::guardAccesses(module, kernel::OutOfBounds::Clamp), buffers, {1, 1, 1});
  EXPECT_EQ(clamped[1], (Words{20, 10, 30, 23, 13, 33, 23, 13, 33, 23, 13, 33, 7}));
  EXPECT_EQ(clamped[2], (Words{1, 0, 0, 3}));
  const std::vector<Words> skipped = run(kernel::guardAccesses(module, kernel::OutOfBounds::ZeroAndSkip), buffers, {1, 1, 1});
  EXPECT_EQ(skipped[1], (Words{20, 10, 30, 23, 13, 33, 0, 0, 0, 0, 0, 0, 7}));
  EXPECT_EQ(skipped[2], (Words{1, 0, 0, 1}));
}

TEST_P(Conformance, layout_of_structs_vec3_and_matrices) {
  // The columns of m are 8 bytes apart, the elements of list 16, the items 80.
  std::string text = R"(
struct Item { v: vec3<f32> {offset = 0} s: f32 {offset = 12} m: mat3x2<f32> {offset = 16} t: vec2<u32> {offset = 40} list: array<vec3<u32>, 2> {offset = 48} }
var @items: array<Item> {access = read_write, binding = 0, group = 0, space = storage}
var @out: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [4, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %item: ptr<storage, Item, read_write> = access @items, %i
  %all: Item = load %item
  %v: vec3<f32> = extract %all, 0u
  %m: mat3x2<f32> = extract %all, 2u
  %mv: vec2<f32> = matmul %m, %v
  %x: f32 = extract %mv, 0u
  %y: f32 = extract %mv, 1u
  %at: u32 = mul %i, 2u
  %at1: u32 = add %at, 1u
  %o0: ptr<storage, f32, read_write> = access @out, %at
  store %o0, %x
  %o1: ptr<storage, f32, read_write> = access @out, %at1
  store %o1, %y
  %k: u32 = and %i, 1u
  %e: ptr<storage, u32, read_write> = access @items, %i, 4u, %k, 2u
  store %e, 99u
  %col: ptr<storage, vec2<f32>, read_write> = access @items, %i, 2u, %k
  store %col, vec2<f32>(7.0f, 8.0f)
  %whole: ptr<storage, vec3<f32>, read_write> = access @items, %i, 0u
  store %whole, vec3<f32>(1.0f, 2.0f, 3.0f)
}
)";
  const uint32_t words = 20, m0 = 4, list = 12;
  Words in(4 * words);
  for (uint32_t k = 0; k < in.size(); ++k) in[k] = bitsOf(static_cast<float>(k % 17) + 0.5f);
  std::vector<Words> out = run(text, {in, Words(8)});
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t* s = in.data() + i * words;
    for (uint32_t r = 0; r < 2; ++r) {
      float sum = 0;
      for (uint32_t c = 0; c < 3; ++c) sum += floatOf(s[m0 + 2 * c + r]) * floatOf(s[c]);
      EXPECT_FLOAT_EQ(floatOf(out[1][2 * i + r]), sum);
    }
    Words wanted(s, s + words);
    for (uint32_t c = 0; c < 3; ++c) wanted[c] = bitsOf(static_cast<float>(c + 1));
    wanted[list + 4 * (i & 1) + 2] = 99;
    wanted[m0 + 2 * (i & 1)] = bitsOf(7.0f);
    wanted[m0 + 2 * (i & 1) + 1] = bitsOf(8.0f);
    EXPECT_EQ(Words(out[0].begin() + i * words, out[0].begin() + (i + 1) * words), wanted) << i;
  }
}

TEST_P(Conformance, uniform_buffers_and_array_length) {
  std::string text = R"(
struct Sizes { n: u32 {offset = 0} scale: vec4<f32> {offset = 16} }
struct Data { head: vec4<u32> {offset = 0} tail: array<f32> {offset = 16} }
var @sizes: Sizes {binding = 0, group = 0, space = uniform}
var @data: Data {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%lid: u32 {builtin = local_invocation_index}, %wid: vec3<u32> {builtin = workgroup_id}, %count: vec3<u32> {builtin = num_workgroups}) {workgroup_size = [8, 2, 1]} {
  %tail: ptr<storage, array<f32>, read_write> = access @data, 1u
  %length: u32 = array_length %tail
  %w: u32 = extract %wid, 0u
  %base: u32 = mul %w, 16u
  %i: u32 = add %base, %lid
  %inside: bool = lt %i, %length
  if %inside {
    %s: ptr<uniform, f32, read> = access @sizes, 1u, 2u
    %scale: f32 = load %s
    %p: ptr<storage, f32, read_write> = access %tail, %i
    %x: f32 = load %p
    %y: f32 = mul %x, %scale
    store %p, %y
  }
  %first: bool = eq %i, 0u
  if %first {
    %h0: ptr<storage, u32, read_write> = access @data, 0u, 0u
    store %h0, %length
    %h1: ptr<storage, u32, read_write> = access @data, 0u, 1u
    %cx: u32 = extract %count, 0u
    store %h1, %cx
    %np: ptr<uniform, u32, read> = access @sizes, 0u
    %n: u32 = load %np
    %h2: ptr<storage, u32, read_write> = access @data, 0u, 2u
    store %h2, %n
  }
}
)";
  Words sizes{5, 0, 0, 0, bitsOf(1), bitsOf(2), bitsOf(3), bitsOf(4)};
  Words data(4 + 45);
  for (uint32_t k = 0; k < 45; ++k) data[4 + k] = bitsOf(static_cast<float>(k));
  std::vector<Words> out = run(text, {sizes, data}, {3, 1, 1});
  EXPECT_EQ(out[1][0], 45u);
  EXPECT_EQ(out[1][1], 3u);
  EXPECT_EQ(out[1][2], 5u);
  for (uint32_t k = 0; k < 45; ++k) EXPECT_EQ(floatOf(out[1][4 + k]), 3.0f * static_cast<float>(k));
}

TEST_P(Conformance, dynamic_indices_of_vectors_matrices_and_arrays) {
  std::string text = R"(
var @out: array<u32> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %k: u32 = rem %i, 4u
  %table: u32 = extract array<u32, 12>(3u, 1u, 4u, 1u, 5u, 9u, 2u, 6u, 5u, 3u, 5u, 8u), %k
  %i2: u32 = mul %i, 2u
  %v: vec4<u32> = construct %i, %i2, 100u, %k
  %e: u32 = extract %v, %k
  %m: ptr<function, mat4x2<f32>> = var
  %c: ptr<function, f32> = access %m, %k, 1u
  store %c, 2.5f
  %whole: mat4x2<f32> = load %m
  %col: vec2<f32> = extract %whole, %k
  %y: f32 = extract %col, 1u
  %yu: u32 = convert %y
  %a: ptr<function, array<array<u32, 3>, 5>> = var
  %r: u32 = rem %i, 5u
  %q: u32 = rem %i, 3u
  %cell: ptr<function, u32> = access %a, %r, %q
  store %cell, %i
  %back: ptr<function, u32> = access %a, %r, 2u
  %b: u32 = load %back
  %s0: u32 = add %table, %e
  %s1: u32 = mul %s0, 3u
  %s2: u32 = add %s1, %yu
  %s3: u32 = mul %s2, 7u
  %s4: u32 = add %s3, %b
  %p: ptr<storage, u32, read_write> = access @out, %i
  store %p, %s4
}
)";
  std::vector<Words> out = run(text, {Words(64)}, {2, 1, 1});
  const std::array<uint32_t, 4> table{3, 1, 4, 1};
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t k = i % 4;
    std::array<uint32_t, 4> v{i, 2 * i, 100, k};
    uint32_t b = i % 3 == 2 ? i : 0;
    ASSERT_EQ(out[0][i], ((table[k] + v[k]) * 3 + 2) * 7 + b) << i;
  }
}

std::string reduction(uint32_t size) {
  std::string n = std::to_string(size), half = std::to_string(size / 2);
  return "var @shared: array<u32, " + n + R"(> {space = workgroup}
var @in: array<u32> {binding = 0, group = 0, space = storage}
var @out: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%lid: u32 {builtin = local_invocation_index}, %wid: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [)" +
         n + R"(, 1, 1]} {
  %w: u32 = extract %wid, 0u
  %base: u32 = mul %w, )" +
         n + R"(u
  %i: u32 = add %base, %lid
  %p: ptr<storage, u32, read> = access @in, %i
  %x: u32 = load %p
  %s: ptr<workgroup, u32> = access @shared, %lid
  %zero: u32 = load %s
  %start: u32 = add %x, %zero
  store %s, %start
  workgroup_barrier
  %step: ptr<function, u32> = var )" +
         half + R"(u
  loop {
    %d: u32 = load %step
    %end: bool = eq %d, 0u
    if %end {
      break
    }
    %mine: bool = lt %lid, %d
    if %mine {
      %o: u32 = add %lid, %d
      %q: ptr<workgroup, u32> = access @shared, %o
      %y: u32 = load %q
      %z: u32 = load %s
      %sum: u32 = add %y, %z
      store %s, %sum
    }
    workgroup_barrier
  } continuing {
    %d2: u32 = load %step
    %d3: u32 = shr %d2, 1u
    store %step, %d3
  }
  %total_at: ptr<workgroup, u32> = access @shared, 0u
  %total: u32 = workgroup_uniform_load %total_at
  %last: bool = eq %lid, 0u
  if %last {
    %r: ptr<storage, u32, read_write> = access @out, %w
    store %r, %total
  }
}
)";
}

TEST_P(Conformance, workgroup_reductions_of_every_size) {
  for (uint32_t size : {1u, 2u, 8u, 32u, 64u, 128u, 256u}) {
    uint32_t groups = 9;
    std::vector<Words> out = run(reduction(size), {iota(size * groups, 3), Words(groups)}, {groups, 1, 1});
    for (uint32_t w = 0; w < groups; ++w) {
      uint32_t sum = 0;
      for (uint32_t k = 0; k < size; ++k) sum += 3 + w * size + k;
      ASSERT_EQ(out[1][w], sum) << "size " << size << " group " << w;
    }
  }
}

TEST_P(Conformance, transposition_through_workgroup_memory) {
  std::string text = R"(
var @tile: array<array<f32, 9>, 8> {space = workgroup}
var @a: array<f32> {binding = 0, group = 0, space = storage}
var @b: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%lid: vec3<u32> {builtin = local_invocation_id}, %wid: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [8, 8, 1]} {
  %x: u32 = extract %lid, 0u
  %y: u32 = extract %lid, 1u
  %wx: u32 = extract %wid, 0u
  %wy: u32 = extract %wid, 1u
  %wx8: u32 = mul %wx, 8u
  %wy8: u32 = mul %wy, 8u
  %gx: u32 = add %wx8, %x
  %gy: u32 = add %wy8, %y
  %row: u32 = mul %gy, 24u
  %at: u32 = add %row, %gx
  %p: ptr<storage, f32, read> = access @a, %at
  %v: f32 = load %p
  %t: ptr<workgroup, f32> = access @tile, %y, %x
  store %t, %v
  workgroup_barrier
  %u: ptr<workgroup, f32> = access @tile, %x, %y
  %w: f32 = load %u
  %tx: u32 = add %wy8, %x
  %ty: u32 = add %wx8, %y
  %trow: u32 = mul %ty, 16u
  %to: u32 = add %trow, %tx
  %q: ptr<storage, f32, read_write> = access @b, %to
  store %q, %w
}
)";
  std::vector<Words> out = run(text, {iota(24 * 16), Words(24 * 16)}, {3, 2, 1});
  for (uint32_t r = 0; r < 16; ++r)
    for (uint32_t c = 0; c < 24; ++c) ASSERT_EQ(out[1][c * 16 + r], r * 24 + c);
}

TEST_P(Conformance, atomics_in_storage_and_workgroup_memory) {
  std::string text = R"(
struct atomic_compare_exchange_result_u32 { old_value: u32 {offset = 0} exchanged: bool {offset = 4} }
struct Cells {
  sum: atomic<u32> {offset = 0}
  low: atomic<i32> {offset = 4}
  high: atomic<i32> {offset = 8}
  ulow: atomic<u32> {offset = 12}
  uhigh: atomic<u32> {offset = 16}
  all: atomic<u32> {offset = 20}
  any: atomic<u32> {offset = 24}
  parity: atomic<u32> {offset = 28}
  taken: atomic<u32> {offset = 32}
  winner: atomic<u32> {offset = 36}
  down: atomic<i32> {offset = 40}
  group: atomic<u32> {offset = 44}
}
var @cells: Cells {access = read_write, binding = 0, group = 0, space = storage}
var @seen: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
var @count: atomic<u32> {space = workgroup}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %lid: u32 {builtin = local_invocation_index}) {workgroup_size = [50, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %s: i32 = convert %i
  %n: i32 = sub %s, 100i
  %p0: ptr<storage, atomic<u32>, read_write> = access @cells, 0u
  %ticket: u32 = atomic_add %p0, 1u
  %mark: ptr<storage, u32, read_write> = access @seen, %ticket
  store %mark, 1u
  %p1: ptr<storage, atomic<i32>, read_write> = access @cells, 1u
  %d1: i32 = atomic_min %p1, %n
  %p2: ptr<storage, atomic<i32>, read_write> = access @cells, 2u
  %d2: i32 = atomic_max %p2, %n
  %n_u: u32 = bitcast %n
  %p3: ptr<storage, atomic<u32>, read_write> = access @cells, 3u
  %d3: u32 = atomic_min %p3, %n_u
  %p4: ptr<storage, atomic<u32>, read_write> = access @cells, 4u
  %d4: u32 = atomic_max %p4, %n_u
  %bit: u32 = shl 1u, %i
  %not: u32 = complement %bit
  %p5: ptr<storage, atomic<u32>, read_write> = access @cells, 5u
  %d5: u32 = atomic_and %p5, %not
  %p6: ptr<storage, atomic<u32>, read_write> = access @cells, 6u
  %d6: u32 = atomic_or %p6, %bit
  %p7: ptr<storage, atomic<u32>, read_write> = access @cells, 7u
  %d7: u32 = atomic_xor %p7, %bit
  %p8: ptr<storage, atomic<u32>, read_write> = access @cells, 8u
  %d8: u32 = atomic_exchange %p8, 17u
  %p9: ptr<storage, atomic<u32>, read_write> = access @cells, 9u
  %won: atomic_compare_exchange_result_u32 = atomic_compare_exchange %p9, 0u, 5u
  %yes: bool = extract %won, 1u
  %p10: ptr<storage, atomic<i32>, read_write> = access @cells, 10u
  %d10: i32 = atomic_sub %p10, 3i
  if %yes {
    %w: u32 = atomic_add @count, 100u
  } else {
    %w2: u32 = atomic_add @count, 1u
  }
  workgroup_barrier
  %first: bool = eq %lid, 0u
  if %first {
    %c: u32 = atomic_load @count
    %p11: ptr<storage, atomic<u32>, read_write> = access @cells, 11u
    %d11: u32 = atomic_add %p11, %c
  }
}
)";
  const uint32_t n = 200;
  Words cells(12);
  cells[3] = ~0u;
  cells[5] = ~0u;
  std::vector<Words> out = run(text, {cells, Words(n)}, {4, 1, 1});
  EXPECT_EQ(out[0][0], n);
  EXPECT_EQ(std::count(out[1].begin(), out[1].end(), 1u), static_cast<std::ptrdiff_t>(n));
  EXPECT_EQ(static_cast<int32_t>(out[0][1]), -100);
  EXPECT_EQ(static_cast<int32_t>(out[0][2]), 99);
  EXPECT_EQ(out[0][3], 0u);
  EXPECT_EQ(out[0][4], ~0u);
  EXPECT_EQ(out[0][5], 0u);
  EXPECT_EQ(out[0][6], ~0u);
  EXPECT_EQ(out[0][7], 0xffu);
  EXPECT_EQ(out[0][8], 17u);
  EXPECT_EQ(out[0][9], 5u);
  EXPECT_EQ(static_cast<int32_t>(out[0][10]), -600);
  EXPECT_EQ(out[0][11], n - 1 + 100);
}

TEST_P(Conformance, grids_of_three_dimensions_and_many_groups) {
  std::string text = R"(
var @out: array<atomic<u32>> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %wid: vec3<u32> {builtin = workgroup_id}, %count: vec3<u32> {builtin = num_workgroups}) {workgroup_size = [4, 2, 2]} {
  %x: u32 = extract %gid, 0u
  %y: u32 = extract %gid, 1u
  %z: u32 = extract %gid, 2u
  %cx: u32 = extract %count, 0u
  %cy: u32 = extract %count, 1u
  %w: u32 = mul %cx, 4u
  %h: u32 = mul %cy, 2u
  %zh: u32 = mul %z, %h
  %row: u32 = add %zh, %y
  %start: u32 = mul %row, %w
  %at: u32 = add %start, %x
  %p: ptr<storage, atomic<u32>, read_write> = access @out, %at
  %old: u32 = atomic_add %p, %at
}
)";
  const uint32_t words = 5 * 3 * 7 * 16;
  std::vector<Words> out = run(text, {Words(words)}, {5, 3, 7});
  EXPECT_EQ(out[0], iota(words));
}

TEST_P(Conformance, more_groups_than_one_dimension_holds) {
  std::string text = R"(
var @out: array<atomic<u32>> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%wid: vec3<u32> {builtin = workgroup_id}, %count: vec3<u32> {builtin = num_workgroups}) {workgroup_size = [1, 1, 1]} {
  %x: u32 = extract %wid, 0u
  %y: u32 = extract %wid, 1u
  %cx: u32 = extract %count, 0u
  %row: u32 = mul %y, %cx
  %g: u32 = add %row, %x
  %k: u32 = rem %g, 1000u
  %p: ptr<storage, atomic<u32>, read_write> = access @out, %k
  %old: u32 = atomic_add %p, 1u
}
)";
  std::vector<Words> out = run(text, {Words(1000)}, {400, 300, 1});
  for (uint32_t k = 0; k < 1000; ++k) ASSERT_EQ(out[0][k], 120u) << k;
}

TEST_P(Conformance, vec4_loads_and_stores_with_odd_strides) {
  std::string text = R"(
var @in: array<vec4<f32>> {binding = 0, group = 0, space = storage}
var @out: array<vec4<f32>> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %three: u32 = mul %i, 3u
  %j: u32 = rem %three, 128u
  %p: ptr<storage, vec4<f32>, read> = access @in, %i
  %v: vec4<f32> = load %p
  %q: ptr<storage, vec4<f32>, read> = access @in, %j
  %w: vec4<f32> = load %q
  %u: vec4<f32> = swizzle %w {components = wzyx}
  %s: vec4<f32> = add %v, %u
  %o: ptr<storage, vec4<f32>, read_write> = access @out, %j
  store %o, %s
}
)";
  Words in(512);
  for (uint32_t k = 0; k < 512; ++k) in[k] = bitsOf(static_cast<float>(k));
  std::vector<Words> out = run(text, {in, Words(512)}, {2, 1, 1});
  for (uint32_t i = 0; i < 128; ++i) {
    uint32_t j = i * 3 % 128;
    for (uint32_t c = 0; c < 4; ++c) ASSERT_EQ(floatOf(out[1][4 * j + c]), static_cast<float>(4 * i + c + 4 * j + 3 - c)) << i;
  }
}

}  // namespace
}  // namespace lockstep::conformance
