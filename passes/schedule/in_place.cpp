// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/in_place.h"

#include <algorithm>
#include <map>

#include "passes/fuse/views.h"

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
/// contractions. A reduction may store a row while its neighbours still read.
bool storesOwnElements(const Graph& body) {
  return std::all_of(body.body().nodes.begin(), body.body().nodes.end(), [&](NodeId id) {
    const Lowering& lower = *body[id].op->lower;
    return std::holds_alternative<ElementLowering>(lower) || std::holds_alternative<ViewLowering>(lower) ||
           std::holds_alternative<ContractLowering>(lower) || std::holds_alternative<StorageLowering>(lower);
  });
}

class Search {
 public:
  explicit Search(const Program& program) : program_(program) {
    for (size_t i = 0; i < program.buffers.size(); ++i) owners_.emplace_back(i);
    for (const Command& command : program.commands) {
      for (const Range& range : accesses(command)) {
        Use& use = uses_[range.buffer];
        if (use.commands == 0 || command.level < use.first) use.first = command.level;
        use.last = std::max(use.last, command.level);
        ++use.commands;
        ++at_level_[{range.buffer, command.level}];
      }
    }
  }

  std::vector<BufferId> run() {
    for (const Command& command : program_.commands) {
      const auto* dispatch = std::get_if<Dispatch>(&command.action);
      const auto* symbolic = dispatch == nullptr ? nullptr : std::get_if<SymbolicKernel>(&program_[dispatch->kernel].code);
      if (symbolic != nullptr && storesOwnElements(symbolic->body)) visit(*dispatch, symbolic->body, command.level);
    }
    return std::move(owners_);
  }

 private:
  struct Use {
    uint32_t first = 0, last = 0;  // levels
    size_t commands = 0;
  };

  void visit(const Dispatch& dispatch, const Graph& body, uint32_t level) {
    const std::vector<ValueId> inputs = inputsOf(body);
    std::set<size_t> taken;
    for (size_t result = inputs.size(); result < dispatch.bindings.size(); ++result) {
      const Range& target = dispatch.bindings[result];
      if (!isWhole(target, level) || uses_[target.buffer].first != level) continue;
      for (size_t input = 0; input < inputs.size(); ++input) {
        const Range& source = dispatch.bindings[input];
        bool fits = isWhole(source, level) && uses_[source.buffer].last == level && source.size == target.size &&
                    program_[source.buffer].type.dtype == program_[target.buffer].type.dtype;
        if (!fits || taken.contains(input) || !readAtOwnPosition(body, body.body().nodes, {inputs[input]})) continue;
        taken.insert(input);
        owners_[target.buffer.index()] = owners_[source.buffer.index()];
        break;
      }
    }
  }

  /// All of a workspace buffer, which nothing else of the level touches.
  bool isWhole(const Range& range, uint32_t level) {
    const Buffer& buffer = program_[range.buffer];
    return buffer.role == ArenaRole::Workspace && range.offset == 0 && range.size == buffer.size && at_level_[{range.buffer, level}] == 1;
  }

  const Program& program_;
  std::vector<BufferId> owners_;
  std::map<BufferId, Use> uses_;
  std::map<std::pair<BufferId, uint32_t>, size_t> at_level_;
};

}  // namespace

std::vector<BufferId> takeOver(const Program& program) { return Search(program).run(); }

}  // namespace lockstep::passes
