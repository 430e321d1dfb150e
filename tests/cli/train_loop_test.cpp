// SPDX-License-Identifier: Apache-2.0
// The loop of `lockstep train` around a sample that only counts.
#include "tools/train_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "frontend/io/file.h"
#include "tests/io/scratch.h"

namespace lockstep::tools {
namespace {

/// What the counting sample was asked to do.
struct Log {
  std::vector<int64_t> chunks;
  int measured = 0;
  float poison_at = -1;
};
Log g_log;  // the factory of a Sample is a plain function

class Counting : public SampleRun {
 public:
  [[nodiscard]] const SampleFacts& facts() const override { return facts_; }
  std::vector<float> advance(int64_t count) override {
    g_log.chunks.push_back(count);
    std::vector<float> losses;
    for (int64_t i = 0; i < count; ++i) {
      ++step_;
      losses.push_back(static_cast<float>(step_) == g_log.poison_at ? NAN : 1.0f / static_cast<float>(step_));
    }
    return losses;
  }
  Metrics measure() override {
    ++g_log.measured;
    return {{"exact", 0.5}};
  }
  io::TensorFile checkpoint() override {
    io::TensorFile file;
    const float step[] = {static_cast<float>(step_)};
    file.tensors["step"] = io::Array::fromFloats({1}, step);
    return file;
  }

 private:
  SampleFacts facts_{.device = "reference",
                     .device_name = "test",
                     .device_reason = "a test",
                     .dispatches_per_step = 3,
                     .levels_per_step = 2,
                     .distinct_kernels = 1,
                     .planned_bytes = 4096,
                     .parameters = 12};
  int64_t step_ = 0;
};

const Sample kSample = {.name = "counting",
                        .summary = "counts",
                        .default_steps = 25,
                        .report_every = 10,
                        .measure_every = 20,
                        .chunk = 4,
                        .make = [](const SampleOptions&) -> std::unique_ptr<SampleRun> { return std::make_unique<Counting>(); }};

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class TrainLoop : public ::testing::Test {
 protected:
  TrainLoop() : scratch_("train_loop") { g_log = {}; }
  Result<ExitCode> run(TrainSettings settings, std::string& output) {
    ::testing::internal::CaptureStdout();
    SampleOptions options;
    options.steps = 25;
    auto result = runTraining(kSample, options, settings);
    std::fflush(stdout);
    output = ::testing::internal::GetCapturedStdout();
    return result;
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(TrainLoop, chunks_end_on_report_lines) {
  std::string output;
  const auto result = run({}, output);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, ExitCode::Ok);
  EXPECT_EQ(g_log.chunks, (std::vector<int64_t>{1, 4, 4, 1, 4, 4, 2, 4, 1}));
  EXPECT_EQ(g_log.measured, 2);  // step 20 and the end
  EXPECT_NE(output.find("step 10/25"), std::string::npos);
  EXPECT_NE(output.find("3 dispatches in 2 levels"), std::string::npos);
}

TEST_F(TrainLoop, json_has_one_object_a_line_and_ends_with_final) {
  std::string output;
  ASSERT_TRUE(run({.json = true}, output).ok());
  const std::vector<std::string> lines = linesOf(output);
  ASSERT_EQ(lines.size(), 4u) << output;  // steps 1, 10, 20 and the end
  EXPECT_TRUE(lines[0].starts_with(R"({"step": 1, "loss": 1,)")) << lines[0];
  EXPECT_NE(lines[2].find(R"("metrics": {"exact": 0.5})"), std::string::npos);
  for (const char* key :
       {"\"final\": true", "\"name\": \"counting\"", "\"device\": \"reference\"", "\"seed\": 42", "\"steps\": 25",
        "\"loss\": ", "\"metrics\": {\"exact\": 0.5}", "\"seconds\": ", "\"step_seconds_median\": ", "\"dispatches_per_step\": 3",
        "\"levels_per_step\": 2", "\"distinct_kernels\": 1", "\"planned_bytes\": 4096", "\"parameters\": 12"}) {
    EXPECT_NE(lines[3].find(key), std::string::npos) << key << " in " << lines[3];
  }
}

TEST_F(TrainLoop, directory_gets_checkpoint_losses_and_picture) {
  std::string output;
  const std::filesystem::path directory = scratch_ / "deep/out";
  ASSERT_TRUE(run({.out_directory = directory}, output).ok());
  const auto checkpoint = io::readSafetensors(directory / "checkpoint.safetensors");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->find("step")->at(0), 25);
  EXPECT_EQ(checkpoint->metadata.at("lockstep.sample"), "counting");
  const std::vector<std::string> losses = linesOf(*io::readTextFile(directory / "losses.jsonl"));
  ASSERT_EQ(losses.size(), 25u);
  EXPECT_EQ(losses[1], R"({"step": 2, "loss": 0.5})");
  EXPECT_TRUE(std::filesystem::exists(directory / "loss.png"));
}

TEST_F(TrainLoop, directory_that_cannot_be_made_fails_before_training) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "file", std::string_view("x")).ok());
  std::string output;
  const auto result = run({.out_directory = (scratch_ / "file").string()}, output);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "file.directory");
  EXPECT_TRUE(g_log.chunks.empty());
}

TEST_F(TrainLoop, loss_that_is_not_finite_stops_the_run) {
  g_log.poison_at = 13;
  std::string output;
  const auto result = run({.out_directory = (scratch_ / "out").string()}, output);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "train.not_finite");
  EXPECT_EQ(result.failure().exit_code, ExitCode::NumericCheck);
  EXPECT_EQ(linesOf(*io::readTextFile(scratch_ / "out/losses.jsonl")).size(), 13u);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out/checkpoint.safetensors"));
}

TEST_F(TrainLoop, interrupted_run_writes_what_it_has) {
  const std::atomic<bool> interrupted{true};
  std::string output;
  const auto result = run({.out_directory = (scratch_ / "out").string(), .interrupted = &interrupted}, output);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, ExitCode::Interrupted);
  EXPECT_EQ(g_log.chunks, (std::vector<int64_t>{1}));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "out/checkpoint.safetensors"));
}

}  // namespace
}  // namespace lockstep::tools
