// SPDX-License-Identifier: Apache-2.0
#include "tools/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/io/plot.h"
#include "tools/progress.h"
#include "tools/text_format.h"

namespace lockstep::tools {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string metricsText(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format("{}{} {:.4g}", text.empty() ? "" : "  ", name, value);
  return text;
}

io::Json metricsJson(const Metrics& metrics) {
  io::Json json = io::Json::object();
  for (const auto& [name, value] : metrics) json.add(name, value);
  return json;
}

class Loop {
 public:
  Loop(const Sample& sample, const SampleOptions& options, const TrainSettings& settings)
      : sample_(sample), options_(options), settings_(settings), progress_(stderr, settings.live) {}

  Result<ExitCode> run() {
    // A directory that cannot be made must not show itself after an hour of training.
    if (!settings_.out_directory.empty()) LS_CHECK(io::makeDirectories(settings_.out_directory));
    const Clock::time_point compile_start = Clock::now();
    run_ = sample_.make(options_);
    const SampleFacts& facts = run_->facts();
    say(fmt::format("{}: {} steps, {} parameters, seed {}", sample_.name, options_.steps, facts.parameters, options_.seed));
    say(fmt::format("device {} ({}): {}", facts.device, facts.device_name, facts.device_reason));
    say(fmt::format("{} dispatches in {} levels a step, {} kernels, {} planned; ready after {}", facts.dispatches_per_step,
                    facts.levels_per_step, facts.distinct_kernels, formatBytes(facts.planned_bytes),
                    formatDuration(secondsSince(compile_start))));
    start_ = Clock::now();
    bool interrupted = false;
    while (done() < options_.steps && !interrupted && finite_) {
      train(std::min(untilReport(), options_.steps - done()));
      interrupted = settings_.interrupted != nullptr && settings_.interrupted->load();
      const bool due = done() % sample_.report_every == 0 || done() == 1;
      if (done() < options_.steps && !interrupted && finite_ && due) report();
    }
    progress_.finish();
    if (!finite_) return stopNotFinite();
    metrics_ = run_->measure();
    LS_CHECK(writeOutputs(true));
    finalReport(interrupted);
    return interrupted ? ExitCode::Interrupted : ExitCode::Ok;
  }

 private:
  [[nodiscard]] int64_t done() const { return static_cast<int64_t>(losses_.size()); }

  /// Steps in the next submission: the first step alone (it shows early that all works), then chunks that end on report lines.
  [[nodiscard]] int64_t untilReport() const {
    if (done() == 0) return 1;
    const int64_t to_report = sample_.report_every - done() % sample_.report_every;
    return std::clamp<int64_t>(sample_.chunk, 1, to_report);
  }

  void train(int64_t count) {
    const Clock::time_point begin = Clock::now();
    const std::vector<float> losses = run_->advance(count);
    const double each = secondsSince(begin) / static_cast<double>(count);
    if (static_cast<int64_t>(losses.size()) != count) internalError("a sample returned another number of losses than steps");
    for (const float loss : losses) {
      losses_.push_back(loss);
      step_seconds_.push_back(each);
      io::Json line = io::Json::object().add("step", done()).add("loss", static_cast<double>(loss));
      lines_.add(line);
      if (!std::isfinite(loss)) {
        finite_ = false;
        break;
      }
    }
    progress_.update(state());
  }

  [[nodiscard]] ProgressState state() const {
    // The last hundred steps: the first ones include the driver's own compilation.
    const size_t window = std::min<size_t>(step_seconds_.size(), 100);
    double recent = 0;
    for (size_t i = step_seconds_.size() - window; i < step_seconds_.size(); ++i) recent += step_seconds_[i];
    const double rate = recent > 0 ? static_cast<double>(window) / recent : 0;
    return {.step = done(),
            .steps = options_.steps,
            .loss = losses_.empty() ? 0 : losses_.back(),
            .steps_per_second = rate,
            .eta_seconds = rate > 0 ? static_cast<double>(options_.steps - done()) / rate : -1,
            .device = run_->facts().device,
            .memory_bytes = run_->facts().planned_bytes,
            .metrics = metricsText(metrics_)};
  }

  void say(const std::string& text) {
    if (!settings_.json) {
      fmt::print("{}\n", text);
      std::fflush(stdout);
    }
  }

  void report() {
    const bool measured = sample_.measure_every > 0 && done() % sample_.measure_every == 0;
    metrics_ = measured ? run_->measure() : Metrics{};
    progress_.finish();
    const ProgressState now = state();
    if (!settings_.json) {
      say(progressLine(now, 0));
      return;
    }
    io::Json line = io::Json::object()
                        .add("step", now.step)
                        .add("loss", now.loss)
                        .add("seconds", secondsSince(start_))
                        .add("steps_per_second", now.steps_per_second);
    if (measured) line.add("metrics", metricsJson(metrics_));
    fmt::print("{}\n", line.text());
    std::fflush(stdout);
  }

  void finalReport(bool interrupted) {
    const SampleFacts& facts = run_->facts();
    const double seconds = secondsSince(start_);
    const double step_median = median(step_seconds_);
    const double loss = losses_.empty() ? 0.0 : losses_.back();
    if (!settings_.json) {
      say(fmt::format("{}: {} steps in {}, {} a step (median), loss {:.4g}{}{}", interrupted ? "interrupted" : "done", done(),
                      formatDuration(seconds), formatDuration(step_median), loss, metrics_.empty() ? "" : ", ", metricsText(metrics_)));
      if (!settings_.out_directory.empty())
        say(fmt::format("wrote checkpoint.safetensors, losses.jsonl and loss.png to {}", settings_.out_directory));
      return;
    }
    const io::Json line = io::Json::object()
                              .add("final", true)
                              .add("name", sample_.name)
                              .add("device", facts.device)
                              .add("seed", options_.seed)
                              .add("steps", done())
                              .add("loss", loss)
                              .add("metrics", metricsJson(metrics_))
                              .add("seconds", seconds)
                              .add("step_seconds_median", step_median)
                              .add("dispatches_per_step", facts.dispatches_per_step)
                              .add("levels_per_step", facts.levels_per_step)
                              .add("distinct_kernels", facts.distinct_kernels)
                              .add("planned_bytes", facts.planned_bytes)
                              .add("parameters", facts.parameters);
    fmt::print("{}\n", line.text());
  }

  Status writeOutputs(bool with_checkpoint) {
    if (settings_.out_directory.empty()) return Success{};
    const std::filesystem::path directory = settings_.out_directory;
    if (with_checkpoint) {
      io::TensorFile checkpoint = run_->checkpoint();
      checkpoint.metadata["lockstep.sample"] = sample_.name;
      checkpoint.metadata["lockstep.steps"] = std::to_string(done());
      checkpoint.metadata["lockstep.seed"] = std::to_string(options_.seed);
      LS_CHECK(io::writeSafetensors(directory / "checkpoint.safetensors", checkpoint));
    }
    LS_CHECK(lines_.write(directory / "losses.jsonl"));
    io::Series series{.name = "loss", .x = {}, .y = {}};
    for (size_t i = 0; i < losses_.size(); ++i) {
      series.x.push_back(static_cast<double>(i + 1));
      series.y.push_back(losses_[i]);
    }
    const io::PlotOptions plot_options{.title = fmt::format("{} on {}", sample_.name, run_->facts().device)};
    return io::writePng(directory / "loss.png", io::plot({series}, plot_options));
  }

  Result<ExitCode> stopNotFinite() {
    LS_CHECK(writeOutputs(false));
    Failure failure = fail("train.not_finite", fmt::format("the loss of step {} is {}", done(), losses_.back()), {},
                           "try another --seed, or --device reference to find where the value comes from");
    failure.exit_code = ExitCode::NumericCheck;
    return failure;
  }

  const Sample& sample_;
  const SampleOptions& options_;
  const TrainSettings& settings_;
  Progress progress_;
  std::unique_ptr<SampleRun> run_;
  Clock::time_point start_;
  std::vector<float> losses_;
  std::vector<double> step_seconds_;
  io::JsonLines lines_;
  Metrics metrics_;
  bool finite_ = true;
};

}  // namespace

Result<ExitCode> runTraining(const Sample& sample, const SampleOptions& options, const TrainSettings& settings) {
  return Loop(sample, options, settings).run();
}

}  // namespace lockstep::tools
