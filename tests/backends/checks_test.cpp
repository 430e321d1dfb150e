// SPDX-License-Identifier: Apache-2.0
// What the reference backend reports, and that threads and batches change no bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "backends/reference/bytecode.h"
#include "backends/reference/dispatch.h"
#include "backends/reference/reference.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

constexpr std::string_view kBuffer = "var @data: array<f32> {access = read_write, binding = 0, group = 0, space = storage}\n";

Failure failureOf(std::string_view text, const std::vector<Words>& buffers, std::array<uint32_t, 3> groups,
                  const ReferenceOptions& options = {}) {
  std::unique_ptr<Backend> backend = makeReference(options);
  Result<std::vector<Words>> result = runText(*backend, text, buffers, groups);
  EXPECT_FALSE(result.ok());
  return result.ok() ? Failure{{Diagnostic{}}} : result.failure();
}

std::string shifted(uint32_t by) {
  return std::string(kBuffer) + R"(fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %j: u32 = add %i, )" +
         std::to_string(by) + R"(u
  %p: ptr<storage, f32, read_write> = access @data, %j
  store %p, 2.0f
}
)";
}

TEST(Checks, out_of_bounds_store_names_everything_and_is_not_done) {
  Failure failure = failureOf(shifted(10), {Words(256)}, {8, 1, 1});
  const Diagnostic& diagnostic = failure.diagnostics[0];
  EXPECT_EQ(diagnostic.code, "reference.out_of_bounds");
  EXPECT_NE(diagnostic.message.find("kernel kernel: index 256 is out of bounds of data with 256 elements"), std::string::npos)
      << diagnostic.message;
  EXPECT_NE(diagnostic.message.find("invocation (246, 0, 0) (workgroup (7, 0, 0), local (22, 0, 0))"), std::string::npos)
      << diagnostic.message;
  ASSERT_EQ(diagnostic.notes.size(), 1u);
  EXPECT_NE(diagnostic.notes[0].message.find("store "), std::string::npos) << diagnostic.notes[0].message;
  EXPECT_GT(diagnostic.notes[0].where.line, 0u);
}

TEST(Checks, out_of_bounds_is_the_same_for_any_number_of_threads) {
  std::string first = toString(failureOf(shifted(10), {Words(64)}, {64, 1, 1}, {.max_threads = 1}).diagnostics);
  for (uint32_t threads : {2u, 3u, 7u})
    EXPECT_EQ(toString(failureOf(shifted(10), {Words(64)}, {64, 1, 1}, {.max_threads = threads}).diagnostics), first);
}

/// Each invocation writes the lowest local_invocation_index of its subgroup, its lane and what the lane below holds where x < 3.
constexpr std::string_view kSubgroups = R"(enable subgroups
var @out: array<vec3<u32>> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %local: u32 {builtin = local_invocation_index}, %lane: u32 {builtin = subgroup_invocation_id}) {workgroup_size = [48, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %lowest: u32 = subgroup_min %local
  %kept: ptr<function, u32> = var
  %few: u32 = rem %i, 5u
  %some: bool = lt %few, 3u
  if %some {
    %up: u32 = subgroup_shuffle_up %i, 1u
    store %kept, %up
  }
  %moved: u32 = load %kept
  %v: vec3<u32> = construct %lowest, %lane, %moved
  %p: ptr<storage, vec3<u32>, read_write> = access @out, %i
  store %p, %v
}
)";

Words subgroupsOf(const ReferenceOptions& options) {
  const std::unique_ptr<Backend> backend = makeReference(options);
  return runText(*backend, kSubgroups, {Words(size_t(48) * 20 * 4)}, {20, 1, 1}).orThrow()[0];
}

TEST(Checks, subgroups_are_taken_in_order_unless_a_seed_is_given) {
  for (uint32_t size : {4u, 8u, 16u, 32u, 64u, 128u}) {
    const Words out = subgroupsOf({.subgroup_size = size});
    for (uint32_t k = 0; k < 48 * 20; ++k) {
      const uint32_t local = k % 48;
      ASSERT_EQ(out[4 * k], local / size * size) << "size " << size;
      ASSERT_EQ(out[4 * k + 1], local % size);
      if (k % 5 >= 3 || local % size == 0) continue;
      ASSERT_EQ(out[4 * k + 2], k - 1);
    }
  }
  EXPECT_EQ(subgroupsOf({}), subgroupsOf({.subgroup_size = 4}));
  EXPECT_NE(subgroupsOf({.subgroup_seed = 1}), subgroupsOf({}));
  EXPECT_NE(subgroupsOf({.subgroup_seed = 1}), subgroupsOf({.subgroup_seed = 2}));
}

TEST(Checks, subgroups_are_the_same_for_any_number_of_threads) {
  for (uint64_t seed : {0u, 9u}) {
    const Words first = subgroupsOf({.max_threads = 1, .subgroup_seed = seed});
    for (uint32_t threads : {2u, 5u}) EXPECT_EQ(subgroupsOf({.max_threads = threads, .subgroup_seed = seed}), first);
  }
}

TEST(Checks, a_subgroup_size_is_a_power_of_two) {
  for (uint32_t size : {0u, 2u, 12u, 256u}) {
    const Failure failure = failureOf(kSubgroups, {Words(48 * 4)}, {1, 1, 1}, {.subgroup_size = size});
    EXPECT_EQ(failure.diagnostics[0].code, "reference.subgroups") << size;
  }
}

TEST(Checks, workgroup_memory_without_its_zero_holds_nans_at_first) {
  const std::string text = std::string(kBuffer) + R"(var @scratch: array<f32, 32> {initial = none, space = workgroup}
fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [32, 1, 1]} {
  %0: bool = lt %i, 16u
  if %0 {
    %1: ptr<workgroup, f32, read_write> = access @scratch, %i
    store %1, 3.0f
  }
  workgroup_barrier
  %2: ptr<workgroup, f32, read_write> = access @scratch, %i
  %3: f32 = load %2
  %4: ptr<storage, f32, read_write> = access @data, %i
  store %4, %3
}
)";
  std::unique_ptr<Backend> backend = makeReference({});
  Result<std::vector<Words>> out = runText(*backend, text, {Words(32)}, {1, 1, 1});
  ASSERT_TRUE(out.ok()) << toString(out.diagnostics());
  EXPECT_EQ((*out)[0][15], 0x40400000u);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>((*out)[0][16])));
}

/// What the plan of a GPU with 48 KiB needs runs here as well; without an end to it, a mistake could take all memory.
TEST(Checks, workgroup_memory_may_be_that_of_a_gpu) {
  const auto reversed = [](uint32_t words) {
    return fmt::format(R"(lockstep.kernel 1
var @tile: array<u32, {0}> {{space = workgroup}}
var @data: array<u32> {{access = read_write, binding = 0, group = 0, space = storage}}
fn @main(%i: u32 {{builtin = local_invocation_index}}) {{workgroup_size = [64, 1, 1]}} {{
  %last: u32 = sub {1}u, %i
  %there: ptr<workgroup, u32> = access @tile, %last
  store %there, %i
  workgroup_barrier
  %back: u32 = sub 63u, %i
  %from: u32 = sub {1}u, %back
  %here: ptr<workgroup, u32> = access @tile, %from
  %x: u32 = load %here
  %p: ptr<storage, u32, read_write> = access @data, %i
  store %p, %x
}}
)",
                       words, words - 1);
  };
  const auto run = [&](uint32_t words) {
    program::DeviceProfile gpu;
    gpu.max_workgroup_bytes = 4 * words;
    const std::unique_ptr<Backend> backend = makeReference();
    return runKernel(*backend, kernel::parse(reversed(words)).orThrow(), {Words(64)}, {2, 1, 1}, {}, gpu);
  };
  for (const uint32_t kib : {32u, 48u, 128u}) {
    const std::vector<Words> result = run(kib * 256).orThrow();
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[0][i], 63 - i) << kib;
  }
  const Result<std::vector<Words>> beyond = run(128 * 256 + 4);
  ASSERT_FALSE(beyond.ok());
  const Diagnostic refused = beyond.diagnostics().front();
  EXPECT_EQ(refused.code, "reference.limit");
  EXPECT_NE(refused.message.find("131088 bytes of workgroup memory are above the limit of 131072"), std::string::npos) << refused.message;
}

TEST(Checks, unchecked_stores_out_of_bounds_are_dropped_and_loads_give_zero) {
  std::unique_ptr<Backend> backend = makeReference({.checks = false});
  std::string text = std::string(kBuffer) + R"(var @out: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %j: u32 = sub %i, 1u
  %p: ptr<storage, f32, read_write> = access @data, %j
  %x: f32 = load %p
  %k: u32 = add %i, 16u
  %q: ptr<storage, f32, read_write> = access @out, %k
  store %q, %x
}
)";
  Result<std::vector<Words>> out = runText(*backend, text, {Words(31, 7), Words(32, 5)}, {1, 1, 1});
  ASSERT_TRUE(out.ok()) << toString(out.diagnostics());
  for (uint32_t k = 0; k < 32; ++k) EXPECT_EQ((*out)[1][k], k < 16 ? 5u : k == 16 ? 0u : 7u) << k;
}

TEST(Checks, halves_out_of_bounds) {
  // Invocation i copies half i + 1 to half i + 1 of a buffer of 31 words, so the last one is outside of both.
  const std::string text = R"(enable f16
var @in: array<f16> {access = read, binding = 0, group = 0, space = storage}
var @out: array<f16> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [31, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %j: u32 = add %i, 1u
  %p: ptr<storage, f16, read> = access @in, %j
  %x: f16 = load %p
  %q: ptr<storage, f16, read_write> = access @out, %j
  store %q, %x
}
)";
  const Failure failure = failureOf(text, {Words(31), Words(31)}, {2, 1, 1});
  EXPECT_EQ(failure.diagnostics[0].code, "reference.out_of_bounds");
  EXPECT_NE(failure.diagnostics[0].message.find("index 62 is out of bounds of in with 62 elements"), std::string::npos)
      << failure.diagnostics[0].message;
  const std::unique_ptr<Backend> backend = makeReference({.checks = false});
  const Result<std::vector<Words>> out = runText(*backend, text, {Words(31, 0x3c003c00u), Words(31)}, {2, 1, 1});
  ASSERT_TRUE(out.ok());
  Words wanted(31, 0x3c003c00u);
  wanted[0] = 0x3c000000u;
  EXPECT_EQ((*out)[1], wanted);
}

TEST(Checks, out_of_bounds_in_every_address_space) {
  struct Case {
    std::string name, text;
  };
  auto kernelOf = [](std::string_view globals, std::string_view body) {
    return std::string(kBuffer) + std::string(globals) +
           "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [32, 1, 1]} {\n" + std::string(body) + "}\n";
  };
  const Case cases[] = {
      {"function", kernelOf("", "  %v: ptr<function, array<f32, 20>> = var\n  %p: ptr<function, f32> = access %v, %i\n  store %p, 1.0f\n")},
      {"private", kernelOf("var @v: array<f32, 20> {space = private}\n",
                           "  %p: ptr<private, f32> = access @v, %i\n  %x: f32 = load %p\n  store %p, %x\n")},
      {"workgroup",
       kernelOf("var @v: array<f32, 20> {space = workgroup}\n", "  %p: ptr<workgroup, f32> = access @v, %i\n  store %p, 1.0f\n")},
      {"inner index", kernelOf("var @v: array<array<f32, 4>, 40> {space = workgroup}\n",
                               "  %k: u32 = shr %i, 2u\n  %p: ptr<workgroup, f32> = access @v, %i, %k\n  store %p, 1.0f\n")},
      {"vector value", kernelOf("",
                                "  %v: vec3<f32> = construct 1.0f, 2.0f, 3.0f\n  %x: f32 = extract %v, %i\n"
                                "  %p: ptr<storage, f32, read_write> = access @data, 0u\n  store %p, %x\n")},
      {"atomic", kernelOf("var @v: array<atomic<u32>, 20> {space = workgroup}\n",
                          "  %p: ptr<workgroup, atomic<u32>> = access @v, %i\n  %x: u32 = atomic_add %p, 1u\n")},
  };
  for (const Case& c : cases) {
    Failure failure = failureOf(c.text, {Words(64)}, {1, 1, 1});
    EXPECT_EQ(failure.diagnostics[0].code, "reference.out_of_bounds") << c.name << toString(failure.diagnostics);
  }
}

TEST(Checks, inactive_invocations_are_not_reported) {
  std::string text = std::string(kBuffer) + R"(fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %inside: bool = lt %i, 10u
  if %inside {
    %p: ptr<storage, f32, read_write> = access @data, %i
    %x: f32 = load %p
    %y: f32 = add %x, 1.0f
    store %p, %y
  }
}
)";
  std::unique_ptr<Backend> backend = makeReference();
  Result<std::vector<Words>> out = runText(*backend, text, {Words(10)}, {4, 1, 1});
  ASSERT_TRUE(out.ok()) << toString(out.diagnostics());
  EXPECT_EQ((*out)[0], Words(10, bitsOf(1.0f)));
}

TEST(Checks, divergent_barrier) {
  std::string text = std::string(kBuffer) + R"(fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [32, 1, 1]} {
  %some: bool = lt %i, 5u
  if %some {
    workgroup_barrier
  }
}
)";
  Failure failure = failureOf(text, {Words(4)}, {2, 1, 1});
  EXPECT_EQ(failure.diagnostics[0].code, "reference.divergent_barrier");
  EXPECT_NE(failure.diagnostics[0].message.find("local (5, 0, 0)"), std::string::npos) << failure.diagnostics[0].message;
}

TEST(Checks, barrier_that_whole_workgroups_skip_is_fine) {
  std::string text = std::string(kBuffer) + R"(fn @main(%w: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [32, 1, 1]} {
  %x: u32 = extract %w, 0u
  %odd: u32 = and %x, 1u
  %some: bool = eq %odd, 1u
  if %some {
    workgroup_barrier
  }
}
)";
  std::unique_ptr<Backend> backend = makeReference();
  EXPECT_TRUE(runText(*backend, text, {Words(4)}, {16, 1, 1}).ok());
}

TEST(Checks, endless_loop) {
  std::string text = std::string(kBuffer) + R"(fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [32, 1, 1]} {
  %p: ptr<storage, f32, read_write> = access @data, 0u
  loop {
    %x: f32 = load %p
    %end: bool = gt %x, 1.0f
    if %end {
      break
    }
  }
}
)";
  Failure failure = failureOf(text, {Words(4)}, {1, 1, 1}, {.loop_budget = 1u << 20});
  EXPECT_EQ(failure.diagnostics[0].code, "reference.endless_loop");
}

TEST(Checks, orders_of_invocations_show_what_depends_on_them) {
  const std::string text = R"(
var @last: atomic<u32> {access = read_write, binding = 0, group = 0, space = storage}
var @sum: atomic<u32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [8, 1, 1]} {
  %i: u32 = extract %gid, 0u
  atomic_store @last, %i
  %0: u32 = atomic_add @sum, %i
}
)";
  std::set<uint32_t> last;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::unique_ptr<Backend> backend = makeReference({.order_seed = seed, .max_threads = 1});
    const std::vector<Words> out = runText(*backend, text, {Words(1), Words(1)}, {64, 1, 1}).orThrow();
    last.insert(out[0][0]);
    EXPECT_EQ(out[1][0], 511u * 512 / 2);
    if (seed == 0) {
      EXPECT_EQ(out[0][0], 511u) << "the last one in ascending order";
    }
    EXPECT_EQ(runText(*backend, text, {Words(1), Words(1)}, {64, 1, 1}).orThrow()[0], out[0]) << "one seed is one order";
  }
  EXPECT_GT(last.size(), 4u);
}

/// A kernel on two buffers of u32 whose entry point has 32 invocations: %i is the invocation in the dispatch, %l in the workgroup.
std::string racing(std::string_view body, bool atomic) {
  const std::string element = atomic ? "atomic<u32>" : "u32";
  return fmt::format(R"(
struct atomic_compare_exchange_result_u32 {{ old_value: u32 {{offset = 0}} exchanged: bool {{offset = 4}} }}
var @a: array<{0}> {{access = read_write, binding = 0, group = 0, space = storage}}
var @b: array<u32> {{access = read_write, binding = 1, group = 0, space = storage}}
fn @main(%gid: vec3<u32> {{builtin = global_invocation_id}}, %lid: vec3<u32> {{builtin = local_invocation_id}}) {{workgroup_size = [32, 1, 1]}} {{
  %i: u32 = extract %gid, 0u
  %l: u32 = extract %lid, 0u
  %first: ptr<storage, {0}, read_write> = access @a, 0u
  %own: ptr<storage, {0}, read_write> = access @a, %i
  %out: ptr<storage, u32, read_write> = access @b, %i
{1}}}
)",
                     element, body);
}

struct Race {
  const char* name;
  bool atomic;
  const char* body;
};
/// Those whose workgroups have to come in order.
constexpr Race kOrdered[] = {
    {"used_result", true, "  %r: u32 = atomic_add %first, 1u\n  store %out, %r\n"},
    {"result_as_index", true, "  %r: u32 = atomic_add %first, 1u\n  %p: ptr<storage, u32, read_write> = access @b, %r\n  store %p, %i\n"},
    {"exchange", true, "  %r: u32 = atomic_exchange %first, %i\n"},
    {"store", true, "  atomic_store %first, %i\n"},
    {"load", true, "  %r: u32 = atomic_load %first\n  store %out, %r\n"},
    {"compare_exchange", true, "  %r: atomic_compare_exchange_result_u32 = atomic_compare_exchange %first, 0u, %i\n"},
    {"two_atomics", true, "  %r: u32 = atomic_add %first, 1u\n  %s: u32 = atomic_max %first, %i\n"},
    {"one_place", false, "  store %first, %i\n"},
    {"sum_in_one_place", false, "  %x: u32 = load %first\n  %y: u32 = add %x, %i\n  store %first, %y\n"},
    {"place_of_the_lane", false, "  %p: ptr<storage, u32, read_write> = access @a, %l\n  store %p, %i\n"},
    {"place_from_a_variable", false,
     "  %v: ptr<function, u32> = var %l\n  %k: u32 = load %v\n  %p: ptr<storage, u32, read_write> = access @a, %k\n"
     "  store %p, %i\n"},
};
constexpr Race kFree[] = {
    {"sum", true, "  %r: u32 = atomic_add %first, %i\n"},
    {"maximum", true, "  %r: u32 = atomic_max %first, %i\n"},
    {"own_element", false, "  store %own, %i\n"},
    {"own_element_in_place", false, "  %x: u32 = load %own\n  %y: u32 = add %x, 1u\n  store %own, %y\n"},
    {"copy", false, "  %x: u32 = load %own\n  store %out, %x\n"},
    {"place_from_a_variable", false,
     "  %v: ptr<function, u32> = var %i\n  %k: u32 = load %v\n  %p: ptr<storage, u32, read_write> = access @a, %k\n"
     "  store %p, %i\n"},
};

TEST(Races, order_is_kept_where_it_can_be_seen_to_matter) {
  const auto inOrder = [](const Race& race) {
    const kernel::Module module = kernel::parse("lockstep.kernel 1" + racing(race.body, race.atomic)).orThrow();
    return reference::decode(*kernel::validate(module).orThrow()).orThrow().in_order;
  };
  for (const Race& race : kOrdered) EXPECT_TRUE(inOrder(race)) << race.name;
  for (const Race& race : kFree) EXPECT_FALSE(inOrder(race)) << race.name;
}

TEST(Races, give_the_same_result_on_any_number_of_threads) {
  constexpr uint32_t kGroups = 2000;
  const std::vector<Words> zeros{Words(kGroups * 32), Words(kGroups * 32)};
  const auto results = [&](const Race& race, uint32_t threads) {
    const std::unique_ptr<Backend> backend = makeReference({.max_threads = threads});
    return runText(*backend, racing(race.body, race.atomic), zeros, {kGroups, 1, 1}).orThrow();
  };
  for (const auto& races : {std::span<const Race>(kOrdered), std::span<const Race>(kFree)}) {
    for (const Race& race : races) {
      const std::vector<Words> first = results(race, 1);
      for (int again = 0; again < 5; ++again) EXPECT_EQ(results(race, 4), first) << race.name;
    }
  }
}

program::Program readsWorkspace(bool filled) {
  using namespace program;
  Program program;
  program.arenas = {{"workspace", ArenaRole::Workspace, 256}, {"output", ArenaRole::Output, 256}};
  graph::TensorType type{graph::DType::F32, graph::Shape{64}};
  program.buffers = {{.name = "w", .type = type, .role = ArenaRole::Workspace, .arena = ArenaId(0), .offset = 0, .size = 256, .initial = 0},
                     {.name = "o", .type = type, .role = ArenaRole::Output, .arena = ArenaId(1), .offset = 0, .size = 256, .initial = 0}};
  std::string text = R"(lockstep.kernel 1
var @a: array<f32> {binding = 0, group = 0, space = storage}
var @b: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %p: ptr<storage, f32, read> = access @a, %i
  %x: f32 = load %p
  %q: ptr<storage, f32, read_write> = access @b, %i
  store %q, %x
}
)";
  program.kernels.push_back({"copy", std::move(kernel::parse(text)).orThrow()});
  program.outputs.push_back({.name = "o", .kind = graph::OutputKind::Result, .buffer = BufferId(1)});
  Range whole{.buffer = BufferId(0), .offset = 0, .size = filled ? 256u : 128u, .access = kernel::Access::ReadWrite};
  program.commands.push_back({.action = Fill{whole, bitsOf(3.0f)}, .level = 0, .label = "fill"});
  Range source{.buffer = BufferId(0), .offset = 0, .size = 256, .access = kernel::Access::Read};
  Range target{.buffer = BufferId(1), .offset = 0, .size = 256, .access = kernel::Access::ReadWrite};
  program.commands.push_back(
      {.action = Dispatch{.kernel = KernelId(0), .groups = {1, 1, 1}, .bindings = {source, target}}, .level = 1, .label = "copy"});
  return program;
}

TEST(Checks, uninitialised_workspace) {
  for (bool filled : {true, false}) {
    for (bool tracked : {true, false}) {
      std::unique_ptr<Backend> backend = makeReference({.track_uninitialised = tracked});
      Result<program::ValidProgram> program = program::validate(readsWorkspace(filled));
      ASSERT_TRUE(program.ok()) << toString(program.diagnostics());
      std::unique_ptr<Executable> executable = std::move(backend->compile(*program)).orThrow();
      std::span<const std::byte> none;
      Result<Ticket> ticket = executable->submit({}, {&none, 1});
      ASSERT_EQ(ticket.ok(), filled || !tracked);
      if (!ticket.ok()) {
        EXPECT_EQ(ticket.diagnostics()[0].code, "reference.uninitialised");
        EXPECT_NE(ticket.diagnostics()[0].message.find("word 32 of a"), std::string::npos) << toString(ticket.diagnostics());
      } else if (filled) {
        std::vector<std::vector<std::byte>> output = std::move(executable->wait(*ticket)).orThrow();
        EXPECT_FALSE(executable->wait(*ticket).ok());
        float last = 0;
        std::memcpy(&last, output[0].data() + 252, 4);
        EXPECT_EQ(last, 3.0f);
        EXPECT_EQ(executable->statistics().steps, 1u);
        Result<std::vector<CommandTime>> times = executable->time({}, none);
        ASSERT_TRUE(times.ok());
        EXPECT_EQ(times->size(), 2u);
        EXPECT_FALSE(executable->submit({}, {}).ok() && executable->time({}, std::vector<std::byte>(8)).ok());
      }
    }
  }
}

/// A kernel with divergence, workgroup memory and a barrier, run with every batch size: the same words each time.
TEST(Checks, results_do_not_depend_on_batches_or_threads) {
  std::string text = R"(lockstep.kernel 1
var @shared: array<f32, 16> {space = workgroup}
var @data: array<f32> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}, %i: u32 {builtin = local_invocation_index}, %w: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [16, 1, 1]} {
  %g: u32 = extract %gid, 0u
  %wx: u32 = extract %w, 0u
  %x: f32 = convert %g
  %y: f32 = sin %x
  %s: ptr<workgroup, f32> = access @shared, %i
  store %s, %y
  workgroup_barrier
  %n: u32 = rem %wx, 5u
  %sum: ptr<function, f32> = var
  %k: ptr<function, u32> = var
  loop {
    %kv: u32 = load %k
    %end: bool = ge %kv, %n
    if %end {
      break
    }
    %at: u32 = add %kv, %i
    %m: u32 = rem %at, 16u
    %q: ptr<workgroup, f32> = access @shared, %m
    %z: f32 = load %q
    %t: f32 = load %sum
    %u: f32 = mul %z, %x
    %v: f32 = add %t, %u
    store %sum, %v
  } continuing {
    %k1: u32 = load %k
    %k2: u32 = add %k1, 1u
    store %k, %k2
  }
  %r: f32 = load %sum
  %p: ptr<storage, f32, read_write> = access @data, %g
  store %p, %r
}
)";
  kernel::Module module = std::move(kernel::parse(text)).orThrow();
  Words first;
  for (uint32_t batch : {1u, 2u, 3u, 7u, 16u}) {
    for (uint32_t threads : {1u, 4u}) {
      reference::Bytecode code = std::move(reference::decode(module, batch)).orThrow();
      reference::ThreadPool pool(threads);
      Words data(16 * 37);
      reference::BufferView view{data.data(), static_cast<uint32_t>(data.size()), nullptr};
      reference::Fault fault = reference::dispatch(pool, code, {&view, 1}, {37, 1, 1}, {}).fault;
      EXPECT_EQ(fault.kind, reference::Fault::Kind::None);
      if (first.empty()) first = data;
      EXPECT_EQ(data, first) << batch << " groups a batch, " << threads << " threads\n" << reference::print(code);
    }
  }
  EXPECT_NE(first, Words(first.size()));
}

/// Both variants of the vector routines give the same bits for every operation.
TEST(Checks, vector_routines_agree_bit_for_bit) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no AVX2 here";
  using namespace reference;
  constexpr uint32_t kLanes = 4096;
  alignas(64) static uint32_t a[4 * kLanes], b[4 * kLanes];
  uint32_t seed = 1;
  auto random = [&] { return seed = seed * 1664525u + 1013904223u; };
  for (uint32_t op = 0; op < kPureOps; ++op) {
    for (uint32_t k = 0; k < 4 * kLanes; ++k) {
      uint32_t word = random();
      // A half are floats of moderate size, the rest any bits.
      if (k % 2 == 0) word = (word & 0x807fffffu) | ((112 + (word >> 8) % 32) << 23);
      a[k] = b[k] = word;
    }
    Instruction x{.op = static_cast<Opcode>(op), .dst = 3 * kLanes, .a = 0, .b = kLanes, .c = 2 * kLanes};
    kBaselineRoutines.pure[op][7](a, kLanes, x);
    kAvx2Routines.pure[op][7](b, kLanes, x);
    for (uint32_t k = 3 * kLanes; k < 4 * kLanes; ++k) {
      bool both_nan = std::isnan(floatOf(a[k])) && std::isnan(floatOf(b[k]));
      ASSERT_TRUE(a[k] == b[k] || both_nan) << "op " << op << " of " << a[k - 3 * kLanes] << " " << a[k - 2 * kLanes] << ": " << a[k] << " "
                                            << b[k];
    }
    // One lane alone gives what it gives among others.
    Instruction one{.op = static_cast<Opcode>(op), .dst = 0, .a = 5, .b = kLanes + 5, .c = 2 * kLanes + 5};
    kBaselineRoutines.pure[op][0](a, 1, one);
    EXPECT_TRUE(a[0] == b[3 * kLanes + 5] || std::isnan(floatOf(a[0]))) << "op " << op;
  }
#endif
}

/// Division by one divisor for all lanes goes another way than division lane by lane.
TEST(Checks, division_by_a_uniform_divisor_is_exact) {
  using namespace reference;
  alignas(64) static uint32_t r[3 * 64];
  const uint32_t bounds[] = {0, 1, 2, 3, 5, 7, 10, 641, 65535, 65536, 65537, 6700417, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  for (const VectorRoutines* routines : {&kBaselineRoutines, &vectorRoutines()}) {
    for (uint32_t divisor : bounds) {
      // Around multiples of the divisor and at both ends.
      for (uint32_t k = 0; k < 64; ++k) {
        uint32_t multiple = divisor * (k < 32 ? k : ~0u / (divisor == 0 ? 1 : divisor) - (k - 32));
        r[64 + k] = multiple + k % 3 - 1;
      }
      r[128] = divisor;
      for (Opcode op : {Opcode::DivU, Opcode::RemU}) {
        Instruction x{.op = op, .dst = 0, .a = 64, .b = 128};
        routines->pure[static_cast<size_t>(op)][1](r, 64, x);
        for (uint32_t k = 0; k < 64; ++k) {
          uint32_t a = r[64 + k];
          uint32_t wanted = divisor == 0 ? (op == Opcode::DivU ? a : 0) : op == Opcode::DivU ? a / divisor : a % divisor;
          ASSERT_EQ(r[k], wanted) << a << " by " << divisor;
        }
      }
    }
  }
}

TEST(Checks, memory_refuses_ranges_outside) {
  std::unique_ptr<Backend> backend = makeReference();
  std::shared_ptr<Memory> memory = std::move(backend->allocate(100)).orThrow();
  EXPECT_EQ(memory->size(), 100u);
  std::vector<std::byte> bytes(10, std::byte(3)), back(10);
  EXPECT_TRUE(memory->write(90, bytes).ok());
  EXPECT_TRUE(memory->read(90, back).ok());
  EXPECT_EQ(bytes, back);
  EXPECT_FALSE(memory->write(91, bytes).ok());
  EXPECT_FALSE(memory->read(UINT64_MAX, back).ok());
}

}  // namespace
}  // namespace lockstep::conformance
