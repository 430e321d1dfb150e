// SPDX-License-Identifier: Apache-2.0
// Programs in WGSL whose results follow from the language alone: layouts and padding, initialisation, the order of evaluation, pointers as
// parameters, switches and loops, indices out of bounds.
#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/guard_accesses.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

constexpr uint32_t kUntouched = 0xdddd'dddd;

kernel::Module readWgsl(const std::string& text) { return kernel::guardAccesses(wgsl::read(text).orThrow(), kernel::OutOfBounds::Clamp); }

TEST_P(Conformance, wgsl_stores_leave_padding_alone) {
  const kernel::Module module = readWgsl(R"(
    struct Inner { @size(12) a: u32, v: vec3<u32> }
    struct S { n: u32, @align(16) m: mat3x3<f32>, inner: array<Inner, 2>, @size(32) last: vec2<u32> }
    @group(0) @binding(0) var<storage, read_write> out: S;
    @group(0) @binding(1) var<storage, read_write> columns: mat2x3<f32>;
    @compute @workgroup_size(1) fn main() {
      var s: S;
      s.n = 1;
      s.m = mat3x3<f32>(1, 2, 3, 4, 5, 6, 7, 8, 9);
      s.inner[1] = Inner(5, vec3(6, 7, 8));
      s.last = vec2(9, 10);
      out = s;
      columns[1] = vec3(1, 2, 3);
    })");
  constexpr uint32_t x = kUntouched;
  const auto f = [](float value) { return bitsOf(value); };
  const std::vector<Words> out = run(module, {Words(40, x), Words(8, x)});
  EXPECT_EQ(out[0], (Words{1,    x,    x,    x,                                                        //
                           f(1), f(2), f(3), x, f(4), f(5), f(6), x, f(7), f(8), f(9), x,              //
                           0,    x,    x,    x, 0,    0,    0,    x, 5,    x,    x,    x, 6, 7, 8, x,  //
                           9,    10,   x,    x, x,    x,    x,    x}));
  EXPECT_EQ(out[1], (Words{x, x, x, x, f(1), f(2), f(3), x}));
}

TEST_P(Conformance, wgsl_layouts_of_matrices_in_uniform_and_storage) {
  const kernel::Module module = readWgsl(R"(
    struct S { a: mat2x2<f32>, b: mat3x2<f32>, c: mat2x3<f32>, d: array<mat2x2<f32>, 2>, e: array<vec3<f32>, 2>, f: f32 }
    @group(0) @binding(0) var<storage, read> s: S;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;
    var<workgroup> w: S;
    var<private> p: S;
    fn sum(x: S, i: u32) -> f32 { return x.a[i].y + x.b[i + 1][i] * 10 + x.c[i].z * 100 + x.d[1][i].x * 1000 + x.e[i].z * 10000 + x.f; }
    @compute @workgroup_size(1) fn main() {
      w = s;
      p = s;
      var local = s;
      workgroupBarrier();
      for (var i = 0u; i < 2; i++) {
        out[i * 4] = sum(s, i);
        out[i * 4 + 1] = sum(w, i);
        out[i * 4 + 2] = sum(p, i);
        out[i * 4 + 3] = local.a[i].y + local.b[i + 1][i] * 10 + s.c[i].z * 100 + p.d[1][i].x * 1000 + w.e[i].z * 10000 + s.f;
      }
    })");
  // a at word 0, b at 4, c at 12 (columns of 4), d at 20, e at 28, f at 36.
  Words in(40);
  for (uint32_t i = 0; i < in.size(); ++i) in[i] = bitsOf(static_cast<float>(i % 7));
  const auto word = [](uint32_t i) { return static_cast<float>(i % 7); };
  const std::vector<Words> out = run(module, {in, Words(8)});
  for (uint32_t i = 0; i < 2; ++i) {
    const float wanted = word(2 * i + 1) + word(4 + 2 * (i + 1) + i) * 10 + word(12 + 4 * i + 2) * 100 + word(24 + 2 * i) * 1000 +
                         word(28 + 4 * i + 2) * 10000 + word(36);
    for (uint32_t k = 0; k < 4; ++k) EXPECT_EQ(floatOf(out[1][4 * i + k]), wanted) << i << " " << k;
  }
}

TEST_P(Conformance, wgsl_variables_start_at_zero_each_time) {
  const kernel::Module module = readWgsl(R"(
    struct S { a: u32, b: array<vec2<i32>, 3> }
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 8>;
    var<private> p: S;
    var<workgroup> w: array<S, 4>;
    @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
      out[i] = p.a + u32(p.b[2].y) + w[i].a + u32(w[3 - i].b[1].x);
      p.a += 1;
      var sum = 0u;
      for (var k = 0; k < 3; k++) {
        var fresh: S;
        sum += fresh.a;
        fresh.a += 5;
        fresh.b[k].x = 7;
        sum += fresh.a;
      }
      out[4 + i] = sum;
    })");
  EXPECT_EQ(run(module, {Words(8, kUntouched)})[0], (Words{0, 0, 0, 0, 15, 15, 15, 15}));
}

TEST_P(Conformance, wgsl_large_variables_start_at_zero) {
  const kernel::Module module = readWgsl(R"(
    struct S { n: u32, grid: array<array<vec4<u32>, 15>, 16>, flags: array<bool, 200> }
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 2048>;
    var<private> numbers: array<u32, 2048>;
    var<private> s: S;
    @compute @workgroup_size(1) fn main() {
      for (var i = 0; i < 2048; i++) { out[i] = numbers[i]; }
      for (var round = 0u; round < 2; round++) {
        var local = array<vec2<u32>, 256>();
        for (var i = 0u; i < 256; i++) { out[i] += local[i].x + local[i].y + s.grid[i % 16][i % 15].z + u32(s.flags[i % 200]); }
        for (var i = 0u; i < 256; i++) { local[i] = vec2(i, 1); }
      }
    })");
  EXPECT_EQ(run(module, {Words(2048, kUntouched)})[0], Words(2048, 0));
}

TEST_P(Conformance, wgsl_evaluates_from_left_to_right) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 16>;
    var<private> n: u32;
    fn next() -> u32 { n += 1; return n; }
    fn three(a: u32, b: u32, c: u32) -> u32 { return a * 100 + b * 10 + c; }
    fn put(p: ptr<private, u32>, value: u32) -> u32 { *p = value; return value; }
    @compute @workgroup_size(1) fn main() {
      out[0] = three(next(), next(), next());
      out[1] = n * 10 + put(&n, 7) + n;
      n = 2;
      out[next()] += next();
      out[next()] = next();
      n = 0;
      var a = array<u32, 4>(next(), next(), next(), next());
      a[0] = a[next() - 4] + n;
      out[8] = three(a[0], a[2], a[3]);
      n = 0;
      if next() == 2 || (next() == 2 && next() == 4) { out[9] = 1; }
      out[10] = n;
      n = 1;
      let v = vec3<u32>(next(), next(), n);
      out[11] = three(v.x, v.y, v.z);
      n = 5;
      out[12] = select(next(), next(), n == 7);
      let old = n;
      n = 9;
      out[13] = old;
    })");
  // out[3] += 4, then out[5] = 6; the array is {1, 2, 3, 4} and a[0] = a[1] + 5.
  const Words out = run(module, {Words(16)})[0];
  EXPECT_EQ(out, (Words{123, 30 + 7 + 7, 0, 4, 0, 6, 0, 0, 700 + 30 + 4, 0, 3, 233, 7, 7, 0, 0}));
}

TEST_P(Conformance, wgsl_pointers_as_parameters) {
  const kernel::Module module = readWgsl(R"(
    struct S { n: u32, v: vec4<u32>, a: array<u32, 4> }
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 16>;
    @group(0) @binding(1) var<storage, read_write> s: S;
    var<private> p: S;
    var<workgroup> w: S;
    fn inFunction(q: ptr<function, u32>) { *q += 1; }
    fn element(q: ptr<function, array<u32, 4>>, i: i32) -> u32 { (*q)[i] += 10; return q[i]; }
    fn inPrivate(q: ptr<private, S>) { q.n += 2; q.v.y = 3; q.a[q.n] = 4; }
    fn inWorkgroup(q: ptr<workgroup, array<u32, 4>>) { for (var i = 0; i < 4; i++) { q[i] = u32(i) * 5; } }
    fn inStorage(q: ptr<storage, array<u32, 4>, read_write>, r: ptr<function, S>) { q[1] = r.n; r.a = *q; }
    fn twice(q: ptr<function, u32>) -> u32 {
      loop {
        inFunction(q);
        if *q > 5 { return *q; }
      }
    }
    @compute @workgroup_size(1) fn main() {
      var local: S;
      local.n = 3;
      inFunction(&local.n);
      out[0] = local.n;
      out[1] = element(&local.a, 2);
      let whole = &local.a;
      out[2] = element(whole, -1);
      inPrivate(&p);
      out[3] = p.n * 100 + p.v.y * 10 + p.a[2];
      inWorkgroup(&w.a);
      out[4] = w.a[3];
      inStorage(&s.a, &local);
      out[5] = s.a[1];
      out[6] = local.a[0];
      out[7] = twice(&local.n);
      let component = &local.v;
      (*component).z = 9;
      out[8] = local.v[2];
    })");
  // The index -1 is the last one.
  const std::vector<Words> out = run(module, {Words(16), Words(12, 7)});
  EXPECT_EQ(out[0], (Words{4, 10, 10, 234, 15, 4, 7, 6, 9, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(out[1], (Words{7, 7, 7, 7, 7, 7, 7, 7, 7, 4, 7, 7}));
}

TEST_P(Conformance, wgsl_switches) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 12>;
    fn pick(x: i32) -> u32 {
      switch x {
        case -2, 5: { return 1; }
        case default, 7: {
          if x == 7 { break; }
          return 2;
        }
        case -2147483648: { return 3; }
        case 2147483647, 0x10: { }
      }
      return 4;
    }
    fn unsigned(x: u32) -> u32 {
      var r = 0u;
      switch x { case 0xffffffff: { r = 1; } case 0: { r = 2; } default { } }
      switch x { default { r += 10; } }
      return r;
    }
    @compute @workgroup_size(1) fn main() {
      out[0] = pick(-2) * 1000 + pick(5) * 100 + pick(7) * 10 + pick(8);
      out[1] = pick(-2147483648) * 100 + pick(2147483647) * 10 + pick(16);
      out[2] = unsigned(4294967295) * 10000 + unsigned(0) * 100 + unsigned(3);
      var n = 0u;
      for (var i = 0; i < 6; i++) {
        switch i {
          case 1: { continue; }
          case 3: {
            switch n { case 1: { n += 100; } default { break; } }
            n += 10;
          }
          case 5: { break; }
          default { n += 1; }
        }
        n += 1000;
      }
      out[3] = n;
    })");
  const Words out = run(module, {Words(12)})[0];
  EXPECT_EQ(out[0], 1142u);
  EXPECT_EQ(out[1], 344u);
  EXPECT_EQ(out[2], 111210u);
  // 0: 1001, 1: -, 2: 2002, 3: 3012, 4: 4013, 5: 5013.
  EXPECT_EQ(out[3], 5013u);
}

TEST_P(Conformance, wgsl_loops_leave_where_they_say) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 8>;
    fn find(limit: u32) -> u32 {
      for (var i = 0u; ; i++) {
        for (var j = 0u; j < i; j++) {
          if i * j >= limit { return i * 100 + j; }
          if j == 3 { break; }
        }
      }
    }
    @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) lane: u32) {
      out[lane] = find(lane * 5 + 1);
      var n = 0u;
      var i = lane;
      loop {
        if (i & 1) == 1 { continue; }
        n += 100;
        continuing {
          let step = 1u;
          i += step;
          n += 1;
          break if i >= 4 || n > 300;
        }
      }
      while n > 1000 { n -= 1; }
      out[4 + lane] = n;
    })");
  // find(1): 2 * 1; find(6): 3 * 2; find(11): 4 * 3; find(16): 6 * 3. Rounds of lane 0: i = 0, 1, 2, 3; of lane 3: i = 3.
  EXPECT_EQ(run(module, {Words(8)})[0], (Words{201, 302, 403, 603, 204, 103, 102, 1}));
}

TEST_P(Conformance, wgsl_indices_out_of_bounds_are_clamped) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @group(0) @binding(1) var<storage, read_write> far: array<i32, 4>;
    @group(0) @binding(2) var<storage, read_write> m: mat2x2<f32>;
    const table = array(1u, 2u, 3u);
    fn at(p: ptr<function, array<u32, 3>>, i: i32) -> u32 { return p[i]; }
    @compute @workgroup_size(1) fn main() {
      let big = far[0];
      let negative = far[1];
      var local = table;
      out[0] = table[big];
      out[1] = at(&local, negative);
      out[2] = vec4<u32>(4, 5, 6, 7)[big];
      out[3] = u32(mat2x2<f32>(1, 2, 3, 4)[big][negative]);
      m[negative][big] = 5;
      local[big] += 40;
      out[4] = local[2];
      out[big] = 9;
    })");
  const std::vector<Words> out = run(module, {Words(8), {100, ~0u, 0, 0}, Words(4)});
  EXPECT_EQ(out[0], (Words{3, 3, 7, 4, 43, 0, 0, 9}));
  EXPECT_EQ(out[2], (Words{0, 0, 0, bitsOf(5.0f)}));
}

// Drivers that know that an absolute value is not negative forget that of the smallest number.
TEST_P(Conformance, wgsl_absolute_value_of_the_smallest_number_is_negative) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<i32, 12>;
    @group(0) @binding(1) var<storage, read> x: array<i32, 4>;
    @compute @workgroup_size(1) fn main() {
      out[0] = abs(x[0]);
      out[1] = abs(abs(x[0]) >> 8);
      out[2] = select(0, 1, abs(x[0]) < 0);
      out[3] = max(abs(x[0]), 0);
      out[4] = abs(x[0]) / 2;
      out[5] = sign(abs(x[0]));
      let v = abs(abs(vec4i(x[0], x[1], x[2], x[3])) >> vec4u(8));
      for (var i = 0; i < 4; i++) { out[6 + i] = v[i]; }
    })");
  const std::vector<Words> out = run(module, {Words(12), Words{0x80000000, 0xffffff00, 0x7fffffff, 0x80000001}});
  EXPECT_EQ(out[0], (Words{0x80000000, 0x800000, 1, 0, 0xc0000000, 0xffffffff, 0x800000, 1, 0x7fffff, 0x7fffff, 0, 0}));
}

TEST_P(Conformance, wgsl_immediate_data_is_that_of_the_dispatch) {
  const kernel::Module module = readWgsl(R"(
    struct Inner { a: vec2<f32>, m: mat2x2<f32> }
    struct Settings { scale: vec3<f32>, count: u32, inner: Inner, last: i32 }
    var<immediate> settings: Settings;
    @group(0) @binding(0) var<storage, read_write> out: array<f32>;
    @group(0) @binding(1) var<uniform> far: u32;
    fn column(m: ptr<immediate, mat2x2<f32>>, i: u32) -> vec2<f32> { return m[i]; }
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
      if i >= settings.count { return; }
      let inner = settings.inner;
      out[i] = settings.scale[i % 3] + column(&settings.inner.m, i % 2).y * 10 + inner.m[1][i % 2] * 100 + f32(settings.last);
      if i == 5 { out[i] = settings.scale[far] + inner.a.y; }
    })");
  // scale at word 0, count at 3, inner at 4 (a at 4, m at 6 with columns of 2), last at 10; the size is 12 words.
  Words data(12);
  for (uint32_t k = 0; k < 10; ++k) data[k] = bitsOf(static_cast<float>(k));
  data[3] = 6;
  data[10] = ~0u;
  for (const uint32_t offset : {0u, 1u}) {
    data[5] = bitsOf(static_cast<float>(offset));
    const Words out = run(module, {Words(8, kUntouched), Words(1, 77)}, {1, 1, 1}, data)[0];
    for (uint32_t i = 0; i < 5; ++i) {
      EXPECT_EQ(floatOf(out[i]), static_cast<float>(i % 3 + (6 + 2 * (i % 2) + 1) * 10 + (8 + i % 2) * 100) - 1) << i;
    }
    EXPECT_EQ(floatOf(out[5]), 2 + static_cast<float>(offset));
    EXPECT_EQ(out[6], kUntouched);
  }
}

TEST_P(Conformance, wgsl_returns_leave_loops_and_switches_within_each_other) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 64>;
    // The first (i, j), row by row, with i * j == x; 90 + i where a row forbids it; 99 where there is none.
    fn find(x: u32, i_end: u32) -> u32 {
      for (var i = 1u; i < i_end; i++) {
        var j = 0u;
        loop {
          j++;
          switch i * j - x {
            case 0 { return i * 10 + j; }
            case 1, 2 { if i == 3 { return 90 + i; } }
            default { if j > 6 { break; } continue; }
          }
          if j > 7 { break; }
        }
      }
      return 99;
    }
    fn either(x: u32, steps: ptr<function, u32>) -> u32 {
      if x % 3 == 0 { return find(x, 4) + 1000; }
      *steps += 1;
      if x % 3 == 1 { return 7; }
      *steps += find(x, 7);
      return 8;
    }
    fn add(x: u32, steps: ptr<function, u32>) {
      while true {
        *steps += 10000;
        if *steps > x * 10000 { return; }
      }
    }
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) x: u32) {
      var steps = 0u;
      for (var k = 0u; k < 2; k++) {
        out[x] += either(x + k, &steps);
        add(x % 3, &steps);
      }
      out[x] += steps * 7;
    })");
  const auto find = [](uint32_t x, uint32_t i_end) -> uint32_t {
    for (uint32_t i = 1; i < i_end; ++i) {
      for (uint32_t j = 1;; ++j) {
        const uint32_t beyond = i * j - x;
        if (beyond == 0) return i * 10 + j;
        if ((beyond == 1 || beyond == 2) && i == 3) return 90 + i;
        if (j > 7) break;  // a `break` in the switch leaves the switch alone
      }
    }
    return 99;
  };
  const std::vector<Words> out = run(module, {Words(64)});
  for (uint32_t x = 0; x < 64; ++x) {
    uint32_t steps = 0, sum = 0;
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t y = x + k;
      if (y % 3 == 0) {
        sum += find(y, 4) + 1000;
      } else {
        steps += 1;
        if (y % 3 == 2) steps += find(y, 7);
        sum += y % 3 == 1 ? 7 : 8;
      }
      do steps += 10000;
      while (steps <= x % 3 * 10000);
    }
    ASSERT_EQ(out[0][x], sum + steps * 7) << x;
  }
}

TEST_P(Conformance, wgsl_print_changes_no_result) {
  const kernel::Module module = readWgsl(R"(
    @group(0) @binding(0) var<storage, read_write> out: array<u32, 8>;
    fn show(x: u32) -> u32 { print(x, vec2f(1.5), x > 3); return x + 1; }
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) lane: u32) {
      if lane % 2 == 0 { print(lane); }
      for (var i = 0u; i < lane; i++) { out[lane] += show(i); }
    })");
  EXPECT_EQ(run(module, {Words(8)})[0], (Words{0, 1, 3, 6, 10, 15, 21, 28}));
}

/// A loop that counts on for three rounds after its exit was due; it adds 1 to an element of four in each.
kernel::Module countsOn(const std::string& start, const std::string& exit, const std::string& step) {
  return readWgsl(
      "@group(0) @binding(0) var<storage, read_write> out: array<u32, 6>;"
      "var<private> a: array<u32, 4>;"
      "@compute @workgroup_size(1) fn main() {"
      "  var i = " +
      start + "; loop { if " + exit + " continuing { a[i] += 1; " + step +
      "; } }"
      "  for (var k = 0; k < 4; k++) { out[k] = a[k]; } out[4] = a[i];"
      "}");
}

TEST_P(Conformance, wgsl_indices_of_loops_whose_exit_may_continue) {
  // 5 holds the number after which the loop ends.
  const std::vector<std::vector<Words>> results{
      run(countsOn("0u", "(i >= 4) { if (i < out[5]) { continue; } break; }", "i++"), {Words{0, 0, 0, 0, 0, 7}}),
      run(countsOn("0u", "(i >= 4) { switch (out[5] - i) { case 1, 2, 3: { continue; } default: {} } break; }", "i++"),
          {Words{0, 0, 0, 0, 0, 7}}),
      run(countsOn("3i", "(i < 0) { if (i > i32(out[5])) { continue; } break; }", "i--"), {Words{0, 0, 0, 0, 0, ~3u}})};
  for (size_t form = 0; form < results.size(); ++form) {
    Words found = results[form][0];
    found.resize(5);
    EXPECT_EQ(found, (Words{1, 1, 1, 4, 4})) << form;  // the last element takes what is beyond
  }
}

}  // namespace
}  // namespace lockstep::conformance
