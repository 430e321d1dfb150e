// SPDX-License-Identifier: Apache-2.0
// Which severity a diagnostic rule has at a place of the text.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "frontend/wgsl/syntax/ast.h"

namespace lockstep::wgsl {

/// The rules that a module may filter. Unless it does, those of WGSL are errors and our own, "lockstep.NAME", are warnings.
/// "lockstep.NAME" is the rule of the lint with code "lint.NAME".
enum class DiagnosticRule : uint8_t {
  DerivativeUniformity,
  SubgroupUniformity,
  Unused,
  DeadStore,
  ConstantCondition,
  IdenticalOperands,
  UnsignedCompare,
  UnstableFormula,
  WorkgroupSize,
  Index,
  Race,
  AccessPattern,
};
inline constexpr size_t kDiagnosticRules = 12;
std::string_view toString(DiagnosticRule rule);  ///< "derivative_uniformity"
/// Also by an older name: lockstep.index_wraps and lockstep.product_wraps are lockstep.index now.
std::optional<DiagnosticRule> findDiagnosticRule(std::string_view name);
/// "derivative_uniformity, subgroup_uniformity, ... and lockstep.race", for messages.
std::string diagnosticRuleNames();

class DiagnosticFilters {
 public:
  /// `filters` in source order, with ranges that nest.
  explicit DiagnosticFilters(const std::vector<DiagnosticFilter>& filters);
  /// Of the innermost filter around the place. Takes time in the depth of nesting, not in the number of filters.
  [[nodiscard]] Severity severity(DiagnosticRule rule, uint32_t offset) const;
  /// Whether a filter anywhere makes errors of what the rule finds.
  [[nodiscard]] bool makesErrors(DiagnosticRule rule) const;

 private:
  struct Entry {
    Span range;
    Severity severity = Severity::Error;
    size_t around = SIZE_MAX;  // the entry whose range holds this one
  };
  std::array<std::vector<Entry>, kDiagnosticRules> entries_;
};

}  // namespace lockstep::wgsl
