// SPDX-License-Identifier: Apache-2.0
// What a run folder takes from files that no run wrote, and who may write into it.
#include "experiment/run_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::experiment {
namespace {

class RunFolders : public ::testing::Test {
 protected:
  RunFolders() : scratch_("run_folder") {}
  template <class T>
  static std::string codeOf(const Result<T>& result) {
    return result.ok() ? "none" : result.diagnostics().front().code;
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(RunFolders, lock_that_is_no_file_of_ours_is_refused) {
  ASSERT_TRUE(io::makeDirectories(scratch_ / "pipe").ok());
  ASSERT_EQ(::mkfifo((scratch_ / "pipe/lock").c_str(), 0600), 0);
  EXPECT_EQ(codeOf(RunFolder(scratch_ / "pipe").lock(true)), "file.write");
  ASSERT_TRUE(io::makeDirectories(scratch_ / "link").ok());
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "precious", std::string_view("mine")).ok());
  std::filesystem::create_symlink(scratch_ / "precious", scratch_ / "link/lock");
  EXPECT_EQ(codeOf(RunFolder(scratch_ / "link").lock(true)), "file.write");
  EXPECT_EQ(*io::readTextFile(scratch_ / "precious"), "mine");
}

TEST_F(RunFolders, are_locked_by_one_at_a_time) {
  const RunFolder folder(scratch_ / "a");
  EXPECT_EQ(codeOf(folder.lock(false)), "folder.missing");
  {
    Result<RunLock> first = folder.lock(true);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(codeOf(folder.lock(false)), "folder.busy");
    // The one that was refused has taken nothing away.
    EXPECT_EQ(codeOf(folder.lock(false)), "folder.busy");
    const RunLock moved = std::move(*first);
    EXPECT_EQ(codeOf(folder.lock(false)), "folder.busy");
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "a/lock"));
  EXPECT_TRUE(folder.lock(false).ok());
}

TEST_F(RunFolders, lose_what_a_killed_run_left_of_its_files) {
  const RunFolder folder(scratch_ / "killed");
  ASSERT_TRUE(io::makeDirectories(scratch_ / "killed/exhibits").ok());
  for (const char* name : {"killed/report.html.tmp-1-2", "killed/exhibits/000001-fit.png.tmp-3-4", "killed/exhibits/000001-fit.png"}) {
    ASSERT_TRUE(io::writeFileAtomically(scratch_ / name, std::string_view("part")).ok());
  }
  ASSERT_TRUE(folder.lock(false).ok());
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "killed/report.html.tmp-1-2"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "killed/exhibits/000001-fit.png.tmp-3-4"));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "killed/exhibits/000001-fit.png"));
}

TEST_F(RunFolders, numbers_that_no_run_has_are_refused) {
  const RunFolder folder(scratch_ / "numbers");
  ASSERT_TRUE(folder.begin({.recipe = "drawn", .seed = 1, .steps = 5, .data = "", .device = "auto"}, {}).ok());
  const std::string config = *io::readTextFile(scratch_ / "numbers/config.json");
  const auto codeWith = [&](const std::string& old, const std::string& changed) {
    std::string text = config;
    text.replace(text.find(old), old.size(), changed);
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "numbers/config.json", std::string_view(text)).ok());
    const auto read = folder.readConfig();
    return read.ok() ? "none" : read.diagnostics().front().code;
  };
  EXPECT_EQ(codeWith("\"seed\": \"1\"", "\"seed\": \"1\""), "none");
  for (const char* seed : {"-1", "1x", "18446744073709551616", ""})
    EXPECT_EQ(codeWith("\"seed\": \"1\"", fmt::format("\"seed\": \"{}\"", seed)), "folder.config") << seed;
  for (const char* steps : {"-5", "1.5", "9223372036854775808", "9223372036854775807", "1e300", "null", "\"5\""})
    EXPECT_EQ(codeWith("\"steps\": 5", fmt::format("\"steps\": {}", steps)), "folder.config") << steps;
}

TEST_F(RunFolders, history_takes_only_what_a_run_can_have_written) {
  const RunFolder folder(scratch_ / "history");
  ASSERT_TRUE(io::makeDirectories(scratch_ / "history").ok());
  const auto write = [&](const std::string& losses, const std::string& metrics) {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "history/losses.jsonl", std::string_view(losses)).ok());
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "history/metrics.jsonl", std::string_view(metrics)).ok());
  };
  // A step that would fill the memory with losses that are nowhere.
  const std::string one = "{\"step\": 1, \"loss\": 1e300}\n";
  write(one, "");
  for (const int64_t step : {int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
    const auto read = folder.readHistory(step);
    ASSERT_FALSE(read.ok()) << step;
    EXPECT_EQ(read.diagnostics().front().code, "folder.history");
    EXPECT_EQ(*io::readTextFile(scratch_ / "history/losses.jsonl"), one);
  }
  EXPECT_TRUE(std::isinf(folder.readHistory(3)->losses.front()));
  const std::string first = "{\"step\": 1, \"metrics\": {\"a\": 1}, \"seconds\": -3}\n";
  for (const char* second : {"{\"step\": 0, \"metrics\": {}}", "{\"step\": -9, \"metrics\": {}}", "{\"step\": 2, \"metrics\": 3}",
                             "{\"step\": 18446744073709551615, \"metrics\": {}}"}) {
    write("", first + second + "\n");
    const auto read = folder.readHistory(3);
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->reports.size(), 1u) << second;
    EXPECT_EQ(read->reports.front().seconds, 0);
  }
}

}  // namespace
}  // namespace lockstep::experiment
