// SPDX-License-Identifier: Apache-2.0
// Devices on which kernels for matrix units are compared: units of their own, or subgroups that stand for some.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/differential/compare.h"

namespace lockstep {

/// With units, its own or such as its subgroups can stand for.
inline detail::Device withUnits(detail::Device device, uint32_t units) {
  device = asGpu(std::move(device));
  program::DeviceProfile& profile = device.chosen.info.profile;
  profile.parallel_units = units;
  if (profile.matrix_f16 != program::MatrixShape{}) return device;
  const uint32_t extent = std::min(16u, profile.subgroup_size);
  profile.matrix_f16 = profile.matrix_bf16 = {.m = extent, .n = extent, .k = extent};
  profile.f16 = profile.matrix_rows = true;
  return device;
}

/// The reference, and devices with units. CPU drivers take minutes to compile the matrices of such a kernel once they are spread (the
/// conformance suite has single matrices for them).
inline std::vector<std::string> devicesWithMatrices() {
  std::vector<std::string> devices;
  for (const std::string& device : devicesUnderTest()) {
    const DeviceInfo& info = openedDevice(device)->chosen.info;
    if (info.kind != DeviceKind::CpuDriver && info.profile.subgroups && info.profile.f16) devices.push_back(device);
  }
  return devices;
}

}  // namespace lockstep
