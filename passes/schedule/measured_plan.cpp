// SPDX-License-Identifier: Apache-2.0
// Plans from tables of measurements: how work is named there, and which plans it may have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "passes/schedule/choosers.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;

namespace {

int64_t roundedUp(int64_t extent) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent))); }

/// The element types of what the body reads and makes, each once: "bf16+f32>f32".
std::string typesOf(const Graph& body) {
  std::set<std::string_view> read, made;
  for (NodeId id : body.body().nodes) {
    if (leafKind(body[id]) != LeafKind::None) read.insert(toString(body.typeOf(body[id].results[0]).dtype));
  }
  for (const Output& output : body.outputs) made.insert(toString(body.typeOf(output.value).dtype));
  return fmt::format("{}>{}", fmt::join(read, "+"), fmt::join(made, "+"));
}

}  // namespace

std::string describeWork(const PlanQuery& query) {
  if (query.kind != GroupKind::Contract) return {};
  const ContractShape shape = findContract(query.body).shape;
  return fmt::format("{} {} {}x{}x{}x{}", toString(query.kind), typesOf(query.body), roundedUp(shape.batch), roundedUp(shape.m),
                     roundedUp(shape.n), roundedUp(shape.k));
}

std::optional<PlanChoice> choiceOf(const program::Plan& plan, const PlanQuery& query) {
  return query.kind == GroupKind::Contract ? contractChoice(plan, query) : std::nullopt;
}

std::vector<program::Plan> candidatePlans(const PlanQuery& query) {
  std::vector<program::Plan> plans;
  if (query.kind == GroupKind::Contract) plans = contractCandidates(query);
  if (plans.empty()) return plans;
  PlanQuery unmeasured = query;
  unmeasured.measured = nullptr;
  const Result<PlanChoice> estimate = choosePlan(unmeasured);
  const bool is_new = estimate.ok() && std::ranges::find(plans, estimate->plan) == plans.end();
  if (is_new && choiceOf(estimate->plan, query)) plans.push_back(estimate->plan);
  return plans;
}

std::optional<PlanChoice> measuredChoice(const PlanQuery& query) {
  if (query.measured == nullptr || query.measured->plans.empty()) return std::nullopt;
  const auto found = query.measured->plans.find(describeWork(query));
  return found == query.measured->plans.end() ? std::nullopt : choiceOf(found->second, query);
}

}  // namespace lockstep::passes
