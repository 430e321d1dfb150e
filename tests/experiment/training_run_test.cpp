// SPDX-License-Identifier: Apache-2.0
// The loop around a model of one number that is drawn towards another one.
#include "experiment/training_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "frontend/io/file.h"
#include "frontend/io/safetensors.h"
#include "frontend/lockstep.h"
#include "tests/io/scratch.h"

namespace lockstep::experiment {
namespace {

struct Point : Module {
  Parameter at{*this, "at", {1}, init::constant(3)};
};

/// What the experiment was asked for; make is a plain function.
struct Log {
  std::vector<uint64_t> batches;
  int measured = 0;
  uint64_t poison_at = 0;
  std::map<uint64_t, std::function<void()>> at;
};
Log g_log;

class Drawn : public Experiment {
 public:
  explicit Drawn(const ExperimentOptions& options)
      : trainer_(compile(options.with(CompileSpec<Point>{
            .inputs = {{"target", f32(1)}},
            .loss = [](const Point& model, const Inputs& in) { return mean(square(model.at - in["target"])); },
            .optimizer = sgd({.lr = 0.1}),
        }))) {}
  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override {
    g_log.batches.push_back(step);
    if (auto found = g_log.at.find(step); found != g_log.at.end()) found->second();
    target_ = {step == g_log.poison_at ? NAN : static_cast<float>(step % 2)};
    return {{"target", target_}};
  }
  Metrics measure() override {
    ++g_log.measured;
    return {{"exact", 0.5}};
  }
  std::vector<Exhibit> exhibits() override { return {{"number", "one\n"}, {"dot", io::Image(2, 2, {1, 2, 3})}}; }

 private:
  ModelTrainer<Point> trainer_;
  std::vector<float> target_;
};

Recipe recipe() {
  return {.name = "drawn",
          .summary = "a number is drawn",
          .steps = 25,
          .report_every = 10,
          .measure_every = 20,
          .chunk = 4,
          .goal = {"exact", Goal::Kind::AtLeast, 0.4, 20},
          .make = make_experiment<Drawn>};
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class TrainingRun : public ::testing::Test {
 protected:
  TrainingRun() : scratch_("training_run") { g_log = {}; }
  Result<ExitCode> run(RunSettings settings, int64_t steps = 25) {
    ::testing::internal::CaptureStdout();
    settings.checkpoint_seconds = 0;
    auto result = runTraining(recipe(), {.steps = steps, .seed = 1, .device = "reference"}, settings);
    std::fflush(stdout);
    output_ = ::testing::internal::GetCapturedStdout();
    return result;
  }
  [[nodiscard]] std::vector<std::string> linesIn(const std::string& file) const { return linesOf(*io::readTextFile(scratch_ / file)); }
  testing::ScratchDirectory scratch_;
  std::string output_;
};

TEST_F(TrainingRun, reports_measures_and_says_whether_the_goal_is_reached) {
  const auto result = run({});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, ExitCode::Ok);
  EXPECT_EQ(g_log.batches.size(), 25u);
  EXPECT_EQ(g_log.measured, 2);  // step 20 and the end
  EXPECT_TRUE(output_.starts_with("device reference (")) << output_;
  for (const char* part :
       {"NO GPU", "step 10/25", "dispatches in", "goal: exact at least 0.4 by step 20: reached at step 20", "done: 25 steps"}) {
    EXPECT_NE(output_.find(part), std::string::npos) << part << " in " << output_;
  }
}

TEST_F(TrainingRun, quiet_run_prints_its_last_lines_only) {
  ASSERT_TRUE(run({.quiet = true}).ok());
  EXPECT_EQ(linesOf(output_).size(), 2u) << output_;
}

TEST_F(TrainingRun, json_has_one_object_a_line_and_ends_with_final) {
  ASSERT_TRUE(run({.json = true}).ok());
  const std::vector<std::string> lines = linesOf(output_);
  ASSERT_EQ(lines.size(), 4u) << output_;  // steps 1, 10, 20 and the end
  EXPECT_TRUE(lines[0].starts_with(R"({"step": 1, "loss": 4,)")) << lines[0];
  EXPECT_NE(lines[2].find(R"("metrics": {"exact": 0.5})"), std::string::npos);
  for (const char* key :
       {"\"final\": true", "\"name\": \"drawn\"", "\"device\": \"reference\"", "\"seed\": 1", "\"steps\": 25",
        "\"loss\": ", "\"metrics\": {\"exact\": 0.5}", "\"seconds\": ", "\"step_seconds_median\": ", "\"dispatches_per_step\": ",
        "\"levels_per_step\": ", "\"distinct_kernels\": ", "\"planned_bytes\": ", "\"parameters\": 1", "\"goal_reached_at\": 20"}) {
    EXPECT_NE(lines[3].find(key), std::string::npos) << key << " in " << lines[3];
  }
}

TEST_F(TrainingRun, folder_gets_everything) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "deep/out")}).ok());
  const auto checkpoint = io::readSafetensors(scratch_ / "deep/out/checkpoint.safetensors");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->metadata.at("lockstep.step"), "25");
  const std::vector<std::string> losses = linesIn("deep/out/losses.jsonl");
  ASSERT_EQ(losses.size(), 25u);
  EXPECT_EQ(losses[0], R"({"step": 1, "loss": 4})");
  EXPECT_EQ(linesIn("deep/out/metrics.jsonl").size(), 2u);
  for (const char* file : {"config.json", "loss.png", "report.html", "exhibits/000020-number.txt", "exhibits/000025-dot.png",
                           "checkpoints/step-000000000020.safetensors", "checkpoints/step-000000000025.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(scratch_ / ("deep/out/" + std::string(file)))) << file;
  }
}

TEST_F(TrainingRun, folder_that_cannot_be_made_or_has_a_run_fails_before_training) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "file", std::string_view("x")).ok());
  auto result = run({.folder = RunFolder(scratch_ / "file")});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "file.directory");
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  g_log = {};
  result = run({.folder = RunFolder(scratch_ / "out")});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "folder.exists");
  EXPECT_TRUE(g_log.batches.empty());
}

TEST_F(TrainingRun, loss_that_is_not_finite_stops_the_run) {
  g_log.poison_at = 13;
  const auto result = run({.folder = RunFolder(scratch_ / "out")});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "train.not_finite");
  EXPECT_EQ(result.failure().exit_code, ExitCode::NumericCheck);
  EXPECT_EQ(linesIn("out/losses.jsonl").size(), 13u);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out/checkpoint.safetensors"));
}

TEST_F(TrainingRun, interrupted_run_writes_what_it_has_and_goes_on_as_if_nothing_had_been) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "whole")}).ok());
  std::atomic<bool> interrupted{false};
  g_log.at[12] = [&] { interrupted.store(true); };
  auto result = run({.folder = RunFolder(scratch_ / "parts"), .interrupted = &interrupted});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, ExitCode::Interrupted);
  const size_t before = linesIn("parts/losses.jsonl").size();
  EXPECT_GE(before, 12u);
  EXPECT_LT(before, 25u);
  EXPECT_NE(output_.find("--resume"), std::string::npos);

  g_log = {};
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "parts"), .resume = true}).ok());
  EXPECT_EQ(g_log.batches.front(), before + 1);
  EXPECT_EQ(linesIn("parts/losses.jsonl"), linesIn("whole/losses.jsonl"));
  EXPECT_EQ(*io::readFile(scratch_ / "parts/checkpoint.safetensors"), *io::readFile(scratch_ / "whole/checkpoint.safetensors"));
}

TEST_F(TrainingRun, killed_run_goes_on_from_its_last_checkpoint) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  // As if the process had died in step 23, within a line, with the checkpoint of step 20.
  std::filesystem::remove(scratch_ / "out/checkpoints/step-000000000025.safetensors");
  std::string losses = *io::readTextFile(scratch_ / "out/losses.jsonl");
  const std::string whole = losses;
  losses.resize(losses.find("{\"step\": 23") + 5);
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "out/losses.jsonl", std::string_view(losses)).ok());
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}).ok());
  EXPECT_EQ(*io::readTextFile(scratch_ / "out/losses.jsonl"), whole);
  EXPECT_EQ(linesIn("out/metrics.jsonl").size(), 2u);
}

TEST_F(TrainingRun, goal_that_was_reached_before_stays_reached) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 30).ok());
  EXPECT_NE(output_.find("reached at step 20"), std::string::npos) << output_;
}

TEST_F(TrainingRun, recipe_that_cannot_run_is_refused) {
  const auto codeOf = [](const Recipe& broken) { return runTraining(broken, {.steps = 3}, {}).diagnostics().front().code; };
  Recipe broken = recipe();
  broken.make = nullptr;
  EXPECT_EQ(codeOf(broken), "recipe.make");
  broken = recipe();
  broken.report_every = 0;
  EXPECT_EQ(codeOf(broken), "recipe.steps");
}

TEST_F(TrainingRun, folder_without_a_run_or_a_checkpoint_cannot_be_gone_on_with) {
  const RunFolder none(scratch_ / "none");
  EXPECT_EQ(none.readConfig().diagnostics().front().code, "folder.missing");
  ASSERT_TRUE(io::makeDirectories(scratch_ / "bad").ok());
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "bad/config.json", std::string_view("{\"recipe\": 3}")).ok());
  EXPECT_EQ(RunFolder(scratch_ / "bad").readConfig().diagnostics().front().code, "folder.config");
  const RunFolder begun(scratch_ / "begun");
  ASSERT_TRUE(begun.begin({.recipe = "drawn", .seed = UINT64_MAX, .steps = 5, .data = "", .device = "auto"}).ok());
  EXPECT_EQ(begun.readConfig()->seed, UINT64_MAX);
  const auto result = run({.folder = begun, .resume = true});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "folder.checkpoint");
}

}  // namespace
}  // namespace lockstep::experiment
