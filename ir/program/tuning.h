// SPDX-License-Identifier: Apache-2.0
// Plans that were measured to be the fastest for a kind of work on one device, as a text value. A table is advice: a plan that does not fit
// the work at hand is left alone, and what a table does not name is estimated (passes/cost.h). So no table can make a result wrong.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/program/plan.h"
#include "ir/support/result.h"

namespace lockstep::program {

struct TuningTable {
  std::string device;                              ///< its name, as the driver says
  std::map<std::string, Plan, std::less<>> plans;  ///< by the work, as describeWork() of passes/ says it
  friend bool operator==(const TuningTable&, const TuningTable&) = default;
};

std::string print(const TuningTable& table);
/// Error "tuning.twice" for work that has two plans, and those of parsePlan() and of texts.
Result<TuningTable> parseTuning(std::string_view text, const std::string& file_name = "tuning");

/// `first` with what it lacks of `second`.
TuningTable merge(TuningTable first, const TuningTable& second);

}  // namespace lockstep::program
