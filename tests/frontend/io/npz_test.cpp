// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/npz.h"

#include <gtest/gtest.h>

#include <cstring>

#include "frontend/io/zip.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

using testing::ScratchDirectory;
using testing::toBytes;

/// What numpy.savez_compressed(f, a=numpy.array([[1, 2], [3, 4]], '<i4'), b=numpy.zeros(3, '<f4')) writes (NumPy 1.24).
constexpr std::string_view kFromNumpy =
    "504b0304140000000800000021007bc8617c520000009000000005001400612e6e707901001000900000000000000052000000000000009bec17ea1b"
    "10c9c850c650ad9e925a9c5ca46ea5a06e9369a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a0a469a3a0ab5"
    "0a64032e46060606262066066216200600504b030414000000080000002100a9f69b18470000008c00000005001400622e6e7079010010008c000000"
    "0000000047000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e05"
    "8a17672416a402f91ac63a9a3a0ab50a14002e06240000504b01021403140000000800000021007bc8617c5200000090000000050000000000000000"
    "000000800100000000612e6e7079504b0102140314000000080000002100a9f69b18470000008c000000050000000000000000000000800189000000"
    "622e6e7079504b0506000000000200020066000000070100000000";

std::vector<std::byte> fromHex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

Arrays sample() {
  std::vector<float> ramp(5000);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 7);
  return {{"layer.0/W", Array::fromFloats({50, 100}, ramp)},
          {"empty", Array::zeros(ElementType::F32, {0})},
          {"n", Array::zeros(ElementType::I64, {})}};
}

std::string codeOf(std::span<const std::byte> bytes) {
  const auto read = parseNpz(bytes, "f.npz");
  return read ? "" : read.diagnostics().front().code;
}

TEST(Npz, archive_of_numpy_is_read) {
  const auto read = parseNpz(fromHex(kFromNumpy), "f.npz");
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  const std::vector<int32_t> numbers{1, 2, 3, 4};
  EXPECT_EQ(*read, (Arrays{{"a", Array::fromInts({2, 2}, numbers)}, {"b", Array::zeros(ElementType::F32, {3})}}));
}

TEST(Npz, written_arrays_read_back_and_deflating_saves_room) {
  const ScratchDirectory scratch("npz");
  for (const NpzCompression compression : {NpzCompression::Stored, NpzCompression::Deflated}) {
    ASSERT_TRUE(writeNpz(scratch / "a.npz", sample(), compression).ok());
    const auto read = readNpz(scratch / "a.npz");
    ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
    EXPECT_EQ(*read, sample());
  }
  EXPECT_GT(formatNpz(sample())->size(), 20000u);
  EXPECT_LT(formatNpz(sample(), NpzCompression::Deflated)->size(), 2000u);
  EXPECT_EQ(*formatNpz(sample()), *formatNpz(sample()));
  EXPECT_TRUE(parseNpz(*formatNpz({}), "f.npz")->empty());
}

TEST(Npz, arrays_of_narrow_types_read_back_at_any_length) {
  Arrays arrays;
  for (const ElementType type : {ElementType::F16, ElementType::I8, ElementType::U8, ElementType::U16}) {
    for (const int64_t length : {1, 3, 65, 257}) {
      Array array = Array::zeros(type, {length});
      for (size_t i = 0; i < array.data.size(); ++i) array.data[i] = static_cast<std::byte>(i * 37);
      arrays.emplace(std::string(toString(type)) + std::to_string(length), array);
    }
  }
  for (const NpzCompression compression : {NpzCompression::Stored, NpzCompression::Deflated}) {
    const auto read = parseNpz(formatNpz(arrays, compression).orThrow(), "f.npz");
    ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
    EXPECT_EQ(*read, arrays);
  }
}

TEST(Npz, array_that_numpy_has_no_type_for_is_named) {
  const ScratchDirectory scratch("npz_bf16");
  const Status written =
      writeNpz(scratch / "a.npz", {{"fine", Array::zeros(ElementType::U8, {1})}, {"W", Array::zeros(ElementType::BF16, {2})}});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.diagnostics().front().code, "npy.dtype");
  EXPECT_EQ(written.diagnostics().front().message.find("'W': "), 0u) << written.diagnostics().front().message;
  EXPECT_EQ(scratch.fileCount(), 0u);
}

TEST(Npz, damaged_archives_are_refused) {
  EXPECT_EQ(codeOf({}), "zip.archive");
  EXPECT_EQ(codeOf(toBytes("no archive at all, just a text of some length")), "zip.archive");
  const std::vector<std::byte> good = fromHex(kFromNumpy);
  for (size_t length = 0; length < good.size(); ++length) EXPECT_EQ(codeOf(std::span(good).first(length)), "zip.archive") << length;
  // Any changed byte of the data is noticed, and no other byte does harm.
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x55};
    (void)codeOf(bad);
  }
  std::vector<std::byte> stored = *formatNpz({{"x", Array::zeros(ElementType::F32, {4})}});
  stored[34 + 128] ^= std::byte{1};  // behind the local header and the npy header
  EXPECT_EQ(codeOf(stored), "zip.checksum");
}

/// Where entry `index` of the directory begins.
size_t directoryEntry(const std::vector<std::byte>& archive, size_t index) {
  const std::string_view text(reinterpret_cast<const char*>(archive.data()), archive.size());
  size_t at = text.find("PK\x01\x02");
  for (size_t i = 0; i < index; ++i) at = text.find("PK\x01\x02", at + 4);
  return at;
}

void put(std::vector<std::byte>& bytes, size_t at, uint32_t number) { std::memcpy(bytes.data() + at, &number, sizeof number); }

TEST(Npz, members_do_not_overlap) {
  const Array ramp = Array::fromFloats({4}, std::vector<float>{1, 2, 3, 4});
  std::vector<std::byte> archive = *formatNpz({{"a", ramp}, {"b", ramp}});
  ASSERT_EQ(codeOf(archive), "");
  put(archive, directoryEntry(archive, 1) + 42, 0);  // b is where a is: the same bytes twice
  EXPECT_EQ(codeOf(archive), "zip.archive");
}

TEST(Npz, members_together_have_a_limit) {
  std::vector<std::byte> archive = *formatNpz(sample(), NpzCompression::Deflated);
  for (size_t i = 0; i < 2; ++i) put(archive, directoryEntry(archive, i) + 24, 0x90000000u);  // 2.25 GiB each
  EXPECT_EQ(codeOf(archive), "zip.size");
}

TEST(Npz, members_that_are_no_arrays_are_named) {
  EXPECT_EQ(codeOf(*formatZip({{"notes.txt", toBytes("hello")}}, false)), "npz.member");
  const auto read = parseNpz(*formatZip({{"a.npy", toBytes("hello")}}, false), "f.npz");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.diagnostics().front().code, "npy.magic");
  EXPECT_EQ(read.diagnostics().front().where.file, "f.npz:a.npy");
}

}  // namespace
}  // namespace lockstep::io
