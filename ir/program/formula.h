// SPDX-License-Identifier: Apache-2.0
// How the host makes a number of a step: arithmetic over named numbers, "0.001 * min(step / 100, 1)". A program carries formulas as texts,
// so that whoever runs it needs no code of the model.
//
// Numbers, names, + - * / and - in front, parentheses, and these functions:
//   min(a, b)  max(a, b)  floor(a)  sqrt(a)  cos(a)  pow(a, b)
//   at_least(a, b)       1 if a >= b, else 0
//   select(c, a, b)      a if c > 0, else b
// All of it is f64, in the order in which it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::program {

struct FormulaFunction;

class Formula {
 public:
  /// Code program.formula for a text that is none, with the place in it, and for a name that is not among `names`.
  static Result<Formula> parse(std::string_view text, std::span<const std::string_view> names);
  /// `values` are those of the names, in their order.
  [[nodiscard]] double operator()(std::span<const double> values) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  friend class FormulaParser;
  /// A number, the value of a name, or a function of the last values.
  struct Step {
    const FormulaFunction* function = nullptr;
    double number = 0;  ///< without a function and an index
    std::optional<uint32_t> index;
  };
  std::string text_;
  std::vector<Step> steps_;  ///< operands stand before what uses them
};

}  // namespace lockstep::program
