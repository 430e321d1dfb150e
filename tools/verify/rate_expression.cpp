// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/rate_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace lockstep::tools {
namespace {

/// Evaluates by recursive descent each time; expressions are a line long.
class Evaluator {
 public:
  Evaluator(std::string_view text, double step) : text_(text), step_(step) {}

  std::optional<double> run() {
    const double value = sum(0);
    skipSpace();
    if (failed_ || position_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  static constexpr int kMaxDepth = 50;

  void skipSpace() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool accept(std::string_view token) {
    skipSpace();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  double failure() {
    failed_ = true;
    return 0;
  }
  double sum(int depth) {
    double value = product(depth);
    while (!failed_) {
      if (accept("+")) {
        value += product(depth);
      } else if (accept("-")) {
        value -= product(depth);
      } else {
        break;
      }
    }
    return value;
  }
  double product(int depth) {
    double value = primary(depth);
    while (!failed_) {
      if (accept("*")) {
        value *= primary(depth);
      } else if (accept("/")) {
        value /= primary(depth);
      } else {
        break;
      }
    }
    return value;
  }
  double primary(int depth) {
    if (depth > kMaxDepth) return failure();
    if (accept("-")) return -primary(depth + 1);
    if (accept("(")) {
      const double value = sum(depth + 1);
      return accept(")") ? value : failure();
    }
    const bool is_min = accept("min(");
    if (is_min || accept("max(")) {
      const double a = sum(depth + 1);
      if (!accept(",")) return failure();
      const double b = sum(depth + 1);
      if (!accept(")")) return failure();
      return is_min ? std::min(a, b) : std::max(a, b);
    }
    if (accept("step")) return step_;
    skipSpace();
    double value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return failure();
    position_ += static_cast<size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  double step_;
  size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace

Result<std::function<double(int64_t)>> parseRate(std::string_view text) {
  const std::optional<double> first = Evaluator(text, 1).run();
  if (!first || !std::isfinite(*first)) {
    return fail("golden.rate", fmt::format("'{}' is not a learning rate: numbers, step, + - * /, min, max and parentheses", text));
  }
  return std::function<double(int64_t)>(
      [expression = std::string(text)](int64_t step) { return Evaluator(expression, static_cast<double>(step)).run().value_or(NAN); });
}

}  // namespace lockstep::tools
