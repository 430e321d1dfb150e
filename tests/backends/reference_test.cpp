// SPDX-License-Identifier: Apache-2.0
// The conformance suite on the reference backend, on one thread and on several, and with several batch sizes in view.
#include "backends/reference/reference.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {

INSTANTIATE_TEST_SUITE_P(
    reference, Conformance,
    testing::Values(
        BackendCase{.name = "all_threads", .make = [] { return makeReference(); }, .exact = true},
        BackendCase{.name = "unchecked", .make = [] { return makeReference({.checks = false, .max_threads = 1}); }, .exact = true},
        BackendCase{
            .name = "subgroups_of_32", .make = [] { return makeReference({.subgroup_size = 32, .subgroup_seed = 7}); }, .exact = true},
        BackendCase{.name = "tracking", .make = [] { return makeReference({.track_uninitialised = true}); }, .exact = true}),
    caseName);

}  // namespace lockstep::conformance
