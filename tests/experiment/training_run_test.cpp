// SPDX-License-Identifier: Apache-2.0
// The loop around a model of one number that is drawn towards another one.
#include "experiment/training_run.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "backends/backend.h"
#include "frontend/io/file.h"
#include "frontend/io/safetensors.h"
#include "frontend/lockstep.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::experiment {
namespace {

using Json = nlohmann::json;

struct Point : Module {
  Parameter at{*this, "at", {1}, init::constant(3)};
};

/// What the experiment was asked for; make is a plain function.
struct Log {
  std::vector<uint64_t> batches;
  int measured = 0;
  uint64_t poison_at = 0;
  float poison = NAN;
  bool overflows = false;  ///< whether the loss has a conversion that does not fit, of which nothing is left
  std::function<void()> on_measure = {}, on_exhibits = {};
  std::map<uint64_t, std::function<void()>> at;
};
Log g_log;

class Drawn : public Experiment {
 public:
  explicit Drawn(const ExperimentOptions& options)
      : trainer_(compile(options.with(CompileSpec<Point>{
            .inputs = {{"target", f32(1)}},
            .loss =
                [](const Point& model, const Inputs& in) {
                  const Tensor loss = mean(square(model.at - in["target"]));
                  return g_log.overflows ? loss + 0 * mean(cast(cast(in["target"] * 1e12F, DType::I32), DType::F32)) : loss;
                },
            .optimizer = sgd({.lr = schedule::linear({.peak = 0.2, .final = 0, .steps = 50})}, {.check_gradients = true}),
        }))) {}
  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override {
    g_log.batches.push_back(step);
    if (auto found = g_log.at.find(step); found != g_log.at.end()) found->second();
    target_ = {step == g_log.poison_at ? g_log.poison : static_cast<float>(step % 2)};
    return {{"target", target_}};
  }
  Metrics measure() override {
    ++g_log.measured;
    if (g_log.on_measure) g_log.on_measure();
    return {{"exact", 0.5}};
  }
  std::vector<Exhibit> exhibits() override {
    if (g_log.on_exhibits) g_log.on_exhibits();
    return {{"number", "one\n"}, {"dot", io::Image(2, 2, {1, 2, 3})}};
  }

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
  Result<ExitCode> run(RunSettings settings, int64_t steps = 25, double checkpoint_seconds = 0) {
    ::testing::internal::CaptureStdout();
    settings.checkpoint_seconds = checkpoint_seconds;
    auto result = runTraining(recipe(), {.steps = steps, .seed = 1, .device = device_}, settings);
    std::fflush(stdout);
    output_ = ::testing::internal::GetCapturedStdout();
    return result;
  }
  /// The code of the error with which the run ends.
  std::string failed(const Result<ExitCode>& result) { return result.ok() ? "none" : result.diagnostics().front().code; }
  /// A folder in the place of a file cannot be replaced by it.
  void block(const std::string& file) const { std::filesystem::create_directories(scratch_ / (file + "/in_the_way")); }
  [[nodiscard]] std::vector<std::string> linesIn(const std::string& file) const { return linesOf(*io::readTextFile(scratch_ / file)); }
  testing::ScratchDirectory scratch_;
  std::string output_, device_ = "reference";
};

TEST_F(TrainingRun, reports_measures_and_says_whether_the_goal_is_reached) {
  const auto result = run({});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, ExitCode::Ok);
  EXPECT_EQ(g_log.batches.size(), 25u);
  EXPECT_EQ(g_log.measured, 2);  // step 20 and the end
  EXPECT_TRUE(output_.starts_with("device reference (")) << output_;
  for (const char* part : {"step 10/25", "dispatches in", "goal: exact at least 0.4 by step 20: reached at step 20", "done: 25 steps"}) {
    EXPECT_NE(output_.find(part), std::string::npos) << part << " in " << output_;
  }
}

TEST_F(TrainingRun, only_a_CPU_that_nobody_asked_for_is_a_notice) {
  const auto says = [&](const std::string& device) {
    device_ = device;
    const auto result = run({}, 1);
    EXPECT_TRUE(result.ok()) << toString(result.diagnostics());
    return output_.find("NO GPU") != std::string::npos;
  };
  const DeviceKind kind = chooseDevice("auto").orThrow().info.kind;
  EXPECT_EQ(says("auto"), kind == DeviceKind::Reference || kind == DeviceKind::CpuDriver);
  EXPECT_FALSE(says("reference"));
  EXPECT_FALSE(says("sanitizer"));
}

TEST_F(TrainingRun, device_that_is_none_is_wrong_at_the_option) {
  for (const auto& [device, code] :
       {std::pair("vulkan:99", "device.none"), {"gpu", "device.selector"}, {"sanitizer:x", "sanitize.check"}}) {
    device_ = device;
    const auto result = run({});
    ASSERT_FALSE(result.ok()) << device;
    EXPECT_EQ(result.diagnostics().front().code, code);
    EXPECT_EQ(result.diagnostics().front().where.file, "--device");
    EXPECT_EQ(result.diagnostics().front().where.line, 0u);
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
  EXPECT_NE(lines[0].find("\"steps_per_second\": null"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("\"lr\": "), std::string::npos) << lines[1];
  EXPECT_NE(lines[1].find("\"grad_norm\": "), std::string::npos) << lines[1];
  for (const char* key :
       {"\"final\": true", "\"name\": \"drawn\"", "\"device\": \"reference\"", "\"seed\": 1", "\"steps\": 25",
        "\"loss\": ", "\"metrics\": {\"exact\": 0.5}", "\"seconds\": ", "\"step_seconds_median\": ", "\"dispatches_per_step\": ",
        "\"levels_per_step\": ", "\"distinct_kernels\": ", "\"planned_bytes\": ", "\"parameters\": 1", "\"goal_reached_at\": 20"}) {
    EXPECT_NE(lines[3].find(key), std::string::npos) << key << " in " << lines[3];
  }
}

TEST_F(TrainingRun, final_line_has_what_the_sanitizer_found) {
  g_log.overflows = true;
  ASSERT_TRUE(run({.json = true}, 3).ok());
  EXPECT_FALSE(Json::parse(linesOf(output_).back()).contains("findings")) << "nobody asked";
  device_ = "sanitizer";
  ::testing::internal::CaptureStderr();
  const auto result = run({.json = true}, 3);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(result.ok()) << failed(result);
  EXPECT_EQ(*result, ExitCode::NumericCheck);
  const Json findings = Json::parse(linesOf(output_).back())["findings"];
  ASSERT_EQ(findings.size(), 1u) << output_;
  EXPECT_EQ(findings[0]["code"], "integer.conversion");
  EXPECT_EQ(findings[0]["severity"], "error");
  EXPECT_EQ(findings[0]["count"], 2) << "of steps 1 and 3";
  EXPECT_TRUE(findings[0]["file"].get<std::string>().ends_with("training_run_test.cpp")) << findings;
  g_log.overflows = false;
  ASSERT_EQ(*run({.json = true}, 3), ExitCode::Ok);
  EXPECT_EQ(Json::parse(linesOf(output_).back())["findings"], Json::array());
}

TEST_F(TrainingRun, what_the_sanitizer_found_follows_a_loss_that_is_not_finite) {
  g_log.poison_at = 2;
  g_log.poison = 1e30F;
  device_ = "sanitizer";
  const auto result = run({}, 3);
  EXPECT_EQ(failed(result), "train.not_finite");
  const auto found = std::ranges::find(result.diagnostics(), "float.not_finite", &Diagnostic::code);
  ASSERT_NE(found, result.diagnostics().end()) << toString(result.diagnostics());
  EXPECT_TRUE(found->notes.back().message.starts_with("first in kernel ")) << toString(*found);
}

TEST_F(TrainingRun, folder_gets_everything) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "deep/out")}).ok());
  const auto checkpoint = io::readSafetensors(scratch_ / "deep/out/checkpoint.safetensors");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->metadata.at("lockstep.step"), "25");
  const std::vector<std::string> losses = linesIn("deep/out/losses.jsonl");
  ASSERT_EQ(losses.size(), 25u);
  EXPECT_EQ(losses[0], R"({"step": 1, "loss": 4})");
  // A line for each report: steps 1, 10, 20 and the end.
  const std::vector<std::string> reports = linesIn("deep/out/metrics.jsonl");
  ASSERT_EQ(reports.size(), 4u);
  for (size_t i = 0; i < reports.size(); ++i) {
    const Json report = Json::parse(reports[i]);
    EXPECT_EQ(report["step"], std::vector<int>({1, 10, 20, 25})[i]);
    EXPECT_DOUBLE_EQ(report["lr"], rateAt(schedule::linear({.peak = 0.2, .final = 0, .steps = 50}), report["step"])) << reports[i];
    EXPECT_GT(report["grad_norm"], 0);
    EXPECT_GE(report["seconds"], 0);
    EXPECT_EQ(report["metrics"].dump(), i < 2 ? "{}" : R"({"exact":0.5})");
  }
  for (const char* file : {"config.json", "loss.png", "report.html", "exhibits/000020-number.txt", "exhibits/000025-dot.png",
                           "checkpoints/step-000000000020.safetensors", "checkpoints/step-000000000025.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(scratch_ / ("deep/out/" + std::string(file)))) << file;
  }
}

TEST_F(TrainingRun, config_says_what_ran_and_what_it_was_resumed_with) {
  device_ = "auto";
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}, 10).ok());
  Json config = Json::parse(*io::readTextFile(scratch_ / "out/config.json"));
  EXPECT_EQ(config["device_asked"], "auto");
  EXPECT_TRUE(config["device"] == "reference" || config["device"].get<std::string>().starts_with("vulkan:")) << config;
  EXPECT_FALSE(config["driver"].get<std::string>().empty());
  EXPECT_FALSE(config["device_name"].get<std::string>().empty());
  EXPECT_EQ(config["version"], LOCKSTEP_PROJECT_VERSION);
  EXPECT_TRUE(std::regex_match(config["date"].get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"))) << config;
  EXPECT_TRUE(config["commit"].is_null() || std::regex_match(config["commit"].get<std::string>(), std::regex("[0-9a-f]{7,}"))) << config;
  EXPECT_EQ(config["optimizer"]["name"], "sgd");
  EXPECT_EQ(config["optimizer"]["momentum"], 0);
  EXPECT_EQ(config["optimizer"]["nesterov"], false);
  EXPECT_EQ(config["learning_rate"]["kind"], "linear");
  EXPECT_EQ(config["learning_rate"]["peak"], 0.2);
  EXPECT_FALSE(config.contains("resumed"));

  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 15).ok());
  config = Json::parse(*io::readTextFile(scratch_ / "out/config.json"));
  EXPECT_EQ(config["steps"], 15);
  ASSERT_EQ(config["resumed"].size(), 1u);
  EXPECT_EQ(config["resumed"][0]["after_step"], 10);
  EXPECT_EQ(config["resumed"][0]["device"], config["device"]);
  const auto read = RunFolder(scratch_ / "out").readConfig();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->device, "auto");
  EXPECT_EQ(read->steps, 15);
}

TEST_F(TrainingRun, report_is_there_while_the_run_goes_on) {
  std::string early;
  g_log.at[15] = [&] { early = *io::readTextFile(scratch_ / "out/report.html"); };
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  EXPECT_NE(early.find("\"running\": true"), std::string::npos) << early.size();
  const std::string late = *io::readTextFile(scratch_ / "out/report.html");
  EXPECT_NE(late.find("\"running\": false"), std::string::npos);
  // What was made at step 20 is in it, not only the last.
  for (const char* exhibit : {R"({"name": "number", "step": 20,)", R"({"name": "number", "step": 25,)", R"({"name": "dot", "step": 20,)"}) {
    EXPECT_NE(late.find(exhibit), std::string::npos) << exhibit;
  }
}

TEST_F(TrainingRun, resumed_run_has_its_earlier_exhibits_and_its_time) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  const double before = Json::parse(linesIn("out/metrics.jsonl").back())["seconds"];
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 30).ok());
  const std::string page = *io::readTextFile(scratch_ / "out/report.html");
  for (const char* step : {"20", "25", "30"}) {
    EXPECT_NE(page.find(fmt::format("{{\"name\": \"number\", \"step\": {}, \"text\": \"one\\n\"}}", step)), std::string::npos) << step;
    EXPECT_NE(page.find(fmt::format("{{\"name\": \"dot\", \"step\": {}, \"image\": \"iVBOR", step)), std::string::npos) << step;
  }
  EXPECT_GT(Json::parse(linesIn("out/metrics.jsonl").back())["seconds"], before);
}

TEST_F(TrainingRun, first_submission_tells_nothing_of_what_is_left) {
  ASSERT_TRUE(run({}).ok());
  const size_t first = output_.find("step 1/25"), second = output_.find("step 10/25");
  ASSERT_NE(second, std::string::npos) << output_;
  EXPECT_EQ(output_.substr(first, output_.find('\n', first) - first).find("left"), std::string::npos) << output_;
  EXPECT_NE(output_.substr(second, output_.find('\n', second) - second).find(" left"), std::string::npos) << output_;
}

TEST_F(TrainingRun, damaged_checkpoint_gives_way_to_the_intact_one_beside_it) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "out/checkpoints"))
    std::filesystem::resize_file(entry.path(), 100);
  g_log = {};
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 26).ok());
  EXPECT_EQ(g_log.batches, std::vector<uint64_t>{26});

  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "out/checkpoints"))
    std::filesystem::resize_file(entry.path(), 100);
  std::filesystem::resize_file(scratch_ / "out/checkpoint.safetensors", 100);
  const auto result = run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 30);
  ASSERT_FALSE(result.ok());
  const Diagnostic& error = result.diagnostics().front();
  EXPECT_EQ(error.code, "folder.checkpoint");
  EXPECT_NE(error.message.find("every checkpoint in"), std::string::npos) << error.message;
  ASSERT_GE(error.notes.size(), 2u);
  EXPECT_TRUE(error.notes.back().message.starts_with("checkpoint.safetensors: ")) << error.notes.back().message;
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
  auto result = run({.folder = RunFolder(scratch_ / "parts"), .resume_command = "./a b --resume", .interrupted = &interrupted});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, ExitCode::Interrupted);
  const size_t before = linesIn("parts/losses.jsonl").size();
  EXPECT_GE(before, 12u);
  EXPECT_LT(before, 25u);
  EXPECT_NE(output_.find("to resume: ./a b --resume\n"), std::string::npos) << output_;

  g_log = {};
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "parts"), .resume = true}).ok());
  EXPECT_EQ(g_log.batches.front(), before + 1);
  EXPECT_EQ(linesIn("parts/losses.jsonl"), linesIn("whole/losses.jsonl"));
  EXPECT_EQ(*io::readFile(scratch_ / "parts/checkpoint.safetensors"), *io::readFile(scratch_ / "whole/checkpoint.safetensors"));
}

TEST_F(TrainingRun, first_checkpoint_comes_with_the_first_report) {
  bool early = false;
  g_log.at[5] = [&] { early = std::filesystem::exists(scratch_ / "out/checkpoints/step-000000000001.safetensors"); };
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}, 25, 1e9).ok());
  EXPECT_TRUE(early);
  // And then not before its time.
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out/checkpoints/step-000000000010.safetensors"));
}

TEST_F(TrainingRun, pictures_that_cannot_be_written_are_warnings) {
  for (const char* file : {"out/loss.png", "out/report.html", "out/exhibits/000020-dot.png", "out/exhibits/000025-number.txt"}) block(file);
  ::testing::internal::CaptureStderr();
  const auto result = run({.folder = RunFolder(scratch_ / "out")});
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(result.ok()) << failed(result);
  EXPECT_EQ(*result, ExitCode::Ok);
  EXPECT_TRUE(warnings.starts_with("warning: file.write: ")) << warnings;
  EXPECT_EQ(linesOf(warnings).size(), 1u) << warnings;  // not one for each picture
  EXPECT_EQ(linesIn("out/losses.jsonl").size(), 25u);
  EXPECT_EQ(linesIn("out/metrics.jsonl").size(), 4u);
  EXPECT_EQ(io::readSafetensors(scratch_ / "out/checkpoint.safetensors")->metadata.at("lockstep.step"), "25");
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "out/exhibits/000020-number.txt"));
}

TEST_F(TrainingRun, picture_that_cannot_be_made_is_a_warning) {
  int calls = 0;
  g_log.on_exhibits = [&] {
    if (++calls == 1) throw std::bad_alloc();
    throw Error(Diagnostic{.code = "mine.picture", .message = "no", .where = {}, .notes = {}, .remedy = {}});
  };
  ::testing::internal::CaptureStderr();
  const auto result = run({.folder = RunFolder(scratch_ / "out")});
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(result.ok()) << failed(result);
  EXPECT_NE(warnings.find("warning: memory.host: "), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("warning: mine.picture: no"), std::string::npos) << warnings;
  EXPECT_EQ(linesIn("out/losses.jsonl").size(), 25u);
}

TEST_F(TrainingRun, losses_and_checkpoint_are_there_before_anything_is_measured_or_shown) {
  std::vector<std::string> seen;
  const auto look = [&] {
    const auto checkpoint = io::readSafetensors(scratch_ / "out/checkpoint.safetensors");
    seen.push_back(fmt::format("{} losses, {}", linesIn("out/losses.jsonl").size(),
                               checkpoint.ok() ? checkpoint->metadata.at("lockstep.step") : "no checkpoint"));
  };
  g_log.on_measure = g_log.on_exhibits = look;
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}, 9, 1e9).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"9 losses, 9", "9 losses, 9"}));
}

TEST_F(TrainingRun, failure_between_two_steps_leaves_a_checkpoint_to_resume_from) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "whole")}).ok());
  g_log.at[18] = [] { throw std::runtime_error("the data ends here"); };
  EXPECT_THROW((void)run({.folder = RunFolder(scratch_ / "parts")}, 25, 1e9), std::runtime_error);
  (void)::testing::internal::GetCapturedStdout();
  const size_t reached = linesIn("parts/losses.jsonl").size();
  EXPECT_GE(reached, 14u);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / fmt::format("parts/checkpoints/step-{:012}.safetensors", reached)));
  g_log = {};
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "parts"), .resume = true}).ok());
  EXPECT_EQ(g_log.batches.front(), reached + 1);
  EXPECT_EQ(linesIn("parts/losses.jsonl"), linesIn("whole/losses.jsonl"));
  EXPECT_EQ(*io::readFile(scratch_ / "parts/checkpoint.safetensors"), *io::readFile(scratch_ / "whole/checkpoint.safetensors"));
}

TEST_F(TrainingRun, second_run_in_a_folder_is_told_whose_it_is) {
  std::string begun, resumed;
  g_log.at[12] = [&] {
    const auto secondOf = [&](bool resume) {
      const auto result = runTraining(recipe(), {.steps = 3, .seed = 1, .device = "reference"},
                                      {.folder = RunFolder(scratch_ / "out"), .resume = resume, .quiet = true});
      return failed(result) + ": " + (result.ok() ? "" : result.diagnostics().front().message);
    };
    begun = secondOf(false);
    resumed = secondOf(true);
  };
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}).ok());
  const std::string wanted = fmt::format("folder.busy: '{}' is in use: process {} trains into it", (scratch_ / "out").string(), ::getpid());
  EXPECT_EQ(begun, wanted);
  EXPECT_EQ(resumed, wanted);
  EXPECT_EQ(linesIn("out/losses.jsonl").size(), 25u);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out/lock"));
  // What a killed run leaves of its lock holds nobody up.
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "out/lock", std::string_view("1\n")).ok());
  EXPECT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 26).ok());
}

TEST_F(TrainingRun, list_of_resumptions_that_is_none_is_begun_again) {
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out")}, 10).ok());
  Json config = Json::parse(*io::readTextFile(scratch_ / "out/config.json"));
  config["resumed"] = "often";
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "out/config.json", std::string_view(config.dump())).ok());
  ASSERT_TRUE(run({.folder = RunFolder(scratch_ / "out"), .resume = true}, 12).ok());
  EXPECT_EQ(Json::parse(*io::readTextFile(scratch_ / "out/config.json"))["resumed"].size(), 1u);
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
  EXPECT_EQ(linesIn("out/metrics.jsonl").size(), 4u);
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

TEST_F(TrainingRun, folder_without_a_run_or_a_checkpoint_cannot_be_resumed) {
  const RunFolder none(scratch_ / "none");
  EXPECT_EQ(none.readConfig().diagnostics().front().code, "folder.missing");
  ASSERT_TRUE(io::makeDirectories(scratch_ / "bad").ok());
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "bad/config.json", std::string_view("{\"recipe\": 3}")).ok());
  EXPECT_EQ(RunFolder(scratch_ / "bad").readConfig().diagnostics().front().code, "folder.config");
  const RunFolder begun(scratch_ / "begun");
  ASSERT_TRUE(begun.begin({.recipe = "drawn", .seed = UINT64_MAX, .steps = 5, .data = "", .device = "auto"}, {}).ok());
  EXPECT_EQ(begun.readConfig()->seed, UINT64_MAX);
  const auto result = run({.folder = begun, .resume = true});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "folder.checkpoint");
}

}  // namespace
}  // namespace lockstep::experiment
