// SPDX-License-Identifier: Apache-2.0
// Runs a traced graph with values by name, through the f64 evaluator or compiled for a device, so that both look the same to tests and
// tools that compare them. A program that trains wants a Trainer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "ir/graph/evaluate.h"
#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "passes/pipeline.h"
#include "runtime/device.h"

namespace lockstep {

/// Row-major values of any precision, by name.
using ValueMap = std::map<std::string, std::vector<double>, std::less<>>;
/// Loss, results, captures and gradients of one step.
using StepOutputs = std::map<std::pair<graph::OutputKind, std::string>, std::vector<double>>;

/// How far each of them may be from the real number that it stands for.
using StepBounds = std::map<std::pair<graph::OutputKind, std::string>, RoundingBounds>;

/// On a device values pass through their element type.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// One step; `inputs` holds every input of the graph. Codes graph_run.input and those of the device.
  virtual Result<StepOutputs> step(const ValueMap& inputs) = 0;
  /// A state leaf as a whole ("params", "m"); code graph_run.state.
  virtual Result<std::vector<double>> readState(const std::string& name) = 0;
  virtual Status writeState(const std::string& name, const std::vector<double>& values) = 0;
  /// Of the last step; empty on devices other than a sanitizer that looks at errors (backends/sanitize.h).
  [[nodiscard]] virtual StepBounds bounds() const { return {}; }
};

/// The evaluator that runs what grad and the optimizer made of the graph.
Result<std::unique_ptr<GraphRunner>> makeEvaluatingRunner(const graph::Graph& traced, const passes::CompileOptions& options);
/// The whole pipeline and a device; the profile of `options` is replaced by the device's.
Result<std::unique_ptr<GraphRunner>> makeDeviceRunner(const graph::Graph& traced, passes::CompileOptions options,
                                                      const detail::Device& device);
/// The program that `device` would run, on the sanitizer, so that bounds() says how far each result on `device` may be off.
Result<std::unique_ptr<GraphRunner>> makeBoundingRunner(const graph::Graph& traced, passes::CompileOptions options,
                                                        const detail::Device& device);
/// A program of any stage after schedule on a device: the passes that it lacks are run with the device's profile.
Result<std::unique_ptr<GraphRunner>> makeProgramRunner(program::Program program, const detail::Device& device);

/// Parameters by name to and from the flat state `params`. code graph_run.parameter when a name or a size is wrong.
Status writeParameters(GraphRunner& runner, const graph::ParameterLayout& layout, const ValueMap& values);
Result<ValueMap> readParameters(GraphRunner& runner, const graph::ParameterLayout& layout);

struct GraphRunOptions {
  std::string device = "evaluate";         ///< "evaluate", or a selector: auto, reference, vulkan, ...
  const detail::Device* opened = nullptr;  ///< what `device` selects, where many runs share it: to open one takes a while
  bool gradients = false;                  ///< also differentiate the graph's loss
  std::vector<std::string> wrt = {};       ///< leaves to differentiate by; empty: all parameters
  std::vector<std::string> disable = {};   ///< optional passes to leave out
  std::vector<std::string> prefer = {};    ///< templates to take however little they save ("attention")
  std::string dump_ir = {};
  graph::KernelFunctions kernels = {};  ///< for the evaluator, when the graph holds kernels of the user
};

/// A graph that is compiled once, to run with several values.
class CompiledGraph {
 public:
  /// Throws Error.
  explicit CompiledGraph(const graph::Graph& graph, GraphRunOptions options = {});
  CompiledGraph(CompiledGraph&&) noexcept;
  CompiledGraph& operator=(CompiledGraph&&) noexcept;
  ~CompiledGraph();
  /// One run. The outputs of the graph in its order, then the gradients in the order of `wrt` (or of the parameters). Leaves are parameters
  /// and inputs. Throws Error.
  [[nodiscard]] std::vector<graph::Tensor> run(const graph::LeafValues& leaves);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
/// The only run of such a graph.
std::vector<graph::Tensor> runGraph(const graph::Graph& graph, const graph::LeafValues& leaves, const GraphRunOptions& options = {});

/// Of the same outputs: how far `options.device`, or any other device that runs its program, may be from the real numbers. Throws Error.
std::vector<RoundingBounds> boundGraph(const graph::Graph& graph, const graph::LeafValues& leaves, const GraphRunOptions& options);

}  // namespace lockstep
