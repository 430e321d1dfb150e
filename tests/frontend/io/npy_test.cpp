// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

using testing::toBytes;

std::vector<std::byte> fileOf(const std::string& header, const std::string& data, char version = 1) {
  std::string text("\x93NUMPY", 6);
  text.push_back(version);
  text.push_back('\0');
  const auto length = static_cast<uint32_t>(header.size());
  text.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return toBytes(text + header + data);
}

TEST(Npy, every_element_type_and_rank_round_trips) {
  const testing::ScratchDirectory scratch("npy");
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {5}, {2, 3}, {0, 3}, {2, 1, 4, 1}};
  for (const ElementType type : kElementTypes) {
    if (type == ElementType::BF16) continue;  // NumPy has none
    for (const auto& shape : shapes) {
      Array array = Array::zeros(type, shape);
      for (size_t i = 0; i < array.data.size(); i += byteSize(type)) array.data[i] = std::byte{1};
      ASSERT_TRUE(writeNpy(scratch / "a.npy", array).ok());
      const auto read = readNpy(scratch / "a.npy");
      ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
      EXPECT_EQ(*read, array);
    }
  }
}

TEST(Npy, every_pattern_of_a_half_and_a_byte_round_trips) {
  for (const ElementType type : {ElementType::F16, ElementType::I8, ElementType::U8, ElementType::U16}) {
    const size_t size = byteSize(type), patterns = size_t{1} << (8 * size);
    Array array = Array::zeros(type, {static_cast<int64_t>(patterns)});
    for (size_t bits = 0; bits < patterns; ++bits) std::memcpy(array.data.data() + bits * size, &bits, size);
    const auto read = parseNpy(formatNpy(array), "f");
    ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
    EXPECT_TRUE(*read == array) << toString(type);
  }
}

TEST(Npy, narrow_types_have_the_names_that_numpy_gives_them) {
  const auto read = [](const std::string& descr, const std::string& data) {
    return parseNpy(fileOf("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (3,), }", data), "f").orThrow();
  };
  // numpy.array([1, -2, 65504], 'float16'), numpy.array([1, -2, 127], 'int8'), numpy.array([1, 254, 0], 'uint8')
  const Array half = read("<f2", std::string("\x00\x3c\x00\xc0\xff\x7b", 6));
  EXPECT_EQ(half.type, ElementType::F16);
  EXPECT_EQ(half.toDoubles(), (std::vector<double>{1, -2, 65504}));
  EXPECT_EQ(read("|i1", "\x01\xfe\x7f").toInts(), (std::vector<int32_t>{1, -2, 127}));
  const Array bytes = read("|u1", std::string("\x01\xfe\x00", 3));
  EXPECT_EQ(bytes.type, ElementType::U8);
  EXPECT_EQ(bytes.toInts(), (std::vector<int32_t>{1, 254, 0}));
}

TEST(Npy, bfloat16_is_refused_in_words_that_help) {
  for (const char* descr : {"<V2", "|V2"}) {
    const auto read = parseNpy(fileOf(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,), }", "12"), "b.npy");
    ASSERT_FALSE(read.ok());
    const Diagnostic& diagnostic = read.diagnostics().front();
    EXPECT_EQ(diagnostic.code, "npy.dtype");
    EXPECT_EQ(diagnostic.where.file, "b.npy");
    EXPECT_NE(diagnostic.message.find("bfloat16"), std::string::npos) << diagnostic.message;
    EXPECT_NE(diagnostic.remedy.find("float32"), std::string::npos) << diagnostic.remedy;
  }
  const testing::ScratchDirectory scratch("npy_bf16");
  const Array array = Array::zeros(ElementType::BF16, {3});
  const Status written = writeNpy(scratch / "a.npy", array);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.diagnostics().front().code, "npy.dtype");
  EXPECT_NE(written.diagnostics().front().message.find("bf16[3]"), std::string::npos);
  EXPECT_NE(written.diagnostics().front().remedy.find("safetensors"), std::string::npos);
  EXPECT_EQ(scratch.fileCount(), 0u);
  EXPECT_THROW((void)formatNpy(array), Error);
  // What the remedy says.
  EXPECT_TRUE(writeNpy(scratch / "a.npy", Array::from(ElementType::F32, array.shape, array.toDoubles())).ok());
}

TEST(Npy, array_whose_bytes_do_not_match_is_not_written) {
  const testing::ScratchDirectory scratch("npy_length");
  const Status written = writeNpy(scratch / "a.npy", Array{.type = ElementType::F16, .shape = {3}, .data = std::vector<std::byte>(8)});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.diagnostics().front().code, "npy.length");
  EXPECT_EQ(scratch.fileCount(), 0u);
}

TEST(Npy, file_of_numpy_is_read) {
  // What numpy.save writes for numpy.array([[1, 2], [3, 4]], dtype='<i4').
  const std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }" + std::string(58, ' ') + "\n";
  const auto read = parseNpy(fileOf(header, std::string("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0", 16)), "f");
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  EXPECT_EQ(read->toInts(), (std::vector<int32_t>{1, 2, 3, 4}));
}

TEST(Npy, version_two_is_read) {
  const auto read = parseNpy(fileOf("{'shape': (1,), 'fortran_order': False, 'descr': '|b1'}", "\1", 2), "f");
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  EXPECT_EQ(read->type, ElementType::Bool);
}

TEST(Npy, data_starts_at_a_multiple_of_64) {
  const std::vector<std::byte> bytes = formatNpy(Array::zeros(ElementType::F32, {7}));
  EXPECT_EQ((bytes.size() - 28) % 64, 0u);
}

TEST(Npy, very_long_header_takes_version_two) {
  const Array array = Array::zeros(ElementType::Bool, std::vector<int64_t>(30000, 1));
  const std::vector<std::byte> bytes = formatNpy(array);
  EXPECT_EQ(bytes[6], std::byte{2});
  const auto read = parseNpy(bytes, "f");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, array);
}

struct Damage {
  const char* name;
  std::vector<std::byte> bytes;
  const char* code;
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

std::vector<Damage> damages() {
  const std::string ok = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
  std::vector<std::byte> cut = fileOf(ok, "");
  cut.resize(20);
  return {
      {"empty", {}, "npy.magic"},
      {"text", toBytes("hello, I am not an array"), "npy.magic"},
      {"version_nine", fileOf(ok, "1234", 9), "npy.magic"},
      {"cut_header", cut, "npy.length"},
      {"too_short", fileOf(ok, "123"), "npy.length"},
      {"too_long", fileOf(ok, "12345"), "npy.length"},
      {"not_dictionary", fileOf("hello", ""), "npy.header"},
      {"missing_key", fileOf("{'descr': '<f4', 'shape': (1,), }", "1234"), "npy.header"},
      {"double_key", fileOf("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234"), "npy.header"},
      {"bad_shape", fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234"), "npy.header"},
      {"open_tuple", fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (1", "1234"), "npy.header"},
      {"huge_shape", fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "1234"), "npy.header"},
      {"big_endian", fileOf("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234"), "npy.dtype"},
      {"structured", fileOf("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"), "npy.header"},
      {"fortran", fileOf("{'descr': '<f4', 'fortran_order': True, 'shape': (1,1), }", "1234"), "npy.order"},
      {"half_too_short", fileOf("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", "12345"), "npy.length"},
      {"big_endian_half", fileOf("{'descr': '>f2', 'fortran_order': False, 'shape': (1,), }", "12"), "npy.dtype"},
      {"short", fileOf("{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }", "12"), "npy.dtype"},
      {"bad_bool", fileOf("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\3"), "npy.dtype"},
  };
}

class NpyDamage : public ::testing::TestWithParam<Damage> {};
TEST_P(NpyDamage, is_named) {
  const auto result = parseNpy(GetParam().bytes, "broken.npy");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, GetParam().code) << result.diagnostics().front().message;
}
INSTANTIATE_TEST_SUITE_P(All, NpyDamage, ::testing::ValuesIn(damages()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep::io
