// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_executor.h"

#include <array>
#include <optional>

#include "backends/backend.h"
#include "frontend/train/graph_runner.h"
#include "tools/verify/golden_ops.h"
#include "tools/verify/golden_training.h"

namespace lockstep::tools {

Failure unsupported(std::string message) { return fail(std::string(kUnsupportedCode), std::move(message)); }

namespace {

using graph::OutputKind;

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
    OpOutcome outcome{.outputs = select(outputs, OutputKind::Result), .gradients = select(outputs, OutputKind::Gradient)};
    if (!shared_) return outcome;
    LS_TRY(const std::unique_ptr<GraphRunner> bounding, makeBoundingRunner(graph, options, *shared_));
    LS_CHECK(bounding->step(inputs));
    for (auto& [key, bounds] : bounding->bounds()) {
      if (key.first == OutputKind::Result) outcome.output_bounds.emplace(key.second, bounds);
      if (key.first == OutputKind::Gradient) outcome.gradient_bounds.emplace(key.second, bounds);
    }
    return outcome;
  }

  Result<TrainingOutcome> runTraining(const GoldenTraining& golden) override {
    return trainGolden(golden,
                       [this](const graph::Graph& graph, const passes::CompileOptions& options) { return makeRunner(graph, options); });
  }

 private:
  Result<std::unique_ptr<GraphRunner>> makeRunner(const graph::Graph& graph, const passes::CompileOptions& options) {
    return shared_ ? makeDeviceRunner(graph, options, *shared_) : makeEvaluatingRunner(graph, options);
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
