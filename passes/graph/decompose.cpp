// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/decompose.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"
#include "ir/graph/state_versions.h"
#include "passes/cost.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/whole_word_updates.h"
#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr std::string_view kTemplatePrefix = "template:", kLoops = "loops";

bool contains(const std::vector<std::string>& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

/// The device's plan for an op with templates; none where it has not enough bindings or rounds of loops.
std::optional<program::Plan> planOf(const Graph& graph, const Node& node, const DecomposeConfig& config) {
  // A tensor beyond what the device binds at a time takes several bindings.
  uint64_t bindings = 0;
  const auto count = [&](ValueId value) {
    bindings += 1 + (std::max<uint64_t>(graph.typeOf(value).byteSize(), 1) - 1) / config.profile.max_binding_bytes;
  };
  for (const ValueId operand : node.operands) count(operand);
  for (const ValueId result : node.results) count(result);
  if (bindings > config.profile.max_storage_buffers) return std::nullopt;
  std::vector<ValueId> operands;
  Builder alone = leavesFor(graph, node, operands);
  const std::vector<ValueId> results = alone.makeAll(*node.op->name, operands, node.attributes);
  for (const ValueId result : results) alone.output(OutputKind::Result, "result", result);
  Result<PlanChoice> choice = choosePlan({alone.graph(), GroupKind::Template, config.profile, config.templates});
  return choice.ok() ? std::optional(std::move(choice->plan)) : std::nullopt;
}

class Decomposition {
 public:
  Decomposition(const Graph& graph, const DecomposeConfig& config)
      : in_(graph), config_(config), rewriter_(graph), used_(graph.values.size(), false) {
    for (const NodeId id : graph.body().nodes) {
      for (const ValueId operand : graph[id].operands) used_[operand.index()] = true;
    }
    for (const Output& output : graph.outputs) {
      used_[output.value.index()] = true;
      if (output.kind == OutputKind::NextState) findUpdates(output);
    }
  }

  Result<Graph> run() {
    for (const NodeId id : in_.body().nodes) {
      const Node& node = in_[id];
      const auto* lowering = std::get_if<DecomposeLowering>(&*node.op->lower);
      if (lowering == nullptr) {
        rewriter_.copy(node);
        continue;
      }
      rewriter_.builder().setLocation(node.location);
      LS_TRY(const std::vector<ValueId> results, replace(node, *lowering));
      for (size_t i = 0; i < results.size(); ++i) rewriter_.set(node.results[i], results[i]);
    }
    for (const Output& output : in_.outputs) rewriter_.copyOutput(output);
    return rewriter_.take();
  }

 private:
  Result<std::vector<ValueId>> replace(const Node& node, const DecomposeLowering& lowering) {
    Builder& b = rewriter_.builder();
    const std::vector<ValueId> operands = rewriter_.mapped(node.operands);
    if (updates_.contains(node.results[0])) return b.makeAll(lowering.in_place, operands, node.attributes);
    const TemplateChoice *last = nullptr, *taken = nullptr;
    for (const TemplateChoice* choice = lowering.choice; choice != nullptr; choice = choice->otherwise) {
      last = choice;
      // What a user prefers comes before what is faster.
      if ((taken == nullptr || isNamed(*choice)) && takes(*choice, node)) taken = choice;
    }
    if (taken != nullptr) return taken->build(b, node, operands, usedOf(node));
    const int64_t needed = last == nullptr ? 0 : last->saved_elements(in_, node);
    if (needed <= INT32_MAX) return lowering.decompose(b, node, operands);
    return fail("decompose.elements",
                fmt::format("without the template '{}' '{}' needs a tensor of {} elements, and the most is {}", last->name, *node.op->name,
                            needed, INT32_MAX),
                node.location == 0 ? Location{} : in_.locations[node.location - 1],
                "use shorter sequences or fewer of them, or choose a device that can run the template (lockstep devices)");
  }

  /// The nodes that make the next version of a state out of the one before, one after the other.
  void findUpdates(const Output& output) {
    for (const ValueId version : versionsInPlace(in_, findLeaf(in_, output.name), output.value)) {
      if (std::holds_alternative<DecomposeLowering>(*in_.definition(version).op->lower)) updates_.insert(version);
    }
  }

  [[nodiscard]] bool isDisabled(const TemplateChoice& choice) const {
    return contains(config_.disabled, std::string(kTemplatePrefix) + std::string(choice.name)) ||
           (choice.otherwise != nullptr && isDisabled(*choice.otherwise));
  }

  [[nodiscard]] bool isNamed(const TemplateChoice& choice) const { return contains(config_.preferred, std::string(choice.name)); }

  /// Whether enough is gained on this device, or a user prefers it. `all_tiled`: by kernels that are not far behind products.
  [[nodiscard]] bool isWorthwhile(const TemplateChoice& choice, const Node& node, bool all_tiled) const {
    if (isNamed(choice) || choice.gain == TemplateGain::Time || choice.gain == TemplateGain::TimeOfLarge) return true;
    if (choice.gain == TemplateGain::TimeOnGpus) return config_.profile.style == program::ExecutionStyle::Gpu;
    if (choice.gain == TemplateGain::TimeByTiles && all_tiled) return true;
    return choice.saved_elements(in_, node) >= (all_tiled ? cost::kLeastSaved : cost::kLeastSavedByStreams);
  }

  /// Whether an op by a template is one row on a GPU and small.
  [[nodiscard]] bool isSmallRow(const Graph& graph, const Node& node) const {
    const TemplateShape shape = std::get<TemplateLowering>(*node.op->lower).shape(graph, node);
    return config_.profile.style == program::ExecutionStyle::Gpu && shape.rows == shape.run && shape.operations < cost::kLeastOfLargeRow;
  }

  [[nodiscard]] bool takes(const TemplateChoice& choice, const Node& node) const {
    if (!config_.templates || (choice.needs_packed_dot && !config_.profile.packed_dot) || isDisabled(choice)) return false;
    std::vector<ValueId> operands;
    Builder trial = leavesFor(in_, node, operands);
    if (choice.build(trial, node, operands, usedOf(node)).empty()) return false;
    const Graph& made = trial.graph();
    bool all_tiled = true;
    for (const NodeId id : made.body().nodes) {
      if (!std::holds_alternative<TemplateLowering>(*made[id].op->lower)) continue;
      const std::optional<program::Plan> plan = planOf(made, made[id], config_);
      if (!plan) return false;
      if (choice.gain == TemplateGain::TimeOfLarge && !isNamed(choice) && isSmallRow(made, made[id])) return false;
      all_tiled = all_tiled && (std::holds_alternative<program::TiledPlan>(*plan) || std::holds_alternative<program::MatrixPlan>(*plan));
    }
    return isWorthwhile(choice, node, all_tiled);
  }

  [[nodiscard]] std::vector<bool> usedOf(const Node& node) const {
    std::vector<bool> used;
    for (const ValueId result : node.results) used.push_back(used_[result.index()]);
    return used;
  }

  const Graph& in_;
  const DecomposeConfig& config_;
  Rewriter rewriter_;
  std::vector<bool> used_;     ///< by value
  std::set<ValueId> updates_;  ///< results that are made in the bytes of a state
};

bool isLoop(const Node& node) { return std::holds_alternative<LoopLowering>(*node.op->lower); }

/// The loops that stay: not those inside of others, and none that the device is to do without.
Graph unrollLoops(const Graph& graph, bool keep) {
  if (std::ranges::none_of(graph.body().nodes, [&](NodeId id) { return isLoop(graph[id]); })) return graph;
  Rewriter rewriter(graph);
  for (const NodeId id : graph.body().nodes) {
    Node node = graph[id];
    if (isLoop(node)) {
      const LoopForm loop(node);
      node.attributes.set("body", NestedGraph(unrollLoops(loop.body(), false)));
      if (!keep || loop.iterations == 1) {
        const std::vector<ValueId> results = unrollLoop(rewriter.builder(), node, rewriter.mapped(node.operands));
        for (size_t i = 0; i < results.size(); ++i) rewriter.set(node.results[i], results[i]);
        continue;
      }
    }
    rewriter.copy(node);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

Result<Graph> replaceComposed(Graph current, const DecomposeConfig& config) {
  const auto isComposed = [](const Node& node) { return std::holds_alternative<DecomposeLowering>(*node.op->lower); };
  const auto holdsComposed = [&](const Graph& one) {
    return std::ranges::any_of(one.body().nodes, [&](NodeId id) { return isComposed(one[id]); });
  };
  // A decomposition may use ops that decompose themselves (cross_entropy -> log_softmax), so repeat until nothing is left.
  while (holdsComposed(current)) {
    LS_TRY(current, Decomposition(current, config).run());
  }
  for (const NodeId id : current.body().nodes) {
    Node& node = current.nodes[id.index()];
    if (!isLoop(node)) continue;
    LS_TRY(Graph body, replaceComposed(LoopForm(node).body(), config));
    node.attributes.set("body", NestedGraph(std::move(body)));
  }
  return current;
}

}  // namespace

Result<Graph> decompose(const Graph& graph, const DecomposeConfig& config) {
  const bool keep = !contains(config.disabled, std::string(kLoops));
  LS_TRY(Graph current, replaceComposed(unrollLoops(graph, keep), config));
  // Ops become loops, too, in the bodies of others as well. What is unrolled may be joined by ops that are composed.
  LS_TRY(current, replaceComposed(unrollLoops(current, keep), config));
  return updateWholeWords(current);
}

std::vector<std::string> decomposeChoices() {
  std::vector<std::string> names{std::string(kLoops)};
  for (const OpDef* op : allOps()) {
    const auto* lowering = std::get_if<DecomposeLowering>(&*op->lower);
    if (lowering == nullptr) continue;
    for (const TemplateChoice* choice = lowering->choice; choice != nullptr; choice = choice->otherwise) {
      const std::string name = std::string(kTemplatePrefix) + std::string(choice->name);
      if (!contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

}  // namespace lockstep::passes
