// SPDX-License-Identifier: Apache-2.0
// Programs over many steps: rings, submissions, state, transfers, limits.
#include <fmt/format.h>

#include <numeric>

#include "tests/backends/vulkan/harness.h"

namespace lockstep::vulkan::testing {
namespace {

using program::ArenaRole;

/// state += input; out = 2 * state + constant.
struct Counter {
  ProgramBuilder builder;
  program::BufferId state, input, output, constant, scratch;
  uint64_t words;

  explicit Counter(uint64_t count) : words(count) {
    state = builder.buffer(ArenaRole::State, words, "state");
    input = builder.buffer(ArenaRole::Input, words, "input");
    output = builder.buffer(ArenaRole::Output, words, "output");
    constant = builder.buffer(ArenaRole::Constant, 1, "constant");
    scratch = builder.buffer(ArenaRole::Workspace, words, "scratch");
    builder.constant(constant, {1000});
    auto add = builder.kernel(binary("read_write", "add"));
    auto twice = builder.kernel(R"(lockstep.kernel 1
var @x: array<u32> {access = read, binding = 0, group = 0, space = storage}
var @c: array<u32> {access = read, binding = 1, group = 0, space = storage}
var @y: array<u32> {access = read_write, binding = 2, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %px: ptr<storage, u32> = access @x, %i
  %x0: u32 = load %px
  %pc: ptr<storage, u32> = access @c, 0u
  %c0: u32 = load %pc
  %t: u32 = mul %x0, 2u
  %r: u32 = add %t, %c0
  %py: ptr<storage, u32, read_write> = access @y, %i
  store %py, %r
}
)");
    auto groups = static_cast<uint32_t>(words / 64);
    builder.dispatch(0, add, {input, state}, {groups, 1, 1});
    builder.dispatch(1, twice, {state, constant, scratch}, {groups, 1, 1});
    builder.copy(2, scratch, output);
  }

  static std::string binary(const std::string& access, const std::string& op) {
    return fmt::format(R"(lockstep.kernel 1
var @x: array<u32> {{access = read, binding = 0, group = 0, space = storage}}
var @y: array<u32> {{access = {0}, binding = 1, group = 0, space = storage}}
fn @main(%gid: vec3<u32> {{builtin = global_invocation_id}}) {{workgroup_size = [64, 1, 1]}} {{
  %i: u32 = extract %gid, 0u
  %px: ptr<storage, u32> = access @x, %i
  %x0: u32 = load %px
  %py: ptr<storage, u32, {0}> = access @y, %i
  %y0: u32 = load %py
  %r: u32 = {1} %x0, %y0
  store %py, %r
}}
)",
                       access, op);
  }

  ArenaSet allocate() const { return {{"state", device()->allocate(builder.arenaBytes(ArenaRole::State)).orThrow()}}; }
  std::unique_ptr<Executable> compile() const { return device()->compile(builder.take()).orThrow(); }
};

std::vector<std::span<const std::byte>> spans(const std::vector<Words>& inputs) {
  std::vector<std::span<const std::byte>> made;
  for (const Words& input : inputs) made.push_back(bytes(input));
  return made;
}

class Runtime : public VulkanTest {};

TEST_F(Runtime, many_steps_in_flight) {
  Counter counter(64);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  std::vector<Ticket> tickets;
  for (uint32_t step = 1; step <= 300; ++step) {
    Words input(64, step);
    input[63] = 1;
    tickets.push_back(executable->submit(state, spans({input})).orThrow());
  }
  uint32_t sum = 0;
  for (uint32_t step = 1; step <= 300; ++step) {
    sum += step;
    auto outputs = executable->wait(tickets[step - 1]).orThrow();
    ASSERT_EQ(outputs.size(), 1u);
    Words words = toWords(outputs[0]);
    ASSERT_EQ(words[0], 2 * sum + 1000) << step;
    ASSERT_EQ(words[63], 2 * step + 1000) << step;
  }
  EXPECT_EQ(executable->statistics().submissions, 300u);
  EXPECT_EQ(executable->statistics().steps, 300u);
}

TEST_F(Runtime, several_steps_in_one_submission) {
  Counter counter(64);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  uint32_t sum = 0, submissions = 0;
  for (uint32_t count : {1u, 4u, 3u, 16u, 5u, 1u, 16u, 16u, 7u}) {
    std::vector<Words> inputs;
    for (uint32_t i = 0; i < count; ++i) inputs.emplace_back(64, i + 1);
    auto outputs = executable->wait(executable->submit(state, spans(inputs)).orThrow()).orThrow();
    ASSERT_EQ(outputs.size(), count);
    for (uint32_t i = 0; i < count; ++i) {
      sum += i + 1;
      ASSERT_EQ(toWords(outputs[i])[5], 2 * sum + 1000) << count << " " << i;
    }
    EXPECT_EQ(executable->statistics().submissions, ++submissions);
  }
}

TEST_F(Runtime, more_steps_than_slots) {
  Counter counter(64);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  std::vector<Words> inputs(150, Words(64, 1));
  auto outputs = executable->wait(executable->submit(state, spans(inputs)).orThrow()).orThrow();
  ASSERT_EQ(outputs.size(), 150u);
  for (uint32_t i = 0; i < 150; ++i) ASSERT_EQ(toWords(outputs[i])[0], 2 * (i + 1) + 1000);
}

TEST_F(Runtime, nothing_is_allocated_after_the_first_step) {
  Counter counter(64);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  std::vector<Words> one(1, Words(64, 1)), four(4, Words(64, 1));
  must(executable->wait(executable->submit(state, spans(one)).orThrow()));
  must(executable->wait(executable->submit(state, spans(four)).orThrow()));
  uint64_t allocations = executable->statistics().device_allocations;
  EXPECT_GT(allocations, 0u);
  EXPECT_GT(executable->statistics().device_bytes, 0u);
  for (int i = 0; i < 100; ++i) {
    must(executable->submit(state, spans(one)));
    must(executable->wait(executable->submit(state, spans(four)).orThrow()));
  }
  EXPECT_EQ(executable->statistics().device_allocations, allocations);
}

TEST_F(Runtime, arenas_larger_than_the_direct_limit) {
  // 256 KiB each way: a device whose memory the host does not see stages them.
  Counter counter(1u << 16);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  std::vector<Words> inputs(3, Words(1u << 16));
  for (uint32_t step = 0; step < 3; ++step) std::iota(inputs[step].begin(), inputs[step].end(), step);
  auto outputs = executable->wait(executable->submit(state, spans(inputs)).orThrow()).orThrow();
  for (uint32_t step = 0; step < 3; ++step) {
    Words out = toWords(outputs[step]);
    for (uint32_t i : {0u, 1u, 40000u, 65535u}) {
      uint32_t sum = 0;
      for (uint32_t s = 0; s <= step; ++s) sum += i + s;
      ASSERT_EQ(out[i], 2 * sum + 1000) << step << " " << i;
    }
  }
}

TEST_F(Runtime, state_is_shared_and_each_state_is_its_own) {
  Counter counter(64);
  auto first = counter.compile(), second = counter.compile();
  ArenaSet a = counter.allocate(), b = counter.allocate();
  std::vector<Words> one(1, Words(64, 1));
  Ticket t1 = first->submit(a, spans(one)).orThrow();
  Ticket t2 = second->submit(a, spans(one)).orThrow();
  Ticket t3 = first->submit(b, spans(one)).orThrow();
  EXPECT_EQ(toWords(first->wait(t1).orThrow()[0])[0], 1002u);
  EXPECT_EQ(toWords(second->wait(t2).orThrow()[0])[0], 1004u);
  EXPECT_EQ(toWords(first->wait(t3).orThrow()[0])[0], 1002u);
  for (int i = 0; i < 12; ++i) {
    ArenaSet fresh = counter.allocate();
    EXPECT_EQ(toWords(first->wait(first->submit(fresh, spans(one)).orThrow()).orThrow()[0])[0], 1002u);
  }
}

TEST_F(Runtime, state_that_nobody_holds_is_let_go) {
  Counter counter(64);
  auto executable = counter.compile();
  std::vector<Words> one(1, Words(64, 1));
  ArenaSet kept = counter.allocate();
  must(executable->wait(executable->submit(kept, spans(one)).orThrow()));
  std::weak_ptr<Memory> watched;
  {
    ArenaSet dropped = counter.allocate();
    watched = dropped["state"];
    must(executable->submit(dropped, spans(one)));
  }
  EXPECT_FALSE(watched.expired());
  ArenaSet fresh = counter.allocate();
  EXPECT_EQ(toWords(executable->wait(executable->submit(fresh, spans(one)).orThrow()).orThrow()[0])[0], 1002u);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(toWords(executable->wait(executable->submit(kept, spans(one)).orThrow()).orThrow()[0])[0], 1004u);
}

TEST_F(Runtime, memory_reads_come_after_submitted_work) {
  Counter counter(64);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  std::vector<Words> four(4, Words(64, 3));
  must(executable->submit(state, spans(four)));
  Words now(64);
  must(state["state"]->read(0, std::as_writable_bytes(std::span(now))));
  EXPECT_EQ(now, Words(64, 12));
  must(state["state"]->write(0, bytes(Words(64, 100))));
  EXPECT_EQ(toWords(executable->wait(executable->submit(state, spans(four)).orThrow()).orThrow()[0])[0], 2 * 103 + 1000u);
}

TEST_F(Runtime, fills_and_copies_are_ordered_by_level) {
  ProgramBuilder builder;
  auto a = builder.buffer(ArenaRole::State, 100), b = builder.buffer(ArenaRole::State, 100), c = builder.buffer(ArenaRole::State, 100);
  auto add = builder.kernel(Counter::binary("read_write", "add"));
  builder.fill(0, a, 5);
  builder.copy(1, a, b);
  builder.fill(2, a, 7);
  builder.dispatch(3, add, {a, b}, {1, 1, 1});
  builder.copy(4, b, c);
  auto executable = device()->compile(builder.take()).orThrow();
  ArenaSet state{{"state", device()->allocate(builder.arenaBytes(ArenaRole::State)).orThrow()}};
  must(executable->wait(executable->submit(state, spans({{}})).orThrow()));
  Words now(100);
  must(state["state"]->read(builder.offset(c), std::as_writable_bytes(std::span(now))));
  for (size_t i = 0; i < 64; ++i) ASSERT_EQ(now[i], 12u) << i;
  for (size_t i = 64; i < 99; ++i) ASSERT_EQ(now[i], 5u) << i;
}

TEST_F(Runtime, kernels_are_listed_as_spirv) {
  Counter counter(64);
  program::ValidProgram program = counter.builder.take();
  for (const kernel::ValidModule& module : program.modules()) {
    auto listing = device()->list(module).orThrow();
    ASSERT_TRUE(listing.has_value());
    EXPECT_EQ(listing->ending, "spvasm");
    EXPECT_NE(listing->text.find("OpEntryPoint GLCompute"), std::string::npos) << listing->text;
  }
}

TEST_F(Runtime, time_measures_every_command_and_makes_a_step) {
  Counter counter(1024);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  Words input(1024, 1);
  auto times = executable->time(state, bytes(input)).orThrow();
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(times[i].command, i);
    EXPECT_GE(times[i].seconds, 0.0);
    EXPECT_LT(times[i].seconds, 10.0);
  }
  uint64_t allocations = executable->statistics().device_allocations;
  must(executable->time(state, bytes(input)));
  EXPECT_EQ(executable->statistics().device_allocations, allocations);
  auto outputs = executable->wait(executable->submit(state, spans({input})).orThrow()).orThrow();
  EXPECT_EQ(toWords(outputs[0])[0], 2 * 3 + 1000u);
}

std::string codeOf(const Failure& failure) { return failure.diagnostics.at(0).code; }

TEST_F(Runtime, mistakes_of_the_caller_are_named) {
  Counter counter(64);
  auto executable = counter.compile();
  ArenaSet state = counter.allocate();
  std::vector<Words> one(1, Words(64, 1)), small(1, Words(3));
  EXPECT_EQ(codeOf(executable->submit({}, spans(one)).failure()), "vulkan.state");
  EXPECT_EQ(codeOf(executable->submit(state, spans(small)).failure()), "vulkan.input_size");
  EXPECT_EQ(codeOf(executable->submit(state, {}).failure()), "vulkan.no_steps");
  ArenaSet short_state{{"state", device()->allocate(16).orThrow()}};
  EXPECT_EQ(codeOf(executable->submit(short_state, spans(one)).failure()), "vulkan.state");
  Ticket ticket = executable->submit(state, spans(one)).orThrow();
  must(executable->wait(ticket));
  EXPECT_EQ(codeOf(executable->wait(ticket).failure()), "vulkan.ticket");
  EXPECT_EQ(codeOf(state["state"]->write(200, bytes(Words(64))).failure()), "vulkan.memory_range");
  Words words(64);
  EXPECT_EQ(codeOf(state["state"]->read(UINT64_MAX - 3, std::as_writable_bytes(std::span(words))).failure()), "vulkan.memory_range");
}

TEST_F(Runtime, too_much_memory_is_refused_before_it_is_allocated) {
  auto memory = device()->allocate(uint64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.failure().exit_code, ExitCode::OutOfMemory);
  ProgramBuilder builder;
  builder.buffer(ArenaRole::Workspace, uint64_t{1} << 40);
  auto executable = device()->compile(builder.take());
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.failure().exit_code, ExitCode::OutOfMemory);
  EXPECT_EQ(codeOf(executable.failure()), "vulkan.out_of_memory");
}

/// Compiles a program with one dispatch of a kernel that declares `globals` and has this workgroup size.
Result<std::unique_ptr<Executable>> compileKernel(const std::string& globals, const std::string& size, std::array<uint32_t, 3> groups,
                                                  const std::string& body = "") {
  ProgramBuilder builder;
  auto kernel = builder.kernel("lockstep.kernel 1\n" + globals + "fn @main() {workgroup_size = " + size + "} {\n" + body + "}\n");
  builder.dispatch(0, kernel, {}, groups);
  return device()->compile(builder.take());
}

TEST_F(Runtime, limits_are_checked_before_the_driver_sees_them) {
  const program::DeviceProfile& profile = device()->device().profile;
  auto wide = compileKernel("", "[65536, 1, 1]", {1, 1, 1});
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(codeOf(wide.failure()), "vulkan.limit");
  auto shared = compileKernel(fmt::format("var @s: array<u32, {}> {{space = workgroup}}\n", profile.max_workgroup_bytes / 4 + 1),
                              "[1, 1, 1]", {1, 1, 1}, "  %p: ptr<workgroup, u32> = access @s, 0u\n  store %p, 1u\n");
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(codeOf(shared.failure()), "vulkan.limit");
  const std::string& message = shared.diagnostics()[0].message;
  EXPECT_NE(message.find("\"k0\""), std::string::npos) << message;
  EXPECT_NE(message.find("workgroup memory"), std::string::npos) << message;
  EXPECT_NE(message.find(fmt::to_string(profile.max_workgroup_bytes)), std::string::npos) << message;
  auto grid = compileKernel("", "[1, 1, 1]", {1, 1, UINT32_MAX});
  ASSERT_FALSE(grid.ok());
  EXPECT_EQ(codeOf(grid.failure()), "vulkan.limit");
  EXPECT_TRUE(compileKernel("", "[1, 1, 1]", {1, 1, 1}).ok());
  // Each dimension is within its limit.
  const uint32_t most = profile.max_groups_per_dimension;
  const bool cpu = device()->device().kind == DeviceKind::CpuDriver;
  EXPECT_EQ(compileKernel("", "[1, 1, 1]", {most, most, most}).ok(), !cpu);
}

TEST_F(Runtime, profile_tells_the_device) {
  const DeviceInfo& info = device()->device();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_GE(info.profile.max_storage_buffers, 4u);
  EXPECT_GE(info.profile.max_binding_bytes, 128u << 20);
  EXPECT_GE(info.profile.min_offset_alignment, 256u);
  EXPECT_GE(info.profile.max_workgroup_bytes, 16384u);
  EXPECT_GE(info.profile.parallel_units, 1u);
  bool cpu = info.kind == DeviceKind::CpuDriver;
  EXPECT_EQ(info.profile.style == program::ExecutionStyle::Cpu, cpu);
  EXPECT_EQ(program::parseProfile(program::print(info.profile)).orThrow(), info.profile);
}

}  // namespace
}  // namespace lockstep::vulkan::testing
