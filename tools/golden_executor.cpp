// SPDX-License-Identifier: Apache-2.0
#include "tools/golden_executor.h"

#include <array>
#include <optional>

#include "backends/backend.h"
#include "frontend/graph_runner.h"
#include "tools/golden_models.h"
#include "tools/golden_ops.h"

namespace lockstep::tools {

Failure unsupported(std::string message) { return fail(std::string(kUnsupportedCode), std::move(message)); }

namespace {

using graph::OutputKind;

ValueMap valuesOf(const ArrayMap& arrays) {
  ValueMap values;
  for (const auto& [name, array] : arrays) values.emplace(name, array.toDoubles());
  return values;
}

/// The outputs of one kind, by name.
ValueMap select(const StepOutputs& outputs, OutputKind kind) {
  ValueMap values;
  for (const auto& [key, data] : outputs) {
    if (key.first == kind) values.emplace(key.second, data);
  }
  return values;
}

class Executor : public GoldenExecutor {
 public:
  /// Without a device: the evaluator.
  explicit Executor(std::optional<detail::Device> shared)
      : shared_(std::move(shared)), device_(shared_ ? shared_->chosen.info.id : "evaluate") {}
  [[nodiscard]] std::string device() const override { return device_; }
  [[nodiscard]] bool exact() const override { return !shared_; }

  Result<OpOutcome> runOp(const GoldenCase& golden) override {
    LS_TRY(const graph::Graph graph, traceGoldenCase(golden));
    passes::CompileOptions options;
    options.keep_gradients = !golden.gradients.empty();
    for (const auto& [name, unused] : golden.gradients) options.wrt.push_back(name);
    LS_TRY(const std::unique_ptr<GraphRunner> runner, makeRunner(graph, options));
    ValueMap inputs = valuesOf(golden.inputs);
    for (const auto& [name, array] : golden.cotangents) inputs.emplace("cotangent." + name, array.toDoubles());
    LS_TRY(const StepOutputs outputs, runner->step(inputs));
    return OpOutcome{.outputs = select(outputs, OutputKind::Result), .gradients = select(outputs, OutputKind::Gradient)};
  }

  Result<TrainingOutcome> runTraining(const GoldenTraining& golden) override {
    LS_TRY(const graph::Graph graph, traceGoldenModel(golden));
    const graph::ParameterLayout layout = graph::layoutParameters(graph.parameters);
    const ValueMap initial = valuesOf(golden.initial);
    TrainingOutcome outcome;
    if (!golden.first_gradients.empty()) {
      passes::CompileOptions options;
      options.keep_gradients = true;
      LS_TRY(const std::unique_ptr<GraphRunner> runner, makeRunner(graph, options));
      LS_CHECK(writeParameters(*runner, layout, initial));
      LS_TRY(const StepOutputs outputs, runner->step(valuesOf(golden.batches.front())));
      outcome.first_gradients = select(outputs, OutputKind::Gradient);
    }
    passes::CompileOptions options;
    options.optimizer = golden.optimizer;
    LS_TRY(const std::unique_ptr<GraphRunner> runner, makeRunner(graph, options));
    LS_CHECK(writeParameters(*runner, layout, initial));
    for (size_t i = 0; i < golden.batches.size(); ++i) {
      ValueMap inputs = valuesOf(golden.batches[i]);
      addScalars(golden, static_cast<int64_t>(i + 1), inputs);
      LS_TRY(const StepOutputs outputs, runner->step(inputs));
      const ValueMap loss = select(outputs, OutputKind::Loss);
      if (loss.size() != 1) internalError("a golden model without exactly one loss");
      outcome.losses.push_back(loss.begin()->second.front());
    }
    LS_TRY(outcome.final, readParameters(*runner, layout));
    return outcome;
  }

 private:
  Result<std::unique_ptr<GraphRunner>> makeRunner(const graph::Graph& graph, const passes::CompileOptions& options) {
    return shared_ ? makeDeviceRunner(graph, options, *shared_) : makeEvaluatingRunner(graph, options);
  }

  /// What the optimizer pass asks for.
  static void addScalars(const GoldenTraining& golden, int64_t step, ValueMap& inputs) {
    const std::array<double, 4> scalars = passes::stepScalars(golden.optimizer, golden.rate(step), static_cast<uint64_t>(step));
    inputs.emplace(passes::kScalarsInput, std::vector<double>(scalars.begin(), scalars.end()));
  }

  std::optional<detail::Device> shared_;
  std::string device_;
};

}  // namespace

Result<std::unique_ptr<GoldenExecutor>> makeGoldenExecutor(const std::string& device) {
  if (device == "evaluate") return std::unique_ptr<GoldenExecutor>(std::make_unique<Executor>(std::nullopt));
  LS_TRY(detail::Device shared, detail::tryOpenDevice(device));
  return std::unique_ptr<GoldenExecutor>(std::make_unique<Executor>(std::move(shared)));
}

}  // namespace lockstep::tools
