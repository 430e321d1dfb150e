// SPDX-License-Identifier: Apache-2.0
// Does not compile, and says why in one error: tests/frontend/refused.sh.
#include <vector>

#include "frontend/host.h"

int main() {
  const std::vector<double> values{1, 2};
  return static_cast<int>(lockstep::Batch{{"x", values}}.size());
}
