// SPDX-License-Identifier: Apache-2.0
// Does not compile: a batch takes no doubles.
#include <vector>

#include "frontend/trace/host_values.h"

int main() {
  const std::vector<double> xs(3);
  const lockstep::Batch batch{{"x", xs}};
  return static_cast<int>(batch.size());
}
