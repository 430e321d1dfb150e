// SPDX-License-Identifier: Apache-2.0
// The measure of the differential tests: relative L2 distance of whole tensors, with the worst element in the message.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/graph/op_def.h"

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

/// The devices of this machine that the differential tests run on; the first one is always there.
inline std::vector<std::string> devicesUnderTest() {
  std::vector<std::string> devices{"reference"};
  if (chooseDevice("vulkan").ok()) devices.push_back("vulkan");
  return devices;
}

}  // namespace lockstep
