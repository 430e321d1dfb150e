// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden.h"

#include <gtest/gtest.h>

#include "tools/verify/rate_expression.h"

namespace lockstep::tools {
namespace {

io::Array floats(std::vector<int64_t> shape, float value = 1) {
  const std::vector<float> values(io::Array::zeros(io::ElementType::F32, shape).elementCount(), value);
  return io::Array::fromFloats(std::move(shape), values);
}
io::Array doubles(std::vector<int64_t> shape) { return io::Array::zeros(io::ElementType::F64, std::move(shape)); }

io::TensorFile opFile() {
  io::TensorFile file;
  file.metadata["sum.1"] =
      R"({"op": "sum", "attrs": {"axis": -1, "keep_dims": true, "scale": 0.5, "shape": [4, -1], "kind": "none", "absent": null}})";
  file.tensors["sum.1/in/x"] = floats({2, 3});
  file.tensors["sum.1/out/y"] = doubles({2, 1});
  file.tensors["sum.1/cotangent/y"] = floats({2, 1});
  file.tensors["sum.1/grad/x"] = doubles({2, 3});
  return file;
}

io::TensorFile trainFile() {
  io::TensorFile file;
  file.metadata["mlp"] = R"({"optimizer": {"kind": "sgd", "lr": 0.01, "momentum": 0.9, "nesterov": true}})";
  file.tensors["init/w"] = floats({2});
  file.tensors["final/w"] = doubles({2});
  file.tensors["grad1/w"] = doubles({2});
  file.tensors["batch0001/x"] = floats({3});
  file.tensors["batch0002/x"] = floats({3});
  file.tensors["losses"] = doubles({2});
  file.tensors["grad_norms"] = doubles({2});
  return file;
}

std::string codeOf(const io::TensorFile& file, const std::string& name = "train_mlp.safetensors") {
  const auto result = interpretGolden(file, name);
  return result.ok() ? "" : result.diagnostics().front().code;
}

TEST(Golden, case_has_its_parts_and_attributes) {
  const auto file = interpretGolden(opFile(), "ops.safetensors");
  ASSERT_TRUE(file.ok()) << toString(file.diagnostics());
  const auto& cases = file->cases;
  ASSERT_EQ(cases.size(), 1u);
  const GoldenCase& one = cases.front();
  EXPECT_EQ(one.op, "sum");
  EXPECT_EQ(one.attributes.get<int64_t>("axis"), -1);
  EXPECT_EQ(one.attributes.get<bool>("keep_dims"), true);
  EXPECT_EQ(one.attributes.get<double>("scale"), 0.5);
  EXPECT_EQ(one.attributes.get<std::vector<int64_t>>("shape"), (std::vector<int64_t>{4, -1}));
  EXPECT_EQ(one.attributes.get<std::string>("kind"), "none");
  EXPECT_EQ(one.attributes.find("absent"), nullptr);
  EXPECT_EQ(one.inputs.size() + one.outputs.size() + one.cotangents.size() + one.gradients.size(), 4u);
}

TEST(Golden, training_run_has_its_parts) {
  const auto file = interpretGolden(trainFile(), "/data/train_mlp_sgd.safetensors");
  ASSERT_TRUE(file.ok()) << toString(file.diagnostics());
  const auto& training = *file->training;
  EXPECT_EQ(training.model, "mlp_sgd");
  EXPECT_EQ(training.optimizer.kind, passes::OptimizerKind::Sgd);
  EXPECT_EQ(training.optimizer.momentum, 0.9);
  EXPECT_EQ(training.optimizer.clip_epsilon, 0);
  EXPECT_EQ(training.rate(7), 0.01);
  EXPECT_EQ(training.batches.size(), 2u);
  EXPECT_FALSE(training.recorded_in_f32);
  EXPECT_TRUE(training.decays("l1.b"));
}

TEST(Golden, decay_in_words_spares_biases_and_norms) {
  io::TensorFile file = trainFile();
  file.metadata["mlp"] = R"({"optimizer": {"kind": "adamw", "lr": 1, "decay": "weights only"}})";
  const auto result = interpretGolden(file, "train_mlp.safetensors");
  ASSERT_TRUE(result.ok());
  const auto& training = *result->training;
  EXPECT_FALSE(training.decays("l1.b"));
  EXPECT_FALSE(training.decays("lnf.g"));
  EXPECT_TRUE(training.decays("tok_emb"));
}

TEST(Golden, damaged_case_files_are_named) {
  io::TensorFile file = opFile();
  file.metadata["sum.1"] = "[]";
  EXPECT_EQ(codeOf(file), "golden.metadata");
  file.metadata["sum.1"] = R"({"attrs": {}})";
  EXPECT_EQ(codeOf(file), "golden.metadata");
  file.metadata["sum.1"] = R"({"op": "sum", "attrs": {"a": {}}})";
  EXPECT_EQ(codeOf(file), "golden.metadata");
  file.metadata["sum.1"] = R"({"op": "sum", "attrs": {"a": [0.5]}})";
  EXPECT_EQ(codeOf(file), "golden.metadata");
  file = opFile();
  file.metadata.clear();
  EXPECT_EQ(codeOf(file), "golden.metadata");
  file = opFile();
  file.tensors["stray/in/x"] = floats({1});
  EXPECT_EQ(codeOf(file), "golden.tensor");
  file = opFile();
  file.tensors["sum.1/else/x"] = floats({1});
  EXPECT_EQ(codeOf(file), "golden.tensor");
  file = opFile();
  file.tensors.erase("sum.1/out/y");
  EXPECT_EQ(codeOf(file), "golden.case");
  file = opFile();
  file.tensors.erase("sum.1/cotangent/y");
  EXPECT_EQ(codeOf(file), "golden.case");
  file = opFile();
  file.tensors["sum.1/cotangent/y"] = floats({2});
  EXPECT_EQ(codeOf(file), "golden.case");
  file = opFile();
  file.tensors["sum.1/grad/x"] = doubles({3, 2});
  EXPECT_EQ(codeOf(file), "golden.case");
}

TEST(Golden, damaged_training_files_are_named) {
  io::TensorFile file = trainFile();
  file.tensors.erase("batch0001/x");
  EXPECT_EQ(codeOf(file), "golden.train");
  file = trainFile();
  file.tensors["losses"] = doubles({3});
  EXPECT_EQ(codeOf(file), "golden.train");
  file = trainFile();
  file.tensors.erase("final/w");
  EXPECT_EQ(codeOf(file), "golden.train");
  file = trainFile();
  file.tensors["grad1/w"] = doubles({3});
  EXPECT_EQ(codeOf(file), "golden.train");
  file = trainFile();
  file.tensors["final/v"] = doubles({3});
  EXPECT_EQ(codeOf(file), "golden.train");
  file = trainFile();
  file.tensors["batch/x"] = floats({3});
  EXPECT_EQ(codeOf(file), "golden.tensor");
  file = trainFile();
  for (const char* optimizer : {R"({"kind": "lion", "lr": 1})", R"({"kind": "sgd"})", R"({"kind": "sgd", "lr": 1, "warmup": 3})",
                                R"({"kind": "sgd", "lr": 1, "momentum": "big"})"}) {
    file.metadata["mlp"] = std::string(R"({"optimizer": )") + optimizer + "}";
    EXPECT_EQ(codeOf(file), "golden.train") << optimizer;
  }
  file.metadata["mlp"] = R"({"optimizer": {"kind": "sgd", "lr_of_step_1_based": "step +"}})";
  EXPECT_EQ(codeOf(file), "golden.rate");
}

TEST(Rate, expressions_are_evaluated_for_each_step) {
  const auto rate = parseRate("0.005 + (0.0005 - 0.005) * min(step / 1500, 1)");
  ASSERT_TRUE(rate.ok());
  EXPECT_DOUBLE_EQ((*rate)(1), 0.005 + (0.0005 - 0.005) * (1.0 / 1500));
  EXPECT_DOUBLE_EQ((*rate)(1500), 0.0005);
  EXPECT_DOUBLE_EQ((*rate)(9999), 0.0005);
  EXPECT_DOUBLE_EQ((*parseRate("-2*-step-3/2"))(4), 6.5);
  EXPECT_DOUBLE_EQ((*parseRate("max(1e-3, 2)"))(1), 2);
}

TEST(Rate, nonsense_is_rejected) {
  for (const char* text : {"", "step step", "1 +", "min(1)", "(1", "tan(step)", "1/0", "__import__"}) {
    EXPECT_FALSE(parseRate(text).ok()) << text;
  }
  EXPECT_FALSE(parseRate(std::string(10000, '(')).ok());
  EXPECT_FALSE(parseRate(std::string(10000, '-')).ok());
}

}  // namespace
}  // namespace lockstep::tools
