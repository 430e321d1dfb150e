// SPDX-License-Identifier: Apache-2.0
// Where and when the model of a run is saved for other programs.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "experiment/training_run.h"
#include "frontend/io/file.h"
#include "frontend/lockstep.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::experiment {
namespace {

struct Number : Module {
  Parameter at{*this, "at", {1}, init::constant(3)};
};

/// What happens with the data of a step, and while the model is written.
struct Events {
  std::function<void(uint64_t step)> on_batch = [](uint64_t) {};
  std::function<Status()> on_save = [] { return Success{}; };
};
Events g_events;

/// Its model is the number of its steps, as text.
class Counted : public Experiment {
 public:
  explicit Counted(const ExperimentOptions& options)
      : trainer_(
            compile(options.with(CompileSpec<Number>{.inputs = {{"target", f32(1)}}, .loss = [](const Number& model, const Inputs& in) {
                                                       return mean(square(model.at - in["target"]));
                                                     }}))) {}
  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override {
    g_events.on_batch(step);
    return {{"target", target_}};
  }
  Status saveModel(const std::filesystem::path& folder) override {
    LS_CHECK(io::writeFileAtomically(folder / "steps", std::string_view(std::to_string(trainer_.step_count()))));
    return g_events.on_save();
  }

 private:
  ModelTrainer<Number> trainer_;
  std::vector<float> target_ = {1};
};

Recipe counted() {
  return {.name = "counted",
          .summary = "steps are counted",
          .report_every = 2,
          .chunk = 1,
          .model = "a folder with a number",
          .make = make_experiment<Counted>};
}

class SavedModel : public ::testing::Test {
 protected:
  SavedModel() : scratch_("saved_model") { g_events = {}; }
  Result<ExitCode> run(RunSettings settings, int64_t steps = 4) {
    settings.interrupted = &interrupted_;
    ::testing::internal::CaptureStdout();
    auto result = runTraining(counted(), {.steps = steps, .seed = 1, .device = "reference"}, settings);
    std::fflush(stdout);
    output_ = ::testing::internal::GetCapturedStdout();
    return result;
  }
  [[nodiscard]] RunSettings inFolder() const { return {.folder = RunFolder(scratch_ / "run")}; }
  [[nodiscard]] std::string stepsIn(const std::string& folder) const {
    const auto text = io::readTextFile(scratch_ / folder / "steps");
    return text.ok() ? *text : "none";
  }
  [[nodiscard]] size_t entries(const std::string& folder = "") const { return io::entriesOf(scratch_ / folder).size(); }
  void interruptAt(uint64_t step) {
    g_events.on_batch = [this, step](uint64_t now) { interrupted_ = now == step; };
  }

  testing::ScratchDirectory scratch_;
  std::string output_;
  std::atomic<bool> interrupted_ = false;
};

TEST_F(SavedModel, is_in_the_folder_of_the_run) {
  ASSERT_TRUE(run(inFolder()).ok());
  EXPECT_EQ(stepsIn("run/model"), "4");
  EXPECT_NE(output_.find("the model is in " + (scratch_ / "run/model").string()), std::string::npos) << output_;
}

TEST_F(SavedModel, is_there_when_a_run_is_interrupted_and_is_replaced_when_it_goes_on) {
  interruptAt(3);
  ASSERT_EQ(*run(inFolder()), ExitCode::Interrupted);
  EXPECT_EQ(stepsIn("run/model"), "3");
  interrupted_ = false;
  g_events = {};
  RunSettings resumed = inFolder();
  resumed.resume = true;
  ASSERT_EQ(*run(resumed), ExitCode::Ok);
  EXPECT_EQ(stepsIn("run/model"), "4");
}

TEST_F(SavedModel, is_elsewhere_when_the_run_is_done_and_not_before) {
  RunSettings settings = inFolder();
  settings.save = scratch_ / "below/here";
  interruptAt(3);
  ASSERT_EQ(*run(settings), ExitCode::Interrupted);
  EXPECT_EQ(stepsIn("below/here"), "none");
  EXPECT_EQ(stepsIn("run/model"), "none");
  interrupted_ = false;
  g_events = {};
  settings.resume = true;
  ASSERT_EQ(*run(settings), ExitCode::Ok);
  EXPECT_EQ(stepsIn("below/here"), "4");
  EXPECT_EQ(entries("below"), 1u);
}

TEST_F(SavedModel, needs_no_folder_of_a_run) {
  ASSERT_TRUE(run({.save = scratch_ / "here"}).ok());
  EXPECT_EQ(stepsIn("here"), "4");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(SavedModel, that_is_there_already_is_told_before_the_first_step) {
  ASSERT_TRUE(io::makeDirectories(scratch_ / "here/inner").ok());
  uint64_t batches = 0;
  g_events.on_batch = [&](uint64_t) { ++batches; };
  const auto result = run({.save = scratch_ / "here"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "folder.exists");
  EXPECT_EQ(batches, 0u);
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "file", std::string_view("x")).ok());
  const auto below_a_file = run({.save = scratch_ / "file/inner"});
  ASSERT_FALSE(below_a_file.ok());
  EXPECT_EQ(below_a_file.diagnostics().front().code, "file.directory");
  EXPECT_EQ(batches, 0u);
  // An empty folder is as good as none.
  ASSERT_TRUE(run({.save = scratch_ / "here/inner"}).ok());
  EXPECT_EQ(stepsIn("here/inner"), "4");
}

TEST_F(SavedModel, that_cannot_be_written_whole_is_not_there) {
  ASSERT_TRUE(run(inFolder()).ok());
  g_events.on_save = [] { return fail("file.write", "the disk is full"); };
  RunSettings resumed = inFolder();
  resumed.resume = true;
  const size_t before = entries("run");
  const auto result = run(resumed, 6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "file.write");
  EXPECT_EQ(stepsIn("run/model"), "4");
  EXPECT_EQ(entries("run"), before);
  EXPECT_FALSE(run({.save = scratch_ / "here"}).ok());
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace lockstep::experiment
