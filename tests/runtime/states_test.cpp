// SPDX-License-Identifier: Apache-2.0
// Values of every element type as memory of a device has them: packed ones share words, and the end of the last word is zero.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/backend.h"
#include "ir/support/diagnostic.h"
#include "runtime/device_states.h"
#include "runtime/memory_array.h"
#include "runtime/step_values.h"

namespace lockstep::testing {
namespace {

using graph::DType;
using graph::Shape;
using graph::TensorType;

constexpr std::array<int64_t, 6> kLengths{1, 2, 3, 4, 65, 257};

/// Numbers that the type has, other ones for neighbours.
std::vector<double> numbersOf(DType dtype, int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const auto step = static_cast<double>(i % 100);
    const bool is_signed = graph::isFloat(dtype) || graph::factsOf(dtype).lowest < 0;
    numbers.push_back(dtype == DType::Bool ? static_cast<double>(i % 2) : is_signed ? step - 50 : step + 100);
  }
  return numbers;
}

std::vector<uint8_t> bytesOf(const io::Array& array) {
  std::vector<uint8_t> bytes(array.data.size());
  std::memcpy(bytes.data(), array.data.data(), bytes.size());
  return bytes;
}

TEST(MemoryArray, first_elements_lie_in_the_lowest_bits) {
  const double numbers[] = {1, -2, 3};
  const double naturals[] = {1, 254, 3};
  EXPECT_EQ(bytesOf(detail::encodeArray({DType::I8, Shape{3}}, numbers)), (std::vector<uint8_t>{1, 0xfe, 3}));
  EXPECT_EQ(bytesOf(detail::encodeArray({DType::U8, Shape{3}}, naturals)), (std::vector<uint8_t>{1, 0xfe, 3}));
  EXPECT_EQ(bytesOf(detail::encodeArray({DType::F16, Shape{3}}, numbers)), (std::vector<uint8_t>{0, 0x3c, 0, 0xc0, 0, 0x42}));
  EXPECT_EQ(bytesOf(detail::encodeArray({DType::BF16, Shape{3}}, numbers)), (std::vector<uint8_t>{0x80, 0x3f, 0, 0xc0, 0x40, 0x40}));
}

TEST(MemoryArray, floats_are_rounded_to_the_nearest_even) {
  const float numbers[] = {2049, 2051, 1e6f};
  EXPECT_EQ(detail::encodeArray({DType::F16, Shape{3}}, numbers).toDoubles(), (std::vector<double>{2048, 2052, INFINITY}));
  EXPECT_EQ(detail::encodeArray({DType::BF16, Shape{3}}, numbers).toDoubles(), (std::vector<double>{2048, 2048, 999424}));
}

TEST(MemoryArray, values_of_every_type_and_length_come_back) {
  for (const DType dtype : graph::kDTypes) {
    for (const int64_t length : kLengths) {
      const TensorType type{dtype, Shape{length}};
      const std::vector<double> numbers = numbersOf(dtype, length);
      const io::Array array = detail::encodeArray(type, numbers);
      EXPECT_EQ(array.toDoubles(), numbers) << toString(type);
      EXPECT_EQ(detail::elementBytes(type), array.data.size());
      // Memory has whole words: the bytes after the last element hold none.
      std::vector<std::byte> memory = array.data;
      memory.resize(type.byteSize(), std::byte{0xff});
      EXPECT_EQ(memory.size() % 4, 0u);
      EXPECT_LT(memory.size() - array.data.size(), 4u);
      EXPECT_EQ(detail::arrayIn(type, memory), array) << toString(type);
      EXPECT_EQ(detail::decodeMemory(type, memory), numbers) << toString(type);
    }
  }
}

TEST(MemoryArray, every_pattern_of_16_bits_is_the_same_in_files_and_in_memory) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const TensorType type{dtype, Shape{65536}};
    io::Array all = detail::zeroArray(type);
    for (uint32_t bits = 0; bits < 65536; ++bits) std::memcpy(all.data.data() + bits * 2, &bits, 2);
    const std::vector<double> inMemory = detail::decodeMemory(type, all.data), inFile = all.toDoubles();
    const io::Array back = detail::encodeArray(type, inMemory);
    for (size_t i = 0; i < inFile.size(); ++i) {
      if (std::isnan(inFile[i])) {
        EXPECT_TRUE(std::isnan(inMemory[i]) && std::isnan(back.at(i))) << i;
      } else {
        ASSERT_EQ(inMemory[i], inFile[i]) << i;
        ASSERT_EQ(std::memcmp(back.data.data() + i * 2, all.data.data() + i * 2, 2), 0) << i;
      }
    }
  }
}

TEST(MemoryArray, of_a_step_value_has_its_type) {
  const double numbers[] = {0.5, 2};
  EXPECT_EQ(detail::toArray(detail::stepValue("lr", numbers)).toDoubles(), (std::vector<double>{0.5, 2}));
  const io::Array key = detail::toArray(detail::randomKey((uint64_t{1} << 32) | 7, 3));
  EXPECT_EQ(io::describe(key), "u32[4]");
  EXPECT_EQ(key.toDoubles(), (std::vector<double>{7, 1, 3, 0}));
}

class StatesOf : public ::testing::TestWithParam<const char*> {
 protected:
  /// All words of a state.
  std::vector<uint32_t> words(const std::shared_ptr<Memory>& memory, const TensorType& type) {
    std::vector<uint32_t> words(type.byteSize() / 4);
    (void)memory->read(0, std::as_writable_bytes(std::span(words))).orThrow();
    return words;
  }
  std::unique_ptr<detail::States> states_ = std::make_unique<detail::States>(detail::openChosenDevice(GetParam()));
};

TEST_P(StatesOf, every_type_and_length_are_filled_written_and_read) {
  for (const DType dtype : graph::kDTypes) {
    for (const int64_t length : kLengths) {
      const TensorType type{dtype, Shape{length}};
      const std::string name = toString(type);
      const std::shared_ptr<Memory> memory = states_->declare(name, {type, 1, true});
      const std::vector<double> ones(static_cast<size_t>(length), 1), numbers = numbersOf(dtype, length);
      EXPECT_EQ(states_->read(name), detail::encodeArray(type, ones)) << name;

      const io::Array values = detail::encodeArray(type, numbers);
      states_->write(name, values);
      EXPECT_EQ(states_->read(name), values) << name;
      EXPECT_EQ(states_->readFloats(name), std::vector<float>(numbers.begin(), numbers.end())) << name;

      states_->fill(name);
      EXPECT_EQ(states_->read(name).toDoubles(), ones) << name;
    }
  }
}

// Large states are written in parts.
TEST_P(StatesOf, large_states_are_filled_to_their_last_element) {
  constexpr int64_t kLength = (int64_t{2} << 20) + 3;
  for (const DType dtype : {DType::F32, DType::BF16, DType::I8}) {
    for (const int64_t length : {kLength, kLength - 3}) {
      const TensorType type{dtype, Shape{length}};
      const std::string name = toString(type);
      const std::shared_ptr<Memory> memory = states_->declare(name, {type, 3, true});
      const io::Array threes = detail::encodeArray(type, std::vector<double>(static_cast<size_t>(length), 3));
      EXPECT_TRUE(states_->read(name) == threes) << name;
      const std::vector<uint32_t> full(type.byteSize() / 4, UINT32_MAX);
      (void)memory->write(0, std::as_bytes(std::span(full))).orThrow();
      states_->fill(name);
      EXPECT_TRUE(states_->read(name) == threes) << name;
      const uint64_t used = static_cast<uint64_t>(length) * graph::byteSize(dtype) % 4;
      if (used > 0) {
        EXPECT_EQ(words(memory, type).back() >> (8 * used), 0u) << name;
      }
    }
  }
}

TEST_P(StatesOf, the_end_of_the_last_word_is_zero) {
  const TensorType bytes{DType::U8, Shape{5}}, halves{DType::F16, Shape{3}};
  const std::shared_ptr<Memory> b = states_->declare("b", {bytes, 255, true}), h = states_->declare("h", {halves, -2, true});
  EXPECT_EQ(words(b, bytes), (std::vector<uint32_t>{0xffffffffu, 0xffu}));
  EXPECT_EQ(words(h, halves), (std::vector<uint32_t>{0xc000c000u, 0xc000u}));
  const double numbers[] = {1, 2, 3, 4, 5};
  for (const auto& [memory, type] : {std::pair(b, bytes), std::pair(h, halves)}) {
    const std::vector<uint32_t> full(type.byteSize() / 4, UINT32_MAX);
    (void)memory->write(0, std::as_bytes(std::span(full))).orThrow();
  }
  states_->write("b", detail::encodeArray(bytes, std::span(numbers)));
  states_->write("h", detail::encodeArray(halves, std::span(numbers).first(3)));
  EXPECT_EQ(words(b, bytes), (std::vector<uint32_t>{0x04030201u, 5u}));
  EXPECT_EQ(words(h, halves), (std::vector<uint32_t>{0x40003c00u, 0x4200u}));
}

TEST_P(StatesOf, arrays_of_another_type_or_size_are_our_bug) {
  (void)states_->declare("h", {{DType::F16, Shape{3}}, 0, true});
  EXPECT_THROW(states_->write("h", io::Array::zeros(io::ElementType::BF16, {3})), InternalError);
  EXPECT_THROW(states_->write("h", io::Array::zeros(io::ElementType::F16, {4})), InternalError);
  const std::vector<float> floats(3);
  EXPECT_THROW(states_->writeFloats("h", floats), InternalError);
}

INSTANTIATE_TEST_SUITE_P(On, StatesOf, ::testing::Values("reference", "vulkan"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lockstep::testing
