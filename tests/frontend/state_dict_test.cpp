// SPDX-License-Identifier: Apache-2.0
// Weights under PyTorch's names and layouts.
#include "frontend/state_dict.h"

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

struct Net : Module {
  nn::Embedding table{*this, "table", 3, 2};
  nn::LayerNorm norm{*this, "norm", 2};
  nn::Linear out{*this, "out", 2, 3};
  Parameter scale{*this, "scale", {2}, init::ones()};
};

ModelTrainer<Net> makeNet() {
  return compile<Net>({.inputs = {{"i", i32(4)}},
                       .loss = [](const Net& m, const Inputs& in) { return mean(square(m.out(m.norm(m.table(in["i"])) * m.scale))); },
                       .seed = 1,
                       .device = "reference"});
}

/// As torch.nn.Module.state_dict() of the same network has it: Linear(2, 3) weighs [3, 2].
io::TensorFile torchDict() {
  io::TensorFile file;
  file.tensors = {{"table.weight", io::Array::fromFloats({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6})},
                  {"norm.weight", io::Array::fromFloats({2}, std::vector<float>{7, 8})},
                  {"norm.bias", io::Array::fromDoubles({2}, std::vector<double>{9, 10})},
                  {"out.weight", io::Array::fromFloats({3, 2}, std::vector<float>{11, 12, 13, 14, 15, 16})},
                  {"out.bias", io::Array::fromFloats({3}, std::vector<float>{17, 18, 19})},
                  {"scale", io::Array::fromFloats({2}, std::vector<float>{20, 21})}};
  return file;
}

TEST(StateDict, torch_weights_arrive_where_they_belong) {
  auto trainer = makeNet();
  const LoadReport report = trainer.load_state_dict(torchDict());
  EXPECT_TRUE(report.missing.empty() && report.unexpected.empty());
  const ParameterValues values = trainer.download();
  EXPECT_EQ(values.at("table.W"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values.at("norm.g"), (std::vector<float>{7, 8}));
  EXPECT_EQ(values.at("norm.b"), (std::vector<float>{9, 10}));
  EXPECT_EQ(values.at("out.W"), (std::vector<float>{11, 13, 15, 12, 14, 16}));  // [in, out]
  EXPECT_EQ(values.at("out.b"), (std::vector<float>{17, 18, 19}));
  EXPECT_EQ(values.at("scale"), (std::vector<float>{20, 21}));
  io::TensorFile back = torchDict();
  back.tensors.at("norm.bias") = io::Array::fromFloats({2}, std::vector<float>{9, 10});
  EXPECT_EQ(trainer.state_dict(), back);
}

struct ConvNet : Module {
  nn::Conv2d conv{*this, "conv", 2, 3, 2};
  nn::BatchNorm norm{*this, "norm", 3};
};

TEST(StateDict, convolutions_and_running_statistics_have_their_names) {
  auto trainer = compile<ConvNet>({.inputs = {{"x", f32(2, 2, 4, 4)}},
                                   .loss = [](const ConvNet& m, const Inputs& in) { return mean(square(m.norm(m.conv(in["x"])))); },
                                   .seed = 1,
                                   .device = "reference"});
  io::TensorFile file = trainer.state_dict();
  ASSERT_NE(file.find("norm.running_var"), nullptr);
  EXPECT_EQ(file.find("conv.weight")->shape, (std::vector<int64_t>{3, 2, 2, 2}));
  EXPECT_NE(file.find("norm.weight"), nullptr);
  file.tensors.at("norm.running_var") = io::Array::fromFloats({3}, std::vector<float>{4, 5, 6});
  file.tensors.emplace("norm.num_batches_tracked", io::Array::zeros(io::ElementType::I64, {}));
  trainer.load_state_dict(file);
  EXPECT_EQ(trainer.download().at("norm.running_var"), (std::vector<float>{4, 5, 6}));
  file.tensors.erase("norm.running_mean");
  EXPECT_EQ(caught([&] { trainer.load_state_dict(file); }).code(), "state_dict.missing");
}

TEST(StateDict, strict_load_names_what_does_not_match_and_changes_nothing) {
  auto trainer = makeNet();
  const ParameterValues before = trainer.download();
  auto rejected = [&](auto change, const std::string& code, const std::string& words) {
    io::TensorFile file = torchDict();
    change(file);
    const Error error = caught([&] { trainer.load_state_dict(file); });
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_EQ(trainer.download(), before);
  };
  rejected(
      [](auto& file) {
        file.tensors.erase("out.bias");
        file.tensors.erase("scale");
      },
      "state_dict.missing", "out.bias, scale");
  rejected([](auto& file) { file.tensors.emplace("head.weight", io::Array::zeros(io::ElementType::F32, {1})); }, "state_dict.unexpected",
           "head.weight");
  rejected([](auto& file) { file.tensors.at("out.weight").shape = {2, 3}; }, "state_dict.shape", "takes [3,2]");
  rejected([](auto& file) { file.tensors.at("scale") = io::Array::zeros(io::ElementType::I32, {2}); }, "state_dict.type", "i32[2]");
}

TEST(StateDict, loose_load_takes_what_matches_and_reports_the_rest) {
  auto trainer = makeNet();
  const ParameterValues before = trainer.download();
  io::TensorFile file = torchDict();
  file.tensors.erase("out.bias");
  file.tensors.emplace("head.weight", io::Array::zeros(io::ElementType::I32, {1}));
  const LoadReport report = trainer.load_state_dict(file, {.strict = false});
  EXPECT_EQ(report.missing, std::vector<std::string>{"out.bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"head.weight"});
  EXPECT_EQ(trainer.download().at("out.b"), before.at("out.b"));
  EXPECT_EQ(trainer.download().at("scale"), (std::vector<float>{20, 21}));
  // A tensor of a wrong shape is never left out silently.
  file.tensors.at("scale") = io::Array::zeros(io::ElementType::F32, {3});
  EXPECT_EQ(caught([&] { trainer.load_state_dict(file, {.strict = false}); }).code(), "state_dict.shape");
}

}  // namespace
}  // namespace lockstep
