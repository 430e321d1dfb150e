// SPDX-License-Identifier: Apache-2.0
#include "ir/program/formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace lockstep::program {

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
  using Op = Formula::Op;
  struct Function {
    std::string_view name;
    Op op;
    size_t arguments;
  };
  static constexpr std::array kFunctions{
      Function{"min", Op::Min, 2}, Function{"max", Op::Max, 2}, Function{"floor", Op::Floor, 1},      Function{"sqrt", Op::Sqrt, 1},
      Function{"cos", Op::Cos, 1}, Function{"pow", Op::Pow, 2}, Function{"at_least", Op::AtLeast, 2}, Function{"select", Op::Select, 3}};
  static constexpr int kDeepest = 200;  ///< 64 warmups within warmups take 130

  static std::string functionNames() {
    std::vector<std::string_view> names;
    for (const Function& function : kFunctions) names.push_back(function.name);
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
  void add(Op op, double number = 0, uint32_t index = 0) { formula_.steps_.push_back({op, number, index}); }

  void sum(int depth) {
    product(depth);
    while (problem_.empty()) {
      const bool plus = accept('+');
      if (!plus && !accept('-')) return;
      product(depth);
      add(plus ? Op::Add : Op::Subtract);
    }
  }
  void product(int depth) {
    primary(depth);
    while (problem_.empty()) {
      const bool times = accept('*');
      if (!times && !accept('/')) return;
      primary(depth);
      add(times ? Op::Multiply : Op::Divide);
    }
  }
  void primary(int depth) {
    if (!problem_.empty()) return;
    if (depth > kDeepest) return wrong(fmt::format("it is nested more than {} deep", kDeepest));
    if (accept('-')) {
      primary(depth + 1);
      return add(Op::Negate);
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
      return add(Op::Name, 0, static_cast<uint32_t>(found - names_.begin()));
    }
    const auto* function = std::ranges::find(kFunctions, name, &Function::name);
    if (function == kFunctions.end()) return wrong(fmt::format("'{}' is unknown", name));
    position_ += name.size();
    expect('(');
    for (size_t i = 0; i < function->arguments && problem_.empty(); ++i) {
      if (i > 0) expect(',');
      sum(depth + 1);
    }
    expect(')');
    add(function->op);
  }
  void number() {
    double value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) return wrong("a number, a name or '(' is expected");
    position_ += static_cast<size_t>(end - begin);
    add(Op::Number, value);
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
  const auto pop = [&] {
    const double value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const Step& step : steps_) {
    if (step.op == Op::Number || step.op == Op::Name) {
      stack.push_back(step.op == Op::Number ? step.number : values[step.index]);
      continue;
    }
    const double last = pop();
    switch (step.op) {
      case Op::Number:
      case Op::Name:
        break;
      case Op::Negate:
        stack.push_back(-last);
        break;
      case Op::Add:
        stack.back() += last;
        break;
      case Op::Subtract:
        stack.back() -= last;
        break;
      case Op::Multiply:
        stack.back() *= last;
        break;
      case Op::Divide:
        stack.back() /= last;
        break;
      case Op::Min:
        stack.back() = std::min(stack.back(), last);
        break;
      case Op::Max:
        stack.back() = std::max(stack.back(), last);
        break;
      case Op::Floor:
        stack.push_back(std::floor(last));
        break;
      case Op::Sqrt:
        stack.push_back(std::sqrt(last));
        break;
      case Op::Cos:
        stack.push_back(std::cos(last));
        break;
      case Op::Pow:
        stack.back() = std::pow(stack.back(), last);
        break;
      case Op::AtLeast:
        stack.back() = stack.back() >= last ? 1 : 0;
        break;
      case Op::Select: {
        const double chosen = pop();
        stack.back() = stack.back() > 0 ? chosen : last;
        break;
      }
    }
  }
  return stack.empty() ? std::numeric_limits<double>::quiet_NaN() : stack.back();
}

}  // namespace lockstep::program
