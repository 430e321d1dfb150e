// SPDX-License-Identifier: Apache-2.0
// The conformance suite of backends on the Vulkan device of the tests.
#include "tests/backends/conformance.h"

#include "tests/backends/vulkan/harness.h"

namespace lockstep::conformance {

INSTANTIATE_TEST_SUITE_P(vulkan, Conformance,
                         testing::Values(BackendCase{.name = "device", .make = [] { return vulkan::testing::open(); }}), caseName);

}  // namespace lockstep::conformance
