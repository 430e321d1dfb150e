// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>

#include "frontend/nn/init.h"
#include "tools/verify/golden_models.h"

namespace lockstep::tools {
namespace {

using graph::OutputKind;

/// What the optimizer pass asks for.
void addScalars(const GoldenTraining& golden, int64_t step, ValueMap& inputs) {
  const std::array<double, 4> scalars = passes::stepScalars(golden.optimizer, golden.rate(step), static_cast<uint64_t>(step));
  inputs.emplace(passes::kScalarsInput, std::vector<double>(scalars.begin(), scalars.end()));
}

/// Moves every parameter by up to 2 units in the last place; the same way for the same run and step.
Status moveParameters(GraphRunner& runner, uint32_t run, int64_t step) {
  constexpr double kUnits = 2;
  LS_TRY(std::vector<double> values, runner.readState("params"));
  for (size_t k = 0; k < values.size(); ++k) {
    const uint32_t word = random::words({static_cast<uint32_t>(k), static_cast<uint32_t>(step), run, 0}, {1, 0})[0];
    values[k] *= 1 + (std::ldexp(static_cast<double>(word), -31) - 1) * std::ldexp(kUnits, -23);
  }
  return runner.writeState("params", values);
}

void widen(double& most, const std::vector<double>& got, const std::vector<double>& want) {
  most = std::max(most, distance(got, want, 1).rel_l2);
}

std::vector<double> joined(const ValueMap& values) {
  std::vector<double> all;
  for (const auto& [name, part] : values) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

ValueMap valuesOf(const ArrayMap& arrays) {
  ValueMap values;
  for (const auto& [name, array] : arrays) values.emplace(name, array.toDoubles());
  return values;
}

ValueMap select(const StepOutputs& outputs, OutputKind kind) {
  ValueMap values;
  for (const auto& [key, data] : outputs) {
    if (key.first == kind) values.emplace(key.second, data);
  }
  return values;
}

Result<TrainingOutcome> trainGolden(const GoldenTraining& golden, const RunnerMaker& make, const BeforeStep& before) {
  LS_TRY(const graph::Graph graph, traceGoldenModel(golden));
  const graph::ParameterLayout layout = graph::layoutParameters(graph.parameters);
  const ValueMap initial = valuesOf(golden.initial);
  TrainingOutcome outcome;
  if (!golden.first_gradients.empty()) {
    passes::CompileOptions options;
    options.keep_gradients = true;
    LS_TRY(const std::unique_ptr<GraphRunner> runner, make(graph, options));
    LS_CHECK(writeParameters(*runner, layout, initial));
    if (before) LS_CHECK(before(*runner, 1));
    LS_TRY(const StepOutputs outputs, runner->step(valuesOf(golden.batches.front())));
    outcome.first_gradients = select(outputs, OutputKind::Gradient);
  }
  passes::CompileOptions options;
  options.optimizer = golden.optimizer;
  LS_TRY(const std::unique_ptr<GraphRunner> runner, make(graph, options));
  LS_CHECK(writeParameters(*runner, layout, initial));
  for (size_t i = 0; i < golden.batches.size(); ++i) {
    const auto step = static_cast<int64_t>(i + 1);
    ValueMap inputs = valuesOf(golden.batches[i]);
    addScalars(golden, step, inputs);
    if (before) LS_CHECK(before(*runner, step));
    LS_TRY(const StepOutputs outputs, runner->step(inputs));
    const ValueMap loss = select(outputs, OutputKind::Loss);
    if (loss.size() != 1) internalError("a golden model without exactly one loss");
    outcome.losses.push_back(loss.begin()->second.front());
  }
  LS_TRY(outcome.final, readParameters(*runner, layout));
  return outcome;
}

Result<TrainingSensitivity> trainingSensitivity(const GoldenTraining& golden) {
  constexpr uint32_t kRuns = 8;
  std::vector<std::future<Result<TrainingOutcome>>> runs;
  for (uint32_t run = 0; run <= kRuns; ++run) {
    BeforeStep move = [run](GraphRunner& runner, int64_t step) { return moveParameters(runner, run, step); };
    if (run == 0) move = nullptr;
    runs.push_back(std::async(std::launch::async, [&golden, move] { return trainGolden(golden, makeEvaluatingRunner, move); }));
  }
  LS_TRY(const TrainingOutcome exact, runs.front().get());
  TrainingSensitivity most;
  most.losses.assign(exact.losses.size(), 0);
  for (uint32_t run = 1; run <= kRuns; ++run) {
    LS_TRY(const TrainingOutcome moved, runs[run].get());
    for (const auto& [name, values] : exact.first_gradients) widen(most.first_gradients[name], moved.first_gradients.at(name), values);
    for (size_t i = 0; i < exact.losses.size(); ++i) widen(most.losses[i], {moved.losses[i]}, {exact.losses[i]});
    widen(most.final, joined(moved.final), joined(exact.final));
  }
  return most;
}

}  // namespace lockstep::tools
