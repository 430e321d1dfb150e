// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kTwoByThree = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\xff"sv;

std::string codeOf(std::string_view content) {
  const lockstep::testing::ScratchDirectory scratch("idx");
  EXPECT_TRUE(writeFileAtomically(scratch / "file", content).ok());
  const auto result = readIdx(scratch / "file");
  return result.ok() ? "" : result.diagnostics().front().code;
}

TEST(Idx, bytes_are_read_plain_and_packed) {
  const lockstep::testing::ScratchDirectory scratch("idx");
  ASSERT_TRUE(writeFileAtomically(scratch / "plain", kTwoByThree).ok());
  gzFile file = ::gzopen((scratch / "packed.gz").c_str(), "wb");
  ASSERT_EQ(::gzwrite(file, kTwoByThree.data(), static_cast<unsigned>(kTwoByThree.size())), static_cast<int>(kTwoByThree.size()));
  ::gzclose(file);
  for (const char* name : {"plain", "packed.gz"}) {
    const auto array = readIdx(scratch / name);
    ASSERT_TRUE(array.ok()) << name;
    EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(array->data, (std::vector<uint8_t>{1, 2, 3, 4, 5, 255}));
  }
}

TEST(Idx, damage_is_refused) {
  EXPECT_EQ(codeOf(kTwoByThree), "");
  for (size_t length = 0; length < kTwoByThree.size(); ++length) EXPECT_EQ(codeOf(kTwoByThree.substr(0, length)), "idx.format") << length;
  EXPECT_EQ(codeOf(std::string(kTwoByThree) + "x"), "idx.format");
  EXPECT_EQ(codeOf("\0\0\x0d\x01\0\0\0\x01\0\0\0\0"sv), "idx.format");
  EXPECT_EQ(codeOf("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv), "idx.format");
  EXPECT_EQ(readIdx("/nowhere/at/all").diagnostics().front().code, "file.read");
  EXPECT_EQ(readIdx("/").diagnostics().front().code, "file.read");
}

std::string packed(std::string_view content) {
  const lockstep::testing::ScratchDirectory scratch("idx-packed");
  gzFile file = ::gzopen((scratch / "packed.gz").c_str(), "wb");
  EXPECT_EQ(::gzwrite(file, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
  ::gzclose(file);
  return *readTextFile(scratch / "packed.gz");
}

TEST(Idx, packed_files_are_complete) {
  const std::string file = packed(kTwoByThree);
  EXPECT_EQ(codeOf(file), "");
  for (size_t left_out = 1; left_out <= 8; ++left_out) EXPECT_EQ(codeOf(file.substr(0, file.size() - left_out)), "file.read") << left_out;
}

// Gigabytes of it, if they were unpacked before the shape is known.
TEST(Idx, what_is_beyond_the_shape_is_not_unpacked) {
  std::string content(kTwoByThree);
  content.resize(content.size() + (64u << 20u));
  const lockstep::testing::ScratchDirectory scratch("idx");
  ASSERT_TRUE(writeFileAtomically(scratch / "file", std::string_view(packed(content))).ok());
  const auto result = readIdx(scratch / "file");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().message, "the file has more bytes than the 6 of its shape");
}

}  // namespace
}  // namespace lockstep::io
