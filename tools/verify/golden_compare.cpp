// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::tools {
namespace {

constexpr double kExactTolerance = 1e-10;

/// Limits of a training run. Rounding grows with the steps, so later losses may be further away.
struct TrainingLimits {
  double early_loss, loss, first_gradients, final;
};
constexpr size_t kEarlySteps = 5;
constexpr TrainingLimits kDeviceLimits = {.early_loss = 1e-4, .loss = 1e-2, .first_gradients = 1e-5, .final = 5e-2};
constexpr TrainingLimits kExactLimits = {.early_loss = 1e-9, .loss = 1e-9, .first_gradients = 1e-9, .final = 1e-9};

void failWith(CaseReport& report, std::string why) {
  report.status = CaseStatus::Fail;
  if (report.why.empty()) report.why = std::move(why);
}

/// What was computed for an array, if it has the size of what is expected; else the case fails.
const std::vector<double>* computed(CaseReport& report, std::string_view what, const ValueMap& got, const std::string& name,
                                    const io::Array& expected) {
  const auto found = got.find(name);
  if (found == got.end()) {
    failWith(report, fmt::format("{} '{}' was not computed", what, name));
    return nullptr;
  }
  if (found->second.size() == expected.elementCount()) return &found->second;
  failWith(report, fmt::format("{} '{}' has {} elements, expected {}", what, name, found->second.size(), io::describe(expected)));
  return nullptr;
}

/// Compares every array of `want`; keeps the worst distances. What is allowed beyond `tolerance` is given by name in `extra`.
void compareMaps(CaseReport& report, std::string_view what, const ValueMap& got, const ArrayMap& want, double tolerance, double& error,
                 double& rel_l2, const std::map<std::string, double>& extra = {}) {
  for (const auto& [name, expected] : want) {
    const std::vector<double>* values = computed(report, what, got, name, expected);
    if (values == nullptr) continue;
    const auto more = extra.find(name);
    const double allowed = tolerance + (more == extra.end() ? 0 : more->second);
    const Distance one = distance(*values, expected.toDoubles(), allowed);
    error = std::max(error, one.error);
    rel_l2 = std::max(rel_l2, one.rel_l2);
    if (!one.within(allowed)) {
      failWith(report, fmt::format("{} '{}' is off by a relative L2 of {:.3g}, allowed {:.3g}", what, name, one.rel_l2, allowed));
    }
  }
}

bool holdsFloats(const io::Array& array) { return array.type == io::ElementType::F32 || array.type == io::ElementType::F64; }

/// Judges every element of every array of `want` by its bound.
void checkMaps(CaseReport& report, std::string_view what, const ValueMap& got, const ArrayMap& want, const BoundsMap& bounds, double& error,
               double& rel_l2) {
  for (const auto& [name, expected] : want) {
    const std::vector<double>* values = computed(report, what, got, name, expected);
    if (values == nullptr) continue;
    const std::vector<double> wanted = expected.toDoubles();
    const auto known = bounds.find(name);
    const ElementCheck check = checkElements(*values, wanted, holdsFloats(expected) ? graph::DType::F32 : graph::DType::I32,
                                             known == bounds.end() ? RoundingBounds{} : known->second, {});
    const std::string array = fmt::format("{} '{}'", what, name);
    const auto placeOf = [&](size_t element) { return indexText(graph::Shape(expected.shape), static_cast<int64_t>(element)); };
    error = std::max(error, check.numbers.units);
    rel_l2 = std::max(rel_l2, distance(*values, wanted, 1).rel_l2);
    report.elements += wanted.size();
    if (report.unbounded == 0 && check.unbounded > 0) report.unbounded_at = array + placeOf(check.first_unbounded);
    report.unbounded += check.unbounded;
    if (!wanted.empty() && (!report.worst || check.numbers.units > report.worst->check.numbers.units))
      report.worst = WorstElement{.array = array, .index = placeOf(check.numbers.worst), .check = check};
    if (!check.within()) failWith(report, toText(check, array + placeOf(check.numbers.worst)));
  }
}

/// All arrays as one vector.
Distance distanceOfAll(const ValueMap& got, const ArrayMap& want, double tolerance) {
  std::vector<double> all_got, all_want;
  for (const auto& [name, expected] : want) {
    const std::vector<double> values = expected.toDoubles();
    const auto found = got.find(name);
    if (found == got.end() || found->second.size() != values.size()) return {.rel_l2 = INFINITY, .error = INFINITY};
    all_got.insert(all_got.end(), found->second.begin(), found->second.end());
    all_want.insert(all_want.end(), values.begin(), values.end());
  }
  return distance(all_got, all_want, tolerance);
}

}  // namespace

std::string_view toString(CaseStatus status) {
  switch (status) {
    case CaseStatus::Pass:
      return "pass";
    case CaseStatus::Fail:
      return "fail";
    case CaseStatus::Unsupported:
      return "unsupported";
  }
  return "";
}

Distance distance(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  if (got.size() != want.size()) return {.rel_l2 = INFINITY, .error = INFINITY};
  double difference2 = 0, norm2 = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(want[i])) {
      const bool same = std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i];
      if (!same) return {.rel_l2 = INFINITY, .error = INFINITY};
      continue;
    }
    const double off = std::abs(got[i] - want[i]);
    // A NaN would vanish in max().
    if (!std::isfinite(off)) return {.rel_l2 = INFINITY, .error = INFINITY};
    worst = std::max(worst, off);
    difference2 += off * off;
    norm2 += want[i] * want[i];
  }
  const double scale = norm2 > 0 ? std::sqrt(norm2) : 1;
  return {.rel_l2 = std::sqrt(difference2) / scale, .error = worst / (scale * tolerance)};
}

CaseReport compareCase(const GoldenCase& golden, const OpOutcome& outcome, bool exact) {
  CaseReport report{.name = golden.name, .op = golden.op};
  if (exact) {
    compareMaps(report, "output", outcome.outputs, golden.outputs, kExactTolerance, report.output_error, report.output_rel_l2);
    compareMaps(report, "gradient", outcome.gradients, golden.gradients, kExactTolerance, report.gradient_error, report.gradient_rel_l2);
    return report;
  }
  checkMaps(report, "output", outcome.outputs, golden.outputs, outcome.output_bounds, report.output_error, report.output_rel_l2);
  checkMaps(report, "gradient", outcome.gradients, golden.gradients, outcome.gradient_bounds, report.gradient_error,
            report.gradient_rel_l2);
  return report;
}

CaseReport compareTraining(const GoldenTraining& golden, const TrainingOutcome& outcome, bool exact,
                           const TrainingSensitivity& sensitivity) {
  CaseReport report{.name = golden.model, .op = "train"};
  report.training = true;
  // A recording that was itself rounded to f32 cannot be met more closely than by a device.
  const TrainingLimits& limits = exact && !golden.recorded_in_f32 ? kExactLimits : kDeviceLimits;
  if (outcome.losses.size() != golden.losses.size()) {
    failWith(report, fmt::format("{} losses were computed, expected {}", outcome.losses.size(), golden.losses.size()));
  }
  for (size_t i = 0; i < std::min(outcome.losses.size(), golden.losses.size()); ++i) {
    double limit = i < kEarlySteps ? limits.early_loss : limits.loss;
    if (i < sensitivity.losses.size()) limit += sensitivity.losses[i];
    const Distance one = distance({outcome.losses[i]}, {golden.losses[i]}, limit);
    report.loss_rel.push_back(one.rel_l2);
    report.output_error = std::max(report.output_error, one.error);
    if (!one.within(limit)) {
      failWith(report, fmt::format("the loss of step {} is {:.9g}, expected {:.9g} within a relative {:.3g}", i + 1, outcome.losses[i],
                                   golden.losses[i], limit));
    }
  }
  compareMaps(report, "gradient of step 1 of", outcome.first_gradients, golden.first_gradients, limits.first_gradients,
              report.gradient_error, report.gradient_rel_l2, sensitivity.first_gradients);
  const double final_limit = limits.final + sensitivity.final;
  const Distance last = distanceOfAll(outcome.final, golden.final, final_limit);
  report.final_rel_l2 = last.rel_l2;
  report.output_rel_l2 = last.rel_l2;
  report.output_error = std::max(report.output_error, last.rel_l2 / final_limit);
  if (!last.within(final_limit)) {
    failWith(report, fmt::format("the final parameters are off by a relative L2 of {:.3g}, allowed {:.3g}", last.rel_l2, final_limit));
  }
  return report;
}

io::Json reportJson(std::string_view device, const std::vector<CaseReport>& cases) {
  io::Json list = io::Json::array();
  std::array<int64_t, 3> counts{};
  for (const CaseReport& report : cases) {
    ++counts[static_cast<size_t>(report.status)];
    io::Json one = io::Json::object()
                       .add("name", report.name)
                       .add("op", report.op)
                       .add("status", toString(report.status))
                       .add("output_error", report.output_error)
                       .add("gradient_error", report.gradient_error)
                       .add("output_rel_l2", report.output_rel_l2)
                       .add("gradient_rel_l2", report.gradient_rel_l2)
                       .add("why", report.why);
    if (report.training) {
      io::Json steps = io::Json::array();
      double worst = 0;
      for (const double loss : report.loss_rel) {
        steps.add(loss);
        worst = std::max(worst, loss);
      }
      one.add("loss_rel", worst).add("loss_rel_steps", steps).add("final_rel_l2", report.final_rel_l2);
    }
    if (report.worst) {
      one.add("elements", uint64_t{report.elements})
          .add("unbounded", uint64_t{report.unbounded})
          .add("worst", toJson(report.worst->check).add("array", report.worst->array).add("index", report.worst->index));
    }
    list.add(one);
  }
  return io::Json::object()
      .add("device", device)
      .add("cases", list)
      .add("passed", counts[static_cast<size_t>(CaseStatus::Pass)])
      .add("failed", counts[static_cast<size_t>(CaseStatus::Fail)])
      .add("unsupported", counts[static_cast<size_t>(CaseStatus::Unsupported)]);
}

std::string reportText(const CaseReport& report) {
  std::string text = fmt::format("{:<12}{:<28}", toString(report.status), report.name);
  if (report.status != CaseStatus::Unsupported) {
    if (report.training) {
      const double worst = report.loss_rel.empty() ? 0 : *std::ranges::max_element(report.loss_rel);
      text += fmt::format("loss {:.2e}  gradient {:.2e}  final {:.2e}", worst, report.gradient_rel_l2, report.final_rel_l2);
    } else if (report.worst) {
      text += fmt::format("output {:.3g} and gradient {:.3g} of their bounds", report.output_error, report.gradient_error);
    } else {
      text += fmt::format("output {:.2e}  gradient {:.2e}", report.output_rel_l2, report.gradient_rel_l2);
    }
    if (report.unbounded > 0)
      text +=
          fmt::format("  {} of {} elements have no known bound, the first is {}", report.unbounded, report.elements, report.unbounded_at);
  }
  if (!report.why.empty()) text += "  " + report.why;
  return text;
}

}  // namespace lockstep::tools
