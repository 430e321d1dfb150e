// SPDX-License-Identifier: Apache-2.0
// Drivers that end loops silently: kernels that nobody proved to stay below the limit say so when they reach it.
#include "ir/support/text.h"
#include "tests/backends/vulkan/harness.h"

namespace lockstep::vulkan::testing {
namespace {

using Loops = VulkanTest;

/// out[lane] = the rounds of a loop that `continuing` moves to a bound read from memory, around `inner`.
std::string counting(const std::string& inner, const std::string& globals = "") {
  return "lockstep.kernel 1\n" + globals + R"(var @n: array<u32, 8> {access = read, binding = 0, group = 0, space = storage}
var @out: array<u32, 8> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%lane: u32 {builtin = local_invocation_index}) {workgroup_size = [8, 1, 1]} {
  %0: ptr<storage, u32> = access @n, %lane
  %end: u32 = load %0
  %sum: ptr<function, u32, read_write> = var 0u
)" + inner +
         R"(  %total: u32 = load %sum
  %1: ptr<storage, u32, read_write> = access @out, %lane
  store %1, %total
}
)";
}

/// A loop of %end rounds.
std::string loop(const std::string& id) {
  return "  %i" + id + ": ptr<function, u32, read_write> = var 0u\n  loop {\n    %a" + id + ": u32 = load %i" + id + "\n    %b" + id +
         ": bool = lt %a" + id + ", %end\n    if %b" + id + " {\n    } else {\n      break\n    }\n    %c" + id +
         ": u32 = load %sum\n    %d" + id + ": u32 = add %c" + id + ", 1u\n    store %sum, %d" + id + "\n  } continuing {\n    %e" + id +
         ": u32 = load %i" + id + "\n    %f" + id + ": u32 = add %e" + id + ", 1u\n    store %i" + id + ", %f" + id + "\n  }\n";
}

Status run(const std::string& text, uint32_t rounds, Words& out) {
  ProgramBuilder builder;
  const program::BufferId n = builder.buffer(program::ArenaRole::State, 8), result = builder.buffer(program::ArenaRole::State, 8);
  const program::KernelId kernel = builder.kernel(text);
  builder.dispatch(0, kernel, {n, result}, {1, 1, 1});
  auto executable = device()->compile(builder.take()).orThrow();
  ArenaSet state{{"state", device()->allocate(builder.arenaBytes(program::ArenaRole::State)).orThrow()}};
  const Words counts(8, rounds);
  must(state["state"]->write(builder.offset(n), bytes(counts)));
  const std::array<std::span<const std::byte>, 1> inputs{};
  const Ticket ticket = executable->submit(state, inputs).orThrow();
  LS_CHECK(executable->wait(ticket));
  out.resize(8);
  return state["state"]->read(builder.offset(result), std::as_writable_bytes(std::span(out)));
}

bool hasLimit() { return device()->device().profile.max_loop_iterations != 0; }

TEST_F(Loops, below_the_limit_are_right) {
  Words out;
  must(run(counting(loop("1")), 65'000, out));
  EXPECT_EQ(out, Words(8, 65'000));
  must(run(counting(loop("1") + loop("2")), 32'000, out));
  EXPECT_EQ(out, Words(8, 64'000));
}

TEST_F(Loops, beyond_the_limit_are_right_or_an_error) {
  Words out;
  for (const std::string& text : {counting(loop("1")), counting(loop("1") + loop("2"))}) {
    const Status status = run(text, 70'000, out);
    EXPECT_EQ(status.ok(), !hasLimit());
    if (!status.ok()) {
      EXPECT_EQ(status.diagnostics().front().code, "device.loop_limit");
    }
  }
}

TEST_F(Loops, arms_of_a_condition_add_up) {
  if (!hasLimit()) GTEST_SKIP() << "this driver runs loops to their end";
  // No invocation makes more than 40 000 rounds, and the driver makes 80 000.
  Words out;
  const std::string arms =
      "  %half: u32 = rem %lane, 2u\n  %even: bool = eq %half, 0u\n  if %even {\n" + loop("1") + "  } else {\n" + loop("2") + "  }\n";
  const Status status = run(counting(arms), 40'000, out);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostics().front().code, "device.loop_limit");
  must(run(counting(arms), 30'000, out));
  EXPECT_EQ(out, Words(8, 30'000));
}

TEST_F(Loops, that_clear_memory_add_up) {
  // 7000 numbers are cleared by 8 invocations in 875 rounds, before anything that the text says.
  const std::string scratch = "var @scratch: array<u32, 7000> {space = workgroup}\n";
  const std::string use = "  %2: ptr<workgroup, u32> = access @scratch, %lane\n  %3: u32 = load %2\n  store %sum, %3\n";
  Words out;
  must(run(counting(use + loop("1"), scratch), 64'600, out));
  EXPECT_EQ(out, Words(8, 64'600));
  const Status status = run(counting(use + loop("1"), scratch), 65'400, out);
  EXPECT_EQ(status.ok(), !hasLimit());
  if (status.ok()) {
    EXPECT_EQ(out, Words(8, 65'400));
  } else {
    EXPECT_EQ(status.diagnostics().front().code, "device.loop_limit");
  }
}

}  // namespace
}  // namespace lockstep::vulkan::testing
