// SPDX-License-Identifier: Apache-2.0
// Inputs of fewer than 32 bits, which the model casts on the device: they give what inputs of f32 give.
#include <cmath>

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

constexpr int64_t kPictures = 5, kSide = 3;

struct Classifier : Module {
  nn::Linear head{*this, "head", kSide* kSide, 4};
  Tensor operator()(const Tensor& pixels) const { return head(reshape(pixels, {-1, kSide * kSide}) / 255); }
};

/// Any values of all 256.
std::vector<uint8_t> pictures(int64_t count, uint32_t salt) {
  std::vector<uint8_t> pixels;
  for (uint32_t i = 0; i < static_cast<uint32_t>(count * kSide * kSide); ++i)
    pixels.push_back(static_cast<uint8_t>((i + salt) * 2654435761u >> 13));
  return pixels;
}
std::vector<int32_t> labels(int64_t count) {
  std::vector<int32_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<int32_t>(i % 4));
  return all;
}

CompileSpec<Classifier> specOf(const TensorType& pixels, const std::string& device, int64_t accumulate = 1) {
  return {.inputs = {{"x", pixels}, {"y", i32(pixels.shape[0].maximum())}},
          .loss = [](const Classifier& model, const Inputs& in) { return cross_entropy(model(cast(in["x"], f32)), in["y"]); },
          .optimizer = adam({.lr = 0.01}),
          .seed = 3,
          .device = device,
          .accumulate = accumulate};
}

class PackedInputs : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, PackedInputs, ::testing::Values("reference", "vulkan"), deviceName);

TEST_P(PackedInputs, pictures_of_bytes_train_as_those_of_floats_do) {
  for (const int64_t accumulate : {1, 3}) {
    auto bytes = compile<Classifier>(specOf(u8(kPictures, kSide, kSide), GetParam(), accumulate));
    auto floats = compile<Classifier>(specOf(f32(kPictures, kSide, kSide), GetParam(), accumulate));
    for (uint32_t step = 0; step < 4; ++step) {
      const std::vector<uint8_t> pixels = pictures(kPictures * accumulate, step);
      const std::vector<float> wide(pixels.begin(), pixels.end());
      const auto y = labels(kPictures * accumulate);
      EXPECT_EQ(bytes.step({{"x", pixels}, {"y", y}}).loss, floats.step({{"x", wide}, {"y", y}}).loss) << step << ", " << accumulate;
    }
    EXPECT_EQ(bytes.state_dict(), floats.state_dict());
  }
}

TEST_P(PackedInputs, a_forward_takes_any_number_of_them) {
  auto trainer = compile<Classifier>(specOf(u8(kPictures, kSide, kSide), GetParam()));
  Forward bytes = trainer.attach({.inputs = {{"x", u8(dynamic, kSide, kSide)}},
                                  .forward = [](const Classifier& model, const Inputs& in) { return model(cast(in["x"], f32)); }});
  Forward floats = trainer.attach(
      {.inputs = {{"x", f32(dynamic, kSide, kSide)}}, .forward = [](const Classifier& model, const Inputs& in) { return model(in["x"]); }});
  for (const int64_t count : {1, 2, 7}) {
    const std::vector<uint8_t> pixels = pictures(count, 9);
    const std::vector<float> wide(pixels.begin(), pixels.end());
    EXPECT_EQ(bytes.run({{"x", pixels}}).output.floats(), floats.run({{"x", wide}}).output.floats()) << count;
  }
}

TEST_P(PackedInputs, of_every_type_come_back_as_the_numbers_that_the_type_has) {
  const std::vector<float> given{0, 1, -1, 0.1f, 1e-3f, 1234.5f, 65504};
  for (const ElementType type : {f16, bf16}) {
    auto reading =
        function({.inputs = {{"x", type(7)}}, .body = [](const Inputs& in) { return cast(in["x"], f32) * 2; }, .device = GetParam()});
    std::vector<float> want;
    for (const float value : given) want.push_back(static_cast<float>(2 * graph::roundedTo(type, static_cast<double>(value))));
    EXPECT_EQ(reading({{"x", given}}).value.floats(), want) << graph::toString(type);
  }
  auto reading = function({.inputs = {{"a", i8(5)}, {"b", u8(5)}},
                           .body = [](const Inputs& in) { return cast(in["a"], i32) + cast(in["b"], i32); },
                           .device = GetParam()});
  EXPECT_EQ(reading({{"a", std::vector<int8_t>{-128, -1, 0, 1, 127}}, {"b", std::vector<uint8_t>{0, 255, 128, 127, 1}}}).value.ints(),
            (std::vector<int32_t>{-128, 254, 128, 128, 128}));
}

TEST(PackedInput, that_is_not_cast_is_refused_where_it_is_used) {
  const Error error = caught(
      [] { (void)function({.inputs = {{"x", u8(4)}}, .body = [](const Inputs& in) { return exp(in["x"]); }, .device = "reference"}); });
  EXPECT_TRUE(error.code().starts_with("exp.")) << error.code();
  EXPECT_NE(std::string(error.what()).find("u8"), std::string::npos) << error.what();
}

TEST(PackedInput, types_are_made_and_stand_for_themselves) {
  EXPECT_EQ(toString(bf16(dynamic, 4)), toString(TensorType{DType::BF16, Shape{dynamic, 4}}));
  EXPECT_EQ(f16().shape.rank(), 0u);
  constexpr DType dtype = u8;
  EXPECT_EQ(dtype, DType::U8);
}

}  // namespace
}  // namespace lockstep
