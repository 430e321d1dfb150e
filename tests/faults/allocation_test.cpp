// SPDX-License-Identifier: Apache-2.0
// Allocations of the command fail, one at a time: an exit code that is documented, a message, and nothing damaged. An allocation counts as
// tried once one of its call stack was; CI takes a sample of the stacks, spread over the run, and every night all of them. Of the stacks
// that a command has in common with another one, it takes a sample then, too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

#include "frontend/io/file.h"
#include "tests/faults/faulty_process.h"
#include "tests/faults/training_folder.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

/// How many call stacks are tried; 0: all.
size_t sampleSize() {
  if (const char* text = std::getenv("LOCKSTEP_FAULT_SAMPLE"); text != nullptr) return static_cast<size_t>(std::atoi(text));
  return std::getenv("LOCKSTEP_NIGHTLY") != nullptr ? 0 : 25;
}
/// Below it every single allocation is tried at night.
constexpr uint64_t kFew = 3000;
/// Of the call stacks that are tried elsewhere, too: in copies_test.cpp, or by another case.
constexpr size_t kShared = 300;
constexpr std::string_view kKernel =
    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
    "@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
    "  if (id.x < arrayLength(&x)) { x[id.x] = x[id.x] * 2.0 + 1.0; }\n}\n";

struct Case {
  const char* name;
  std::vector<std::string> arguments;
  bool trains = false, resumes = false;
  bool goes_on = false;  ///< after the fault, which comes after the second step, without one, from what was saved
  /// A command whose call stacks are tried elsewhere, so that a sample of them is enough; it runs without the files of this one.
  std::vector<std::string> beyond = {};
};

std::vector<Case> cases() {
  const std::string golden = LOCKSTEP_SOURCE_DIR "/tests/tools/verify/data/train_mlp_sin_sgd.safetensors";
  std::vector<Case> all = {{.name = "check", .arguments = {"check", "k.wgsl"}}};
  for (const char* device : {"reference", "vulkan"}) {
    const bool vulkan = std::string_view(device) == "vulkan";
#ifndef LOCKSTEP_VULKAN
    if (vulkan) continue;
#endif
    all.push_back({.name = vulkan ? "run_vulkan" : "run_reference",
                   .arguments = {"run", "k.wgsl", "--device", device, "--bind", "0.0=iota:f32[4]", "--out", "0.0=out.npy"}});
    all.push_back({.name = vulkan ? "train_vulkan" : "train_reference",
                   .arguments = {"train", "sine", "--steps", "2", "--device", device, "--out", "run"},
                   .trains = true,
                   .beyond = {"train", "sine", "--steps", "2", "--device", "reference", "--no-out"}});
    all.push_back({.name = vulkan ? "resume_vulkan" : "resume_reference",
                   .arguments = {"train", "sine", "--steps", "2", "--device", device, "--out", "run", "--resume"},
                   .trains = true,
                   .resumes = true,
                   .beyond = {"train", "sine", "--steps", "2", "--device", device, "--out", "other"}});
    all.push_back({.name = vulkan ? "rescue_vulkan" : "rescue_reference",
                   .arguments = {"train", "sine", "--steps", "90", "--device", device, "--out", "run"},
                   .trains = true,
                   .goes_on = true});
    all.push_back({.name = vulkan ? "verify_vulkan" : "verify_reference",
                   .arguments = {"verify", "golden", golden, "--device", device},
                   .beyond = {"verify", "golden", golden, "--device", "reference"}});
  }
  return all;
}

class Allocations : public ::testing::TestWithParam<Case> {
 protected:
  Allocations() : scratch_(fmt::format("fault-allocations-{}", GetParam().name)) {}

  [[nodiscard]] Launch launch(const std::string& wish) const {
    return {.arguments = GetParam().arguments,
            .folder = scratch_ / "",
            .environment = {{"LD_PRELOAD", LOCKSTEP_FAIL_ALLOCATION},
                            {"LOCKSTEP_FAULT_ALLOCATION", wish},
                            {"LOCKSTEP_FAULT_REPORT", (scratch_ / "report").string()}}};
  }
  Ended run(const std::string& wish) {
    fs::remove(scratch_ / "report");
    fs::remove(scratch_ / "out.npy");
    if (GetParam().trains) fs::remove_all(scratch_ / "run");
    if (GetParam().resumes) fs::copy(scratch_ / "before", scratch_ / "run", fs::copy_options::recursive);
    return runFaulty(launch(wish));
  }
  Ended runWell(const std::vector<std::string>& arguments) const { return runFaulty({.arguments = arguments, .folder = scratch_ / ""}); }

  struct Report {
    std::map<uint64_t, std::string> stacks;  ///< the first allocation of each, and which it is
    uint64_t count = 0;                      ///< of allocations
  };
  [[nodiscard]] Report readReport() const {
    std::istringstream text(*io::readTextFile(scratch_ / "report"));
    Report report;
    uint64_t number = 0;
    for (std::string word, rest; text >> word >> number && std::getline(text, rest);) {
      if (word == "stack") report.stacks[number] = rest;
      if (word == "count") report.count = number;
    }
    return report;
  }

  /// Which allocations to let fail, from the report of a run in which none does.
  [[nodiscard]] std::vector<uint64_t> numbers() {
    const Report report = readReport();
    all_ = report.count;
    stacks_ = report.stacks.size();
    if (GetParam().goes_on) return laterNumbers();
    const size_t wanted = sampleSize();
    std::vector<uint64_t> stacks = wanted == 0 ? beyondOther(report) : std::vector<uint64_t>();
    if (stacks.empty()) {
      for (const auto& [number, stack] : report.stacks) stacks.push_back(number);
    }
    if (wanted == 0 && all_ <= kFew) {
      stacks.clear();
      for (uint64_t i = 1; i <= all_; ++i) stacks.push_back(i);
    }
    if (wanted == 0 || stacks.size() <= wanted) return stacks;
    // One of each part of the run, the same ones each time.
    std::mt19937 random(1);
    std::vector<uint64_t> sample;
    for (size_t i = 0; i < wanted; ++i) {
      const size_t begin = i * stacks.size() / wanted, end = (i + 1) * stacks.size() / wanted;
      sample.push_back(stacks[std::uniform_int_distribution(begin, end - 1)(random)]);
    }
    return sample;
  }

  /// Those that the other command has not, and some of the others; none where there is no other.
  [[nodiscard]] std::vector<uint64_t> beyondOther(const Report& report) {
    if (GetParam().beyond.empty()) return {};
    fs::remove(scratch_ / "report");
    Launch other = launch("stacks");
    other.arguments = GetParam().beyond;
    const Ended ended = runFaulty(other);
    fs::remove_all(scratch_ / "other");
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::set<std::string> known;
    for (const auto& [number, stack] : readReport().stacks) known.insert(stack);
    std::vector<uint64_t> chosen, shared;
    for (const auto& [number, stack] : report.stacks) (known.contains(stack) ? shared : chosen).push_back(number);
    std::ranges::shuffle(shared, std::mt19937(1));
    shared.resize(std::min(shared.size(), kShared));
    chosen.insert(chosen.end(), shared.begin(), shared.end());
    std::ranges::sort(chosen);
    return chosen;
  }

  /// Of steps after those that every short run has. Each has the same call stacks, but another state.
  [[nodiscard]] std::vector<uint64_t> laterNumbers() const {
    std::mt19937_64 random(1);
    std::vector<uint64_t> later;
    const size_t wanted = sampleSize() == 0 ? 1000 : sampleSize() / 4;
    for (size_t i = 0; i < wanted; ++i) later.push_back(std::uniform_int_distribution(first_, all_)(random));
    return later;
  }

  /// What is wrong after a run in which an allocation failed; empty when nothing is.
  std::string problemOf(const Ended& ended, const WholeRun& whole) const {
    if (ended.code != 0 && ended.code != 6) return ended.how();
    if (ended.code != 0 && ended.err.find("error: ") == std::string::npos) return "says nothing";
    const fs::path out = scratch_ / "out.npy";
    if (fs::exists(out) && *io::readTextFile(out) != expected_out_) return "the output is not what it should be";
    if (ended.code == 0 && !expected_out_.empty() && !fs::exists(out)) return "succeeds without its output";
    for (const auto& entry : fs::directory_iterator(scratch_ / "")) {
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) return fmt::format("leaves '{}'", entry.path().string());
    }
    if (!GetParam().trains) return {};
    if (ended.code == 0) {
      if (std::string other = differenceOf(scratch_ / "run", whole); !other.empty()) return other;
    }
    if (std::string damage = damageOf(scratch_ / "run", whole, {.reached = GetParam().resumes ? 1u : 0u}); !damage.empty()) return damage;
    if (!GetParam().goes_on || ended.code == 0 || savedStep(scratch_ / "run") == 0) return {};
    std::vector<std::string> again = GetParam().arguments;
    again.emplace_back("--resume");
    if (const Ended resumed = runWell(again); resumed.code != 0) return "cannot be resumed: " + resumed.err;
    return differenceOf(scratch_ / "run", whole);
  }

  ScratchDirectory scratch_;
  std::string expected_out_;
  uint64_t all_ = 0, first_ = 1;
  size_t stacks_ = 0;
};

TEST_P(Allocations, each_that_fails_ends_cleanly) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "k.wgsl", kKernel).ok());
  WholeRun whole;
  if (GetParam().trains) {
    std::vector<std::string> arguments = GetParam().arguments;
    if (GetParam().resumes) arguments.pop_back();
    ASSERT_EQ(runWell(arguments).code, 0);
    whole = readWholeRun(scratch_ / "run");
    fs::remove_all(scratch_ / "run");
    arguments[3] = "1";
    ASSERT_EQ(runWell(arguments).code, 0);
    fs::rename(scratch_ / "run", scratch_ / "before");
  } else {
    const Ended ended = runWell(GetParam().arguments);
    if (ended.code == 3) GTEST_SKIP() << ended.err;
    ASSERT_EQ(ended.code, 0) << ended.err;
    if (fs::exists(scratch_ / "out.npy")) expected_out_ = *io::readTextFile(scratch_ / "out.npy");
  }
  if (GetParam().goes_on) {
    Launch two_steps = launch("1000000000");
    two_steps.arguments[3] = "2";
    ASSERT_EQ(runFaulty(two_steps).code, 0);
    (void)numbers();
    first_ = all_;
  }
  ASSERT_EQ(run("stacks").code, 0);
  const std::vector<uint64_t> chosen = numbers();
  ASSERT_FALSE(chosen.empty());

  std::map<std::string, size_t> table;
  size_t tried = 0;
  const auto report = [&] {
    std::string line = fmt::format("{:<18} {:>7} allocations, {:>6} call stacks, {:>6} of {:>6} tried:", GetParam().name, all_, stacks_,
                                   tried, chosen.size() + (chosen.size() + 4) / 5);
    for (const auto& [how, count] : table) line += fmt::format("  {} x {}", count, how);
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  for (const bool all_after : {false, true}) {
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (all_after && i % 5 != 0) continue;
      const std::string wish = std::to_string(chosen[i]) + (all_after ? "+" : "");
      const Ended ended = run(wish);
      ++table[ended.how()];
      if (++tried % 1000 == 0) report();  // a night may be too short
      EXPECT_EQ(problemOf(ended, whole), "") << GetParam().name << ", LOCKSTEP_FAULT_ALLOCATION=" << wish << ", " << ended.how() << "\n"
                                             << ended.err;
    }
  }
  report();
}

INSTANTIATE_TEST_SUITE_P(Of, Allocations, ::testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::testing
