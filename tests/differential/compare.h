// SPDX-License-Identifier: Apache-2.0
// The measure of the differential tests: relative L2 distance of whole tensors, with the worst element in the message.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/graph/op_def.h"
#include "runtime/device.h"

namespace lockstep {

inline void expectClose(const std::vector<graph::Tensor>& got, const std::vector<graph::Tensor>& want, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t output = 0; output < want.size(); ++output) {
    ASSERT_EQ(got[output].type, want[output].type) << what;
    double error = 0, norm = 0, worst = -1;
    size_t worst_at = 0;
    for (size_t i = 0; i < want[output].data.size(); ++i) {
      double difference = got[output].data[i] - want[output].data[i];
      error += difference * difference;
      norm += want[output].data[i] * want[output].data[i];
      if (!(std::abs(difference) <= worst)) {
        worst = std::abs(difference);
        worst_at = i;
      }
    }
    // Where nothing but zeros is expected the distance is absolute.
    double distance = norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
    EXPECT_LE(distance, tolerance) << fmt::format("{}: output {} of {}, worst at element {}: {} instead of {}", what, output,
                                                  toString(want[output].type), worst_at, got[output].data[worst_at],
                                                  want[output].data[worst_at]);
    EXPECT_FALSE(std::isnan(distance)) << what;
  }
}

/// Equal bit for bit, NaNs and the signs of zeros included.
inline void expectEqualBits(const std::vector<graph::Tensor>& got, const std::vector<graph::Tensor>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t output = 0; output < want.size(); ++output) {
    ASSERT_EQ(got[output].type, want[output].type) << what;
    for (size_t i = 0; i < want[output].data.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint64_t>(got[output].data[i]), std::bit_cast<uint64_t>(want[output].data[i]))
          << fmt::format("{}: output {}, element {}: {} instead of {}", what, output, i, got[output].data[i], want[output].data[i]);
    }
  }
}

/// The devices that tests share. They are closed after the last test: at the end of the process drivers and layers may be gone.
class OpenedDevices : public testing::Environment {
 public:
  const detail::Device& get(const std::string& selector) {
    const auto found = opened_.find(selector);
    return found != opened_.end() ? found->second : opened_.emplace(selector, detail::openChosenDevice(selector)).first->second;
  }
  void TearDown() override { opened_.clear(); }

 private:
  std::map<std::string, detail::Device> opened_;
};
inline auto* const kOpenedDevices = static_cast<OpenedDevices*>(testing::AddGlobalTestEnvironment(new OpenedDevices));

/// The device that `selector` names, opened once per process; null for the evaluator, which needs none.
inline const detail::Device* openedDevice(const std::string& selector) {
  return selector == "evaluate" ? nullptr : &kOpenedDevices->get(selector);
}

/// The devices of this machine that the differential tests run on; the first one is always there.
inline std::vector<std::string> devicesUnderTest() {
  static const std::vector<std::string> kDevices = [] {
    std::vector<std::string> devices{"reference"};
    if (chooseDevice("vulkan").ok()) devices.push_back("vulkan");
    return devices;
  }();
  return kDevices;
}

/// Planned for as if it ran workgroups as GPUs do, with the subgroups that it has; the reference has any.
inline detail::Device asGpu(detail::Device device) {
  program::DeviceProfile& profile = device.chosen.info.profile;
  profile.name = "as_gpu";
  profile.style = program::ExecutionStyle::Gpu;
  if (!profile.fixed_subgroups && device.chosen.info.id == "reference") {
    profile.subgroups = profile.fixed_subgroups = true;
    profile.subgroup_size = 32;
  }
  return device;
}

}  // namespace lockstep
