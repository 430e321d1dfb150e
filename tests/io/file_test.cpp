// SPDX-License-Identifier: Apache-2.0
// What killed writers leave behind.
#include "frontend/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "tests/io/scratch.h"

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

TEST(AbandonedWrites, of_a_process_with_our_number_are_in_nobodys_way) {
  const ScratchDirectory scratch("same-number");
  for (int i = 0; i < 100; ++i) std::ofstream(scratch / ("a.tmp-" + std::to_string(::getpid()) + "-" + std::to_string(i))) << "par";
  ASSERT_TRUE(writeFileAtomically(scratch / "a", std::string_view("whole")).ok());
  EXPECT_EQ(*readTextFile(scratch / "a"), "whole");
}

}  // namespace
}  // namespace lockstep::io
