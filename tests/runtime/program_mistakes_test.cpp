// SPDX-License-Identifier: Apache-2.0
// What a program that stands alone says of wrong programs, checkpoints and batches; and that nothing is lost then.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frontend/io/file.h"
#include "ir/support/narrow_float.h"
#include "runtime/program_trainer.h"
#include "tests/runtime/dumped_training.h"

namespace lockstep::testing {
namespace {

struct Words : Module {
  Parameter table{*this, "table", {7, 4}};
  nn::Linear out{*this, "out", 4, 5};
};

detail::CompileRequest words(double rate) {
  return {.model = std::make_shared<const Words>(),
          .loss = detail::eraseModel(std::function([](const Words& model, const Inputs& in) {
            return cross_entropy(model.out(embedding(model.table.tensor(), in["word"])), in["next"], {.ignore_index = -1});
          })),
          .optimizer = sgd({.lr = rate}),
          .settings = {.inputs = {{"word", i32(6)}, {"next", i32(6)}}, .seed = 5, .device = "reference"},
          .where = Where::current()};
}

/// One dump for all tests.
class ProgramMistakes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    training_ = new DumpedTraining("program-mistakes");
    train(*training_, words(0.1), 2, 5);
  }
  static void TearDownTestSuite() { delete training_; }

  static ProgramTrainer opened() { return ProgramTrainer::open(training_->program(), "reference").orThrow(); }
  static ProgramTrainer started() {
    ProgramTrainer trainer = opened();
    (void)trainer.load(training_->start).orThrow();
    return trainer;
  }
  template <class T>
  static std::string codeOf(const Result<T>& result) {
    return result.ok() ? "" : result.diagnostics().front().code;
  }
  static std::string codeOf(const Status& status) { return status.ok() ? "" : status.diagnostics().front().code; }

  /// The batches with one number of an input set.
  static io::TensorFile withNumber(const std::string& input, size_t at, int32_t number) {
    io::TensorFile batches = training_->batches;
    std::memcpy(batches.tensors.at(input).data.data() + at * sizeof(number), &number, sizeof(number));
    return batches;
  }

  static DumpedTraining* training_;
};
DumpedTraining* ProgramMistakes::training_ = nullptr;

TEST_F(ProgramMistakes, of_programs) {
  program::Program program = training_->program();
  program.steps.reset();
  EXPECT_EQ(codeOf(ProgramTrainer::open(program, "reference")), "program_run.steps");
  EXPECT_EQ(codeOf(ProgramTrainer::open(training_->program(), "no-device")), "device.selector");
  program = training_->program();
  std::get<program::FormulaSource>(program.inputs.back().source).elements.front() = "lr * weather";
  EXPECT_EQ(codeOf(ProgramTrainer::open(program, "reference")), "program.input");
  program = training_->program();
  program.states.front().parts.front().parameter = "nobody";
  EXPECT_EQ(codeOf(ProgramTrainer::open(program, "reference")), "program.state");
  program = training_->program();
  program.states.front().parts.back().offset += 1000;
  EXPECT_EQ(codeOf(ProgramTrainer::open(program, "reference")), "program.state");
}

TEST_F(ProgramMistakes, of_a_program_of_an_earlier_stage) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(training_->folder())) {
    if (!entry.path().string().ends_with("schedule.program")) continue;
    found = entry.path();
    EXPECT_EQ(codeOf(ProgramTrainer::open(program::parse(io::readTextFile(found).orThrow(), found).orThrow(), "reference")),
              "program_run.stage");
  }
  EXPECT_NE(found, "");
}

TEST_F(ProgramMistakes, of_checkpoints) {
  ProgramTrainer trainer = opened();
  EXPECT_EQ(codeOf(trainer.step(training_->batches)), "program_run.start") << "parameters without values";
  EXPECT_EQ(codeOf(trainer.load({})), "checkpoint.metadata");
  io::TensorFile other = training_->start;
  other.metadata["lockstep.optimizer.momentum"] = "0.9";
  EXPECT_EQ(codeOf(trainer.load(other)), "checkpoint.optimizer");
  other = training_->start;
  other.metadata["lockstep.schedule.peak"] = "0.2";
  EXPECT_EQ(codeOf(trainer.load(other)), "checkpoint.schedule");
  other = training_->start;
  other.tensors.erase("table");
  EXPECT_EQ(codeOf(trainer.load(other)), "checkpoint.missing");
  EXPECT_EQ(codeOf(trainer.step(training_->batches)), "program_run.start") << "none of them changed anything";
  (void)trainer.load(training_->start).orThrow();
  EXPECT_EQ(codeOf(trainer.load(other)), "checkpoint.missing");
  EXPECT_EQ(differences(trainer.checkpoint().orThrow(), training_->start), "") << "what it had it keeps";
}

TEST_F(ProgramMistakes, of_batches) {
  ProgramTrainer trainer = started();
  io::TensorFile batches = training_->batches;
  batches.tensors.erase("word");
  EXPECT_EQ(codeOf(trainer.step(batches)), "program_run.batch");
  batches = training_->batches;
  batches.tensors.emplace("weather", io::Array::fromFloats({1}, std::vector<float>{1}));
  EXPECT_EQ(codeOf(trainer.step(batches)), "program_run.batch");
  batches = training_->batches;
  batches.tensors.at("word") = io::Array::fromFloats({6}, std::vector<float>(6));
  EXPECT_EQ(codeOf(trainer.step(batches)), "program_run.batch") << "of another type";
  for (const size_t count : {0, 5, 13}) {
    batches.tensors.at("word") = io::Array::fromInts({static_cast<int64_t>(count)}, std::vector<int32_t>(count));
    EXPECT_EQ(codeOf(trainer.step(batches)), "program_run.batch") << count << " numbers";
  }
  EXPECT_EQ(codeOf(trainer.step(withNumber("word", 2, 7))), "batch.index");
  EXPECT_EQ(codeOf(trainer.step(withNumber("word", 2, -1))), "batch.index");
  EXPECT_EQ(codeOf(trainer.step(withNumber("next", 0, 5))), "batch.index");
  EXPECT_EQ(differences(trainer.checkpoint().orThrow(), training_->start), "") << "no step was taken";
  EXPECT_EQ(codeOf(trainer.step(withNumber("next", 0, -1))), "") << "the number that the loss ignores is right";
}

/// Inputs of which no run's values are whole words: 3 · 5 bytes, and 5 and 3 floats of 16 bits.
struct Pixels : Module {
  nn::Linear out{*this, "out", 5, 1};
};
detail::CompileRequest pixels() {
  return {
      .model = std::make_shared<const Pixels>(),
      .loss = detail::eraseModel(std::function([](const Pixels& model, const Inputs& in) {
        const Tensor x = cast(in["pixels"], DType::F32) * 0.01 + cast(in["shift"], DType::F32);
        print(cast(x, DType::F16), "shifted");
        return mean(square(model.out(x) - reshape(cast(in["want"], DType::F32), {3, 1})));
      })),
      .optimizer = sgd({.lr = 0.01}),
      .settings = {.inputs = {{"pixels", {DType::U8, Shape{3, 5}}}, {"shift", {DType::F16, Shape{5}}}, {"want", {DType::BF16, Shape{3}}}},
                   .seed = 5,
                   .device = "reference",
                   .accumulate = 2,
                   .print = [](std::string_view) {}},
      .where = Where::current()};
}

TEST(PackedBatches, are_taken_byte_for_byte) {
  DumpedTraining training("packed-batches");
  detail::CompileRequest request = pixels();
  request.settings.dump_ir = training.folder();
  request.settings.dump_steps = 2;
  Trainer trainer = detail::compile(std::move(request));
  std::vector<uint8_t> bytes(3 * 5 * 2);  // of the two runs of a step
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  const std::vector<float> shift{0, 0.5f, -0.25f, 0.1f, 1}, want{1, 2, 3, -1, -2.5f, 0};
  for (int step = 0; step < 2; ++step)
    training.losses.push_back(trainer.step({{"pixels", bytes}, {"shift", shift}, {"want", want}}).or_throw().loss);
  for (const auto& entry : std::filesystem::directory_iterator(training.folder())) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".program")) training.program_file = std::max(training.program_file, name);
  }
  const io::TensorFile batches = io::readSafetensors(training.folder() + "/batches.safetensors").orThrow();
  const io::Array& dumped = batches.tensors.at("pixels");
  ASSERT_EQ(io::describe(dumped), "u8[4,3,5]") << "of each run";
  EXPECT_EQ(std::memcmp(dumped.data.data(), bytes.data(), bytes.size()), 0);
  EXPECT_EQ(io::describe(batches.tensors.at("shift")), "f16[4,5]");
  EXPECT_EQ(batches.tensors.at("shift").at(3), 0.0999755859375);
  EXPECT_EQ(io::describe(batches.tensors.at("want")), "bf16[4,3]");
  EXPECT_EQ(batches.tensors.at("want").at(4), -2.5);

  ProgramTrainer alone = ProgramTrainer::open(training.program(), "reference").orThrow();
  (void)alone.load(io::readSafetensors(training.folder() + "/start.safetensors").orThrow()).orThrow();
  for (const float loss : training.losses) {
    const ProgramStep step = alone.step(batches).orThrow();
    EXPECT_EQ(step.loss, loss);
    ASSERT_TRUE(step.captures.contains("shifted"));
    const io::Array& shifted = step.captures.at("shifted");
    ASSERT_EQ(io::describe(shifted), "f16[3,5]");
    ASSERT_EQ(shifted.data.size(), 30u);
    // Of the second run.
    for (size_t k = 0; k < 15; ++k) {
      const float moved = static_cast<float>(bytes[15 + k]) * 0.01f + static_cast<float>(batches.tensors.at("shift").at(k % 5));
      EXPECT_EQ(shifted.at(k), static_cast<double>(halfToFloat(doubleToHalf(static_cast<double>(moved))))) << k;
    }
  }
  EXPECT_EQ(differences(alone.checkpoint().orThrow(), trainer.checkpoint()), "");

  // The inputs of the first run have the types of the program, too.
  const io::TensorFile inputs = io::readSafetensors(training.folder() + "/inputs.safetensors").orThrow();
  EXPECT_EQ(io::describe(inputs.tensors.at("pixels")), "u8[15]");
  EXPECT_EQ(io::describe(inputs.tensors.at("shift")), "f16[5]");
  EXPECT_EQ(io::describe(inputs.tensors.at("want")), "bf16[3]");

  const auto refused = [&](const std::string& input, io::Array array) {
    io::TensorFile other = batches;
    other.tensors.at(input) = std::move(array);
    const Result<ProgramStep> step = alone.step(other);
    ASSERT_FALSE(step.ok()) << input;
    EXPECT_EQ(step.diagnostics().front().code, "program_run.batch");
    EXPECT_NE(step.diagnostics().front().message.find(input), std::string::npos) << step.diagnostics().front().message;
  };
  refused("pixels", io::Array::zeros(io::ElementType::I8, {3, 5}));
  refused("pixels", io::Array::zeros(io::ElementType::U8, {16}));  // whole words are one byte too much
  refused("shift", io::Array::zeros(io::ElementType::BF16, {5}));
  refused("shift", io::Array::zeros(io::ElementType::F32, {5}));
  refused("want", io::Array::zeros(io::ElementType::BF16, {4}));
}

TEST_F(ProgramMistakes, of_numbers) {
  io::TensorFile start = training_->start;
  const float none = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(start.tensors.at("out.W").data.data(), &none, sizeof(none));
  ProgramTrainer trainer = opened();
  (void)trainer.load(start).orThrow();
  const Result<ProgramStep> step = trainer.step(training_->batches);
  EXPECT_EQ(codeOf(step), "step.non_finite");
  EXPECT_EQ(step.failure().exit_code, ExitCode::NumericCheck);
}

TEST_F(ProgramMistakes, are_noticed_in_a_text_at_their_line) {
  const std::string text = program::print(training_->program());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    other.replace(at, from.size(), to);
    const Result<program::Program> parsed = program::parse(other, "changed.program");
    return parsed.ok() ? Status(program::validateStructure(*parsed)) : Status(parsed.failure());
  };
  EXPECT_TRUE(changed("accumulate = 1", "accumulate = 2").ok());
  for (const auto& [from, to, code] :
       std::initializer_list<std::array<const char*, 3>>{{"accumulate = 1", "accumulate = 0", "program.steps"},
                                                         {"rate = \"0.1\"", "rate = \"0.1 *\"", "program.steps"},
                                                         {"rate = \"0.1\"", "rate = \"lr\"", "program.steps"},
                                                         {"rate = \"0.1\"", "speed = \"0.1\"", "program.field"},
                                                         {"below = 7", "below = 0", "program.input"},
                                                         {"below = 7", "above = 0", "program.field"},
                                                         {"\"last\"]", "\"last\", \"1\"]", "program.input"}}) {
    const Status status = changed(from, to);
    ASSERT_FALSE(status.ok()) << to;
    EXPECT_EQ(status.diagnostics().front().code, code) << to;
    EXPECT_GT(status.diagnostics().front().where.line, 1u) << to;
  }
}

}  // namespace
}  // namespace lockstep::testing
