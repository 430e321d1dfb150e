// SPDX-License-Identifier: Apache-2.0
// What killed writers leave behind, and files that are none.
#include "frontend/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

using lockstep::testing::ScratchDirectory;

TEST(AbandonedWrites, go_while_those_in_progress_and_other_files_stay) {
  const ScratchDirectory scratch("abandoned");
  std::ofstream(scratch / "a.safetensors") << "whole";
  std::ofstream(scratch / "a.safetensors.tmp-1-0") << "par";
  std::ofstream(scratch / "b.safetensors.tmp-2-0") << "par";
  const int writing = ::open((scratch / "b.safetensors.tmp-2-0").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(writing, LOCK_EX | LOCK_NB), 0);
  ASSERT_TRUE(removeAbandonedWrites(scratch / "").ok());
  EXPECT_TRUE(std::filesystem::exists(scratch / "a.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "a.safetensors.tmp-1-0"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "b.safetensors.tmp-2-0"));
  ::close(writing);
  ASSERT_TRUE(removeAbandonedWrites(scratch / "").ok());
  EXPECT_EQ(scratch.fileCount(), 1u);
  EXPECT_FALSE(removeAbandonedWrites(scratch / "absent").ok());
}

TEST(AbandonedWrites, have_names_that_only_a_writer_gives) {
  const ScratchDirectory scratch("similar-names");
  const std::vector<std::string> mine{"notes.tmp-keep.txt", "a.tmp-1", "a.tmp-1-", "a.tmp--2", "a.tmp-1-2.txt", "a.tmp-1-2-3", ".tmp-1-2"};
  for (const std::string& name : mine) std::ofstream(scratch / name) << "mine";
  ASSERT_EQ(::mkfifo((scratch / "pipe.tmp-1-2").c_str(), 0600), 0);
  std::filesystem::create_symlink("notes.tmp-keep.txt", scratch / "link.tmp-1-2");
  std::ofstream(scratch / "a.tmp-12-345") << "par";
  ASSERT_TRUE(removeAbandonedWrites(scratch / "").ok());
  for (const std::string& name : mine) EXPECT_EQ(*readTextFile(scratch / name), "mine") << name;
  EXPECT_TRUE(std::filesystem::is_fifo(scratch / "pipe.tmp-1-2"));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link.tmp-1-2"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "a.tmp-12-345"));
}

TEST(AbandonedWrites, of_a_process_with_our_number_are_in_nobodys_way) {
  const ScratchDirectory scratch("same-number");
  for (int i = 0; i < 100; ++i) std::ofstream(scratch / ("a.tmp-" + std::to_string(::getpid()) + "-" + std::to_string(i))) << "par";
  ASSERT_TRUE(writeFileAtomically(scratch / "a", std::string_view("whole")).ok());
  EXPECT_EQ(*readTextFile(scratch / "a"), "whole");
}

TEST(WriteFile, overAFile_keepsItsMode) {
  const ScratchDirectory scratch("mode");
  const std::string path = scratch / "f";
  for (const mode_t mode : {mode_t{0600}, mode_t{0640}, mode_t{0755}}) {
    ASSERT_TRUE(writeFileAtomically(path, std::string_view("old")).ok());
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(writeFileAtomically(path, std::string_view("new")).ok());
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777u, mode);
  }
}

TEST(WriteFile, intoAPipe_leavesThePipe) {
  const ScratchDirectory scratch("pipe");
  ASSERT_EQ(::mkfifo((scratch / "p").c_str(), 0600), 0);
  const int reader = ::open((scratch / "p").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(writeFileAtomically(scratch / "p", std::string_view("through")).ok());
  std::string text(16, ' ');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, text.data(), text.size()))));
  ::close(reader);
  EXPECT_EQ(text, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(scratch / "p"));
  EXPECT_EQ(scratch.fileCount(), 1u);
}

TEST(WriteFile, throughALink_replacesWhatItNames) {
  const ScratchDirectory scratch("link");
  std::filesystem::create_directory(scratch / "folder");
  std::ofstream(scratch / "folder/file") << "old";
  std::filesystem::create_symlink("folder/file", scratch / "link");
  ASSERT_TRUE(writeFileAtomically(scratch / "link", std::string_view("new")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(*readTextFile(scratch / "folder/file"), "new");
}

TEST(AppendToFile, makes_the_file_and_adds_to_its_end) {
  const ScratchDirectory scratch("append");
  ASSERT_TRUE(appendToFile(scratch / "lines", "one\n").ok());
  ASSERT_TRUE(appendToFile(scratch / "lines", "two\n").ok());
  EXPECT_EQ(*readTextFile(scratch / "lines"), "one\ntwo\n");
  const Status failed = appendToFile(scratch / "absent" / "lines", "three\n");
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.diagnostics()[0].message.find("No such file"), std::string::npos) << failed.diagnostics()[0].message;
}

TEST(AppendToFile, takes_back_a_part_that_was_written) {
  const ScratchDirectory scratch("append-part");
  ASSERT_TRUE(appendToFile(scratch / "lines", "one\n").ok());
  // In a child, because the limit holds for a whole process; the write stops within the second line.
  const pid_t child = ::fork();
  if (child == 0) {
    const struct rlimit limit{.rlim_cur = 6, .rlim_max = 6};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    ::_exit(appendToFile(scratch / "lines", "two\n").ok() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*readTextFile(scratch / "lines"), "one\n");
}

TEST(ListFolder, has_all_entries_in_their_order) {
  const ScratchDirectory scratch("list");
  for (const char* name : {"b", "a", ".hidden"}) std::ofstream(scratch / name) << "x";
  std::filesystem::create_directory(scratch / "folder");
  const auto entries = listFolder(scratch / "").orThrow();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(entries));
  EXPECT_EQ(entries.front().filename(), ".hidden");
  EXPECT_EQ(entriesOf(scratch / "").size(), 4u);
  const auto missing = listFolder(scratch / "none");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.failure().diagnostics.front().code, "file.directory");
  EXPECT_TRUE(entriesOf(scratch / "none").empty());
}

}  // namespace
}  // namespace lockstep::io
