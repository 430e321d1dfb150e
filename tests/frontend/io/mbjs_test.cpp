// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/mbjs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

constexpr uint32_t kMbjsMagic = 0x4D424A53;

/// Little-endian, as files have them.
struct MbjsBytes {
  std::vector<std::byte> all;
  template <class T>
  MbjsBytes& put(std::initializer_list<T> values) {
    for (const T value : values) {
      const auto* begin = reinterpret_cast<const std::byte*>(&value);
      all.insert(all.end(), begin, begin + sizeof(T));
    }
    return *this;
  }
  MbjsBytes& words(std::initializer_list<uint32_t> values) { return put(values); }
  /// 1, 2, 3, ...
  MbjsBytes& numbers(size_t count) {
    for (size_t i = 1; i <= count; ++i) put({static_cast<float>(i)});
    return *this;
  }
};

/// Sizes of a mamba1 of width 2: inner 4, states 3, a convolution of 2 taps, rank 1.
constexpr std::array<uint32_t, 13> kMamba1Sizes{16, 8, 8, 4, 28, 7, 4, 4, 12, 4, 8, 2, 2};

std::string mbjsCode(std::span<const std::byte> bytes) {
  const auto read = parseMbjs(bytes, "model.bin");
  return read.ok() ? "" : read.diagnostics()[0].code;
}
std::string mbjsText(std::span<const std::byte> bytes) { return toString(parseMbjs(bytes, "model.bin").diagnostics()); }

TEST(Mbjs, version_1_has_layers_of_mamba1_alone) {
  MbjsBytes bytes;
  bytes.words({kMbjsMagic, 1, 15, 10});
  for (const uint32_t size : kMamba1Sizes) bytes.words({size});
  bytes.words({2}).numbers(10 + 107 + 2);
  const MbjsFile file = parseMbjs(bytes.all, "model.bin").orThrow();
  EXPECT_EQ(file.version, 1u);
  EXPECT_EQ(file.layers, std::vector{MbjsLayer::Mamba1});
  ASSERT_EQ(file.tensors.size(), 15u);
  const auto shape = [&](const char* name) { return file.tensors.at(name).shape; };
  EXPECT_EQ(shape("embedding"), (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(shape("layers.0.wInProj"), (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(shape("layers.0.wConv"), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(shape("layers.0.wXProj"), (std::vector<int64_t>{7, 4}));
  EXPECT_EQ(shape("layers.0.wDtProj"), (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(shape("layers.0.A_log"), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(shape("layers.0.wOutProj"), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(file.tensors.at("embedding").toFloats()[9], 10);
  EXPECT_EQ(file.tensors.at("layers.0.bInProj").toFloats()[0], 10 + 16 + 1);
  EXPECT_EQ(file.tensors.at("final_norm").toFloats(), (std::vector<float>{118, 119}));
  EXPECT_EQ(formatMbjs(file).orThrow(), bytes.all);
}

/// A mamba2 (inner 4, two heads, b and c of 3 each), a mamba3 of the same, attention without and with a feed-forward part; width 2.
MbjsBytes hybridHeader(uint32_t version) {
  MbjsBytes bytes;
  bytes.words({kMbjsMagic, version, 4}).put<uint8_t>({1, 2, 3, 3});
  bytes.words({2 + 9 + 9 + 5 + 9, 6, 24, 20, 10, 2, 2, 2, 8, 4, 2, 28, 24, 12, 4, 2, 2, 8, 4, 2});
  bytes.words({12, 6, 4, 2, 2, 12, 6, 4, 2, 2, 16, 8, 16, 2, 2});
  return bytes;
}
constexpr size_t kHybridNumbers = 6 + 74 + 86 + 26 + 26 + 42 + 2;

TEST(Mbjs, version_2_lists_its_layers) {
  MbjsBytes bytes = hybridHeader(2);
  bytes.numbers(kHybridNumbers);
  const MbjsFile file = parseMbjs(bytes.all, "model.bin").orThrow();
  EXPECT_EQ(file.layers, (std::vector{MbjsLayer::Mamba2, MbjsLayer::Mamba3, MbjsLayer::Attention, MbjsLayer::Attention}));
  const auto shape = [&](const char* name) { return file.tensors.at(name).shape; };
  EXPECT_EQ(shape("layers.0.wInProj"), (std::vector<int64_t>{12, 2}));
  EXPECT_EQ(shape("layers.0.wConv"), (std::vector<int64_t>{10, 2}));
  EXPECT_EQ(shape("layers.0.A_log"), (std::vector<int64_t>{2}));
  EXPECT_EQ(shape("layers.1.A_log"), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(shape("layers.3.wFfn2"), (std::vector<int64_t>{2, 8}));
  EXPECT_FALSE(file.tensors.contains("layers.2.wFfn1"));
  EXPECT_EQ(file.tensors.at("final_norm").toFloats()[1], static_cast<float>(kHybridNumbers));
  EXPECT_EQ(formatMbjs(file).orThrow(), bytes.all);
}

TEST(Mbjs, version_3_has_halves_and_keeps_the_small_ones) {
  MbjsBytes bytes;
  bytes.words({kMbjsMagic, 3, 0, 2, 4, 2});
  // 1, 65504, 2^-24 (the least subnormal) and 1e-5, whose digits beyond 2^-24 are cut off; then -2 and infinity.
  bytes.put<uint16_t>({0x3C00, 0x7BFF, 0x0001, 0x00A7, 0xC000, 0x7C00});
  const MbjsFile file = parseMbjs(bytes.all, "model.bin").orThrow();
  EXPECT_EQ(file.tensors.at("embedding").toFloats(), (std::vector<float>{1, 65504, 0x1p-24f, 167 * 0x1p-24f}));
  EXPECT_EQ(file.tensors.at("embedding").type, ElementType::F32);
  EXPECT_EQ(file.tensors.at("final_norm").toFloats(), (std::vector<float>{-2, INFINITY}));
  EXPECT_EQ(formatMbjs(file).orThrow(), bytes.all);
}

TEST(Mbjs, halves_are_written_to_the_nearest) {
  const auto written = [](float value) {
    const MbjsFile file{
        .version = 3,
        .layers = {},
        .tensors = {{"embedding", Array::fromFloats({1, 1}, std::array{value})}, {"final_norm", Array::fromFloats({1}, std::array{1.0F})}}};
    return formatMbjs(file);
  };
  const auto half = [&](float value) {
    const std::vector<std::byte> bytes = written(value).orThrow();
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + bytes.size() - 4, sizeof(bits));
    return bits;
  };
  EXPECT_EQ(half(1e-5F), 0x00A8);    // 167.77 units of 2^-24
  EXPECT_EQ(half(6.1e-5F), 0x03FF);  // the largest subnormal
  EXPECT_EQ(half(0x1p-26F), 0x0000);
  EXPECT_EQ(half(1.0009766F + 3e-4F), 0x3C01);
  EXPECT_EQ(half(65519), 0x7BFF);
  const auto large = written(70000);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.diagnostics()[0].code, "mbjs.value");
  EXPECT_EQ(large.diagnostics()[0].message, "element 0 of 'embedding' is 70000, beyond what f16 holds");
  EXPECT_TRUE(written(INFINITY).ok());
}

TEST(Mbjs, files_round_trip_on_disk) {
  const testing::ScratchDirectory scratch("mbjs");
  MbjsBytes bytes = hybridHeader(2);
  bytes.numbers(kHybridNumbers);
  MbjsFile file = parseMbjs(bytes.all, "model.bin").orThrow();
  for (const uint32_t version : {2u, 3u}) {
    file.version = version;
    ASSERT_TRUE(writeMbjs(scratch / "model.bin", file).ok());
    EXPECT_EQ(readMbjs(scratch / "model.bin").orThrow(), file);
  }
}

TEST(Mbjs, what_is_no_such_file_says_why) {
  EXPECT_EQ(mbjsCode(MbjsBytes().words({0x53424A4D, 2}).all), "mbjs.magic");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 4}).all), "mbjs.version");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 0}).all), "mbjs.version");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 1}).put<uint8_t>({4, 0, 0, 0}).all), "mbjs.layer");
  // As many tensors as an embedding and a norm are, but one layer.
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 1, 0, 2, 4, 2}).numbers(6).all), "mbjs.count");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0, 3, 4, 2, 2}).numbers(8).all), "mbjs.count");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 1, 3, 4, 2, 2}).numbers(8).all), "mbjs.count");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0, 2, 5, 2}).numbers(7).all), "mbjs.shape");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0, 2, 4, 0}).numbers(4).all), "mbjs.shape");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0, 2, 4, 2}).numbers(7).all), "mbjs.length");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0xFFFFFFFF}).all), "mbjs.length");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0, 0xFFFFFFFF}).all), "mbjs.length");
  EXPECT_EQ(mbjsCode(MbjsBytes().words({kMbjsMagic, 2, 0, 2, 0xFFFFFFFF, 1}).all), "mbjs.length");
}

TEST(Mbjs, every_part_of_a_file_is_too_short) {
  for (const uint32_t version : {2u, 3u}) {
    MbjsBytes bytes = hybridHeader(version);
    if (version == 2) bytes.numbers(kHybridNumbers);
    if (version == 3) bytes.all.resize(bytes.all.size() + 2 * kHybridNumbers);
    EXPECT_EQ(mbjsCode(bytes.all), "");
    for (size_t size = 0; size < bytes.all.size(); ++size) EXPECT_EQ(mbjsCode(std::span(bytes.all).first(size)), "mbjs.length") << size;
  }
}

TEST(Mbjs, a_wrong_size_is_named_with_its_layer) {
  MbjsBytes bytes = hybridHeader(2);
  const uint32_t wrong = 11;  // bConv of layer 1 has 12
  std::memcpy(bytes.all.data() + 20 + 4 * 12, &wrong, sizeof(wrong));
  bytes.numbers(kHybridNumbers - 1);
  EXPECT_EQ(mbjsCode(bytes.all), "mbjs.shape");
  EXPECT_NE(mbjsText(bytes.all).find("'layers.1.wInProj' has 28 elements, not the 13 x 2"), std::string::npos) << mbjsText(bytes.all);
}

/// A layer of width 2; `decays` is the number of elements of A_log for each head.
MbjsBytes mambaOf(uint8_t kind, uint32_t inner, uint32_t heads, uint32_t mixed, uint32_t decays, uint32_t taps = 2) {
  MbjsBytes bytes;
  bytes.words({kMbjsMagic, 2, 1}).put<uint8_t>({kind, 0, 0, 0});
  bytes.words({11, 2, 2 * (mixed + heads), taps * mixed, mixed, decays * heads, heads, heads, 2 * inner, inner, 2, 2});
  return bytes.numbers(2 + 2 * (mixed + heads) + (taps + 1) * mixed + (decays + 2) * heads + 3 * inner + 4);
}

TEST(Mbjs, a_size_that_no_layer_has_is_named) {
  EXPECT_EQ(mbjsText(mambaOf(1, 4, 2, 10, 1).all), "");
  EXPECT_EQ(mbjsText(mambaOf(2, 4, 2, 12, 2).all), "");
  struct Row {
    uint8_t kind;
    uint32_t inner, heads, mixed;
    const char* wanted;
  };
  for (const Row& row : {Row{1, 5, 1, 11, "'layers.0.normWeight' has 5 elements, and 5 channels are not a multiple of the width 2"},
                         Row{1, 4, 3, 10, "'layers.0.A_log' has 3 elements, and 4 channels cannot be split into 3 heads"},
                         Row{2, 4, 3, 12, "'layers.0.A_log' has 6 elements, and 4 channels cannot be split into 3 heads"},
                         Row{1, 4, 2, 9, "'layers.0.bConv' has 9 elements, not 4 channels and a multiple of 2 for b and c"},
                         Row{1, 4, 2, 4, "'layers.0.bConv' has 4 elements, not 4 channels and a multiple of 2 for b and c"},
                         Row{1, 4, 2, 2, "'layers.0.bConv' has 2 elements, not 4 channels and a multiple of 2 for b and c"},
                         Row{2, 4, 2, 10, "'layers.0.bConv' has 10 elements, not 4 channels and a multiple of 4 for b and c"}}) {
    const std::string text = mbjsText(mambaOf(row.kind, row.inner, row.heads, row.mixed, row.kind).all);
    EXPECT_NE(text.find("mbjs.shape"), std::string::npos) << text;
    EXPECT_NE(text.find(row.wanted), std::string::npos) << text;
  }
  MbjsBytes mamba1;
  mamba1.words({kMbjsMagic, 1, 15, 10, 12, 6, 6, 3, 21, 7, 3, 3, 9, 3, 6, 2, 2, 2}).numbers(10 + 83 + 2);
  EXPECT_NE(mbjsText(mamba1.all).find("'layers.0.D_vec' has 3 elements, and 3 channels are not a multiple"), std::string::npos);
}

TEST(Mbjs, a_convolution_of_one_tap_is_refused_with_a_remedy) {
  MbjsBytes mamba1;  // inner 4, one state, rank 1
  mamba1.words({kMbjsMagic, 1, 15, 10, 16, 8, 4, 4, 12, 3, 4, 4, 4, 4, 8, 2, 2, 2}).numbers(10 + 73 + 2);
  for (const auto& bytes : {mambaOf(1, 4, 2, 10, 1, 1), mambaOf(2, 4, 2, 12, 2, 1), mamba1}) {
    const std::string text = mbjsText(bytes.all);
    EXPECT_NE(text.find("'layers.0.wConv' has"), std::string::npos) << text;
    EXPECT_NE(text.find("and a convolution of one tap"), std::string::npos) << text;
    EXPECT_NE(text.find("from a model whose convolutions have two taps or more"), std::string::npos) << text;
  }
}

TEST(Mbjs, what_is_no_model_of_its_layers_is_not_written) {
  MbjsBytes bytes = hybridHeader(2);
  bytes.numbers(kHybridNumbers);
  const MbjsFile whole = parseMbjs(bytes.all, "model.bin").orThrow();
  const auto code = [](const MbjsFile& file) { return formatMbjs(file).diagnostics().at(0).code; };
  MbjsFile file = whole;
  file.version = 1;
  EXPECT_EQ(code(file), "mbjs.version");
  file.version = 4;
  EXPECT_EQ(code(file), "mbjs.version");
  file = whole;
  file.tensors.erase("layers.0.bConv");
  EXPECT_EQ(code(file), "mbjs.tensor");
  file = whole;
  file.tensors.emplace("layers.4.bConv", Array::zeros(ElementType::F32, {2}));
  EXPECT_EQ(code(file), "mbjs.tensor");
  file = whole;
  file.tensors.at("layers.0.wConv").shape = {2, 10};
  EXPECT_EQ(code(file), "mbjs.shape");
}

}  // namespace
}  // namespace lockstep::io
