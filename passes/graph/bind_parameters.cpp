// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/bind_parameters.h"

#include <fmt/format.h>

#include <unordered_map>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;

ValueId flatState(Builder& b, std::string_view name, int64_t elements) {
  ValueId leaf = b.make("state", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::vector{elements}}, {"init", 0.0}});
  b.name(leaf, std::string(name));
  return leaf;
}

ValueId copyBound(Rewriter& rewriter, const Graph& in, std::string_view state) {
  Builder& b = rewriter.builder();
  const ParameterLayout layout = layoutParameters(in.parameters);
  std::unordered_map<std::string_view, const ParameterLayout::Slot*> slots;
  for (const ParameterLayout::Slot& slot : layout.slots) slots.emplace(slot.name, &slot);
  ValueId flat;
  if (layout.total > 0) flat = flatState(b, state, layout.total);
  for (NodeId id : in.body().nodes) {
    const Node& node = in[id];
    if (leafKind(node) != LeafKind::Parameter) {
      rewriter.copy(node);
      continue;
    }
    const auto& name = node.attributes.get<std::string>("name");
    const auto found = slots.find(name);
    if (found == slots.end()) internalError(fmt::format("parameter '{}' is not declared", name));
    const ParameterLayout::Slot* slot = found->second;
    b.setLocation(node.location);
    ValueId slice = b.make("narrow", {flat}, {{"axis", int64_t{0}}, {"start", slot->offset}, {"length", slot->size}});
    ValueId view = b.reshape(slice, slot->type.shape);
    b.name(view, in[node.results[0]].name);
    rewriter.set(node.results[0], view);
  }
  b.setLocation(0);
  return flat;
}

Result<Graph> bindParameters(const Graph& graph, std::string_view state) {
  Rewriter rewriter(graph);
  (void)copyBound(rewriter, graph, state);
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
