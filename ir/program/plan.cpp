// SPDX-License-Identifier: Apache-2.0
#include "ir/program/plan.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace lockstep::program {
namespace {

/// Beyond what any device runs in a workgroup; products of two numbers of a plan stay in range.
constexpr int64_t kLargestNumber = int64_t{1} << 20;
constexpr std::string_view kUnrolledStores = "unrolled_stores";

using Numbers = std::map<std::string, int64_t, std::less<>>;

struct Written {
  std::string kind;
  Numbers numbers;  // all that a text states
};

struct Writer {
  template <class Kind>
  Written operator()(const Kind& plan) const {
    Written out{std::string(Kind::kName), {}};
    Kind::each(plan, [&](std::string_view name, int64_t number, PlanNumber rule) {
      if (rule != PlanNumber::Unroll || number != 1) out.numbers.emplace(name, number);
    });
    return out;
  }
  Written operator()(const TemplatePlan& plan) const {
    Written out{fmt::format("{} {}", TemplatePlan::kName, quote(plan.name)), plan.overrides};
    if (plan.unrolled_stores != 0) out.numbers.emplace(kUnrolledStores, plan.unrolled_stores);
    return out;
  }
};

Failure problem(const Token& token, std::string message) {
  return fail("program.plan", std::move(message), token.where, "take a plan from a dump of the pass 'schedule' as a pattern");
}

Result<Numbers> parseNumbers(TokenCursor& cursor) {
  Numbers numbers;
  LS_CHECK(cursor.expect("{"));
  while (!cursor.accept("}")) {
    if (!numbers.empty()) LS_CHECK(cursor.expect(","));
    const Token token = cursor.peek();
    LS_TRY(std::string name, cursor.identifier());
    LS_CHECK(cursor.expect("="));
    LS_TRY(const int64_t number, cursor.integer());
    if (number < 0 || number > kLargestNumber) return problem(token, fmt::format("{} is outside 0..{}", name, kLargestNumber));
    if (!numbers.emplace(name, number).second) return problem(token, fmt::format("{} is given twice", name));
  }
  return numbers;
}

/// What else must hold between the numbers of a plan; empty: it does.
std::string misfit(const auto& plan) {
  (void)plan;
  return {};
}
std::string misfit(const ScanPlan& plan) {
  return plan.lanes % plan.lanes_per_line == 0 ? "" : "lanes must be a multiple of lanes_per_line";
}
std::string misfit(const ScatterPlan& plan) {
  if (plan.segments() == 0) return "lanes must be at least columns * parts";
  if (plan.words() == 0) return "lanes must be enough for one word of the masks";
  return plan.words() % plan.parts == 0 ? "" : "a part must have whole words of the masks";
}

/// Of templates whose invocations exchange values.
std::string misfitOfLanes(const auto& plan) {
  if (plan.lanes % plan.across != 0) return "lanes must be a multiple of across";
  if (plan.across > 1 && (plan.subgroup % plan.across != 0 || plan.lanes % plan.subgroup != 0))
    return "subgroup must be a multiple of across, and lanes one of subgroup";
  return "";
}
std::string misfit(const TiledPlan& plan) {
  if (plan.tile % plan.block != 0) return "tile must be a multiple of block";
  if (plan.lanes % plan.shares != 0) return "lanes must be a multiple of shares";
  // The tile takes what one share hands to another.
  if (plan.shares > 1 && plan.rows() > plan.tile) return "tile must be at least the rows of a workgroup where there are several shares";
  TiledPlan share = plan;
  share.lanes /= plan.shares;
  return misfitOfLanes(share);
}
std::string misfit(const SplitPlan& plan) { return misfitOfLanes(plan); }
std::string misfit(const DigitsPlan& plan) {
  if (plan.vector != 1 && plan.vector != 4) return "vector is 1 or 4";
  // A bit for each says whether its sum is finite.
  constexpr int64_t kMostRows = 32;
  return plan.rounds <= kMostRows / plan.sub_rows ? "" : "rounds times sub_rows is at most 32";
}
std::string misfit(const MatrixPlan& plan) {
  if (plan.sub_rows % plan.unit_m != 0) return "sub_rows must be a multiple of unit_m";
  if (plan.tile % plan.unit != 0 || plan.unit % 8 != 0) return "tile must be a multiple of unit, and unit one of 8";
  if (plan.unit_m * plan.unit % plan.lanes != 0) return "lanes must divide the elements of a unit";
  return plan.parts <= 2 && plan.brain <= 2 ? "" : "parts and brain are 1 or 2";
}
std::string misfit(const RowChainPlan& plan) {
  if (plan.rows_per_group > plan.lanes || plan.tile_n > plan.lanes) return "rows_per_group and tile_n must be at most lanes";
  if (plan.tile_k % 4 != 0) return "tile_k must be a multiple of 4";
  return plan.lanes % plan.subgroup == 0 ? "" : "lanes must be a multiple of subgroup";
}

template <class Kind>
Result<Plan> planOf(const Token& token, Numbers numbers) {
  Kind plan;
  std::string wrong;
  Kind::each(plan, [&](std::string_view name, int64_t& number, PlanNumber rule) {
    const auto found = numbers.find(name);
    if (found != numbers.end()) {
      number = found->second;
      numbers.erase(found);
    } else if (rule != PlanNumber::Unroll && wrong.empty()) {
      wrong = fmt::format("a plan of kind '{}' needs {}", Kind::kName, name);
    }
    const bool fits = number > 0 && (rule != PlanNumber::PowerOfTwo || std::has_single_bit(static_cast<uint64_t>(number)));
    if (!fits && wrong.empty()) wrong = fmt::format("{} of a plan of kind '{}' cannot be {}", name, Kind::kName, number);
  });
  if (wrong.empty() && !numbers.empty()) wrong = fmt::format("a plan of kind '{}' has no {}", Kind::kName, numbers.begin()->first);
  if (wrong.empty()) wrong = misfit(plan);
  if (!wrong.empty()) return problem(token, wrong);
  return Plan(plan);
}

/// Tries the kinds one after the other.
template <size_t index = 0>
Result<Plan> planOfKind(const Token& token, std::string_view kind, const Numbers& numbers) {
  if constexpr (index == std::variant_size_v<Plan>) {
    return problem(token, fmt::format("'{}' is not a kind of plan", kind));
  } else {
    using Kind = std::variant_alternative_t<index, Plan>;
    if constexpr (!std::is_same_v<Kind, TemplatePlan>) {
      if (Kind::kName == kind) return planOf<Kind>(token, numbers);
    }
    return planOfKind<index + 1>(token, kind, numbers);
  }
}

}  // namespace

std::string_view nameOf(const Plan& plan) {
  if (const auto* filled = std::get_if<TemplatePlan>(&plan)) return filled->name;
  return std::visit([](const auto& kind) { return std::remove_cvref_t<decltype(kind)>::kName; }, plan);
}

graph::GroupKind kindOf(const Plan& plan) {
  return std::visit([](const auto& kind) { return std::remove_cvref_t<decltype(kind)>::kKind; }, plan);
}

std::string print(const Plan& plan) {
  const Written written = std::visit(Writer{}, plan);
  std::string text = written.kind + " {";
  for (const auto& [name, number] : written.numbers) text += fmt::format("{}{} = {}", text.back() == '{' ? "" : ", ", name, number);
  return text + "}";
}

Result<Plan> parsePlan(TokenCursor& cursor) {
  const Token token = cursor.peek();
  LS_TRY(std::string kind, cursor.identifier());
  if (kind != TemplatePlan::kName) {
    LS_TRY(Numbers numbers, parseNumbers(cursor));
    return planOfKind(token, kind, numbers);
  }
  TemplatePlan plan;
  LS_TRY(plan.name, cursor.string());
  LS_TRY(plan.overrides, parseNumbers(cursor));
  if (const auto found = plan.overrides.find(kUnrolledStores); found != plan.overrides.end()) {
    plan.unrolled_stores = found->second;
    plan.overrides.erase(found);
  }
  return Plan(std::move(plan));
}

}  // namespace lockstep::program
