// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;

ContractNode findContract(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    if (const auto* contract = std::get_if<ContractLowering>(&*body[id].op->lower)) return {id, contract->shape(body, body[id])};
  }
  internalError("a contract group has no contraction");
}

ScatterNode findScatter(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    if (const auto* scatter = std::get_if<ScatterLowering>(&*body[id].op->lower)) return {id, scatter->shape(body, body[id])};
  }
  internalError("a scatter group has no scatter");
}

TemplateNode findTemplate(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    if (const auto* lowering = std::get_if<TemplateLowering>(&*body[id].op->lower))
      return {id, lowering->shader, lowering->shape(body, body[id])};
  }
  internalError("a template group has no op with templates");
}

ScanSpace scanSpace(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    const auto* scan = std::get_if<ScanLowering>(&*body[id].op->lower);
    if (scan == nullptr) continue;
    const Shape& shape = body.shapeOf(body[id].operands[0]);
    auto axis = static_cast<size_t>(scan->axis(body, body[id]));
    ScanSpace space{.node = id, .length = shape.extent(axis), .inner = shape.strides()[axis], .is_total = scan->is_total};
    space.outer = shape.elementCount() / (space.length * space.inner);
    return space;
  }
  internalError("a scan group has no scan");
}

ReduceSpace reduceSpace(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    const Node& node = body[id];
    if (!std::holds_alternative<ReduceLowering>(*node.op->lower)) continue;
    const int64_t results = body.shapeOf(node.results[0]).elementCount();
    return {.node = id, .results = results, .length = body.shapeOf(node.operands[0]).elementCount() / results};
  }
  internalError("a reducing group has no reduction");
}

}  // namespace lockstep::passes
