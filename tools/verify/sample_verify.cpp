// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/sample_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "console/options.h"
#include "examples/models/samples.h"
#include "frontend/io/jsonl.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/graph_runner.h"
#include "ir/support/nearest.h"
#include "tools/verify/sample_batch.h"

namespace lockstep::tools {

namespace {

using examples::SampleProgram;

struct Trajectory {
  std::vector<double> losses;
  ValueMap initial, final;
  double seconds = 0;
};

Result<Trajectory> train(GraphRunner& runner, const SampleProgram& sample, const graph::Graph& graph, const passes::OptimizerConfig& config,
                         int64_t steps) {
  const graph::ParameterLayout layout = graph::layoutParameters(graph.parameters);
  Trajectory trajectory;
  trajectory.initial = initialParameters(sample);
  LS_CHECK(writeParameters(runner, layout, trajectory.initial));
  const auto start = std::chrono::steady_clock::now();
  for (int64_t step = 1; step <= steps; ++step) {
    LS_TRY(const StepOutputs outputs, runner.step(stepInputs(sample, config, step)));
    trajectory.losses.push_back(outputs.at({graph::OutputKind::Loss, "loss"}).front());
  }
  trajectory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  LS_TRY(trajectory.final, readParameters(runner, layout));
  return trajectory;
}

/// |got - want| over |want - initial|, all parameters together: how far apart the two runs went, in units of the way they went.
/// `worst` is the parameter that adds most to it.
double driftOf(const Trajectory& got, const Trajectory& want, std::string& worst) {
  double apart = 0, way = 0, most = -1;
  for (const auto& [name, values] : want.final) {
    double here = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      here += std::pow(got.final.at(name)[i] - values[i], 2);
      way += std::pow(values[i] - want.initial.at(name)[i], 2);
    }
    apart += here;
    if (here > most) worst = name;
    most = std::max(most, here);
  }
  return way > 0 ? std::sqrt(apart / way) : std::sqrt(apart);
}

struct SampleReport {
  std::string name;
  bool within = true;
  double first_loss = 0, last_loss = 0;
  double loss_rel = 0;  ///< the worst step
  double drift = 0;     ///< as driftOf says
  std::string drift_in;
  double seconds = 0, evaluator_seconds = 0;
};

io::Json toJson(const SampleReport& report) {
  return io::Json::object()
      .add("name", report.name)
      .add("status", report.within ? "pass" : "fail")
      .add("first_loss", report.first_loss)
      .add("last_loss", report.last_loss)
      .add("loss_rel", report.loss_rel)
      .add("drift", report.drift)
      .add("drift_in", report.drift_in)
      .add("seconds", report.seconds)
      .add("evaluator_seconds", report.evaluator_seconds);
}

std::string toText(const SampleReport& report, int64_t steps) {
  return fmt::format(
      "{:<4} {:<20} {} steps, loss {:.6g} -> {:.6g}; losses within {:.2g}, parameters within {:.2g} of their way, most in {} ({:.1f} s, "
      "evaluator {:.1f} s)",
      report.within ? "ok" : "FAIL", report.name, steps, report.first_loss, report.last_loss, report.loss_rel, report.drift,
      report.drift_in, report.seconds, report.evaluator_seconds);
}

Result<SampleReport> verifySample(const SampleProgram& sample, const detail::Device& device, int64_t steps) {
  const graph::Graph graph =
      detail::traceFunction(sample.model.get(), sample.inputs, sample.loss, graph::OutputKind::Loss, Where::current());
  passes::CompileOptions options;
  options.optimizer = detail::optimizerConfig(sample.optimizer, graph.parameters);
  LS_TRY(const std::unique_ptr<GraphRunner> exact, makeEvaluatingRunner(graph, options));
  LS_TRY(const std::unique_ptr<GraphRunner> runner, makeDeviceRunner(graph, options, device));
  LS_TRY(const Trajectory got, train(*runner, sample, graph, *options.optimizer, steps));
  LS_TRY(const Trajectory want, train(*exact, sample, graph, *options.optimizer, steps));
  SampleReport report{.name = std::string(sample.name), .first_loss = want.losses.front(), .last_loss = want.losses.back(), .drift_in = {}};
  for (size_t i = 0; i < want.losses.size(); ++i) {
    const double apart = std::abs(got.losses[i] - want.losses[i]) / std::max(std::abs(want.losses[i]), 1e-3);
    report.loss_rel = std::max(report.loss_rel, apart);
    report.within = report.within && apart <= kFirstLoss + kLossGrowth * static_cast<double>(i);
  }
  report.drift = driftOf(got, want, report.drift_in);
  report.within = report.within && report.drift <= kFinal;
  report.seconds = got.seconds;
  report.evaluator_seconds = want.seconds;
  return report;
}

/// What `lockstep train` calls them.
constexpr std::pair<std::string_view, std::string_view> kNamesOfTrain[] = {
    {"sine", "mlp-sin"}, {"kan", "kan-tiny"}, {"nerf", "nerf-tiny"}, {"flow-matching", "flow-matching-tiny"}, {"addition", "transformer"}};

}  // namespace

Result<ExitCode> verifySamples(const std::string& asked, const std::string& device, int64_t steps, bool json) {
  const std::vector<SampleProgram> samples = examples::samplePrograms();
  const auto* of_train = std::ranges::find(kNamesOfTrain, asked, &std::pair<std::string_view, std::string_view>::first);
  const std::string_view name = of_train == std::end(kNamesOfTrain) ? std::string_view(asked) : of_train->second;
  if (name != "all" && std::ranges::find(samples, name, &SampleProgram::name) == samples.end()) {
    return console::usage("verify", fmt::format("there is no sample '{}'", name),
                          "one of " + joinNames(samples, &SampleProgram::name) + ", or its name in lockstep train; or all");
  }
  LS_TRY(const detail::Device shared, detail::tryOpenDevice(device));
  if (!json) fmt::print("samples on {} against the f64 evaluator\n", shared.chosen.info.id);
  int64_t failed = 0, passed = 0;
  io::Json list = io::Json::array();
  for (const SampleProgram& sample : samples) {
    if (name != "all" && name != sample.name) continue;
    LS_TRY(const SampleReport report, verifySample(sample, shared, steps));
    ++(report.within ? passed : failed);
    list.add(toJson(report));
    if (json) continue;
    fmt::print("{}\n", toText(report, steps));
    std::fflush(stdout);
  }
  if (json) {
    fmt::print("{}\n", io::Json::object()
                           .add("device", shared.chosen.info.id)
                           .add("steps", steps)
                           .add("samples", list)
                           .add("passed", passed)
                           .add("failed", failed)
                           .text());
  }
  return failed == 0 ? ExitCode::Ok : ExitCode::NumericCheck;
}

}  // namespace lockstep::tools
