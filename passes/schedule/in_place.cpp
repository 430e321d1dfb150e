// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/in_place.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "ir/graph/group_kind.h"
#include "passes/fuse/views.h"
#include "passes/schedule/lifetimes.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/row_phases.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;
using program::ArenaRole;
using program::Buffer;
using program::BufferId;
using program::Command;
using program::Dispatch;
using program::Program;
using program::Range;
using program::SymbolicKernel;

bool readAtOwnPosition(const Graph& graph, const std::vector<NodeId>& nodes, std::set<ValueId> values) {
  for (NodeId id : nodes) {
    const Node& node = graph[id];
    if (std::none_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return values.contains(operand); })) continue;
    values.insert(node.results.begin(), node.results.end());
    if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
      ValueId moved = node.operands[0];
      if (!isLinearIdentity(view->map(graph, node), graph.shapeOf(node.results[0]), graph.shapeOf(moved))) return false;
    } else if (const auto* element = std::get_if<ElementLowering>(&*node.op->lower); element == nullptr || element->scalar_only) {
      return false;
    }
  }
  return true;
}

namespace {

/// Each element of a result is stored once, by the invocation that read the operands' elements at its position: maps and the epilogues of
/// contractions. Not a chain, which may read an operand again after it stored a result.
bool storesOwnElements(const Graph& body) {
  return std::all_of(body.body().nodes.begin(), body.body().nodes.end(), [&](NodeId id) {
    const Lowering& lower = *body[id].op->lower;
    return std::holds_alternative<ElementLowering>(lower) || std::holds_alternative<ViewLowering>(lower) ||
           std::holds_alternative<ContractLowering>(lower) || std::holds_alternative<StorageLowering>(lower);
  });
}

/// Rows that a workgroup of the plan makes; nothing for kernels that are not over rows, and where surplus rows, which repeat the last one,
/// may still read it while it is stored.
std::optional<int64_t> rowsOfGroup(const program::Plan& plan, const Graph& body, const RowPhases& phases) {
  if (const auto* rows = std::get_if<program::RowsPlan>(&plan)) return rows->rows_per_group;
  const auto* held = std::get_if<program::HeldRowsPlan>(&plan);
  if (held == nullptr) return std::nullopt;
  const int64_t in_group = held->rows_per_group * held->rounds;
  const bool has_barrier = held->lanes > held->subgroup;
  // A lane alone leaves surplus rows out, unless rows share the words of a result.
  const bool leaves_out = held->lanes == 1 && phases.rowWordElements(body) == 1;
  const bool is_ordered = phases.rows % in_group == 0 || (held->rounds == 1 && (has_barrier || leaves_out));
  return is_ordered ? std::optional(in_group) : std::nullopt;
}

/// Whether each row is one workgroup's, whose invocations store elements after all that is read of the row has been read: no sums by
/// columns beside, which may still be reading, and no surplus workgroup, which repeats the last row.
bool ownsRows(const SymbolicKernel& kernel, const std::array<uint32_t, 3>& groups) {
  if (program::kindOf(kernel.plan) != GroupKind::Rows) return false;
  const RowPhases phases = findRowPhases(kernel.body);
  const std::optional<int64_t> in_group = rowsOfGroup(kernel.plan, kernel.body, phases);
  if (!in_group) return false;
  return phases.parts.empty() && !phases.misplaced && int64_t{groups[0]} * groups[1] * groups[2] == divideUp(phases.rows, *in_group);
}

/// Whether an input is read only where the elements of a row's results are made, or for a value of the row, which comes before they are
/// stored.
bool readInOwnRow(const Graph& body, ValueId input) {
  const ReduceSpace space = reduceSpace(body);
  // All lanes of a row read what has one element for it, and one of them stores a value of the row.
  if (space.length > 1 && body.shapeOf(input).elementCount() <= space.results) return false;
  std::set<ValueId> elements{input}, rows;
  const auto any = [](std::span<const ValueId> operands, const std::set<ValueId>& values) {
    return std::ranges::any_of(operands, [&](ValueId operand) { return values.contains(operand); });
  };
  for (const NodeId id : body.body().nodes) {
    const Node& node = body[id];
    if (reducesRows(body, node)) continue;
    if (any(node.operands, rows)) rows.insert(node.results.begin(), node.results.end());
    if (!any(node.operands, elements)) continue;
    if (const auto* element = std::get_if<ElementLowering>(&*node.op->lower); element != nullptr && element->scalar_only) {
      const Shape& line = body.shapeOf(node.operands[0]);
      const bool fits = element->within_row != nullptr && element->within_row(body, node) &&
                        !any(std::span(node.operands).subspan(1), elements) && space.length % line.extent(line.rank() - 1) == 0 &&
                        body.shapeOf(node.results[0]).elementCount() == space.results;
      if (!fits) return false;
      rows.insert(node.results[0]);
    } else {
      if (!readAtOwnPosition(body, {id}, elements)) return false;
      elements.insert(node.results.begin(), node.results.end());
    }
  }
  // A value of the row that reads elements elsewhere must not be made among the elements of the results.
  return std::ranges::none_of(body.outputs, [&](const Output& output) {
    return rows.contains(output.value) && body.shapeOf(output.value).elementCount() != space.results;
  });
}

class Search {
 public:
  explicit Search(const Program& program) : program_(program), lives_(lifetimesOf(program)) {
    for (size_t i = 0; i < program.buffers.size(); ++i) owners_.emplace_back(i);
    for (const Command& command : program.commands) {
      for (const Range& range : accesses(command)) {
        ++at_level_[{range.buffer, command.level}];
      }
    }
  }

  std::vector<BufferId> run() {
    for (const Command& command : program_.commands) {
      const auto* dispatch = std::get_if<Dispatch>(&command.action);
      const auto* symbolic = dispatch == nullptr ? nullptr : std::get_if<SymbolicKernel>(&program_[dispatch->kernel].code);
      if (symbolic == nullptr) continue;
      if (ownsRows(*symbolic, dispatch->groups)) {
        visit(*dispatch, symbolic->body, command.level, readInOwnRow);
      } else if (program::kindOf(symbolic->plan) != GroupKind::RowChain && storesOwnElements(symbolic->body)) {
        visit(*dispatch, symbolic->body, command.level,
              [](const Graph& body, ValueId input) { return readAtOwnPosition(body, body.body().nodes, {input}); });
      }
    }
    return std::move(owners_);
  }

 private:
  void visit(const Dispatch& dispatch, const Graph& body, uint32_t level, bool (*isReadInPlace)(const Graph&, ValueId)) {
    const std::vector<ValueId> inputs = inputsOf(body);
    std::set<size_t> taken;
    for (size_t result = inputs.size(); result < dispatch.bindings.size(); ++result) {
      const Range& target = dispatch.bindings[result];
      if (!isWhole(target, level) || lives_[target.buffer.index()].first != level) continue;
      for (size_t input = 0; input < inputs.size(); ++input) {
        const Range& source = dispatch.bindings[input];
        bool fits = isWhole(source, level) && lives_[source.buffer.index()].last == level && source.size == target.size &&
                    program_[source.buffer].type.dtype == program_[target.buffer].type.dtype;
        if (!fits || taken.contains(input) || !isReadInPlace(body, inputs[input])) continue;
        taken.insert(input);
        owners_[target.buffer.index()] = owners_[source.buffer.index()];
        break;
      }
    }
  }

  /// All of a workspace buffer, which nothing else of the level touches, and which no other iteration of a loop needs.
  bool isWhole(const Range& range, uint32_t level) {
    const Buffer& buffer = program_[range.buffer];
    if (program_.loopOf(level) != nullptr && lives_[range.buffer.index()].crosses) return false;
    return buffer.role == ArenaRole::Workspace && range.offset == 0 && range.size == buffer.size && at_level_[{range.buffer, level}] == 1;
  }

  const Program& program_;
  std::vector<BufferId> owners_;
  std::vector<Lifetime> lives_;
  std::map<std::pair<BufferId, uint32_t>, size_t> at_level_;
};

}  // namespace

std::vector<BufferId> takeOver(const Program& program) { return Search(program).run(); }

}  // namespace lockstep::passes
