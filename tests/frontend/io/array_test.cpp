// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

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

/// Every pattern of 16 bits.
Array allPatterns(ElementType type) {
  Array array = Array::zeros(type, {65536});
  for (uint32_t bits = 0; bits < 65536; ++bits) std::memcpy(array.data.data() + bits * 2, &bits, 2);
  return array;
}

uint16_t bitsAt(const Array& array, size_t index) {
  uint16_t bits = 0;
  std::memcpy(&bits, array.data.data() + index * 2, 2);
  return bits;
}

TEST(Array, floats_of_16_bits_are_exact_as_wider_ones_and_come_back) {
  for (const ElementType type : {ElementType::F16, ElementType::BF16}) {
    const Array all = allPatterns(type);
    const std::vector<double> values = all.toDoubles();
    const std::vector<float> floats = all.toFloats();
    const Array back = Array::from(type, {65536}, values);
    size_t numbers = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(floats[i]) && std::isnan(back.at(i))) << i;
        continue;
      }
      ++numbers;
      ASSERT_EQ(static_cast<double>(floats[i]), values[i]) << i;
      ASSERT_EQ(bitsAt(back, i), i) << toString(type);
    }
    // All but the fractions of the largest exponent, but for 0, which is infinity.
    EXPECT_EQ(numbers, type == ElementType::F16 ? 65536u - 2 * 1023 : 65536u - 2 * 127);
  }
  EXPECT_EQ(allPatterns(ElementType::F16).at(0x3c00), 1);
  EXPECT_EQ(allPatterns(ElementType::F16).at(0x8001), -0x1p-24);
  EXPECT_EQ(allPatterns(ElementType::BF16).at(0x3f80), 1);
  EXPECT_EQ(allPatterns(ElementType::BF16).at(0xc049), -3.140625);
}

TEST(Array, values_are_rounded_to_the_nearest_even_element) {
  const auto rounded = [](ElementType type, double value) { return Array::from(type, {}, std::span(&value, 1)).at(0); };
  EXPECT_EQ(rounded(ElementType::F16, 2049), 2048);  // half way
  EXPECT_EQ(rounded(ElementType::F16, 2051), 2052);
  EXPECT_EQ(rounded(ElementType::F16, 65519), 65504);
  EXPECT_EQ(rounded(ElementType::F16, 65520), INFINITY);
  EXPECT_EQ(rounded(ElementType::F16, -0x1p-25), 0);
  EXPECT_TRUE(std::signbit(rounded(ElementType::F16, -0x1p-25)));
  EXPECT_EQ(rounded(ElementType::BF16, 257), 256);
  EXPECT_EQ(rounded(ElementType::BF16, 259), 260);
  EXPECT_EQ(rounded(ElementType::BF16, 1e39), INFINITY);
  // Rounded twice, to f32 between, it would be 1.
  EXPECT_EQ(rounded(ElementType::BF16, 1 + 0x1p-8 + 0x1p-40), 1.0078125);
  EXPECT_EQ(rounded(ElementType::F32, 1 + 0x1p-24), 1);
  EXPECT_EQ(rounded(ElementType::F64, 0.1), 0.1);
}

TEST(Array, integers_of_every_type_come_back_at_any_length) {
  for (const ElementType type :
       {ElementType::I8, ElementType::U8, ElementType::I32, ElementType::U32, ElementType::I64, ElementType::Bool}) {
    for (const int64_t length : {0, 1, 3, 65, 257}) {
      std::vector<double> values;
      for (int64_t i = 0; i < length; ++i) {
        const auto byte = static_cast<int>(i % 256);
        values.push_back(type == ElementType::Bool ? byte % 2 : type == ElementType::U8 || type == ElementType::U32 ? byte : byte - 128);
      }
      const Array array = Array::from(type, {length}, values);
      EXPECT_EQ(array.data.size(), static_cast<size_t>(length) * byteSize(type));
      EXPECT_EQ(array.toDoubles(), values) << describe(array);
    }
  }
  const double ends[] = {-128, 127};
  EXPECT_EQ(Array::from(ElementType::I8, {2}, ends).data, (std::vector<std::byte>{std::byte{0x80}, std::byte{0x7f}}));
  EXPECT_EQ(Array::from(ElementType::I8, {2}, ends).toInts(), (std::vector<int32_t>{-128, 127}));
}

TEST(Array, numbers_that_an_integer_type_lacks_are_refused) {
  const auto messageOf = [](ElementType type, double value) {
    const double values[] = {0, value};
    try {
      (void)Array::from(type, {2}, values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "array.value");
      EXPECT_NE(std::string(error.diagnostics().front().where.file).find("array_test"), std::string::npos);
      return error.diagnostics().front().message;
    }
    return std::string();
  };
  EXPECT_EQ(messageOf(ElementType::U8, 256), "element 1 is 256, which u8 cannot hold");
  EXPECT_EQ(messageOf(ElementType::U8, -1), "element 1 is -1, which u8 cannot hold");
  EXPECT_EQ(messageOf(ElementType::I8, 128), "element 1 is 128, which i8 cannot hold");
  EXPECT_EQ(messageOf(ElementType::I8, -129), "element 1 is -129, which i8 cannot hold");
  EXPECT_EQ(messageOf(ElementType::I32, 0.5), "element 1 is 0.5, which i32 cannot hold");
  EXPECT_EQ(messageOf(ElementType::U32, NAN), "element 1 is nan, which u32 cannot hold");
  EXPECT_EQ(messageOf(ElementType::Bool, 2), "element 1 is 2, which bool cannot hold");
  EXPECT_NE(messageOf(ElementType::I64, 0x1p63), "");
  EXPECT_EQ(messageOf(ElementType::I64, -0x1p63), "");
  EXPECT_EQ(messageOf(ElementType::BF16, NAN), "");
}

TEST(Array, shape_that_does_not_match_values_is_refused) {
  const float values[] = {1, 2, 3};
  EXPECT_THROW(Array::fromFloats({2}, values), Error);
  const double wide[] = {1, 2, 3};
  EXPECT_THROW(Array::from(ElementType::U8, {2}, wide), Error);
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
