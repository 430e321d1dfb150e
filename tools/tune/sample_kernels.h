// SPDX-License-Identifier: Apache-2.0
// The kernels of a sample as they are scheduled: each with its body and its plan, before small ones are merged.
#pragma once

#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct NamedKernel {
  std::string name;  ///< "k3_rows"
  program::SymbolicKernel kernel;
};

std::vector<NamedKernel> kernelsOf(const program::Program& scheduled);

/// Of a sample's training step on a device. Errors of the sample and of the device.
Result<std::vector<NamedKernel>> kernelsOfSample(const std::string& name, const std::string& device);

}  // namespace lockstep::tools
