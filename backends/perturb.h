// SPDX-License-Identifier: Apache-2.0
// Arithmetic that WGSL allows a device and that the reference does not choose by itself: a kernel must do with all of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "backends/backend.h"
#include "ir/support/result.h"

namespace lockstep {

struct Perturbation {
  bool rounding = false;     ///< each float operation is rounded to either neighbour of its exact result, at random
  bool truncation = false;   ///< each float operation is rounded towards zero, as units without rounding do
  bool contraction = false;  ///< products are not rounded before they are added to
  bool flush = false;        ///< subnormal results of float operations become 0
  uint64_t seed = 1;         ///< of the random choices: the same one gives the same results
  friend bool operator==(const Perturbation&, const Perturbation&) = default;
};

/// "rounding", "contraction+flush" or "rounding@7", where 7 is the seed. Rounding and truncation exclude each other. code device.perturb
Result<Perturbation> parsePerturbation(std::string_view text);

/// The reference with such arithmetic. `max_threads` as in ReferenceOptions.
std::unique_ptr<Backend> openPerturbed(const Perturbation& perturbation, uint32_t max_threads);

}  // namespace lockstep
