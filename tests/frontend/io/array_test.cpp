// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/array.h"

#include <gtest/gtest.h>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

TEST(Array, element_of_every_type_reads_exactly) {
  const double wide[] = {0.1, -1e300};
  EXPECT_EQ(Array::fromDoubles({2}, wide).at(1), -1e300);
  const float narrow[] = {0.1f};
  EXPECT_EQ(Array::fromFloats({1}, narrow).at(0), static_cast<double>(0.1f));
  const int32_t whole[] = {INT32_MIN, INT32_MAX};
  EXPECT_EQ(Array::fromInts({2}, whole).toDoubles(), (std::vector<double>{-2147483648.0, 2147483647.0}));
  Array flags = Array::zeros(ElementType::Bool, {2});
  flags.data[1] = std::byte{1};
  EXPECT_EQ(flags.toFloats(), (std::vector<float>{0, 1}));
}

TEST(Array, shape_that_does_not_match_values_is_refused) {
  const float values[] = {1, 2, 3};
  EXPECT_THROW(Array::fromFloats({2}, values), Error);
}

TEST(Array, element_count_is_bounded) {
  EXPECT_EQ(checkedElementCount({}), 1u);
  EXPECT_EQ(checkedElementCount({0, int64_t{1} << 48}), 0u);
  EXPECT_EQ(checkedElementCount({int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(checkedElementCount({-1}), std::nullopt);
}

TEST(Array, every_element_type_has_a_name_that_is_found_again) {
  for (const ElementType type : kElementTypes) EXPECT_EQ(findElementType(toString(type)), type);
  EXPECT_EQ(findElementType("f8"), std::nullopt);
}

TEST(File, atomic_write_leaves_one_whole_file) {
  const testing::ScratchDirectory scratch("file");
  ASSERT_TRUE(writeFileAtomically(scratch / "a", std::string_view("one")).ok());
  ASSERT_TRUE(writeFileAtomically(scratch / "a", std::string_view("two")).ok());
  EXPECT_EQ(*readTextFile(scratch / "a"), "two");
  EXPECT_EQ(scratch.fileCount(), 1u);
}

TEST(File, write_that_fails_leaves_nothing) {
  const testing::ScratchDirectory scratch("file_fail");
  std::filesystem::create_directory(scratch / "taken");
  const Status status = writeFileAtomically(scratch / "taken", std::string_view("x"));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostics().front().code, "file.write");
  EXPECT_EQ(scratch.fileCount(), 1u);
  EXPECT_FALSE(writeFileAtomically(scratch / "no/such/directory", std::string_view("x")).ok());
}

TEST(File, missing_file_and_directory_are_read_errors) {
  const testing::ScratchDirectory scratch("file_missing");
  const auto missing = readFile(scratch / "none");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.diagnostics().front().code, "file.read");
  EXPECT_NE(missing.diagnostics().front().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(readFile(scratch / "").ok());
}

}  // namespace
}  // namespace lockstep::io
