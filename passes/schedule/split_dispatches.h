// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/program.h"

namespace lockstep::passes {

struct SplitDispatchesConfig {
  program::DeviceProfile profile;
};

/// A dispatch with a binding above the profile's limit runs in slices of its rows, side by side in its level: offsets are in the bindings,
/// so all slices but a shorter last one share a kernel. Operands that every row reads whole (scalars, a bias) are bound whole.
///   dispatch @k (read %a, read_write %b)   =>   dispatch @k0 (read %a[0, 65536], read_write %b[0, 65536])   dispatch @k0 (read %a[65536,
///   ...
/// A dispatch that does not work row by row stays whole: emit binds its large tensors as several windows. Fails when those are more than
/// the device binds, and for kernels of the user (splitDispatches.binding), naming the tensor.
Result<program::Program> splitDispatches(const program::Program& program, const SplitDispatchesConfig& config);

}  // namespace lockstep::passes
