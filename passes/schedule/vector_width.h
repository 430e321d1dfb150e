// SPDX-License-Identifier: Apache-2.0
// How many neighbouring elements an invocation of a kernel loads and stores at once.
#pragma once

#include <cstdint>

#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {

/// Elements side by side that are kVectorBytes of every tensor with at least `elements` elements that the body reads or makes; of the
/// widest type where these differ.
int64_t vectorElements(const PlanQuery& query, int64_t elements);

/// Neighbours of a contiguous axis that an invocation loads at once, where they leave each of `places` vectors a place: 1 where they do
/// not.
int64_t vectorAlong(const PlanQuery& query, int64_t contiguous, int64_t elements, int64_t places);

/// Elements of the widest words of the body's results.
int64_t wordElements(const PlanQuery& query);

}  // namespace lockstep::passes
