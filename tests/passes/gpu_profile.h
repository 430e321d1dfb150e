// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/profile.h"

namespace lockstep {

/// A GPU with room for everything: workgroup memory, bindings and subgroups of a known size as NVIDIA's drivers grant them.
inline program::DeviceProfile gpuProfile() {
  program::DeviceProfile profile;
  profile.name = "gpu";
  profile.max_storage_buffers = 64;
  profile.max_binding_bytes = uint64_t{4} << 30;
  profile.max_loop_iterations = 0;
  profile.max_workgroup_invocations = 1024;
  profile.max_workgroup_size_x = 1024;
  profile.max_workgroup_bytes = 49152;
  profile.subgroup_size = 32;
  profile.subgroups = profile.fixed_subgroups = true;
  return profile;
}

}  // namespace lockstep
