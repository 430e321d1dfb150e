// SPDX-License-Identifier: Apache-2.0
// Plans from tables of measurements: how work is named there, and which plans it may have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string_view>

#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/schedule/choosers.h"

namespace lockstep::passes {

using namespace graph;

int64_t roundedUp(int64_t extent) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent))); }

namespace {

/// What a kind of work has to say of its plans. Kinds without a place here have nothing to choose.
struct Measurable {
  GroupKind kind;
  /// Empty where the work has nothing to choose.
  std::string (*sizes)(const PlanQuery& query);
  std::optional<PlanChoice> (*choice)(const program::Plan& plan, const PlanQuery& query);
  std::vector<program::Plan> (*candidates)(const PlanQuery& query);
  /// Whether the time of the work depends on how much its body reads, computes and writes.
  bool counts_body;
};
constexpr std::array kMeasurable{Measurable{GroupKind::Map, mapSizes, mapChoice, mapCandidates, true},
                                 Measurable{GroupKind::Rows, rowsSizes, rowsChoice, rowsCandidates, true},
                                 Measurable{GroupKind::Columns, columnsSizes, columnsChoice, columnsCandidates, true},
                                 Measurable{GroupKind::Contract, contractSizes, contractChoice, contractCandidates, false}};

const Measurable* measurable(GroupKind kind) {
  const auto found = std::ranges::find(kMeasurable, kind, &Measurable::kind);
  return found == kMeasurable.end() ? nullptr : &*found;
}

/// The element types of what the body reads and makes, each once: "bf16+f32>f32".
std::string typesOf(const Graph& body) {
  std::set<std::string_view> read, made;
  for (NodeId id : body.body().nodes) {
    if (leafKind(body[id]) != LeafKind::None) read.insert(toString(body.typeOf(body[id].results[0]).dtype));
  }
  for (const Output& output : body.outputs) made.insert(toString(body.typeOf(output.value).dtype));
  return fmt::format("{}>{}", fmt::join(read, "+"), fmt::join(made, "+"));
}

/// How many tensors of the largest size the body reads and makes, and how long it is: "2>1 n8". Nothing where all are small: a dispatch
/// takes longer than their memory, and such kernels are merged with others.
std::string bodySize(const Graph& body) {
  std::vector<int64_t> read, made;
  for (const ValueId input : inputsOf(body)) read.push_back(body.shapeOf(input).elementCount());
  for (const Output& output : body.outputs) made.push_back(body.shapeOf(output.value).elementCount());
  int64_t largest = 1;
  for (const std::vector<int64_t>& counts : {read, made}) {
    for (const int64_t count : counts) largest = std::max(largest, count);
  }
  if (largest < cost::kLeastMeasured) return {};
  return fmt::format("{}>{} n{}", std::ranges::count(read, largest), std::ranges::count(made, largest), roundedUp(std::ssize(body.nodes)));
}

}  // namespace

std::string describeWork(const PlanQuery& query) {
  const Measurable* kind = measurable(query.kind);
  std::string sizes = kind == nullptr ? "" : kind->sizes(query);
  if (sizes.empty()) return {};
  std::string text = fmt::format("{} {} {}", toString(query.kind), typesOf(query.body), sizes);
  if (!kind->counts_body) return text;
  const std::string size = bodySize(query.body);
  return size.empty() ? size : fmt::format("{} {}", text, size);
}

std::optional<PlanChoice> choiceOf(const program::Plan& plan, const PlanQuery& query) {
  if (describeWork(query).empty() || program::kindOf(plan) != query.kind) return std::nullopt;
  return measurable(query.kind)->choice(plan, query);
}

std::vector<program::Plan> candidatePlans(const PlanQuery& query) {
  std::vector<program::Plan> plans;
  if (describeWork(query).empty()) return plans;
  PlanQuery unmeasured = query;
  unmeasured.measured = nullptr;
  std::vector<program::Plan> wanted = measurable(query.kind)->candidates(unmeasured);
  if (wanted.empty()) return plans;
  if (const Result<PlanChoice> estimate = choosePlan(unmeasured); estimate.ok()) wanted.push_back(estimate->plan);
  for (const program::Plan& plan : wanted) {
    const std::optional<PlanChoice> choice = choiceOf(plan, unmeasured);
    if (choice && choice->plan == plan && std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
  }
  return plans;
}

std::optional<PlanChoice> measuredChoice(const PlanQuery& query) {
  if (query.measured == nullptr || query.measured->plans.empty()) return std::nullopt;
  const std::string work = describeWork(query);
  const auto found = work.empty() ? query.measured->plans.end() : query.measured->plans.find(work);
  if (found == query.measured->plans.end() || program::kindOf(found->second) != query.kind) return std::nullopt;
  return measurable(query.kind)->choice(found->second, query);
}

}  // namespace lockstep::passes
