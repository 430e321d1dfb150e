// SPDX-License-Identifier: Apache-2.0
// The memory that bounds of errors take: what does not fit is refused, and nothing grows with the number of dispatches.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/dispatch.h"
#include "backends/reference/reference.h"
#include "backends/reference/sanitize/error_memory.h"
#include "frontend/io/file.h"
#include "frontend/wgsl/wgsl.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep {
namespace {

using reference::availableMemory;

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// With x at 0.0 and y at 0.1, of so many bytes.
program::ValidProgram programOf(const std::string& body, uint64_t x, uint64_t y) {
  const std::string text = R"(@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
)" + body + "}\n";
  return makeProgram({.module = wgsl::read(text, {.file_name = "k.wgsl", .overrides = {}}).orThrow(),
                      .entry = {},
                      .groups = {1, 1, 1},
                      .bindings = {{.group = 0, .binding = 0, .buffer = 0, .offset = 0, .size = x},
                                   {.group = 0, .binding = 1, .buffer = 1, .offset = 0, .size = y}},
                      .buffer_sizes = {x, y}})
      .orThrow();
}

TEST(ErrorMemory, program_that_does_not_fit_is_refused_with_its_buffers_and_the_remedy) {
  const program::ValidProgram program = programOf("  y[id.x] = x[id.x] * 0.1;\n", kMiB, 4 * kMiB);
  const uint64_t needed = 5 * kMiB / 4 * reference::bytesPerWord({});
  const auto compiled = makeReference({.sanitize = SanitizeChecks{}, .error_memory = needed - 1})->compile(program);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.failure().exit_code, ExitCode::OutOfMemory);
  const Diagnostic& error = compiled.diagnostics().front();
  EXPECT_EQ(error.code, "backend.out_of_memory");
  EXPECT_NE(error.message.find(std::to_string(needed) + " bytes in all, and " + std::to_string(needed - 1) + " are available"),
            std::string::npos)
      << error.message;
  EXPECT_TRUE(error.message.ends_with("the largest buffers are y (4194304 bytes), x (1048576 bytes)")) << error.message;
  EXPECT_TRUE(error.remedy.starts_with("use fewer elements, or leave the check out: --sanitize=")) << error.remedy;
  // What is offered is all but that check.
  EXPECT_EQ(parseSanitizeChecks(error.remedy.substr(error.remedy.rfind('=') + 1), true).orThrow(), SanitizeChecks{.errors = false});

  EXPECT_EQ(reference::bytesPerWord({.races = false}), 15 * sizeof(uint32_t)) << "docs/sanitizer.md says so";
  EXPECT_TRUE(makeReference({.sanitize = SanitizeChecks{}, .error_memory = needed})->compile(program).ok());
  EXPECT_TRUE(makeReference({.sanitize = SanitizeChecks{.errors = false}, .error_memory = 1})->compile(program).ok());
  EXPECT_TRUE(makeReference({.error_memory = 1})->compile(program).ok());
}

TEST(ErrorMemory, is_what_the_system_and_the_control_group_leave) {
  const testing::ScratchDirectory root("error_memory");
  EXPECT_EQ(availableMemory(root / "."), 0u);
  const auto put = [&](const std::string& file, std::string_view text) {
    std::filesystem::create_directories((root / file).parent_path());
    ASSERT_TRUE(io::writeFileAtomically(root / file, text).ok());
  };
  put("proc/meminfo", "MemTotal:       2000 kB\nMemFree:  3 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(availableMemory(root / "."), 1000u << 10);
  // Version 2: a group without a limit within one that has one.
  put("proc/self/cgroup", "0::/jobs/mine\n");
  put("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  EXPECT_EQ(availableMemory(root / "."), 1000u << 10);
  put("sys/fs/cgroup/jobs/memory.max", "4096\n");
  EXPECT_EQ(availableMemory(root / "."), 4096u);
  // Version 1.
  put("proc/self/cgroup", "5:cpuset:/a\n4:cpu,memory:/b\n");
  put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1\n");
  put("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "8192\n");
  EXPECT_EQ(availableMemory(root / "."), 8192u);
  EXPECT_GT(availableMemory(), kMiB) << "this machine says";
}

/// A word remembers the kernel that wrote it, whichever executable that was of and however many dispatches ago.
TEST(ErrorMemory, origins_are_of_the_executable_that_wrote) {
  const auto backend = makeReference({.sanitize = SanitizeChecks{}});
  const program::ValidProgram first = programOf("  y[id.x] = x[id.x] * 0.1;\n", 32, 32),
                              second = programOf("  let k = 7u;\n\n  y[k] = x[k] / 3.0;\n", 32, 32);
  const auto one = backend->compile(first).orThrow(), other = backend->compile(second).orThrow();
  ArenaSet state;
  for (const program::Arena& arena : first->arenas) state.emplace(arena.name, backend->allocate(arena.size).orThrow());
  const std::vector<float> x(8, 0.7F);
  ASSERT_TRUE(state.at("buffer0")->write(0, std::as_bytes(std::span(x))).ok());
  const std::span<const std::byte> no_input;
  const auto run = [&](Executable& executable) { (void)executable.wait(executable.submit(state, {&no_input, 1}).orThrow()).orThrow(); };
  const auto lineOf = [&](const Executable& executable, size_t word) {
    const RoundingBounds bounds = executable.bounds({.buffer = program::BufferId(size_t{1}), .offset = 0, .size = 32});
    EXPECT_GT(bounds.bounds[word], 0) << word;
    return bounds.places[bounds.origins[word]].line;
  };
  for (int step = 0; step < 100; ++step) run(*one);
  EXPECT_EQ(lineOf(*one, 7), 5u);
  run(*other);
  EXPECT_EQ(lineOf(*one, 6), 5u);
  EXPECT_EQ(lineOf(*other, 7), 7u);
  EXPECT_EQ(lineOf(*one, 7), 0u) << "it does not know the other's kernels";
  EXPECT_EQ(lineOf(*other, 6), 0u);
}

}  // namespace
}  // namespace lockstep
