// SPDX-License-Identifier: Apache-2.0
// Allocations of the command fail, one of each call stack, in copies of one process that is otherwise left alone. That is many times as
// fast as a process for each of them, but only while it has one thread and for what writes no files before its end; the other test is for
// those.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>

#include "frontend/io/file.h"
#include "tests/faults/faulty_process.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {
namespace {

constexpr std::string_view kKernel =
    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
    "@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
    "  if (id.x < arrayLength(&x)) { x[id.x] = x[id.x] * 2.0 + 1.0; }\n}\n";

struct Case {
  const char* name;
  std::vector<std::string> arguments;
  uint64_t every = 1;  ///< how many call stacks CI passes over
};

std::vector<Case> cases() {
  const std::string golden = LOCKSTEP_SOURCE_DIR "/tests/tools/verify/data/train_mlp_sin_sgd.safetensors";
  return {{.name = "check", .arguments = {"check", "k.wgsl"}},
          {.name = "reflect", .arguments = {"reflect", "k.wgsl"}},
          {.name = "compile", .arguments = {"compile", "k.wgsl", "-o", "k.spv"}},
          {.name = "run", .arguments = {"run", "k.wgsl", "--device", "reference", "--bind", "0.0=iota:f32[4]", "--out", "0.0=out.npy"}},
          {.name = "verify", .arguments = {"verify", "golden", golden, "--device", "reference"}, .every = 40},
          {.name = "evaluate", .arguments = {"verify", "golden", golden, "--device", "evaluate"}, .every = 40},
          {.name = "train", .arguments = {"train", "sine", "--steps", "2", "--device", "reference", "--no-out"}, .every = 40}};
}

/// "exit code 6", "signal 11".
std::string howOf(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? "hangs" : fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

class Copies : public ::testing::TestWithParam<Case> {};

TEST_P(Copies, each_in_which_an_allocation_fails_ends_cleanly) {
  const ScratchDirectory scratch(fmt::format("fault-copies-{}", GetParam().name));
  ASSERT_TRUE(io::writeFileAtomically(scratch / "k.wgsl", kKernel).ok());
  const bool all = std::getenv("LOCKSTEP_NIGHTLY") != nullptr;
  const Ended whole = runFaulty({.arguments = GetParam().arguments,
                                 .folder = scratch / "",
                                 .environment = {{"LD_PRELOAD", LOCKSTEP_FAIL_ALLOCATION},
                                                 {"LOCKSTEP_FAULT_ALLOCATION", fmt::format("forks:{}", all ? 1 : GetParam().every)},
                                                 {"LOCKSTEP_FAULT_REPORT", (scratch / "report").string()},
                                                 {"LOCKSTEP_REFERENCE_THREADS", "1"}},
                                 .limit = std::chrono::hours(4)});
  ASSERT_EQ(whole.code, 0) << whole.how() << whole.err;

  std::istringstream report(*io::readTextFile(scratch / "report"));
  std::map<std::string, size_t> table;
  size_t stacks = 0, copies = 0, with_threads = 0;
  for (std::string line; std::getline(report, line);) {
    std::istringstream words(line);
    std::string word, number;
    words >> word >> number;
    stacks += word == "stack";
    with_threads += word == "threads";
    if (word != "copy") continue;
    ++copies;
    int status = 0, says_so = 0;
    ASSERT_TRUE(words >> std::hex >> status >> says_so) << line;
    const std::string how = howOf(status);
    ++table[how];
    EXPECT_TRUE(how == "exit code 0" || how == "exit code 6") << GetParam().name << ", LOCKSTEP_FAULT_ALLOCATION=" << number << ", " << how;
    if (how != "exit code 0") {
      EXPECT_EQ(says_so, 1) << GetParam().name << ", LOCKSTEP_FAULT_ALLOCATION=" << number << " says nothing";
    }
  }
  for (const auto& path : io::entriesOf(scratch / "")) {
    EXPECT_EQ(path.filename().string().find(".tmp-"), std::string::npos) << path;
  }
  EXPECT_GT(copies, 20u);
  EXPECT_LT(with_threads, copies);
  std::string line =
      fmt::format("{:<10} {:>6} call stacks, {:>6} copies, {} with other threads:", GetParam().name, stacks, copies, with_threads);
  for (const auto& [how, count] : table) line += fmt::format("  {} x {}", count, how);
  fmt::print("{}\n", line);
}

INSTANTIATE_TEST_SUITE_P(Of, Copies, ::testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::testing
