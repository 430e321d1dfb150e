// SPDX-License-Identifier: Apache-2.0
// Control flow: every construct with lanes that go different ways.
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

constexpr std::string_view kOut = "var @out: array<u32> {access = read_write, binding = 0, group = 0, space = storage}\n";

/// A kernel of 96 invocations in groups of 32: `body` computes into variable %r from %i (the global index); then out[i] = r.
std::string kernelOf(std::string_view body, std::string_view functions = "") {
  return std::string(kOut) + std::string(functions) +
         R"(fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %r: ptr<function, u32> = var
)" + std::string(body) +
         R"(
  %result: u32 = load %r
  %at: ptr<storage, u32, read_write> = access @out, %i
  store %at, %result
}
)";
}

TEST_P(Conformance, elementwise) {
  std::string text = std::string(kOut) + R"(
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %n: u32 = array_length @out
  %inside: bool = lt %i, %n
  if %inside {
    %p: ptr<storage, u32, read_write> = access @out, %i
    %x: u32 = load %p
    %y: u32 = mul %x, 3u
    store %p, %y
  }
}
)";
  Words in(1000);
  for (uint32_t k = 0; k < 1000; ++k) in[k] = k;
  std::vector<Words> out = run(text, {in}, {16, 1, 1});
  for (uint32_t k = 0; k < 1000; ++k) ASSERT_EQ(out[0][k], 3 * k);
}

TEST_P(Conformance, if_both_arms) {
  std::string text = kernelOf(R"(
  %low: u32 = and %i, 1u
  %odd: bool = eq %low, 1u
  if %odd {
    %a: u32 = mul %i, 10u
    store %r, %a
  } else {
    %third: u32 = rem %i, 3u
    %is: bool = eq %third, 0u
    if %is {
      store %r, 5u
    }
    %old: u32 = load %r
    %b: u32 = add %old, 1u
    store %r, %b
  })");
  std::vector<Words> out = run(text, {Words(96)}, {3, 1, 1});
  for (uint32_t k = 0; k < 96; ++k) ASSERT_EQ(out[0][k], k % 2 == 1 ? 10 * k : k % 3 == 0 ? 6u : 1u) << k;
}

TEST_P(Conformance, loop_with_break_continue_and_break_if) {
  // Sums 0..i but not multiples of 4, stops at 20; break_if leaves at 25.
  std::string text = kernelOf(R"(
  %n: ptr<function, u32> = var
  loop {
    %k: u32 = load %n
    %over: bool = gt %k, %i
    if %over {
      break
    }
    %m: u32 = rem %k, 4u
    %skip: bool = eq %m, 0u
    if %skip {
      continue
    }
    %s: u32 = load %r
    %t: u32 = add %s, %k
    store %r, %t
    %is20: bool = eq %k, 19u
    if %is20 {
      %first: bool = lt %i, 50u
      if %first {
        break
      }
    }
  } continuing {
    %k2: u32 = load %n
    %k3: u32 = add %k2, 1u
    store %n, %k3
    %end: bool = eq %k3, 25u
    break_if %end
  })");
  std::vector<Words> out = run(text, {Words(96)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 25 && k <= i; ++k) {
      if (k % 4 == 0) continue;
      sum += k;
      if (k == 19 && i < 50) break;
    }
    ASSERT_EQ(out[0][i], sum) << i;
  }
}

TEST_P(Conformance, nested_loops_with_outer_counter_read_after) {
  // The inner trip count differs between lanes; the counter is read after the loop.
  std::string text = kernelOf(R"(
  %a: ptr<function, u32> = var
  loop {
    %av: u32 = load %a
    %a_end: bool = ge %av, 3u
    if %a_end {
      break
    }
    %b: ptr<function, u32> = var
    loop {
      %bv: u32 = load %b
      %limit: u32 = rem %i, 5u
      %b_end: bool = ge %bv, %limit
      if %b_end {
        break
      }
    } continuing {
      %b2: u32 = load %b
      %b3: u32 = add %b2, 1u
      store %b, %b3
    }
    %trips: u32 = load %b
    %s: u32 = load %r
    %t: u32 = mul %s, 7u
    %u: u32 = add %t, %trips
    store %r, %u
  } continuing {
    %a2: u32 = load %a
    %a3: u32 = add %a2, 1u
    store %a, %a3
  })");
  std::vector<Words> out = run(text, {Words(96)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) {
    uint32_t r = 0;
    for (int k = 0; k < 3; ++k) r = r * 7 + i % 5;
    ASSERT_EQ(out[0][i], r) << i;
  }
}

TEST_P(Conformance, early_return_skips_the_rest) {
  std::string text = std::string(kOut) + R"(
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %p: ptr<storage, u32, read_write> = access @out, %i
  %m: u32 = rem %i, 3u
  %leave: bool = eq %m, 1u
  if %leave {
    return
  }
  %n: ptr<function, u32> = var
  loop {
    %k: u32 = load %n
    %done: bool = ge %k, 5u
    if %done {
      break
    }
    %same: bool = eq %k, %m
    if %same {
      %two: bool = eq %m, 2u
      if %two {
        store %p, 2u
        return
      }
    }
  } continuing {
    %k1: u32 = load %n
    %k2: u32 = add %k1, 1u
    store %n, %k2
  }
  store %p, 1u
}
)";
  std::vector<Words> out = run(text, {Words(96, 9)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) ASSERT_EQ(out[0][i], i % 3 == 1 ? 9u : i % 3 == 2 ? 2u : 1u) << i;
}

TEST_P(Conformance, switch_with_shared_selectors_break_and_continue) {
  std::string text = kernelOf(R"(
  %n: ptr<function, u32> = var
  loop {
    %k: u32 = load %n
    %over: bool = ge %k, 4u
    if %over {
      break
    }
    %x: u32 = add %i, %k
    %s: u32 = rem %x, 7u
    %r0: u32 = load %r
    switch %s {
      case 1u, 2u {
        %r1: u32 = add %r0, 100u
        store %r, %r1
      }
      case 3u {
        %odd: u32 = and %i, 1u
        %is: bool = eq %odd, 1u
        if %is {
          break
        }
        %r2: u32 = add %r0, 1000u
        store %r, %r2
      }
      case 5u {
        continue
      }
      case default, 6u {
        %r3: u32 = add %r0, 1u
        store %r, %r3
      }
    }
    %r4: u32 = load %r
    %r5: u32 = mul %r4, 2u
    store %r, %r5
  } continuing {
    %k1: u32 = load %n
    %k2: u32 = add %k1, 1u
    store %n, %k2
  })");
  std::vector<Words> out = run(text, {Words(96)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      uint32_t s = (i + k) % 7;
      if (s == 5) continue;
      if (s == 1 || s == 2) {
        r += 100;
      } else if (s == 3) {
        if (i % 2 == 0) r += 1000;
      } else {
        r += 1;
      }
      r *= 2;
    }
    ASSERT_EQ(out[0][i], r) << i;
  }
}

TEST_P(Conformance, functions_with_pointer_parameters_and_early_returns) {
  std::string functions = R"(
fn @collatz(%start: u32, %steps: ptr<function, u32>) -> u32 {
  %x: ptr<function, u32> = var %start
  loop {
    %v: u32 = load %x
    %one: bool = le %v, 1u
    if %one {
      return %v
    }
    %s: u32 = load %steps
    %s1: u32 = add %s, 1u
    store %steps, %s1
    %many: bool = gt %s1, 40u
    if %many {
      return 77u
    }
    %low: u32 = and %v, 1u
    %odd: bool = eq %low, 1u
    if %odd {
      %v3: u32 = mul %v, 3u
      %v31: u32 = add %v3, 1u
      store %x, %v31
    } else {
      %half: u32 = shr %v, 1u
      store %x, %half
    }
  }
  return 0u
}
fn @element(%v: ptr<function, array<u32, 4>>, %k: u32) -> u32 {
  %p: ptr<function, u32> = access %v, %k
  %x: u32 = load %p
  return %x
}
)";
  std::string text = kernelOf(R"(
  %steps: ptr<function, u32> = var
  %last: u32 = call @collatz(%i, %steps)
  %count: u32 = load %steps
  %a: ptr<function, array<u32, 4>> = var
  %a1: ptr<function, u32> = access %a, 1u
  store %a1, %count
  %a3: ptr<function, u32> = access %a, 3u
  store %a3, %last
  %sel: u32 = and %i, 3u
  %e: u32 = call @element(%a, %sel)
  store %r, %e)",
                              functions);
  std::vector<Words> out = run(text, {Words(96)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) {
    uint32_t steps = 0, x = i, last = 0;
    for (;;) {
      if (x <= 1) {
        last = x;
        break;
      }
      if (++steps > 40) {
        last = 77;
        break;
      }
      x = x % 2 == 1 ? 3 * x + 1 : x / 2;
    }
    std::array<uint32_t, 4> a{0, steps, 0, last};
    ASSERT_EQ(out[0][i], a[i % 4]) << i;
  }
}

TEST_P(Conformance, variables_in_loops_start_from_zero) {
  std::string text = kernelOf(R"(
  %n: ptr<function, u32> = var
  loop {
    %k: u32 = load %n
    %over: bool = ge %k, 3u
    if %over {
      break
    }
    %fresh: ptr<function, u32> = var
    %list: ptr<function, array<u32, 3>> = var
    %m: u32 = rem %i, 3u
    %e: ptr<function, u32> = access %list, %m
    %e0: u32 = load %e
    %f0: u32 = load %fresh
    %sum: u32 = add %e0, %f0
    %r0: u32 = load %r
    %r1: u32 = add %r0, %sum
    store %r, %r1
    store %e, 5u
    store %fresh, 7u
  } continuing {
    %k1: u32 = load %n
    %k2: u32 = add %k1, 1u
    store %n, %k2
  })");
  std::vector<Words> out = run(text, {Words(96, 3)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) ASSERT_EQ(out[0][i], 0u) << i;
}

TEST_P(Conformance, a_loaded_value_outlives_stores_to_its_variable) {
  // %old and %was are read again in later iterations, after the variables that they came from were assigned.
  std::string text = kernelOf(R"(
  %n: ptr<function, u32> = var
  %v: ptr<function, u32> = var %i
  %old: u32 = load %v
  loop {
    %k: u32 = load %n
    %over: bool = ge %k, 4u
    if %over {
      break
    }
    %r0: u32 = load %r
    %r1: u32 = add %r0, %old
    store %r, %r1
    %was: u32 = load %v
    %v1: u32 = add %was, 3u
    store %v, %v1
    %r2: u32 = load %r
    %r3: u32 = add %r2, %was
    store %r, %r3
  } continuing {
    %k1: u32 = load %n
    %k2: u32 = add %k1, 1u
    store %n, %k2
  })");
  std::vector<Words> out = run(text, {Words(96)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) ASSERT_EQ(out[0][i], 8 * i + 3 * (0 + 1 + 2 + 3)) << i;
}

TEST_P(Conformance, private_variables_are_kept_and_initialised) {
  std::string text = "var @counter: u32 = 5u {space = private}\n" + std::string(kOut) + R"(
fn @bump() {
  %c: u32 = load @counter
  %c1: u32 = add %c, 2u
  store @counter, %c1
}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %low: u32 = and %i, 1u
  %odd: bool = eq %low, 1u
  if %odd {
    call @bump()
  }
  call @bump()
  %c: u32 = load @counter
  %p: ptr<storage, u32, read_write> = access @out, %i
  store %p, %c
}
)";
  std::vector<Words> out = run(text, {Words(96, 3)}, {3, 1, 1});
  for (uint32_t i = 0; i < 96; ++i) ASSERT_EQ(out[0][i], i % 2 == 1 ? 9u : 7u) << i;
}

}  // namespace
}  // namespace lockstep::conformance
