// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what numbers an optimizer and a learning rate may have.
#pragma once

#include <cstdint>

#include "frontend/optim/optim.h"
#include "frontend/optim/precision.h"

namespace lockstep::detail {

/// Errors "schedule.steps" and "schedule.number" for a schedule whose numbers make no rate.
void checkSchedule(const Schedule& schedule);
/// The same and the errors of adam(), adamw(), sgd() and lion(), for a spec that was made without them.
void checkOptimizer(const OptimizerSpec& spec);
/// The errors of mixed(), for a precision that was made without it.
void checkPrecision(const Precision& precision);
/// The rate of step `t`. Error "schedule.number" where it is negative or not finite in f32, as gamma above 1 may make it after many steps.
double checkedRate(const Schedule& schedule, int64_t t);

}  // namespace lockstep::detail
