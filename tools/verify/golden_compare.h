// SPDX-License-Identifier: Apache-2.0
// Judges what an executor computed against golden data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/jsonl.h"
#include "frontend/train/graph_runner.h"
#include "tools/verify/element_check.h"
#include "tools/verify/golden.h"

namespace lockstep::tools {

/// What is known of the rounding of arrays, by name.
using BoundsMap = std::map<std::string, RoundingBounds, std::less<>>;

struct OpOutcome {
  ValueMap outputs;
  ValueMap gradients;
  BoundsMap output_bounds = {}, gradient_bounds = {};  ///< of a device
};

struct TrainingOutcome {
  std::vector<double> losses;  ///< one per step, before its update
  ValueMap first_gradients;    ///< of step 1, before clipping; may be empty when the file has none
  ValueMap final;
};

/// Relative L2 distances by which roundings alone may move a run (trainingSensitivity).
struct TrainingSensitivity {
  std::map<std::string, double> first_gradients;  ///< by parameter
  std::vector<double> losses;                     ///< of each step
  double final = 0;                               ///< all parameters together
};

enum class CaseStatus : uint8_t { Pass, Fail, Unsupported };
std::string_view toString(CaseStatus status);  ///< "pass", "fail", "unsupported"

/// The element that takes up most of what it is allowed.
struct WorstElement {
  std::string array;  ///< "gradient 'x'"
  std::string index;  ///< "[3, 5]"
  ElementCheck check;
};

struct CaseReport {
  std::string name, op;
  CaseStatus status = CaseStatus::Pass;
  double output_error = 0, gradient_error = 0;    ///< the worst distance in units of what is allowed; 1 is the limit
  double output_rel_l2 = 0, gradient_rel_l2 = 0;  ///< |got - want| / |want|, the worst one; |got - want| where |want| is 0
  std::string why = {};
  // Ops on a device only.
  std::optional<WorstElement> worst = {};  ///< of all arrays
  size_t elements = 0;
  size_t unbounded = 0;           ///< of these: no bound is known, and a tolerance stands for it
  std::string unbounded_at = {};  ///< the first one: "gradient 'x'[3, 5]"
  // Training files only.
  bool training = false;
  std::vector<double> loss_rel = {};  ///< of each step
  double final_rel_l2 = 0;            ///< over all parameters
};

/// Distances of one array. `allowed` is the tolerance times |want| (the tolerance itself where want is all zero); a value of `want` that is
/// not finite must be met exactly.
struct Distance {
  double rel_l2 = 0;
  double error = 0;
  [[nodiscard]] bool within(double tolerance) const { return rel_l2 <= tolerance; }
};
Distance distance(const std::vector<double>& got, const std::vector<double>& want, double tolerance);

/// Allows the exact evaluator a relative L2 distance of 1e-10, and each element on a device what checkElements() does.
CaseReport compareCase(const GoldenCase& golden, const OpOutcome& outcome, bool exact);
/// `sensitivity` is allowed on top of the limits.
CaseReport compareTraining(const GoldenTraining& golden, const TrainingOutcome& outcome, bool exact,
                           const TrainingSensitivity& sensitivity = {});

/// The object that `verify golden --json` prints.
io::Json reportJson(std::string_view device, const std::vector<CaseReport>& cases);
/// One line.
std::string reportText(const CaseReport& report);

}  // namespace lockstep::tools
