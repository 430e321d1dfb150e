// SPDX-License-Identifier: Apache-2.0
// Runs a traced graph step by step with values by name: through the f64 evaluator or compiled for a device. Below the front end's trainer,
// so that both kinds of execution look the same to the golden tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "ir/graph/graph.h"
#include "ir/support/result.h"
#include "passes/pipeline.h"

namespace lockstep::tools {

/// Row-major values of any precision, by name.
using ValueMap = std::map<std::string, std::vector<double>, std::less<>>;
/// Loss, results, captures and gradients of one step.
using StepOutputs = std::map<std::pair<graph::OutputKind, std::string>, std::vector<double>>;

class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// One step; `inputs` holds every input of the graph. Codes golden.input and those of the device.
  virtual Result<StepOutputs> step(const ValueMap& inputs) = 0;
  /// A state leaf as a whole ("params", "m"); code golden.state.
  virtual Result<std::vector<double>> readState(const std::string& name) = 0;
  virtual Status writeState(const std::string& name, const std::vector<double>& values) = 0;
};

/// The evaluator that runs what grad and the optimizer made of the graph.
Result<std::unique_ptr<GraphRunner>> makeEvaluatingRunner(const graph::Graph& traced, const passes::CompileOptions& options);
/// A device that many runs share: opening one for each would exhaust some drivers.
struct SharedDevice {
  ChosenDevice chosen;
  std::shared_ptr<Backend> backend;
};
/// `selector` as in chooseDevice().
Result<SharedDevice> openShared(const std::string& selector);
/// The whole pipeline and a device; the profile of `options` is replaced by the device's.
Result<std::unique_ptr<GraphRunner>> makeDeviceRunner(const graph::Graph& traced, passes::CompileOptions options,
                                                      const SharedDevice& device);

/// A program of any stage after schedule on a device: the passes that it lacks are run with the device's profile.
Result<std::unique_ptr<GraphRunner>> makeProgramRunner(program::Program program, const std::string& selector);

/// Parameters by name to and from the flat state `params`. code golden.parameter when a name or a size is wrong.
Status writeParameters(GraphRunner& runner, const graph::ParameterLayout& layout, const ValueMap& values);
Result<ValueMap> readParameters(GraphRunner& runner, const graph::ParameterLayout& layout);

}  // namespace lockstep::tools
