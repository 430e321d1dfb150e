// SPDX-License-Identifier: Apache-2.0
#include "passes/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/graph/op_def.h"
#include "ir/support/text.h"

namespace lockstep::passes {

using graph::Graph;
using graph::Node;
using program::Program;

namespace {

template <class Alternative, class... All>
constexpr Set bitOf(const std::variant<All...>*) {
  Set bit = 0, next = 1;
  ((bit |= std::is_same_v<Alternative, All> ? next : 0, next <<= 1), ...);
  return bit;
}
template <class... Alternatives>
constexpr Set kSetOf = (bitOf<Alternatives>(static_cast<const graph::Lowering*>(nullptr)) | ...);

constexpr Set kPrimitives = kSetOf<graph::ElementLowering, graph::ViewLowering, graph::ReduceLowering, graph::ScanLowering,
                                   graph::ScatterLowering, graph::ContractLowering, graph::TemplateLowering>;
constexpr Set kStorage = kSetOf<graph::StorageLowering, graph::KernelLowering, graph::LoopLowering>;
constexpr Set kComposed = kSetOf<graph::DecomposeLowering>;
// Views of what is stored stay outside groups.
constexpr Set kGroups = kSetOf<graph::RegionLowering, graph::ViewLowering>;

constexpr std::array<StageRule, 9> kRules{
    StageRule{.stage = Stage::Traced, .name = "traced", .lowerings = kPrimitives | kStorage | kComposed},
    StageRule{.stage = Stage::Differentiated, .name = "differentiated", .lowerings = kPrimitives | kStorage | kComposed},
    StageRule{.stage = Stage::Updated, .name = "updated", .lowerings = kPrimitives | kStorage | kComposed},
    StageRule{.stage = Stage::Primitive, .name = "primitive", .lowerings = kPrimitives | kStorage},
    StageRule{.stage = Stage::Grouped, .name = "grouped", .lowerings = kGroups | kStorage, .in_groups = kPrimitives},
    StageRule{.stage = Stage::Scheduled, .name = "scheduled", .is_program = true},
    StageRule{.stage = Stage::Planned, .name = "planned", .is_program = true, .placed = true},
    StageRule{.stage = Stage::Emitted, .name = "emitted", .is_program = true, .placed = true, .emitted = true},
    StageRule{.stage = Stage::Optimized, .name = "optimized", .is_program = true, .placed = true, .emitted = true}};
static_assert([] {
  for (size_t i = 0; i < kRules.size(); ++i) {
    if (static_cast<size_t>(kRules[i].stage) != i) return false;
  }
  return true;
}());

const StageRule& ruleOf(Stage stage) { return kRules[static_cast<size_t>(stage)]; }

/// Why a node is at home at another stage and not here.
std::string_view whyNot(const Node& node) {
  const Set bit = Set{1} << node.op->lower->index();
  if ((bit & kComposed) != 0) return "which stands for other ops";
  if ((bit & kSetOf<graph::RegionLowering>) != 0) return "which is for later passes";
  return "which has to be in a group";
}

std::string illegal(const StageRule& rule, const Graph& graph);

std::string illegalNode(const StageRule& rule, Set allowed, const Graph& graph, const Node& node) {
  if ((allowed & (Set{1} << node.op->lower->index())) == 0) return fmt::format("holds '{}', {}", *node.op->name, whyNot(node));
  for (const auto& [name, attribute] : node.attributes.items()) {
    const auto* nested = std::get_if<graph::NestedGraph>(&attribute);
    const bool is_loop = std::holds_alternative<graph::LoopLowering>(*node.op->lower);
    if (nested == nullptr || !is_loop) continue;
    if (std::string found = illegal(rule, **nested); !found.empty()) return found;
  }
  for (const graph::RegionId region : node.regions) {
    for (const graph::NodeId member : graph[region].nodes) {
      if (std::string found = illegalNode(rule, rule.in_groups, graph, graph[member]); !found.empty()) return found;
    }
  }
  return {};
}

std::string illegal(const StageRule& rule, const Graph& graph) {
  if (rule.is_program) return "is a graph";
  for (const graph::NodeId id : graph.body().nodes) {
    if (std::string found = illegalNode(rule, rule.lowerings, graph, graph[id]); !found.empty()) return found;
  }
  return {};
}

bool isEmitted(const program::Kernel& kernel) { return std::holds_alternative<kernel::Module>(kernel.code); }
bool isPlaced(const program::Buffer& buffer) { return buffer.arena.valid(); }

std::string illegal(const StageRule& rule, const Program& program) {
  if (!rule.is_program) return "is a scheduled program";
  if (rule.placed) {
    const auto found = std::ranges::find_if_not(program.buffers, isPlaced);
    if (found != program.buffers.end()) return fmt::format("holds buffer '{}', which has no place", found->name);
  }
  if (rule.emitted) {
    const auto found = std::ranges::find_if_not(program.kernels, isEmitted);
    if (found != program.kernels.end()) return fmt::format("holds kernel '{}', which is only planned", found->name);
  }
  return {};
}

}  // namespace

const std::array<StageRule, 9>& stageRules() { return kRules; }

std::string_view toString(Stage stage) { return ruleOf(stage).name; }

std::string illegalAt(Stage stage, const Form& form) {
  return std::visit([&](const auto& one) { return illegal(ruleOf(stage), one); }, form);
}

Stage stageOf(const Program& program) {
  if (std::ranges::all_of(program.kernels, isEmitted)) return Stage::Emitted;
  return std::ranges::all_of(program.buffers, isPlaced) ? Stage::Planned : Stage::Scheduled;
}

std::string print(const Form& form) {
  return std::visit([](const auto& one) { return print(one); }, form);
}

Result<Form> parseForm(std::string_view text, const std::string& file_name) {
  // A program holds graphs; a graph holds no program.
  if (text.find("lockstep.program") < text.find("lockstep.graph")) {
    LS_TRY(Program program, program::parse(text, file_name));
    if (const Status valid = program::validateStructure(program); !valid.ok()) {
      return pointInto(valid.failure(), "program", print(program), text, file_name);
    }
    return Form(std::move(program));
  }
  LS_TRY(Graph graph, graph::parse(text, file_name));
  if (const Status valid = graph::validate(graph); !valid.ok()) {
    return pointInto(valid.failure(), "graph", graph::print(graph), text, file_name);
  }
  return Form(std::move(graph));
}

}  // namespace lockstep::passes
