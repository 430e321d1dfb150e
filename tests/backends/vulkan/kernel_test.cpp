// SPDX-License-Identifier: Apache-2.0
// Whole kernels on the device: buffers, workgroup memory, control flow, inlined calls, atomics.
#include <algorithm>
#include <numeric>

#include "tests/backends/vulkan/harness.h"

namespace lockstep::vulkan::testing {
namespace {

using Kernel = VulkanTest;

TEST_F(Kernel, elementwise_add) {
  std::vector<float> a(1000), b(1000);
  std::iota(a.begin(), a.end(), 0.0f);
  std::fill(b.begin(), b.end(), 0.5f);
  std::vector<float> sum = floats(mapWords("f32", "f32", "    %r: f32 = add %a, %b", words(a), words(b)));
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], a[i] + 0.5f) << i;
}

TEST_F(Kernel, shared_memory_reduction) {
  const std::string text = R"(lockstep.kernel 1
var @x: array<u32> {access = read, binding = 0, group = 0, space = storage}
var @sums: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
var @shared: array<u32, 64> {space = workgroup}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %lid: u32 {builtin = local_invocation_index}, %wid: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %px: ptr<storage, u32> = access @x, %i
  %v: u32 = load %px
  %ps: ptr<workgroup, u32> = access @shared, %lid
  store %ps, %v
  %step: ptr<function, u32> = var 32u
  loop {
    %s: u32 = load %step
    %done: bool = eq %s, 0u
    if %done {
      break
    }
    workgroup_barrier
    %active: bool = lt %lid, %s
    if %active {
      %j: u32 = add %lid, %s
      %po: ptr<workgroup, u32> = access @shared, %j
      %other: u32 = load %po
      %mine: u32 = load %ps
      %total: u32 = add %mine, %other
      store %ps, %total
    }
  } continuing {
    %s2: u32 = load %step
    %half: u32 = shr %s2, 1u
    store %step, %half
  }
  %first: bool = eq %lid, 0u
  if %first {
    %w: u32 = extract %wid, 0u
    %pr: ptr<storage, u32, read_write> = access @sums, %w
    %result: u32 = load %ps
    store %pr, %result
  }
}
)";
  std::vector<Words> buffers{Words(256), Words(4)};
  std::iota(buffers[0].begin(), buffers[0].end(), 1u);
  runKernel(text, {4, 1, 1}, buffers);
  for (uint32_t group = 0; group < 4; ++group) EXPECT_EQ(buffers[1][group], 64 * 64 * group + 64 * 65 / 2) << group;
}

TEST_F(Kernel, loops_and_switches) {
  // r = sum over k < a of (k % 3 == 0: skipped, k % 3 == 1: k, else 100), stopped at k = 10.
  const std::string body = R"(
    %sum: ptr<function, u32> = var
    %k: ptr<function, u32> = var 0u
    loop {
      %k0: u32 = load %k
      %end: bool = ge %k0, %a
      if %end {
        break
      }
      %m: u32 = rem %k0, 3u
      %s0: u32 = load %sum
      switch %m {
        case 0u {
          continue
        }
        case 1u {
          %is10: bool = eq %k0, 10u
          if %is10 {
            break
          }
          %s1: u32 = add %s0, %k0
          store %sum, %s1
        }
        case default {
          %s2: u32 = add %s0, 100u
          store %sum, %s2
        }
      }
    } continuing {
      %k1: u32 = load %k
      %k2: u32 = add %k1, 1u
      store %k, %k2
      %last: bool = gt %k2, 12u
      break_if %last
    }
    %r: u32 = load %sum
)";
  Words result = mapWords("u32", "u32", body, {0, 1, 2, 3, 5, 11, 12, 13, 50});
  auto expected = [](uint32_t a) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < a && k < 13; ++k) sum += k % 3 == 0 ? 0 : k % 3 == 2 ? 100 : k == 10 ? 0 : k;
    return sum;
  };
  Words inputs{0, 1, 2, 3, 5, 11, 12, 13, 50};
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(result[i], expected(inputs[i])) << inputs[i];
}

// From -1 down to a bound that no i32 is above: Mesa 22.3 divided MIN by -1 when it counted the rounds, and died.
TEST_F(Kernel, loops_whose_rounds_drivers_miscount) {
  const std::string body = R"(
    %sum: ptr<function, u32> = var
    %k: ptr<function, i32> = var -1i
    loop {
      %k0: i32 = load %k
      %end: bool = lt 2147483647i, %k0
      if %end {
        break
      }
      %s0: u32 = load %sum
      %s1: u32 = add %s0, 3u
      store %sum, %s1
      %enough: bool = ge %s1, %a
      if %enough {
        break
      }
    } continuing {
      %k1: i32 = load %k
      %k2: i32 = sub %k1, 1i
      store %k, %k2
    }
    %r: u32 = load %sum
)";
  EXPECT_EQ(mapWords("u32", "u32", body, {0, 3, 4, 100}), (Words{3, 3, 6, 102}));
}

// Constants that a driver may fold before it looks at what guards them.
TEST_F(Kernel, quotients_that_have_no_value) {
  const std::string body = R"(
    %y: ptr<function, i32> = var -1i
    %x: ptr<function, i32> = var -2147483648i
    %x0: i32 = load %x
    %y0: i32 = load %y
    %q: i32 = div %x0, %y0
    %m: i32 = rem %x0, %y0
    %zero: i32 = sub %y0, %y0
    %q0: i32 = div %a, %zero
    %m0: i32 = rem %a, %zero
    %q1: i32 = div %a, %y0
    %s0: i32 = add %q, %m
    %s1: i32 = add %s0, %q0
    %s2: i32 = add %s1, %m0
    %r: i32 = add %s2, %q1
)";
  // MIN + 0 + a + 0 - a
  EXPECT_EQ(mapWords("i32", "i32", body, {0, 7, 0x80000000u, 0xFFFFFFFFu}), Words(4, 0x80000000u));
}

TEST_F(Kernel, calls_are_inlined_with_early_returns_and_pointers) {
  const std::string text = R"(lockstep.kernel 1
var @x: array<i32> {access = read_write, binding = 0, group = 0, space = storage}
fn @find(%n: i32) -> i32 {
  if false {
    return -99i
  }
  %i: ptr<function, i32> = var 0i
  loop {
    %j: ptr<function, i32> = var 0i
    loop {
      %i0: i32 = load %i
      %j0: i32 = load %j
      %p: i32 = mul %i0, %j0
      %found: bool = gt %p, %n
      if %found {
        %code: i32 = mul %i0, 100i
        %code2: i32 = add %code, %j0
        return %code2
      }
      switch %j0 {
        case 9i {
          break
        }
        case default {
          %huge: bool = gt %n, 1000i
          if %huge {
            return -1i
          }
        }
      }
    } continuing {
      %j1: i32 = load %j
      %j2: i32 = add %j1, 1i
      store %j, %j2
      %jend: bool = ge %j2, 10i
      break_if %jend
    }
  } continuing {
    %i1: i32 = load %i
    %i2: i32 = add %i1, 1i
    store %i, %i2
    %iend: bool = ge %i2, 10i
    break_if %iend
  }
  return -2i
}
fn @bump(%p: ptr<function, i32>, %by: i32) {
  %v: i32 = load %p
  %v2: i32 = add %v, %by
  store %p, %v2
}
fn @main(%lid: u32 {builtin = local_invocation_index}) {workgroup_size = [4, 1, 1]} {
  %px: ptr<storage, i32, read_write> = access @x, %lid
  %n: i32 = load %px
  %r: i32 = call @find(%n)
  %local: ptr<function, i32> = var %r
  call @bump(%local, 1000i)
  call @bump(%local, 5i)
  %out: i32 = load %local
  store %px, %out
}
)";
  std::vector<Words> buffers{words(std::vector<int32_t>{10, 80, 85, 2000})};
  runKernel(text, {1, 1, 1}, buffers);
  EXPECT_EQ(buffers[0], words(std::vector<int32_t>{209 - 3 + 1005, 909 + 1005, -2 + 1005, -1 + 1005}));
}

TEST_F(Kernel, variables_are_initialised_at_each_execution) {
  const std::string body = R"(
    %sum: ptr<function, u32> = var
    %k: ptr<function, u32> = var
    loop {
      %v: ptr<function, array<u32, 3>> = var
      %pv: ptr<function, u32> = access %v, 1u
      %old: u32 = load %pv
      %s0: u32 = load %sum
      %s1: u32 = add %s0, %old
      store %sum, %s1
      store %pv, 7u
    } continuing {
      %k0: u32 = load %k
      %k1: u32 = add %k0, 1u
      store %k, %k1
      %end: bool = ge %k1, 4u
      break_if %end
    }
    %r: u32 = load %sum
)";
  EXPECT_EQ(mapWords("u32", "u32", body, {0}), Words{0});
}

TEST_F(Kernel, out_of_bounds_indices_are_clamped) {
  const std::string text = R"(lockstep.kernel 1
var @x: array<u32> {access = read, binding = 0, group = 0, space = storage}
var @index: array<i32> {access = read, binding = 1, group = 0, space = storage}
var @out: array<u32> {access = read_write, binding = 2, group = 0, space = storage}
fn @main(%lid: u32 {builtin = local_invocation_index}) {workgroup_size = [4, 1, 1]} {
  %pi: ptr<storage, i32> = access @index, %lid
  %i: i32 = load %pi
  %px: ptr<storage, u32> = access @x, %i
  %v: u32 = load %px
  %po: ptr<storage, u32, read_write> = access @out, %lid
  store %po, %v
  %table: ptr<function, array<u32, 3>> = var
  %pt: ptr<function, u32> = access %table, %i
  store %pt, 5u
}
)";
  std::vector<Words> buffers{{10, 11, 12}, words(std::vector<int32_t>{0, 2, 3, -1}), Words(4)};
  runKernel(text, {1, 1, 1}, buffers);
  EXPECT_EQ(buffers[2], (Words{10, 12, 12, 12}));
}

TEST_F(Kernel, structs_in_buffers_keep_their_padding) {
  const std::string text = R"(lockstep.kernel 1
struct S {
  a: vec3<f32> {offset = 0}
  b: array<vec3<u32>, 2> {offset = 16}
  m: mat2x3<f32> {offset = 48}
  c: u32 {offset = 80}
}
var @x: array<S> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%lid: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {
  %p0: ptr<storage, S, read_write> = access @x, 0u
  %p1: ptr<storage, S, read_write> = access @x, 1u
  %s: S = load %p0
  store %p1, %s
}
)";
  Words before(48);
  std::iota(before.begin(), before.end(), 1u);
  std::vector<Words> buffers{before};
  runKernel(text, {1, 1, 1}, buffers);
  for (uint32_t word = 0; word < 24; ++word) {
    bool padding = word == 3 || word == 7 || word == 11 || word == 15 || word == 19 || word > 20;
    EXPECT_EQ(buffers[0][word], before[word]);
    EXPECT_EQ(buffers[0][24 + word], padding ? before[24 + word] : before[word]) << word;
  }
}

TEST_F(Kernel, long_arrays_move_through_loops) {
  const std::string text = R"(lockstep.kernel 1
struct S {
  a: array<u32, 100> {offset = 0}
}
var @x: S {access = read, binding = 0, group = 0, space = storage}
var @y: S {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%lid: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {
  %s: S = load @x
  store @y, %s
}
)";
  std::vector<Words> buffers{Words(100), Words(100)};
  std::iota(buffers[0].begin(), buffers[0].end(), 1u);
  runKernel(text, {1, 1, 1}, buffers);
  EXPECT_EQ(buffers[1], buffers[0]);
}

TEST_F(Kernel, atomics_count_across_workgroups) {
  const std::string text = R"(lockstep.kernel 1
struct atomic_compare_exchange_result_u32 {
  old_value: u32 {offset = 0}
  exchanged: bool {offset = 4}
}
struct S {
  n: atomic<u32> {offset = 0}
  low: atomic<i32> {offset = 4}
  won: atomic<u32> {offset = 8}
}
var @x: S {access = read_write, binding = 0, group = 0, space = storage}
var @local: atomic<u32> {space = workgroup}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %lid: u32 {builtin = local_invocation_index}) {workgroup_size = [64, 1, 1]} {
  %l: u32 = atomic_add @local, 1u
  workgroup_barrier
  %total: u32 = atomic_load @local
  %full: bool = eq %total, 64u
  if %full {
    %pn: ptr<storage, atomic<u32>, read_write> = access @x, 0u
    %o1: u32 = atomic_add %pn, 1u
  }
  %i: u32 = extract %gid, 0u
  %si: i32 = convert %i
  %neg: i32 = neg %si
  %pl: ptr<storage, atomic<i32>, read_write> = access @x, 1u
  %o2: i32 = atomic_min %pl, %neg
  %pw: ptr<storage, atomic<u32>, read_write> = access @x, 2u
  %cx: atomic_compare_exchange_result_u32 = atomic_compare_exchange %pw, 0u, 77u
}
)";
  std::vector<Words> buffers{{0, 0, 0}};
  runKernel(text, {10, 1, 1}, buffers);
  EXPECT_EQ(buffers[0], (Words{640, bits(-639), 77}));
}

TEST_F(Kernel, values_are_indexed_dynamically) {
  const std::string body = R"(
    %table: array<u32, 4> = construct 10u, 20u, 30u, %a
    %e: u32 = extract %table, %b
    %v: vec3<u32> = construct %a, %b, 9u
    %w: vec3<u32> = swizzle %v {components = zyx}
    %f: u32 = extract %w, %b
    %r: u32 = add %e, %f
)";
  // b = 3 is clamped to the last lane of the vector.
  EXPECT_EQ(mapWords("u32", "u32", body, {1, 2, 3, 4}, {0, 1, 2, 3}), (Words{10 + 9, 20 + 1, 30 + 3, 4 + 4}));
}

TEST_F(Kernel, grids_have_three_dimensions) {
  const std::string text = R"(lockstep.kernel 1
var @out: array<u32> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %n: vec3<u32> {builtin = num_workgroups}, %lid: vec3<u32> {builtin = local_invocation_id}) {workgroup_size = [2, 2, 1]} {
  %x: u32 = extract %gid, 0u
  %y: u32 = extract %gid, 1u
  %z: u32 = extract %gid, 2u
  %nz: u32 = extract %n, 2u
  %lx: u32 = extract %lid, 0u
  %zy: u32 = mul %z, 6u
  %zy2: u32 = add %zy, %y
  %row: u32 = mul %zy2, 4u
  %i: u32 = add %row, %x
  %p: ptr<storage, u32, read_write> = access @out, %i
  %v: u32 = mul %nz, 1000u
  %v2: u32 = add %v, %lx
  store %p, %v2
}
)";
  std::vector<Words> buffers{Words(4 * 6 * 5)};
  runKernel(text, {2, 3, 5}, buffers);
  for (size_t i = 0; i < buffers[0].size(); ++i) ASSERT_EQ(buffers[0][i], 5000 + i % 2) << i;
}

}  // namespace
}  // namespace lockstep::vulkan::testing
