// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/element_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lockstep::tools {
namespace {

constexpr std::array<std::string_view, 4> kJudges{"equality", "bound", "program", "tolerance"};

/// Bounds are kept in f32, which may have rounded them down.
constexpr double kBoundRounding = 1e-6;

struct Judgement {
  Judge judge = Judge::Equality;
  double allowed = 0, units = 0;
};

Judgement judged(Judge judge, double one, double other, double allowed) { return {judge, allowed, unitsApart(one, other, allowed)}; }

double largestOf(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

uint64_t ulpsOf(graph::DType dtype, double got, double want) {
  if (dtype == graph::DType::F32) return ulpsBetween(static_cast<float>(got), static_cast<float>(want));
  const auto bits = [&](double value) { return static_cast<uint16_t>(graph::encodeElement(dtype, value)); };
  if (dtype == graph::DType::F16) return ulpsBetweenHalves(bits(got), bits(want));
  if (dtype == graph::DType::BF16) return ulpsBetweenBfloat16s(bits(got), bits(want));
  return static_cast<uint64_t>(std::min(std::abs(got - want), 1.8e19));
}

}  // namespace

ElementCheck checkElements(std::span<const double> got, std::span<const double> want, graph::DType dtype, const RoundingBounds& bounds,
                           const ElementLimits& limits) {
  if (got.size() != want.size()) internalError(fmt::format("{} elements are compared with {}", got.size(), want.size()));
  const bool floats = graph::isFloat(dtype), any_known = bounds.values.size() == want.size();
  const double largest = largestOf(want);
  const std::vector<double> tolerances = floats ? relativeBounds(want, limits.unbounded) : std::vector<double>();
  const auto judge = [&](size_t i) -> Judgement {
    if (!floats || !std::isfinite(want[i])) {
      const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
      return {.units = same ? 0 : INFINITY};
    }
    const bool known = any_known && std::isfinite(bounds.values[i]) && std::isfinite(bounds.bounds[i]);
    // Equal ones, such as constants and copies, need no bound.
    if (!known && static_cast<float>(got[i]) == static_cast<float>(want[i])) return {};
    // What is stored in 16 bits was rounded on both sides.
    const double stored = storageRounding(dtype, std::abs(want[i]) + (known ? static_cast<double>(bounds.bounds[i]) : tolerances[i]));
    if (!known) return judged(Judge::Tolerance, got[i], want[i], tolerances[i] + 2 * stored);
    const double exact = bounds.values[i];
    const Judgement device = judged(Judge::Bound, got[i], exact, static_cast<double>(bounds.bounds[i]) * (1 + kBoundRounding) + stored);
    const Judgement program = judged(Judge::Program, exact, want[i], limits.program * (std::abs(want[i]) + largest) + stored);
    return program.units > 1 && program.units > device.units ? program : device;
  };

  ElementCheck check;
  check.exact = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < want.size(); ++i) {
    const Judgement one = judge(i);
    const bool same = floats ? static_cast<float>(got[i]) == static_cast<float>(want[i]) : got[i] == want[i];
    if (one.judge == Judge::Tolerance && check.unbounded++ == 0) check.first_unbounded = i;
    const bool is_worst = check.numbers.add({.want = want[i],
                                             .got = got[i],
                                             .bound = one.allowed,
                                             .units = one.units,
                                             .ulps = ulpsOf(dtype, got[i], want[i]),
                                             .same = same || (std::isnan(got[i]) && std::isnan(want[i]))});
    if (!is_worst) continue;
    check.judge = one.judge;
    if (any_known) check.exact = bounds.values[i];
  }
  return check;
}

std::string toText(const ElementCheck& check, const std::string& element) {
  std::string text = toText(check.numbers, element);
  if (check.judge == Judge::Program) text += fmt::format("; the program is wrong: in exact arithmetic it gives {:.9g}", check.exact);
  if (check.judge == Judge::Tolerance) text += "; no bound of this element is known, so a tolerance stands for it";
  return text;
}

io::Json toJson(const ElementCheck& check) {
  return toJson(check.numbers)
      .add("exact", check.exact)
      .add("ratio", check.numbers.units)
      .add("judge", kJudges[static_cast<size_t>(check.judge)]);
}

}  // namespace lockstep::tools
