// SPDX-License-Identifier: Apache-2.0
// What the samples train on where there is no real data.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "examples/data/digits.h"
#include "examples/data/names.h"
#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::examples {
namespace {

TEST(Digits, are_drawn_the_same_again_and_each_differently) {
  const Digits digits = drawDigits(200, 1);
  EXPECT_EQ(digits.pixels, drawDigits(200, 1).pixels);
  EXPECT_NE(digits.pixels, drawDigits(200, 2).pixels);
  for (size_t i = 0; i < digits.count(); ++i) {
    const auto picture = std::span(digits.pixels).subspan(i * kDigitPixels, kDigitPixels);
    const float ink = std::accumulate(picture.begin(), picture.end(), 0.0f);
    EXPECT_GT(ink, 20) << i;
    EXPECT_LT(ink, 300) << i;
    EXPECT_TRUE(std::ranges::all_of(picture, [](float value) { return value >= 0 && value <= 1; }));
    EXPECT_EQ(digits.labels[i], static_cast<int32_t>(i % 10));
  }
}

TEST(Digits, grid_has_a_line_between_pictures) {
  const Digits digits = drawDigits(5, 1);
  const io::Image image = digitGrid(digits.pixels, 3, 2);
  EXPECT_EQ(image.width(), 3 * 29 * 2 + 2);
  EXPECT_EQ(image.height(), 2 * 29 * 2 + 2);
}

/// A file of MNIST with `count` pictures of one grey each, or their labels.
std::string idxFile(uint8_t rank, uint8_t count, uint8_t side) {
  std::string text{0, 0, 8, static_cast<char>(rank), 0, 0, 0, static_cast<char>(count)};
  for (int axis = 1; axis < rank; ++axis) text += std::string{0, 0, 0, static_cast<char>(side)};
  const size_t each = rank == 1 ? 1 : size_t{side} * side;
  for (size_t i = 0; i < count * each; ++i) text += static_cast<char>(i / each);
  return text;
}

TEST(Digits, files_of_mnist_are_read_and_checked) {
  const lockstep::testing::ScratchDirectory scratch("mnist");
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::writeFileAtomically(scratch / name, std::string_view(text)).ok());
  };
  const auto codeOf = [&] {
    try {
      (void)loadDigits(scratch / "", 1);
    } catch (const Error& error) {
      return error.code();
    }
    return std::string();
  };
  EXPECT_EQ(codeOf(), "data.digits");
  write("train-images-idx3-ubyte", idxFile(3, 3, 28));
  write("train-labels.idx1-ubyte", idxFile(1, 3, 0));
  write("t10k-images-idx3-ubyte", idxFile(3, 2, 28));
  write("t10k-labels-idx1-ubyte", idxFile(1, 2, 0));
  const DigitData data = loadDigits(scratch / "", 1);
  EXPECT_EQ(data.train.labels, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(data.train.pixels[2 * kDigitPixels], 2.0f / 255);
  EXPECT_EQ(data.test.count(), 2u);
  write("t10k-labels-idx1-ubyte", idxFile(1, 3, 0));
  EXPECT_EQ(codeOf(), "data.digits");
  write("t10k-labels-idx1-ubyte", idxFile(1, 2, 0));
  write("t10k-images-idx3-ubyte", idxFile(3, 2, 20));
  EXPECT_EQ(codeOf(), "data.digits");
}

TEST(Names, lists_are_plain_and_differ) {
  for (const auto list : {givenNames(), creatureNames()}) {
    std::set<std::string> names;
    for (const std::string name : list) {
      EXPECT_TRUE(std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; })) << name;
      EXPECT_LE(name.size(), 14u) << name;
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  }
  EXPECT_EQ(creatureNames().size(), 40u);
}

TEST(Names, become_tokens_and_letters_again) {
  const std::vector<std::string> names{"ab", "zoe"};
  const NameBatch batch = nameBatch(names, 5, 1, 0, 0);
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{0, 1, 2, 0, 0, 0, 26, 15, 5, 0}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{1, 2, 0, 0, 0, 26, 15, 5, 0, 0}));
  EXPECT_EQ(batch.mask, (std::vector<float>{1.0f / 7, 1.0f / 7, 1.0f / 7, 0, 0, 1.0f / 7, 1.0f / 7, 1.0f / 7, 1.0f / 7, 0}));
  EXPECT_EQ(nameOf(std::span(batch.targets).subspan(5, 5), 1), "zoe");
}

TEST(Names, file_is_read_line_by_line) {
  const lockstep::testing::ScratchDirectory scratch("names");
  ASSERT_TRUE(io::writeFileAtomically(scratch / "names", std::string_view("Anna\r\nb\nO'Neil\nmaximilian\nZoe")).ok());
  EXPECT_EQ(loadNames(scratch / "names", givenNames(), 2, 5), (std::vector<std::string>{"anna", "zoe"}));
  EXPECT_THROW((void)loadNames(scratch / "names", givenNames(), 20, 30), Error);
  EXPECT_EQ(loadNames("", givenNames(), 2, 5).size(), givenNames().size());
}

}  // namespace
}  // namespace lockstep::examples
