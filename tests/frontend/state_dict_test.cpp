// SPDX-License-Identifier: Apache-2.0
// Weights under PyTorch's names and layouts.
#include "frontend/train/state_dict.h"

#include <algorithm>
#include <cmath>

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

TEST(StateDict, weights_of_16_bits_arrive_exactly) {
  auto trainer = makeNet();
  for (const io::ElementType type : {io::ElementType::F16, io::ElementType::BF16}) {
    const io::TensorFile file = torchDict();
    io::TensorFile narrow;
    // Numbers of which the last bit counts, and one that f16 has as a subnormal alone.
    for (const auto& [name, array] : file.tensors) {
      std::vector<double> values = array.toDoubles();
      for (double& value : values) value = value * 1.0078125 + (type == io::ElementType::F16 ? 0x1p-24 : 0);
      narrow.tensors.emplace(name, io::Array::from(type, array.shape, values));
    }
    // As a file has them.
    trainer.load_state_dict(io::parseSafetensors(io::formatSafetensors(narrow), "weights").orThrow());
    const ParameterValues values = trainer.download();
    EXPECT_EQ(values.at("scale"), narrow.tensors.at("scale").toFloats());
    EXPECT_EQ(values.at("table.W"), narrow.tensors.at("table.weight").toFloats());
    EXPECT_EQ(trainer.state_dict().tensors.at("scale").type, io::ElementType::F32);
  }
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
  // Both lists, and what else is wrong, are in one error.
  rejected(
      [](auto& file) {
        file.tensors.erase("scale");
        file.tensors.erase("out.bias");
        file.tensors.emplace("output.bias", io::Array::zeros(io::ElementType::F32, {3}));
        file.tensors.at("out.weight").shape = {2, 3};
      },
      "state_dict.missing",
      "the file lacks out.bias, scale and has output.bias, which no parameter of the model takes\n  note: 'out.bias' may be 'output.bias'");
  rejected(
      [](auto& file) {
        file.tensors.erase("scale");
        file.tensors.at("out.weight").shape = {2, 3};
      },
      "state_dict.missing", "error: state_dict.shape: tensor 'out.weight'");
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

/// Layers that PyTorch lays out in its own way.
struct Layers : Module {
  nn::LSTM lstm{*this, "lstm", 2, 2};
  nn::GRU gru{*this, "gru", 2, 2};
  nn::MultiHeadAttention attn{*this, "attn", 4, 2};
  nn::BatchNorm norm{*this, "norm", 3};
  nn::LSTMCell cell{*this, "cell", 2, 2};
};

ModelTrainer<Layers> makeLayers() {
  return compile<Layers>({.inputs = {{"x", f32(1, 3, 2)}, {"z", f32(2, 3, 4)}},
                          .loss =
                              [](const Layers& m, const Inputs& in) {
                                return mean(m.lstm(in["x"]).y) + mean(m.gru(in["x"]).y) + mean(m.attn(m.norm(in["z"]))) +
                                       mean(square(m.cell.W_ih));
                              },
                          .seed = 1,
                          .device = "reference"});
}

TEST(StateDict, names_of_further_cells_are_those_of_pytorch) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 2, 3, {.layers = 2, .bidirectional = true}};
  } model;
  std::vector<std::string> names;
  for (const StateDictEntry& entry : stateDictEntries(model)) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"gru.weight_ih_l0", "gru.weight_hh_l0", "gru.bias_ih_l0", "gru.bias_hh_l0",
                                             "gru.weight_ih_l0_reverse", "gru.weight_hh_l0_reverse", "gru.bias_ih_l0_reverse",
                                             "gru.bias_hh_l0_reverse", "gru.weight_ih_l1", "gru.weight_hh_l1", "gru.bias_ih_l1",
                                             "gru.bias_hh_l1", "gru.weight_ih_l1_reverse", "gru.weight_hh_l1_reverse",
                                             "gru.bias_ih_l1_reverse", "gru.bias_hh_l1_reverse"}));
}

std::vector<float> waves(size_t count, size_t k) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(0.5 * std::sin(static_cast<double>(i + 10 * k) + 1));
  return values;
}

/// The state_dict() of the same layers in PyTorch 1.13, in its order; tensor k holds 0.5 sin(i + 10 k + 1), running_var 1 more.
io::TensorFile torchLayers() {
  static const std::vector<std::pair<std::string, std::vector<int64_t>>> kTensors{{"lstm.weight_ih_l0", {8, 2}},
                                                                                  {"lstm.weight_hh_l0", {8, 2}},
                                                                                  {"lstm.bias_ih_l0", {8}},
                                                                                  {"lstm.bias_hh_l0", {8}},
                                                                                  {"gru.weight_ih_l0", {6, 2}},
                                                                                  {"gru.weight_hh_l0", {6, 2}},
                                                                                  {"gru.bias_ih_l0", {6}},
                                                                                  {"gru.bias_hh_l0", {6}},
                                                                                  {"attn.in_proj_weight", {12, 4}},
                                                                                  {"attn.in_proj_bias", {12}},
                                                                                  {"attn.out_proj.weight", {4, 4}},
                                                                                  {"attn.out_proj.bias", {4}},
                                                                                  {"norm.weight", {3}},
                                                                                  {"norm.bias", {3}},
                                                                                  {"norm.running_mean", {3}},
                                                                                  {"norm.running_var", {3}},
                                                                                  {"norm.num_batches_tracked", {}},
                                                                                  {"cell.weight_ih", {8, 2}},
                                                                                  {"cell.weight_hh", {8, 2}},
                                                                                  {"cell.bias_ih", {8}},
                                                                                  {"cell.bias_hh", {8}}};
  io::TensorFile file;
  for (size_t k = 0; k < kTensors.size(); ++k) {
    const auto& [name, shape] = kTensors[k];
    std::vector<float> values = waves(static_cast<size_t>(*io::checkedElementCount(shape)), k);
    if (name == "norm.running_var") std::ranges::transform(values, values.begin(), [](float value) { return value + 1; });
    file.tensors.emplace(
        name, name == "norm.num_batches_tracked" ? io::Array::zeros(io::ElementType::I64, {}) : io::Array::fromFloats(shape, values));
  }
  return file;
}

TEST(StateDict, layers_compute_what_pytorch_does_with_its_weights) {
  auto trainer = makeLayers();
  trainer.load_state_dict(torchLayers());
  const std::vector<float> x = waves(6, 20), z = waves(12, 21);
  auto expect = [&](const std::function<Tensor(const Layers&, const Inputs&)>& layer, const std::vector<double>& expected) {
    Forward forward = trainer.attach({.inputs = {{"x", f32(1, 3, 2)}, {"z", f32(1, 3, 4)}}, .forward = layer});
    const ForwardResult result = forward.run({{"x", x}, {"z", z}});
    const std::vector<double> got = result.output.doubles();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
  };
  // In evaluation mode, by torch 1.13 in f64 (batch_first).
  expect([](const Layers& m, const Inputs& in) { return m.lstm(in["x"]).y; },
         {-0.1294342, -0.0596446, -0.1486917, -0.1638516, -0.1404687, -0.0189507});
  expect([](const Layers& m, const Inputs& in) { return m.gru(in["x"]).y; },
         {0.1459360, 0.1598303, 0.1161648, 0.2021236, 0.3691004, -0.0138548});
  expect([](const Layers& m, const Inputs& in) { return m.attn(in["z"]); },
         {-0.6199888, 0.1075081, -0.5831618, 0.5388219, -0.7010006, 0.1441428, -0.5500422, 0.4588903, -0.5972285, 0.1062693, -0.6043026,
          0.5676978});
  expect([](const Layers& m, const Inputs& in) { return m.norm(in["z"]); },
         {-0.6090767, -0.7297967, -0.6320935, -0.4057950, 0.1879709, 0.1587140, 0.0635741, -0.0099775, 0.4143009, 0.3290023, 0.2515921,
          0.2532410});
  expect([](const Layers& m, const Inputs& in) { return m.cell(squeeze(narrow(in["x"], 1, 0, 1), 1), {zeros({1, 2}), zeros({1, 2})}).h; },
         {-0.1373762, -0.0124089});
}

TEST(StateDict, layers_are_written_as_they_were_read) {
  auto trainer = makeLayers();
  trainer.load_state_dict(torchLayers());
  io::TensorFile expected = torchLayers();
  expected.tensors.erase("norm.num_batches_tracked");
  EXPECT_EQ(trainer.state_dict(), expected);
  expected.tensors.erase("attn.in_proj_bias");
  const Error error = caught([&] { trainer.load_state_dict(expected); });
  EXPECT_EQ(error.code(), "state_dict.missing");
  EXPECT_NE(std::string(error.what()).find("lacks attn.in_proj_bias"), std::string::npos) << error.what();
}

TEST(StateDict, blocks_are_translated_by_their_parts) {
  struct Model : Module {
    nn::TransformerBlock block{*this, "block", 4, 2, {.rms_norm = true, .attention = {.kv_heads = 1}, .feed_forward = {.bias = false}}};
    nn::GroupNorm group{*this, "group", 1, 4};
  } model;
  std::vector<std::string> names;
  for (const StateDictEntry& entry : stateDictEntries(model)) names.push_back(entry.name);
  // Grouped queries have no counterpart in torch.nn, so their projections stay apart.
  EXPECT_EQ(names, (std::vector<std::string>{"block.ln1.weight", "block.attn.q.weight", "block.attn.q.bias", "block.attn.k.weight",
                                             "block.attn.k.bias", "block.attn.v.weight", "block.attn.v.bias", "block.attn.out_proj.weight",
                                             "block.attn.out_proj.bias", "block.ln2.weight", "block.mlp.up.weight", "block.mlp.down.weight",
                                             "group.weight", "group.bias"}));
}

TEST(StateDict, integer_buffers_take_whole_numbers) {
  struct Model : Module {
    Parameter w{*this, "w", {1}, init::ones()};
    Buffer num_batches_tracked{*this, "num_batches_tracked", {}, 5, DType::I32};
  };
  auto trainer = compile<Model>({.loss = [](const Model& m, const Inputs&) { return sum(m.w); }, .seed = 1, .device = "reference"});
  io::TensorFile file = trainer.state_dict();
  EXPECT_EQ(file.tensors.at("num_batches_tracked"), io::Array::fromInts({}, std::vector<int32_t>{5}));
  io::Array wide = io::Array::zeros(io::ElementType::I64, {});
  wide.data[0] = std::byte{77};
  file.tensors.at("num_batches_tracked") = wide;
  trainer.load_state_dict(file);
  EXPECT_EQ(trainer.download().at("num_batches_tracked"), std::vector<float>{77});
  const std::vector<double> number{200};
  file.tensors.at("num_batches_tracked") = io::Array::from(io::ElementType::U8, {}, number);
  trainer.load_state_dict(file);
  EXPECT_EQ(trainer.download().at("num_batches_tracked"), std::vector<float>{200});
  file.tensors.at("num_batches_tracked") = io::Array::from(io::ElementType::BF16, {}, number);
  EXPECT_EQ(caught([&] { trainer.load_state_dict(file); }).code(), "state_dict.type");
  file.tensors.at("num_batches_tracked") = io::Array::fromFloats({}, std::vector<float>{1});
  EXPECT_EQ(caught([&] { trainer.load_state_dict(file); }).code(), "state_dict.type");
  EXPECT_EQ(caught([&] { trainer.upload({{"w", {1}}, {"num_batches_tracked", {0.5f}}}); }).code(), "parameters.type");
}

/// Buffers of types that only store.
struct Packed : Module {
  Parameter w{*this, "w", {1}, init::ones()};
  Buffer half{*this, "half", {3}, 0.1, DType::F16};
  Buffer brain{*this, "brain", {5}, 3, DType::BF16};
  Buffer bytes{*this, "bytes", {7}, 200, DType::U8};
  Buffer steps{*this, "steps", {1}, -7, DType::I8};
};

TEST(StateDict, buffers_keep_their_type) {
  auto trainer = compile<Packed>({.loss = [](const Packed& m, const Inputs&) { return sum(m.w); }, .seed = 1, .device = "reference"});
  io::TensorFile file = trainer.state_dict();
  EXPECT_EQ(io::describe(file.tensors.at("half")), "f16[3]");
  EXPECT_EQ(file.tensors.at("half").toFloats(), std::vector<float>(3, 0.0999755859375f));
  EXPECT_EQ(io::describe(file.tensors.at("brain")), "bf16[5]");
  EXPECT_EQ(io::describe(file.tensors.at("bytes")), "u8[7]");
  EXPECT_EQ(file.tensors.at("bytes").toFloats(), std::vector<float>(7, 200));
  EXPECT_EQ(io::describe(file.tensors.at("steps")), "i8[1]");
  file.tensors.at("bytes").data[6] = std::byte{9};
  const std::vector<double> halves{1, 0x1p-24, 65504};
  file.tensors.at("half") = io::Array::from(io::ElementType::F16, {3}, halves);
  trainer.load_state_dict(file);
  EXPECT_EQ(trainer.state_dict(), file);
  // A checkpoint of the same, through a file.
  const io::TensorFile checkpoint = io::parseSafetensors(io::formatSafetensors(trainer.checkpoint()), "checkpoint").orThrow();
  EXPECT_EQ(checkpoint, trainer.checkpoint());
  EXPECT_EQ(io::describe(checkpoint.tensors.at("buffer.bytes")), "u8[7]");
  trainer.reset({});
  EXPECT_NE(trainer.state_dict(), file);
  trainer.restore(checkpoint);
  EXPECT_EQ(trainer.state_dict(), file);
  // What the type cannot hold.
  for (const double number : {256.0, -1.0, 0.5}) {
    ParameterValues values = trainer.download();
    values.at("bytes")[0] = static_cast<float>(number);
    EXPECT_EQ(caught([&] { trainer.upload(values); }).code(), "parameters.type") << number;
  }
}

}  // namespace
}  // namespace lockstep
