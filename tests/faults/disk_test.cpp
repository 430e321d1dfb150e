// SPDX-License-Identifier: Apache-2.0
// Training where the disk is full or files may not grow: an exit code that is documented, a message, and what was written stays whole.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "tests/faults/faulty_process.h"
#include "tests/faults/training_folder.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

Launch training(const ScratchDirectory& scratch, const std::string& out, int steps) {
  return {.arguments = {"train", "sine", "--steps", std::to_string(steps), "--device", "reference", "--out", out}, .folder = scratch / ""};
}

/// The whole table in one line.
void print(const char* what, const std::map<std::string, int>& table) {
  std::string line = fmt::format("{:<14}", what);
  for (const auto& [how, count] : table) line += fmt::format("  {} x {}", count, how);
  fmt::print("{}\n", line);
}

void expectClear(const Ended& ended, const std::string& place, bool heard = true) {
  // 130: the signal of a file that may not grow stops a run as Ctrl-C does.
  EXPECT_TRUE(ended.code == 0 || ended.code == 4 || ended.code == 130) << place << ended.how() << ended.err;
  if (ended.code == 4 && heard) {
    EXPECT_NE(ended.err.find("error: "), std::string::npos) << place;
  }
}

TEST(Disk, files_that_may_not_grow_lose_nothing) {
  const ScratchDirectory scratch("fault-file-size");
  ASSERT_EQ(runFaulty(training(scratch, "whole", 200)).code, 0);
  const WholeRun whole = readWholeRun(scratch / "whole");
  ASSERT_EQ(runFaulty(training(scratch, "before", 100)).code, 0);
  std::map<std::string, int> table;
  for (const uint64_t bytes : {0u, 1u, 100u, 500u, 1000u, 5000u, 8000u, 12'000u, 20'000u, 40'000u, 60'000u, 100'000u, 300'000u}) {
    for (const bool resume : {false, true}) {
      fs::remove_all(scratch / "run");
      if (resume) fs::copy(scratch / "before", scratch / "run", fs::copy_options::recursive);
      Launch launch = training(scratch, "run", 200);
      if (resume) launch.arguments.emplace_back("--resume");
      launch.most_file_bytes = bytes;
      const Ended ended = runFaulty(launch);
      ++table[ended.how()];
      const std::string place = fmt::format("files of at most {} bytes{}: ", bytes, resume ? ", resumed" : "");
      expectClear(ended, place, bytes >= 100);  // the limit holds for the file with the message, too
      EXPECT_EQ(damageOf(scratch / "run", whole, {.reached = resume ? 100u : 0u, .may_end_within = true}), "") << place << ended.err;
      // Without the limit it goes on from there.
      if (savedStep(scratch / "run") == 0) continue;
      Launch again = training(scratch, "run", 200);
      again.arguments.emplace_back("--resume");
      EXPECT_EQ(runFaulty(again).code, 0) << place;
      EXPECT_EQ(differenceOf(scratch / "run", whole), "") << place;
    }
  }
  print("file size", table);
}

class SmallDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    // In a namespace of our own, so that nothing stays mounted whatever happens.
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      GTEST_SKIP() << "a small disk needs the right to mount: " << std::strerror(errno);
    }
    fs::create_directory(scratch_ / "disk");
  }
  void mount(size_t bytes, unsigned long flags = 0) const {
    const std::string options = fmt::format("size={}", bytes);
    ASSERT_EQ(::mount("tmpfs", (scratch_ / "disk").c_str(), "tmpfs", flags, options.c_str()), 0) << std::strerror(errno);
  }
  void unmount() const { ASSERT_EQ(::umount2((scratch_ / "disk").c_str(), MNT_DETACH), 0); }
  ScratchDirectory scratch_{"fault-disk"};
};

TEST_F(SmallDisk, that_is_full_loses_nothing) {
  ASSERT_EQ(runFaulty(training(scratch_, "whole", 200)).code, 0);
  const WholeRun whole = readWholeRun(scratch_ / "whole");
  ASSERT_EQ(runFaulty(training(scratch_, "before", 100)).code, 0);
  size_t before = 0;
  constexpr size_t kPage = 4096;
  for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "before")) {
    if (entry.is_regular_file()) before += (entry.file_size() + kPage - 1) / kPage * kPage;
  }
  std::map<std::string, int> table;
  for (const size_t pages : {1u, 2u, 3u, 5u, 8u, 12u, 16u, 20u, 25u, 30u, 40u, 60u, 80u, 200u}) {
    for (const bool resume : {false, true}) {
      mount(pages * kPage + (resume ? before : 0));
      if (resume) fs::copy(scratch_ / "before", scratch_ / "disk" / "run", fs::copy_options::recursive);
      Launch launch = training(scratch_, "disk/run", 200);
      if (resume) launch.arguments.emplace_back("--resume");
      const Ended ended = runFaulty(launch);
      ++table[ended.how()];
      const std::string place = fmt::format("a disk with {} free pages{}: ", pages, resume ? ", resumed" : "");
      expectClear(ended, place);
      EXPECT_EQ(damageOf(scratch_ / "disk" / "run", whole, {.reached = resume ? 100u : 0u, .may_end_within = true}), "")
          << place << ended.err;
      // Once there is room, it goes on from there.
      if (savedStep(scratch_ / "disk" / "run") != 0) {
        mount(1u << 24, MS_REMOUNT);
        Launch again = training(scratch_, "disk/run", 200);
        again.arguments.emplace_back("--resume");
        EXPECT_EQ(runFaulty(again).code, 0) << place;
        EXPECT_EQ(differenceOf(scratch_ / "disk" / "run", whole), "") << place;
      }
      unmount();
    }
  }
  print("full disk", table);
}

}  // namespace
}  // namespace lockstep::testing
