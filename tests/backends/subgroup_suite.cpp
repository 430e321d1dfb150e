// SPDX-License-Identifier: Apache-2.0
// Subgroup and quad operations. WGSL does not say which invocations make a subgroup, so the kernels report it and the results are
// compared with what follows from that.
#include <algorithm>
#include <map>
#include <optional>

#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

constexpr uint32_t kGroup = 40, kGroups = 3;

/// The active lanes of one subgroup: the value x of each by its subgroup_invocation_id.
using Lanes = std::map<uint32_t, uint32_t>;
/// Nothing where WGSL leaves the result open.
using Expected = std::array<std::optional<uint32_t>, 4>;
using Expectation = std::function<Expected(const Lanes&, uint32_t self)>;

/// Every lane with a true `%active` (of %i and %x) computes %r of %x, the others keep 7.
std::string kernelOf(std::string_view active, std::string_view body) {
  return std::string(R"(enable subgroups
var @ids: array<vec4<u32>> {access = read_write, binding = 0, group = 0, space = storage}
var @in: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
var @out: array<vec4<u32>> {access = read_write, binding = 2, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %lane: u32 {builtin = subgroup_invocation_id}, %sub: u32 {builtin = subgroup_id},
         %size: u32 {builtin = subgroup_size}, %count: u32 {builtin = num_subgroups}) {workgroup_size = [40, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %id: vec4<u32> = construct %sub, %lane, %size, %count
  %p: ptr<storage, vec4<u32>, read_write> = access @ids, %i
  store %p, %id
  %q: ptr<storage, u32, read_write> = access @in, %i
  %x: u32 = load %q
  %o: ptr<storage, vec4<u32>, read_write> = access @out, %i
)") + std::string(active) +
         "\n  if %active {\n" + std::string(body) + "\n    store %o, %r\n  }\n}\n";
}

constexpr std::string_view kAll = "  %active: bool = lt %x, 100u";
constexpr std::string_view kOdd = "  %low: u32 = and %x, 1u\n  %active: bool = eq %low, 1u";

void check(Backend& backend, std::string_view active, std::string_view body, const Expectation& expectation) {
  if (!backend.device().profile.subgroups) GTEST_SKIP() << "the device has no subgroup operations";
  const bool half = body.find("f16") != std::string_view::npos;
  if (half && !backend.device().profile.f16) GTEST_SKIP() << "the device has no f16";
  const bool odd = active == kOdd;
  Words in(kGroup * kGroups);
  for (uint32_t k = 0; k < in.size(); ++k) in[k] = k * 7 % 11 + k % 4;
  const Result<std::vector<Words>> ran = runText(backend, (half ? "enable f16\n" : "") + kernelOf(active, body),
                                                 {Words(in.size() * 4), in, Words(in.size() * 4, 7u)}, {kGroups, 1, 1});
  ASSERT_TRUE(ran.ok()) << toString(ran.diagnostics());
  const std::vector<Words>& out = *ran;
  std::map<std::pair<uint32_t, uint32_t>, Lanes> all, subgroups;
  for (uint32_t k = 0; k < in.size(); ++k) {
    const uint32_t sub = out[0][4 * k], lane = out[0][4 * k + 1], size = out[0][4 * k + 2], count = out[0][4 * k + 3];
    ASSERT_TRUE(std::has_single_bit(size) && size >= 4 && size <= 128) << size;
    ASSERT_LT(lane, size);
    ASSERT_LT(sub, count);
    ASSERT_EQ(count, (kGroup + size - 1) / size);
    const bool is_new = all[{k / kGroup, sub}].emplace(lane, in[k]).second;
    ASSERT_TRUE(is_new) << "two invocations are lane " << lane;
    if (!odd || in[k] % 2 == 1) subgroups[{k / kGroup, sub}].emplace(lane, in[k]);
  }
  for (uint32_t k = 0; k < in.size(); ++k) {
    const bool is_active = !odd || in[k] % 2 == 1;
    const Expected expected = is_active ? expectation(subgroups[{k / kGroup, out[0][4 * k]}], out[0][4 * k + 1]) : Expected{7, 7, 7, 7};
    for (size_t c = 0; c < 4; ++c) {
      ASSERT_EQ(out[2][4 * k + c], expected[c].value_or(out[2][4 * k + c])) << "invocation " << k << ", component " << c;
    }
  }
}

/// In uniform control flow, and where some lanes are away.
void checkBoth(Backend& backend, std::string_view body, const Expectation& expectation) {
  check(backend, kAll, body, expectation);
  check(backend, kOdd, body, expectation);
}

template <class Join>
uint32_t joined(const Lanes& lanes, uint32_t initial, Join join) {
  for (const auto& [lane, x] : lanes) initial = join(initial, x);
  return initial;
}
uint32_t add(uint32_t a, uint32_t b) { return a + b; }
uint32_t multiply(uint32_t a, uint32_t b) { return a * (b + 1); }

Lanes below(const Lanes& lanes, uint32_t end) { return {lanes.begin(), lanes.lower_bound(end)}; }
std::optional<uint32_t> at(const Lanes& lanes, uint32_t lane) {
  const auto found = lanes.find(lane);
  return found == lanes.end() ? std::nullopt : std::optional(found->second);
}

// In three dimensions too, every invocation is a lane of its own, and the ids are those of the workgroup as written.
TEST_P(Conformance, subgroup_lanes_of_a_box) {
  if (!backend_->device().profile.subgroups) GTEST_SKIP() << "the device has no subgroup operations";
  const std::string_view body = R"(enable subgroups
var @out: array<vec4<u32>> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %lid: vec3<u32> {builtin = local_invocation_id},
         %index: u32 {builtin = local_invocation_index}, %group: u32 {builtin = workgroup_index}, %sub: u32 {builtin = subgroup_id},
         %lane: u32 {builtin = subgroup_invocation_id}) {workgroup_size = [5, 4, 2]} {
  %digits: vec3<u32> = construct 1u, 100u, 10000u
  %g: u32 = dot %gid, %digits
  %l: u32 = dot %lid, %digits
  %first: u32 = mul %group, 40u
  %i: u32 = add %first, %index
  %r: vec4<u32> = construct %sub, %lane, %g, %l
  %o: ptr<storage, vec4<u32>, read_write> = access @out, %i
  store %o, %r
}
)";
  const std::vector<Words> out = run(body, {Words(4 * 160)}, {2, 1, 2});
  for (uint32_t group = 0; group < 4; ++group) {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> lanes;
    for (uint32_t k = 0; k < 40; ++k) {
      const uint32_t* r = &out[0][(group * 40 + k) * 4];
      const uint32_t x = k % 5, y = k / 5 % 4, z = k / 20;
      EXPECT_TRUE(lanes.emplace(std::pair(r[0], r[1]), k).second) << "two invocations are lane " << r[1] << " of subgroup " << r[0];
      EXPECT_EQ(r[2], x + group % 2 * 5 + y * 100 + (z + group / 2 * 2) * 10000);
      EXPECT_EQ(r[3], x + y * 100 + z * 10000);
    }
  }
}

TEST_P(Conformance, subgroup_sums_and_scans) {
  checkBoth(*backend_, R"(
    %a: u32 = subgroup_add %x
    %b: u32 = subgroup_exclusive_add %x
    %c: u32 = subgroup_inclusive_add %x
    %d: u32 = subgroup_max %x
    %r: vec4<u32> = construct %a, %b, %c, %d)",
            [](const Lanes& lanes, uint32_t self) {
              return Expected{joined(lanes, 0, add), joined(below(lanes, self), 0, add), joined(below(lanes, self + 1), 0, add),
                              joined(lanes, 0, [](uint32_t a, uint32_t b) { return std::max(a, b); })};
            });
}

TEST_P(Conformance, subgroup_products_and_scans) {
  checkBoth(*backend_, R"(
    %y: u32 = add %x, 1u
    %a: u32 = subgroup_mul %y
    %b: u32 = subgroup_exclusive_mul %y
    %c: u32 = subgroup_inclusive_mul %y
    %d: u32 = subgroup_min %x
    %r: vec4<u32> = construct %a, %b, %c, %d)",
            [](const Lanes& lanes, uint32_t self) {
              return Expected{joined(lanes, 1, multiply), joined(below(lanes, self), 1, multiply),
                              joined(below(lanes, self + 1), 1, multiply),
                              joined(lanes, ~0u, [](uint32_t a, uint32_t b) { return std::min(a, b); })};
            });
}

TEST_P(Conformance, subgroup_floats_and_signed_integers) {
  checkBoth(*backend_, R"(
    %f: f32 = convert %x
    %v: vec2<f32> = construct %f, %f
    %sums: vec2<f32> = subgroup_inclusive_add %v
    %sum: f32 = extract %sums, 1u
    %a: u32 = convert %sum
    %least: f32 = subgroup_min %f
    %b: u32 = convert %least
    %i5: i32 = convert %x
    %s: i32 = sub %i5, 5i
    %top: i32 = subgroup_max %s
    %c: u32 = bitcast %top
    %bottom: i32 = subgroup_min %s
    %d: u32 = bitcast %bottom
    %r: vec4<u32> = construct %a, %b, %c, %d)",
            [](const Lanes& lanes, uint32_t self) {
              const uint32_t least = joined(lanes, ~0u, [](uint32_t a, uint32_t b) { return std::min(a, b); });
              const uint32_t most = joined(lanes, 0, [](uint32_t a, uint32_t b) { return std::max(a, b); });
              return Expected{joined(below(lanes, self + 1), 0, add), least, most - 5, least - 5};
            });
}

TEST_P(Conformance, subgroup_halves) {
  checkBoth(*backend_, R"(
    %h: f16 = convert %x
    %v: vec2<f16> = construct %h, 1.0h
    %sums: vec2<f16> = subgroup_add %v
    %sum: f16 = extract %sums, 0u
    %a: u32 = convert %sum
    %scan: f16 = subgroup_inclusive_add %h
    %b: u32 = convert %scan
    %most: f16 = subgroup_max %h
    %c: u32 = convert %most
    %moved: vec2<f16> = subgroup_shuffle_xor %v, 1u
    %near: f16 = extract %moved, 0u
    %d: u32 = convert %near
    %r: vec4<u32> = construct %a, %b, %c, %d)",
            [](const Lanes& lanes, uint32_t self) {
              return Expected{joined(lanes, 0, add), joined(below(lanes, self + 1), 0, add),
                              joined(lanes, 0, [](uint32_t a, uint32_t b) { return std::max(a, b); }), at(lanes, self ^ 1)};
            });
}

TEST_P(Conformance, subgroup_bits_and_election) {
  checkBoth(*backend_, R"(
    %a: u32 = subgroup_and %x
    %b: u32 = subgroup_or %x
    %c: u32 = subgroup_xor %x
    %first: bool = subgroup_elect
    %d: u32 = convert %first
    %r: vec4<u32> = construct %a, %b, %c, %d)",
            [](const Lanes& lanes, uint32_t self) {
              return Expected{joined(lanes, ~0u, [](uint32_t a, uint32_t b) { return a & b; }),
                              joined(lanes, 0, [](uint32_t a, uint32_t b) { return a | b; }),
                              joined(lanes, 0, [](uint32_t a, uint32_t b) { return a ^ b; }), lanes.begin()->first == self ? 1u : 0u};
            });
}

TEST_P(Conformance, subgroup_votes) {
  checkBoth(*backend_, R"(
    %small: bool = lt %x, 12u
    %is: bool = eq %x, 5u
    %all: bool = subgroup_all %small
    %a: u32 = convert %all
    %any: bool = subgroup_any %is
    %b: u32 = convert %any
    %first: u32 = subgroup_broadcast_first %x
    %none: bool = subgroup_any false
    %d: u32 = convert %none
    %r: vec4<u32> = construct %a, %b, %first, %d)",
            [](const Lanes& lanes, uint32_t) {
              const bool all = std::all_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane.second < 12; });
              const bool any = std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane.second == 5; });
              return Expected{all ? 1u : 0u, any ? 1u : 0u, lanes.begin()->second, 0u};
            });
}

TEST_P(Conformance, subgroup_ballot) {
  checkBoth(*backend_, R"(
    %small: bool = lt %x, 6u
    %r: vec4<u32> = subgroup_ballot %small)",
            [](const Lanes& lanes, uint32_t) {
              Expected expected{0, 0, 0, 0};
              for (const auto& [lane, x] : lanes)
                if (x < 6) *expected[lane / 32] |= 1u << lane % 32;
              return expected;
            });
}

TEST_P(Conformance, subgroup_shuffles) {
  checkBoth(*backend_, R"(
    %far: u32 = add %lane, %x
    %source: u32 = and %far, 3u
    %a: u32 = subgroup_shuffle %x, %source
    %b: u32 = subgroup_shuffle_xor %x, 3u
    %c: u32 = subgroup_shuffle_up %x, 2u
    %d: u32 = subgroup_shuffle_down %x, 1u
    %r: vec4<u32> = construct %a, %b, %c, %d)",
            [](const Lanes& lanes, uint32_t self) {
              return Expected{at(lanes, (self + lanes.at(self)) & 3), at(lanes, self ^ 3), at(lanes, self - 2), at(lanes, self + 1)};
            });
}

// WGSL leaves these open; our backends do not, so that a kernel gives one result everywhere.
TEST_P(Conformance, subgroup_shuffles_from_beyond) {
  check(*backend_, kAll, R"(
    %last: u32 = sub %size, 1u
    %far: u32 = add %size, %x
    %a: u32 = subgroup_shuffle %x, %last
    %b: u32 = subgroup_shuffle %x, %far
    %equal: bool = eq %a, %b
    %c: u32 = convert %equal
    %d: u32 = subgroup_shuffle_up %x, %size
    %e: u32 = subgroup_shuffle_up %x, 1u
    %f: u32 = subgroup_shuffle_down %x, %size
    %g: u32 = subgroup_shuffle_xor %x, %size
    %h: u32 = or %f, %g
    %r: vec4<u32> = construct %c, %d, %e, %h)",
        [](const Lanes& lanes, uint32_t self) { return Expected{1, 0, self == 0 ? 0 : at(lanes, self - 1), 0}; });
}

TEST_P(Conformance, subgroup_broadcast) {
  check(*backend_, kAll, R"(
    %a: u32 = subgroup_broadcast %x, 3u
    %f: f32 = convert %x
    %v: vec3<f32> = construct %f, %f, %f
    %w: vec3<f32> = subgroup_broadcast %v, 1u
    %g: f32 = extract %w, 2u
    %b: u32 = convert %g
    %r: vec4<u32> = construct %a, %b, %b, %b)",
        [](const Lanes& lanes, uint32_t) { return Expected{at(lanes, 3), at(lanes, 1), at(lanes, 1), at(lanes, 1)}; });
}

TEST_P(Conformance, subgroup_quads) {
  check(*backend_, kAll, R"(
    %a: u32 = quad_broadcast %x, 2u
    %b: u32 = quad_swap_x %x
    %c: u32 = quad_swap_y %x
    %d: u32 = quad_swap_diagonal %x
    %r: vec4<u32> = construct %a, %b, %c, %d)",
        [](const Lanes& lanes, uint32_t self) {
          return Expected{at(lanes, (self & ~3u) + 2), at(lanes, self ^ 1), at(lanes, self ^ 2), at(lanes, self ^ 3)};
        });
}

TEST_P(Conformance, subgroup_loop_that_lanes_leave_apart) {
  // Adds up how many lanes are still there in each round.
  check(*backend_, kAll, R"(
    %n: ptr<function, u32> = var
    %sum: ptr<function, u32> = var
    loop {
      %k: u32 = load %n
      %over: bool = ge %k, %x
      if %over {
        break
      }
      %here: u32 = subgroup_add 1u
      %old: u32 = load %sum
      %new: u32 = add %old, %here
      store %sum, %new
    } continuing {
      %m: u32 = load %n
      %m1: u32 = add %m, 1u
      store %n, %m1
    }
    %s: u32 = load %sum
    %r: vec4<u32> = construct %s, %s, %s, %s)",
        [](const Lanes& lanes, uint32_t self) {
          uint32_t sum = 0;
          for (const auto& [lane, x] : lanes) sum += std::min(x, lanes.at(self));
          return Expected{sum, sum, sum, sum};
        });
}

TEST_P(Conformance, linear_indices) {
  const std::string text = R"(
var @out: array<vec2<u32>> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %wg: u32 {builtin = workgroup_index}, %g: u32 {builtin = global_invocation_index}, %n: vec3<u32> {builtin = num_workgroups}) {workgroup_size = [3, 2, 2]} {
  %x: u32 = extract %gid, 0u
  %y: u32 = extract %gid, 1u
  %z: u32 = extract %gid, 2u
  %y0: u32 = mul %z, 4u
  %y1: u32 = add %y0, %y
  %x0: u32 = mul %y1, 15u
  %at: u32 = add %x0, %x
  %v: vec2<u32> = construct %wg, %g
  %p: ptr<storage, vec2<u32>, read_write> = access @out, %at
  store %p, %v
}
)";
  const std::vector<Words> out = run(text, {Words(15 * 4 * 6 * 2)}, {5, 2, 3});
  if (out.empty()) return;
  for (uint32_t k = 0; k < 15 * 4 * 6; ++k) {
    const uint32_t x = k % 15, y = k / 15 % 4, z = k / 60;
    ASSERT_EQ(out[0][2 * k], x / 3 + 5 * (y / 2 + 2 * (z / 2))) << k;
    ASSERT_EQ(out[0][2 * k + 1], k);
  }
}

}  // namespace
}  // namespace lockstep::conformance
