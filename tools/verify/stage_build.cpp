// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/stage_build.h"

#include <algorithm>
#include <utility>

#include "frontend/train/templates.h"
#include "ir/graph/op_def.h"
#include "passes/fuse/fuse.h"
#include "passes/kernel/kernel_pipeline.h"

namespace lockstep::tools {
namespace {

using passes::Form;
using passes::PassInfo;
using passes::Stage;

/// Stands for all kernel passes, which are looked at one by one.
constexpr std::string_view kKernelPasses = "kernels";
constexpr std::string_view kFuse = "fuse";

/// Those of these rows of the pipeline that follow a stage, in their order.
std::vector<PassInfo> rowsAfter(Stage stage, const std::vector<PassInfo>& all) {
  std::vector<PassInfo> rows;
  for (const PassInfo& row : all) {
    if (!row.before.has(stage)) continue;
    rows.push_back(row);
    stage = row.after;
  }
  return rows;
}

bool hasLeaf(const graph::Graph& graph, graph::LeafKind kind) {
  return std::ranges::any_of(graph.body().nodes, [&](graph::NodeId id) { return graph::leafKind(graph[id]) == kind; });
}

bool hasGroups(const graph::Graph& graph) {
  return std::ranges::any_of(graph.body().nodes, [&](graph::NodeId id) { return *graph[id].op->name == "group"; });
}

}  // namespace

Result<Stage> stageOf(const Form& form) {
  if (const auto* program = std::get_if<program::Program>(&form)) return passes::stageOf(*program);
  const auto& graph = std::get<graph::Graph>(form);
  if (hasLeaf(graph, graph::LeafKind::Parameter)) {
    return fail("bisect.stage", "the graph has parameters that are no views of a state: the step is not complete", {},
                "give a stage after 'optimizer' or 'bindParameters', such as 04-optimizer.graph");
  }
  if (hasGroups(graph)) return Stage::Grouped;
  return passes::illegalAt(Stage::Primitive, form).empty() ? Stage::Primitive : Stage::Updated;
}

std::vector<std::string> optionalPassesAfter(Stage stage) {
  std::vector<std::string> names;
  for (const PassInfo& row : rowsAfter(stage, passes::listPasses())) {
    if (row.disabling != passes::Disabling::Refused && row.name != kKernelPasses) names.emplace_back(row.name);
  }
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) names.emplace_back(pass.name);
  return names;
}

Result<BuiltProgram> buildFrom(const Form& form, passes::CompileOptions options, const PassChoice& choice) {
  options.templates = detail::templateSource();
  options.disabled = choice.disabled;
  // A form does not say whether it is of mixed precision. The passes for that change nothing else.
  if (!options.low) options.low = graph::DType::BF16;
  LS_TRY(const Stage stage, stageOf(form));
  BuiltProgram built;
  Form next = form;
  for (const PassInfo& row : rowsAfter(stage, passes::listPasses(options))) {
    const bool off = std::ranges::find(choice.disabled, row.name) != choice.disabled.end();
    if (off && row.disabling == passes::Disabling::LeavesOut) continue;
    if (row.name == "schedule") built.grouped = std::get<graph::Graph>(next);
    if (row.name == kFuse) built.fusable = std::get<graph::Graph>(next).nodes.size();
    if (row.name == kFuse && !off && choice.fused_nodes != SIZE_MAX) {
      LS_TRY(next, passes::fuse(std::get<graph::Graph>(next),
                                {.max_bindings = options.profile.max_storage_buffers, .joining = choice.fused_nodes}));
    } else {
      LS_TRY(next, passes::runPasses(std::move(next), {std::string(row.name)}, options));
    }
    if (row.name == "schedule") built.scheduled = std::get<program::Program>(next);
  }
  built.program = std::get<program::Program>(std::move(next));
  return built;
}

}  // namespace lockstep::tools
