// SPDX-License-Identifier: Apache-2.0
// Every sample as a training program at full size: what tests, tables and benchmarks go over.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "frontend/host.h"
#include "frontend/inputs.h"
#include "frontend/module.h"
#include "frontend/optim.h"

namespace lockstep::examples {

struct SampleProgram {
  std::string_view name;
  std::vector<InputSpec> inputs;
  std::shared_ptr<const Module> model;
  std::function<Tensor(const Module&, const Inputs&)> loss;
  OptimizerSpec optimizer;
  int64_t integers = 0;  ///< integer inputs are below this
};
/// In the order of examples/README.md.
std::vector<SampleProgram> samplePrograms();

}  // namespace lockstep::examples
