// SPDX-License-Identifier: Apache-2.0
// One tensor of a safetensors file at a time: what is read, and what is said of files that are wrong.
#include "frontend/io/tensor_reader.h"

#include <gtest/gtest.h>

#include "frontend/io/file.h"
#include "frontend/io/safetensors.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

TensorFile fewTensors() {
  TensorFile file;
  const float floats[] = {1.5F, -2, 3, 4, 5, 6};
  const double doubles[] = {0.5, -1};
  file.tensors["a"] = Array::fromFloats({2, 3}, floats);
  file.tensors["half"] = Array::from(ElementType::F16, {2}, doubles);
  file.tensors["none"] = Array::zeros(ElementType::F32, {0, 4});
  file.tensors["mask"] = Array{.type = ElementType::Bool, .shape = {2}, .data = {std::byte{1}, std::byte{0}}};
  return file;
}

std::string codeOf(const auto& result) { return result.ok() ? "" : result.diagnostics().front().code; }

class TensorReaderFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(std::span<const std::byte> bytes) {
    EXPECT_TRUE(writeFileAtomically(path_, bytes));
    return path_;
  }
  testing::ScratchDirectory scratch_{"tensor-reader"};
  std::filesystem::path path_ = scratch_ / "file";
};

TEST_F(TensorReaderFiles, each_tensor_is_that_of_the_whole_file) {
  const auto reader = TensorReader::open(write(formatSafetensors(fewTensors()))).orThrow();
  EXPECT_EQ(reader.tensors().size(), fewTensors().tensors.size());
  for (const auto& [name, array] : fewTensors().tensors) {
    EXPECT_EQ(reader.read(name).orThrow(), array) << name;
    EXPECT_EQ(reader.tensors().at(name).shape, array.shape) << name;
  }
  EXPECT_EQ(codeOf(reader.read("b")), "safetensors.tensor");
}

TEST_F(TensorReaderFiles, a_part_of_a_file_is_refused_as_by_readSafetensors) {
  const std::vector<std::byte> whole = formatSafetensors(fewTensors());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = write(std::span(whole).first(size));
    const auto opened = TensorReader::open(path);
    ASSERT_FALSE(opened.ok()) << size;
    EXPECT_EQ(codeOf(opened), codeOf(readSafetensors(path))) << size;
  }
  EXPECT_EQ(codeOf(TensorReader::open(scratch_ / "nothing")), "file.read");
  EXPECT_EQ(codeOf(TensorReader::open(scratch_ / "")), "file.read");
}

TEST_F(TensorReaderFiles, a_file_that_becomes_shorter_is_an_error) {
  const std::vector<std::byte> whole = formatSafetensors(fewTensors());
  const auto reader = TensorReader::open(write(whole)).orThrow();
  std::filesystem::resize_file(path_, whole.size() - 20);
  EXPECT_EQ(codeOf(reader.read("mask")), "file.read");
}

TEST_F(TensorReaderFiles, a_boolean_is_checked_when_it_is_read) {
  std::vector<std::byte> whole = formatSafetensors(fewTensors());
  whole.back() = std::byte{2};
  const auto reader = TensorReader::open(write(whole)).orThrow();
  EXPECT_EQ(codeOf(reader.read("mask")), "safetensors.tensor");
  EXPECT_TRUE(reader.read("a").ok());
}

}  // namespace
}  // namespace lockstep::io
