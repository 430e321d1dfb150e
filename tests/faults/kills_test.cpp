// SPDX-License-Identifier: Apache-2.0
// Signals at random times in training, saving and resuming: what was reached is kept, and the run ends as if nothing had happened.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/faults/faulty_process.h"
#include "tests/faults/training_folder.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
constexpr int kSteps = 1500, kInterrupted = 130;

/// How many; the variable says it for a run by hand.
int kills() {
  if (const char* text = std::getenv("LOCKSTEP_FAULT_KILLS"); text != nullptr) return std::atoi(text);
  return std::getenv("LOCKSTEP_NIGHTLY") != nullptr ? 500 : 20;
}

Launch training(const ScratchDirectory& scratch, const char* out, bool resume) {
  Launch launch{.arguments = {"train", "sine", "--steps", std::to_string(kSteps), "--device", "reference", "--out", out},
                .folder = scratch / ""};
  if (resume) launch.arguments.emplace_back("--resume");
  return launch;
}

struct Signal {
  int number;
  const char* name;
};
constexpr std::array<Signal, 5> kSignals = {
    Signal{SIGKILL, "KILL"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGPIPE, "PIPE"}, {SIGINT, "INT"}};

TEST(Kills, run_that_is_resumed_after_them_is_the_undisturbed_one) {
  const ScratchDirectory scratch("fault-kills");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(runFaulty(training(scratch, "whole", false)).code, 0);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  const WholeRun whole = readWholeRun(scratch / "whole");
  ASSERT_EQ(whole.losses.size(), size_t{kSteps});

  std::mt19937 random(7);
  std::map<std::string, std::map<std::string, int>> table;
  const fs::path folder = scratch / "run";
  uint64_t reached = 0;
  int finished = 0, afresh = 0;
  bool begun = false;
  for (int i = 0; i < kills(); ++i) {
    FaultyProcess process(training(scratch, "run", begun));
    // All of a run is as likely as its beginning and what follows a first signal.
    const auto pause = std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, took.count() / (i % 2 == 0 ? 1 : 8))(random));
    std::this_thread::sleep_for(pause);
    const Signal& signal = kSignals[static_cast<size_t>(i) % kSignals.size()];
    process.signal(signal.number);
    const bool twice = i % 7 == 3;  // while it saves
    if (twice) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, 8000)(random)));
      process.signal(SIGKILL);
    }
    const Ended ended = process.wait();
    const std::string place =
        fmt::format("kill {} of {}: {} after {} us, {}\n{}", i + 1, kills(), signal.name, pause.count(), ended.how(), ended.err);
    ++table[signal.name + std::string(twice ? " and KILL" : "")][ended.how()];
    // 4 where there was no checkpoint yet to resume from; the signal itself before the command listens or when it is not to be caught.
    const bool clean = ended.code == 0 || ended.code == kInterrupted || ended.signal == signal.number ||
                       (twice && ended.signal == SIGKILL) || (ended.code == 4 && begun && reached == 0);
    ASSERT_TRUE(clean) << place;
    if (ended.code == 4) {
      ASSERT_NE(ended.err.find("folder."), std::string::npos) << place;
    }
    ASSERT_EQ(damageOf(folder, whole, {.reached = reached, .may_end_within = ended.signal != 0, .may_leave_parts = ended.signal != 0}), "")
        << place;
    begun = fs::exists(folder / "config.json");
    if (ended.code == 0) {
      ASSERT_EQ(differenceOf(folder, whole), "") << place;
      ++finished;
    }
    if (ended.code == 0 || ended.code == 4) {
      if (ended.code == 4) ++afresh;
      fs::remove_all(folder);
      reached = 0;
      begun = false;
    } else if (ended.code == kInterrupted) {
      // All that was reached is saved.
      reached = completeLines(folder / "losses.jsonl").size();
    } else {
      // A killed run: what its checkpoint has stays.
      reached = savedStep(folder);
    }
  }
  // However often it was stopped, it comes to the same end.
  if (begun && reached > 0) {
    ASSERT_EQ(runFaulty(training(scratch, "run", true)).code, 0);
    EXPECT_EQ(differenceOf(folder, whole), "");
    ++finished;
  }
  for (const auto& [signal, row] : table) {
    std::string line = fmt::format("{:<14}", signal);
    for (const auto& [how, count] : row) line += fmt::format("  {} x {}", count, how);
    fmt::print("{}\n", line);
  }
  fmt::print("{} kills; {} runs came to their end, {} began afresh\n", kills(), finished, afresh);
}

TEST(Kills, second_run_in_a_folder_is_told_so) {
  const ScratchDirectory scratch("fault-two-runs");
  FaultyProcess first(training(scratch, "run", false));
  while (!fs::exists(scratch / "run" / "checkpoints")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Launch other = training(scratch, (scratch / "run").c_str(), false);
  other.folder = scratch / "other";
  fs::create_directory(other.folder);
  for (const bool resume : {false, true}) {
    if (resume) other.arguments.emplace_back("--resume");
    const Ended second = runFaulty(other);
    EXPECT_EQ(second.code, 4) << second.err;
    EXPECT_NE(second.err.find("folder.busy"), std::string::npos) << second.err;
  }
  EXPECT_EQ(first.wait().code, 0);
  ASSERT_EQ(runFaulty(training(scratch, "whole", false)).code, 0);
  EXPECT_EQ(differenceOf(scratch / "run", readWholeRun(scratch / "whole")), "");
}

}  // namespace
}  // namespace lockstep::testing
