// SPDX-License-Identifier: Apache-2.0
#include "ir/program/formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace lockstep::program {

/// What a step does with its arguments, which are the last values.
struct FormulaFunction {
  std::string_view name;
  size_t arguments;
  double (*value)(const double* a);
};

namespace {

constexpr std::array kFunctions{
    FormulaFunction{"min", 2, [](const double* a) { return std::min(a[0], a[1]); }},
    FormulaFunction{"max", 2, [](const double* a) { return std::max(a[0], a[1]); }},
    FormulaFunction{"floor", 1, [](const double* a) { return std::floor(a[0]); }},
    FormulaFunction{"sqrt", 1, [](const double* a) { return std::sqrt(a[0]); }},
    FormulaFunction{"cos", 1, [](const double* a) { return std::cos(a[0]); }},
    FormulaFunction{"pow", 2, [](const double* a) { return std::pow(a[0], a[1]); }},
    FormulaFunction{"at_least", 2, [](const double* a) { return a[0] >= a[1] ? 1.0 : 0.0; }},
    FormulaFunction{"select", 3, [](const double* a) { return a[0] > 0 ? a[1] : a[2]; }},
};
constexpr FormulaFunction kNegate{"-", 1, [](const double* a) { return -a[0]; }};
/// Between operands, those of a sum and those of a product.
constexpr std::array kSums{FormulaFunction{"+", 2, [](const double* a) { return a[0] + a[1]; }},
                           FormulaFunction{"-", 2, [](const double* a) { return a[0] - a[1]; }}};
constexpr std::array kProducts{FormulaFunction{"*", 2, [](const double* a) { return a[0] * a[1]; }},
                               FormulaFunction{"/", 2, [](const double* a) { return a[0] / a[1]; }}};

}  // namespace

/// A recursive descent that writes the steps in the order in which they run.
class FormulaParser {
 public:
  FormulaParser(std::string_view text, std::span<const std::string_view> names) : text_(text), names_(names) {}

  Result<Formula> run() {
    sum(0);
    skipSpace();
    if (problem_.empty() && position_ != text_.size()) wrong("an operator is expected");
    if (!problem_.empty()) {
      return fail("program.formula", fmt::format("'{}' is no formula: {} at character {}", text_, problem_, wrong_at_ + 1), {},
                  fmt::format("write numbers, {}, + - * /, parentheses, {}", fmt::join(names_, ", "), functionNames()));
    }
    formula_.text_ = std::string(text_);
    return std::move(formula_);
  }

 private:
  static constexpr int kDeepest = 200;  ///< 64 warmups within warmups take 130

  static std::string functionNames() {
    std::vector<std::string_view> names;
    for (const FormulaFunction& function : kFunctions) names.push_back(function.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void wrong(std::string problem) {
    if (!problem_.empty()) return;
    problem_ = std::move(problem);
    wrong_at_ = position_;
  }
  void skipSpace() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool accept(char punctuation) {
    skipSpace();
    if (position_ == text_.size() || text_[position_] != punctuation) return false;
    ++position_;
    return true;
  }
  void expect(char punctuation) {
    if (!accept(punctuation)) wrong(fmt::format("'{}' is expected", punctuation));
  }
  void call(const FormulaFunction& function) { formula_.steps_.push_back({.function = &function, .number = 0, .index = {}}); }

  /// One of the operators, if it is next.
  const FormulaFunction* accept(const std::array<FormulaFunction, 2>& operators) {
    for (const FormulaFunction& one : operators) {
      if (accept(one.name.front())) return &one;
    }
    return nullptr;
  }
  void sum(int depth) {
    product(depth);
    while (problem_.empty()) {
      const FormulaFunction* found = accept(kSums);
      if (found == nullptr) return;
      product(depth);
      call(*found);
    }
  }
  void product(int depth) {
    primary(depth);
    while (problem_.empty()) {
      const FormulaFunction* found = accept(kProducts);
      if (found == nullptr) return;
      primary(depth);
      call(*found);
    }
  }
  void primary(int depth) {
    if (!problem_.empty()) return;
    if (depth > kDeepest) return wrong(fmt::format("it is nested more than {} deep", kDeepest));
    if (accept('-')) {
      primary(depth + 1);
      return call(kNegate);
    }
    if (accept('(')) {
      sum(depth + 1);
      return expect(')');
    }
    skipSpace();
    const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    size_t end = position_;
    while (end < text_.size() && isLetter(text_[end])) ++end;
    if (end > position_) return word(text_.substr(position_, end - position_), depth);
    number();
  }
  void word(std::string_view name, int depth) {
    if (const auto found = std::ranges::find(names_, name); found != names_.end()) {
      position_ += name.size();
      formula_.steps_.push_back({.function = nullptr, .number = 0, .index = static_cast<uint32_t>(found - names_.begin())});
      return;
    }
    const auto* function = std::ranges::find(kFunctions, name, &FormulaFunction::name);
    if (function == kFunctions.end()) return wrong(fmt::format("'{}' is unknown", name));
    position_ += name.size();
    expect('(');
    for (size_t i = 0; i < function->arguments && problem_.empty(); ++i) {
      if (i > 0) expect(',');
      sum(depth + 1);
    }
    expect(')');
    call(*function);
  }
  void number() {
    double value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) return wrong("a number, a name or '(' is expected");
    position_ += static_cast<size_t>(end - begin);
    formula_.steps_.push_back({.function = nullptr, .number = value, .index = {}});
  }

  std::string_view text_;
  std::span<const std::string_view> names_;
  size_t position_ = 0, wrong_at_ = 0;
  std::string problem_;
  Formula formula_;
};

Result<Formula> Formula::parse(std::string_view text, std::span<const std::string_view> names) { return FormulaParser(text, names).run(); }

double Formula::operator()(std::span<const double> values) const {
  std::vector<double> stack;
  stack.reserve(steps_.size());
  for (const Step& step : steps_) {
    if (step.function == nullptr) {
      stack.push_back(step.index ? values[*step.index] : step.number);
      continue;
    }
    const size_t first = stack.size() - step.function->arguments;
    stack[first] = step.function->value(&stack[first]);
    stack.resize(first + 1);
  }
  return stack.empty() ? std::numeric_limits<double>::quiet_NaN() : stack.back();
}

}  // namespace lockstep::program
