// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

using testing::toBytes;

/// A file from a header text and data bytes.
std::vector<std::byte> fileOf(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), 8);
  return toBytes(text + header + data);
}

TensorFile sample() {
  TensorFile file;
  const float floats[] = {1.5f, -0.0f, INFINITY, 1e-45f, 0.1f, 7};
  const double doubles[] = {0.1, -1e300};
  const double doubles3[] = {0.1, -INFINITY, 3};
  const int32_t ints[] = {INT32_MIN, -1, 3};
  file.tensors["weights/l1.W"] = Array::fromFloats({2, 3}, floats);
  file.tensors["wide"] = Array::fromDoubles({2}, doubles);
  file.tensors["ids"] = Array::fromInts({3}, ints);
  file.tensors["mask"] = Array{.type = ElementType::Bool, .shape = {3}, .data = {std::byte{1}, std::byte{0}, std::byte{1}}};
  file.tensors["count"] = Array{.type = ElementType::U32, .shape = {}, .data = std::vector<std::byte>(4, std::byte{0xff})};
  file.tensors["nothing"] = Array::zeros(ElementType::F32, {0, 4});
  file.tensors["half"] = Array::from(ElementType::F16, {3}, doubles3);
  file.tensors["brain"] = Array::from(ElementType::BF16, {3}, doubles3);
  file.tensors["pixels"] = Array{.type = ElementType::U8, .shape = {5}, .data = std::vector<std::byte>(5, std::byte{0x80})};
  file.tensors["steps"] = Array{.type = ElementType::I8, .shape = {1, 7}, .data = std::vector<std::byte>(7, std::byte{0xfe})};
  file.metadata["note"] = "quotes \" and unicode \u00e4";
  return file;
}

TEST(Safetensors, write_then_read_gives_the_same_values) {
  const testing::ScratchDirectory scratch("safetensors");
  ASSERT_TRUE(writeSafetensors(scratch / "a.safetensors", sample()).ok());
  const auto read = readSafetensors(scratch / "a.safetensors");
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  EXPECT_EQ(*read, sample());
  EXPECT_EQ(scratch.fileCount(), 1u);
}

TEST(Safetensors, data_starts_at_a_multiple_of_eight_and_wide_elements_come_first) {
  const std::vector<std::byte> bytes = formatSafetensors(sample());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  double first = 0;
  std::memcpy(&first, bytes.data() + 8 + length, 8);
  EXPECT_EQ(first, 0.1);
}

TEST(Safetensors, output_does_not_depend_on_the_run) { EXPECT_EQ(formatSafetensors(sample()), formatSafetensors(sample())); }

TEST(Safetensors, half_precision_keeps_its_type_and_widens_exactly) {
  // 1.0, smallest subnormal, -infinity, largest finite; and the same idea in bfloat16.
  const auto half = parseSafetensors(
      fileOf(R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", std::string("\x00\x3c\x01\x00\x00\xfc\xff\x7b", 8)), "f");
  ASSERT_TRUE(half.ok()) << toString(half.diagnostics());
  EXPECT_EQ(half->find("h")->type, ElementType::F16);
  EXPECT_EQ(half->find("h")->toFloats(), (std::vector<float>{1, 0x1p-24f, -INFINITY, 65504}));
  const auto brain =
      parseSafetensors(fileOf(R"({"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})", std::string("\x80\x3f\x49\xc0", 4)), "f");
  ASSERT_TRUE(brain.ok());
  EXPECT_EQ(brain->find("b")->type, ElementType::BF16);
  EXPECT_EQ(brain->find("b")->toFloats(), (std::vector<float>{1, -3.140625f}));
}

TEST(Safetensors, every_pattern_of_a_narrow_type_round_trips) {
  TensorFile file;
  for (const ElementType type : {ElementType::F16, ElementType::BF16, ElementType::I8, ElementType::U8, ElementType::U16}) {
    const size_t size = byteSize(type), patterns = size_t{1} << (8 * size);
    Array array = Array::zeros(type, {static_cast<int64_t>(patterns)});
    for (size_t bits = 0; bits < patterns; ++bits) std::memcpy(array.data.data() + bits * size, &bits, size);
    file.tensors.emplace(toString(type), array);
    // Lengths that are no whole words, and values whose places are no multiples of 4.
    for (const int64_t length : {1, 3, 65, 257}) {
      array.shape = {length};
      array.data.resize(static_cast<size_t>(length) * size);
      file.tensors.emplace(std::string(toString(type)) + std::to_string(length), array);
    }
  }
  const auto read = parseSafetensors(formatSafetensors(file), "f");
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  EXPECT_TRUE(*read == file);
}

TEST(Safetensors, bytes_have_the_names_of_the_format) {
  const auto file = parseSafetensors(fileOf(R"({"i":{"dtype":"I8","shape":[3],"data_offsets":[0,3]},)"
                                            R"("u":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
                                            "\x01\xfe\x7f\xff"),
                                     "f");
  ASSERT_TRUE(file.ok()) << toString(file.diagnostics());
  EXPECT_EQ(file->find("i")->toInts(), (std::vector<int32_t>{1, -2, 127}));
  EXPECT_EQ(file->find("u")->toInts(), (std::vector<int32_t>{255}));
}

TEST(Safetensors, half_not_a_number_stays_one) {
  const auto file = parseSafetensors(fileOf(R"({"h":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})", std::string("\x00\x7e", 2)), "f");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(std::isnan(file->find("h")->at(0)));
}

struct Damage {
  const char* name;
  std::vector<std::byte> bytes;
  const char* code;
  const char* part;  // of the message
};
// gtest would print the bytes of a case.
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

std::vector<Damage> damages() {
  const std::string eight = "01234567";
  std::vector<std::byte> cut = formatSafetensors(sample());
  cut.pop_back();
  std::vector<std::byte> grown = formatSafetensors(sample());
  grown.push_back(std::byte{0});
  std::vector<std::byte> huge = formatSafetensors(sample());
  huge[7] = std::byte{0x7f};
  return {
      {"empty", {}, "safetensors.size", "0 bytes"},
      {"short_length", toBytes("1234"), "safetensors.size", "4 bytes"},
      {"huge_header", huge, "safetensors.size", "header should take"},
      {"cut", cut, "safetensors.offsets", ""},
      {"grown", grown, "safetensors.offsets", "cover"},
      {"not_json", fileOf("{nonsense", ""), "safetensors.header", "not JSON"},
      {"not_object", fileOf("[1]", ""), "safetensors.header", "not a JSON object"},
      {"trailing", fileOf("{} x", ""), "safetensors.header", "not JSON"},
      {"deep", fileOf(std::string(100000, '['), ""), "safetensors.header", ""},
      {"double_key",
       fileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight),
       "safetensors.header", "twice"},
      {"entry_not_object", fileOf(R"({"a":3})", ""), "safetensors.tensor", "not an object"},
      {"no_dtype", fileOf(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", eight), "safetensors.tensor", "no dtype"},
      {"unknown_dtype", fileOf(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}})", eight), "safetensors.tensor", "F4"},
      {"unknown_field", fileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", eight), "safetensors.tensor", "'x'"},
      {"no_shape", fileOf(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", eight), "safetensors.tensor", "no shape"},
      {"negative_extent", fileOf(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight), "safetensors.tensor", "extent"},
      {"float_extent", fileOf(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", eight), "safetensors.tensor", "extent"},
      {"overflowing_shape", fileOf(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", eight),
       "safetensors.tensor", "impossible shape"},
      {"no_offsets", fileOf(R"({"a":{"dtype":"F32","shape":[2]}})", eight), "safetensors.offsets", "no pair"},
      {"three_offsets", fileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", eight), "safetensors.offsets", "no pair"},
      {"outside", fileOf(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", eight), "safetensors.offsets", "0 to 12 of 8"},
      {"backwards", fileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight), "safetensors.offsets", "8 to 0"},
      {"wrong_length", fileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", eight), "safetensors.length", "needs 4"},
      {"wrong_half", fileOf(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,8]}})", eight), "safetensors.length", "needs 4"},
      {"wrong_byte", fileOf(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,8]}})", eight), "safetensors.length", "needs 9"},
      {"overlap",
       fileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", "012345"),
       "safetensors.offsets", "overlaps"},
      {"hole", fileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight), "safetensors.offsets", "no tensor"},
      {"metadata_number", fileOf(R"({"__metadata__":{"a":1}})", ""), "safetensors.header", "not a string"},
      {"bad_bool", fileOf(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02"), "safetensors.tensor", "neither 0 nor 1"},
  };
}

class SafetensorsDamage : public ::testing::TestWithParam<Damage> {};
TEST_P(SafetensorsDamage, is_named) {
  const auto result = parseSafetensors(GetParam().bytes, "broken.safetensors");
  ASSERT_FALSE(result.ok());
  const Diagnostic& diagnostic = result.diagnostics().front();
  EXPECT_EQ(diagnostic.code, GetParam().code) << diagnostic.message;
  EXPECT_NE(diagnostic.message.find(GetParam().part), std::string::npos) << diagnostic.message;
  EXPECT_EQ(diagnostic.where.file, "broken.safetensors");
}
INSTANTIATE_TEST_SUITE_P(All, SafetensorsDamage, ::testing::ValuesIn(damages()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Safetensors, any_cut_or_flipped_header_byte_never_crashes) {
  const std::vector<std::byte> whole = formatSafetensors(sample());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parseSafetensors(std::span(whole).first(length), "cut").ok()) << length;
  }
  uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  for (size_t i = 0; i < 8 + header; ++i) {
    for (const int bit : {0, 3, 7}) {
      std::vector<std::byte> flipped = whole;
      flipped[i] ^= std::byte{1} << bit;
      const auto result = parseSafetensors(flipped, "flipped");
      if (!result.ok()) {
        EXPECT_FALSE(result.diagnostics().front().message.empty());
      }
    }
  }
}

// In quadratic time this takes a quarter of an hour, in linear time a moment.
TEST(Safetensors, headers_of_many_tensors_are_read_in_linear_time) {
  constexpr int kTensors = 100'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  const auto read = parseSafetensors(fileOf(header + "}", ""), "f");
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  EXPECT_EQ(read->tensors.size(), kTensors);
  const auto twice = parseSafetensors(fileOf(header + R"(,"t7":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", ""), "f");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.diagnostics().front().code, "safetensors.header");
}

}  // namespace
}  // namespace lockstep::io
