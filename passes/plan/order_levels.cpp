// SPDX-License-Identifier: Apache-2.0
#include "passes/plan/order_levels.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "ir/graph/group_kind.h"
#include "passes/cost.h"
#include "passes/plan/command_work.h"

namespace lockstep::passes {

using program::Command;
using program::Dispatch;
using program::Program;

namespace {

/// Whether it is a chain, whose steps wait for each other; whether it waits for memory; and seconds of one workgroup while all units work.
/// The greater comes first.
using Urgency = std::tuple<bool, bool, double>;

Urgency urgencyOf(const Program& program, const Command& command, const CommandWork& work, const cost::Rates& rates) {
  const auto* dispatch = std::get_if<Dispatch>(&command.action);
  if (dispatch == nullptr) return {false, false, 0};
  const auto* symbolic = std::get_if<program::SymbolicKernel>(&program[dispatch->kernel].code);
  const bool is_chain = symbolic != nullptr && program::kindOf(symbolic->plan) == graph::GroupKind::RowChain;
  const double groups = std::accumulate(dispatch->groups.begin(), dispatch->groups.end(), 1.0, std::multiplies<>());
  const cost::Floor floor = cost::floorOf(work.bytes, work.operations.value_or(0), rates);
  // Of a user's kernel nobody knows what it computes.
  return {is_chain, work.operations && floor.memory > floor.compute, floor.seconds() / groups};
}

}  // namespace

Program orderLevels(const Program& planned, const program::DeviceProfile& profile) {
  const std::vector<CommandWork> work = countWork(planned, planned);
  const cost::Rates rates = cost::ratesOf(profile);
  std::vector<Urgency> urgencies;
  for (size_t i = 0; i < work.size(); ++i) urgencies.push_back(urgencyOf(planned, planned.commands[i], work[i], rates));
  std::vector<size_t> order(work.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const uint32_t level_a = planned.commands[a].level, level_b = planned.commands[b].level;
    return level_a != level_b ? level_a < level_b : urgencies[a] > urgencies[b];
  });
  Program ordered = planned;
  for (size_t i = 0; i < order.size(); ++i) ordered.commands[i] = planned.commands[order[i]];
  return ordered;
}

}  // namespace lockstep::passes
