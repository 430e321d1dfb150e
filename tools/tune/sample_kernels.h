// SPDX-License-Identifier: Apache-2.0
// The kernels of a sample as they are scheduled: each with its body and its plan, before small ones are merged.
#pragma once

#include <map>

#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct NamedKernel {
  std::string name;  ///< "k3_rows"
  program::SymbolicKernel kernel;
};

std::vector<NamedKernel> kernelsOf(const program::Program& scheduled);

/// Of a sample's training step on the device of the options. Errors of the sample and of the device.
Result<std::vector<NamedKernel>> kernelsOfSample(const std::string& name, const ExperimentOptions& options);

/// The same by the names of the kernels that run in the end. Of a merged one it is the part with the most work.
Result<std::map<std::string, program::SymbolicKernel>> finalKernelsOfSample(const std::string& name, const ExperimentOptions& options);

}  // namespace lockstep::tools
