// SPDX-License-Identifier: Apache-2.0
// The outputs of two runs of a program, each as a whole.
#pragma once

#include <string>

#include "frontend/io/safetensors.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/device.h"
#include "tools/verify/kernel_check.h"

namespace lockstep::tools {

struct OutputDistance {
  double relative = 0;  ///< L2, of the worst output; infinite where one has a NaN and the other has not
  std::string name;     ///< of that output: "next_state.m"
};

/// Outputs that `got` lacks are left out. A single number counts as at least 1e-3, since it may be small because it cancels.
OutputDistance distanceOf(const io::TensorFile& got, const io::TensorFile& want);

/// How far a run of the whole program on a device, in which each kernel reads what the device's others wrote, is from one run of the judge,
/// kernel by kernel. Kernels that are right alone and wrong together are in the wrong order, or share memory that they should not. `check`
/// has run once.
Result<OutputDistance> distanceTogether(const KernelCheck& check, const io::TensorFile& inputs, const detail::Device& device);

}  // namespace lockstep::tools
