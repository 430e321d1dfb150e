// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::wgsl {
namespace {

using Kind = ContractPart::Kind;

bool isName(Kind kind) { return kind >= Kind::Length && kind <= Kind::WorkgroupSize; }

/// A number, or nothing; `problem` says why there can be none.
struct Computed {
  std::optional<int64_t> number;
  std::string problem;
};

class Evaluation {
 public:
  Evaluation(const Contract& contract, const ContractValues& values) : contract_(contract), values_(values) {}

  Computed operator()(uint32_t index) {
    const ContractPart& part = contract_.parts[index];
    if (part.kind == Kind::Number) return {.number = part.number, .problem = {}};
    if (part.kind == Kind::Unknown) return {};
    if (isName(part.kind)) {
      const std::optional<int64_t> value = values_(part);
      const std::string said = value ? fmt::format("{} = {}", part.text, *value) : "";
      if (value && std::ranges::find(said_, said) == said_.end()) said_.push_back(said);
      return {.number = value, .problem = {}};
    }
    Computed left = (*this)(part.left), right = (*this)(part.right);
    if (!left.problem.empty()) return left;
    if (!right.problem.empty()) return right;
    if (part.kind == Kind::And && (left.number == 0 || right.number == 0)) return {.number = 0, .problem = {}};
    if (!left.number || !right.number) return {};
    return combine(part, *left.number, *right.number);
  }

  [[nodiscard]] std::string said() const { return fmt::format("{}", fmt::join(said_, ", ")); }

 private:
  static Computed combine(const ContractPart& part, int64_t a, int64_t b) {
    const auto number = [](int64_t value) { return Computed{.number = value, .problem = {}}; };
    const auto checked = [&](bool overflows, int64_t value) {
      return overflows ? Computed{.number = {}, .problem = fmt::format("{} is too large a number", part.text)} : number(value);
    };
    int64_t made = 0;
    switch (part.kind) {
      case Kind::Add: {
        const bool overflows = __builtin_add_overflow(a, b, &made);
        return checked(overflows, made);
      }
      case Kind::Subtract: {
        const bool overflows = __builtin_sub_overflow(a, b, &made);
        return checked(overflows, made);
      }
      case Kind::Multiply: {
        const bool overflows = __builtin_mul_overflow(a, b, &made);
        return checked(overflows, made);
      }
      case Kind::Divide:
      case Kind::Remainder:
      case Kind::CeilDivide: {
        if (b == 0) return {.number = {}, .problem = fmt::format("{} divides by zero", part.text)};
        if (a == INT64_MIN && b == -1) return checked(true, 0);
        if (part.kind == Kind::Remainder) return number(a % b);
        const bool rounds_up = part.kind == Kind::CeilDivide && a % b != 0 && (a < 0) == (b < 0);
        return number(a / b + (rounds_up ? 1 : 0));
      }
      case Kind::Minimum:
        return number(std::min(a, b));
      case Kind::Maximum:
        return number(std::max(a, b));
      case Kind::Equal:
        return number(a == b ? 1 : 0);
      case Kind::NotEqual:
        return number(a != b ? 1 : 0);
      case Kind::Less:
        return number(a < b ? 1 : 0);
      case Kind::LessEqual:
        return number(a <= b ? 1 : 0);
      case Kind::Greater:
        return number(a > b ? 1 : 0);
      case Kind::GreaterEqual:
        return number(a >= b ? 1 : 0);
      case Kind::And:
        return number(a != 0 && b != 0 ? 1 : 0);
      case Kind::Number:
      case Kind::Unknown:
      case Kind::Length:
      case Kind::Size:
      case Kind::Value:
      case Kind::Workgroups:
      case Kind::WorkgroupSize:
        break;
    }
    internalError("a part of a contract that is no operator");
  }

  const Contract& contract_;
  const ContractValues& values_;
  std::vector<std::string> said_;
};

}  // namespace

bool Contract::isOfEntry() const {
  return is_dispatch || std::ranges::any_of(parts, [](const ContractPart& part) {
           return part.kind == Kind::Workgroups || part.kind == Kind::WorkgroupSize;
         });
}

std::vector<std::string> Contract::variables() const {
  std::vector<std::string> names;
  for (const ContractPart& part : parts) {
    if (!part.path.empty() && std::ranges::find(names, part.path[0]) == names.end()) names.push_back(part.path[0]);
  }
  return names;
}

std::optional<BrokenContract> findBroken(const Contract& contract, const ContractValues& values) {
  Evaluation evaluate(contract, values);
  BrokenContract broken;
  std::string problem;
  if (!contract.is_dispatch) {
    const Computed holds = evaluate(contract.wanted[0]);
    problem = holds.problem;
    if (problem.empty() && holds.number == 0) problem = fmt::format("the kernel requires {}", contract.parts[contract.wanted[0]].text);
  }
  for (uint32_t axis = 0; contract.is_dispatch && axis < contract.wanted.size(); ++axis) {
    const Computed wanted = evaluate(contract.wanted[axis]);
    broken.wanted.push_back(wanted.number);
    const std::optional<int64_t> given = values({.kind = Kind::Workgroups, .axis = axis, .path = {}, .text = {}});
    if (problem.empty()) problem = wanted.problem;
    if (!problem.empty() || !wanted.number || !given || *wanted.number == *given) continue;
    const ContractPart& part = contract.parts[contract.wanted[axis]];
    const std::string number = part.kind == Kind::Number ? part.text : fmt::format("{} = {}", part.text, *wanted.number);
    problem = fmt::format("{} {} in {} {} dispatched, and the kernel asks for {}", *given, *given == 1 ? "workgroup" : "workgroups",
                          "xyz"[axis], *given == 1 ? "is" : "are", number);
  }
  if (problem.empty()) return std::nullopt;
  broken.message = std::move(problem);
  broken.values = evaluate.said();
  return broken;
}

}  // namespace lockstep::wgsl
