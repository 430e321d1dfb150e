// SPDX-License-Identifier: Apache-2.0
// What a batch views and what it holds.
#include <array>
#include <numeric>

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

std::vector<float> counting(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}
std::span<const float> floatsOf(const BatchItem& item) { return std::get<std::span<const float>>(item.data); }

TEST(Batch, views_what_has_a_name) {
  std::vector<float> values = counting(5, 1);
  const std::array<float, 3> fixed{4, 5, 6};
  const Batch batch{{"x", values}, {"part", std::span(values).first(2)}, {"fixed", fixed}};
  EXPECT_EQ(floatsOf(batch[0]).data(), values.data());
  EXPECT_EQ(floatsOf(batch[1]).data(), values.data());
  EXPECT_EQ(floatsOf(batch[1]).size(), 2u);
  EXPECT_EQ(floatsOf(batch[2]).data(), fixed.data());
  for (const BatchItem& item : batch) EXPECT_EQ(item.owner, nullptr);
  values[0] = 9;
  EXPECT_EQ(floatsOf(batch[0])[0], 9);
}

TEST(Batch, holds_what_has_none) {
  std::vector<float> moved = counting(1000, 3);
  const float* elements = moved.data();
  Batch batch{{std::string("an input whose name is too long for a short string"), counting(1000, 1)},
              {"moved", std::move(moved)},
              {"listed", {7, 8, 9}},
              {"fixed", std::array<uint32_t, 2>{1, 2}}};
  EXPECT_EQ(floatsOf(batch[1]).data(), elements);  // not copied
  const Batch copy = batch;
  batch.clear();
  // What is freed would be used again here.
  std::vector<std::vector<float>> others;
  for (int i = 0; i < 50; ++i) others.emplace_back(1000, -1.0f);
  EXPECT_EQ(copy[0].name, "an input whose name is too long for a short string");
  EXPECT_TRUE(std::ranges::equal(floatsOf(copy[0]), counting(1000, 1)));
  EXPECT_TRUE(std::ranges::equal(floatsOf(copy[1]), counting(1000, 3)));
  EXPECT_TRUE(std::ranges::equal(std::get<std::span<const int32_t>>(copy[2].data), std::vector<int32_t>{7, 8, 9}));
  EXPECT_TRUE(std::ranges::equal(std::get<std::span<const uint32_t>>(copy[3].data), std::vector<uint32_t>{1, 2}));
}

/// Numbers that every type has.
template <class T>
std::vector<T> smallNumbers(int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(i * 7 % 120));
  return values;
}

/// What an input of `type` gives as f32, and as it is.
FunctionResult seen(const graph::TensorType& type, BatchItem item) {
  Function reading = function({.inputs = {{"x", type}},
                               .body =
                                   [type](const Inputs& in) {
                                     const Tensor wide = cast(in["x"], DType::F32);
                                     capture("same", cast(wide, type.dtype));
                                     return wide;
                                   },
                               .device = "reference"});
  return reading({std::move(item)});
}

TEST(Batch, of_packed_inputs_arrives_whole_at_any_length) {
  for (const int64_t count : {1, 3, 65, 257}) {
    const std::vector<float> wanted = smallNumbers<float>(count);
    const std::vector<double> doubles(wanted.begin(), wanted.end());
    EXPECT_EQ(seen({DType::U8, Shape{count}}, {"x", smallNumbers<uint8_t>(count)}).captures.get("same").doubles(), doubles);
    EXPECT_EQ(seen({DType::BF16, Shape{count}}, {"x", wanted}).captures.get("same").doubles(), doubles);
    EXPECT_EQ(seen({DType::U8, Shape{count}}, {"x", smallNumbers<uint8_t>(count)}).value.floats(), wanted);
    EXPECT_EQ(seen({DType::U16, Shape{count}}, {"x", smallNumbers<uint16_t>(count)}).value.floats(), wanted);
    EXPECT_EQ(seen({DType::I8, Shape{count}}, {"x", smallNumbers<int8_t>(count)}).value.floats(), wanted);
    EXPECT_EQ(seen({DType::F16, Shape{count}}, {"x", wanted}).value.floats(), wanted);
    EXPECT_EQ(seen({DType::BF16, Shape{count}}, {"x", wanted}).value.floats(), wanted);
  }
  EXPECT_EQ(seen({DType::I8, Shape{3}}, {"x", std::vector<int8_t>{-128, -1, 127}}).value.floats(), (std::vector<float>{-128, -1, 127}));
}

TEST(Batch, of_16_bit_floats_is_rounded_to_the_nearest_even) {
  const std::vector<float> values{2049, 2051, 0.1f, 1e6f, -0.0f};
  EXPECT_EQ(seen({DType::F16, Shape{5}}, {"x", values}).value.floats(),
            (std::vector<float>{2048, 2052, 0.0999755859375f, INFINITY, -0.0f}));
  EXPECT_EQ(seen({DType::BF16, Shape{5}}, {"x", values}).value.floats(), (std::vector<float>{2048, 2048, 0.10009765625f, 999424, -0.0f}));
}

TEST(Batch, of_another_host_type_is_refused_with_the_right_one) {
  const auto refused = [](DType dtype, BatchItem item) {
    const Error error = caught([&] { (void)seen({dtype, Shape{3}}, std::move(item)); });
    EXPECT_EQ(error.code(), "batch.type");
    return std::string(error.what());
  };
  EXPECT_NE(refused(DType::U8, {"x", smallNumbers<int8_t>(3)}).find("give a range of uint8_t"), std::string::npos);
  EXPECT_NE(refused(DType::I8, {"x", smallNumbers<float>(3)}).find("give a range of int8_t"), std::string::npos);
  EXPECT_NE(refused(DType::BF16, {"x", smallNumbers<int32_t>(3)}).find("give a range of float"), std::string::npos);
  EXPECT_NE(refused(DType::I32, {"x", smallNumbers<uint8_t>(3)}).find("'x' is i32[3] but gets u8 data"), std::string::npos);
  // 3 elements are 3 bytes, not a word.
  EXPECT_EQ(caught([] { (void)seen({DType::U8, Shape{3}}, {"x", smallNumbers<uint8_t>(4)}); }).code(), "batch.length");
}

TEST(HostTensor, of_packed_types_reads_as_the_type_that_holds_them) {
  const std::array<uint8_t, 4> memory{0x00, 0xc0, 0x49, 0xff};
  const auto read = [&](DType dtype, int64_t count) { return HostTensor("x", {dtype, Shape{count}}, std::as_bytes(std::span(memory))); };
  EXPECT_EQ(read(DType::F16, 1).floats(), std::vector<float>{-2});
  EXPECT_EQ(read(DType::BF16, 1).floats(), std::vector<float>{-2});
  EXPECT_EQ(read(DType::I8, 3).ints(), (std::vector<int32_t>{0, -64, 73}));
  EXPECT_EQ(read(DType::U8, 3).uints(), (std::vector<uint32_t>{0, 192, 73}));
  EXPECT_EQ(read(DType::I8, 3).doubles(), (std::vector<double>{0, -64, 73}));
  EXPECT_EQ(to_string(read(DType::U8, 3)), "u8[3] [0, 192, 73]");
  EXPECT_EQ(caught([&] { (void)read(DType::U8, 3).floats(); }).code(), "value.type");
  EXPECT_EQ(caught([&] { (void)read(DType::F16, 1).ints(); }).code(), "value.type");
}

TEST(Batch, of_temporaries_trains_as_one_of_variables) {
  CompileSpec<Mlp> spec = specFor("reference");
  auto one = compile<Mlp>(spec), other = compile<Mlp>(spec);
  const std::vector<float> x = counting(kBatch, 0), y = counting(kBatch, 2);
  const Batch stored{{"x", counting(kBatch, 0)}, {"y", counting(kBatch, 2)}};
  for (int step = 0; step < 3; ++step) EXPECT_EQ(one.step(stored).loss, other.step({{"x", x}, {"y", y}}).loss);
  spec.accumulate = 2;
  auto cut = compile<Mlp>(spec);
  EXPECT_TRUE(cut.step({{"x", counting(2 * kBatch, 0)}, {"y", counting(2 * kBatch, 2)}}).completed());
}

}  // namespace
}  // namespace lockstep
