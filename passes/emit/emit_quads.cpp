// SPDX-License-Identifier: Apache-2.0
// Contractions by the templates quad_tiled and matrix_tiled of shaders/: how each operand lies in memory decides how it is loaded.
#include <algorithm>
#include <set>

#include "ir/kernel/spread_matrices.h"
#include "passes/emit/contract_hooks.h"
#include "passes/emit/template_hooks.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/kernel/unroll_loops.h"
#include "passes/schedule/choosers.h"

namespace lockstep::passes {

using graph::Shape;
using kernel::Op;
using program::TemplatePlan;

namespace {

constexpr int64_t kQuad = 4;

/// How an operand of a product is read. The space of its index is (batch, rows, columns).
struct QuadOperand {
  std::string name;
  size_t operand = 0;
  Shape space;
  graph::IndexMap map;      ///< from an index of the space to one of the operand
  bool along_rows = false;  ///< neighbours in memory are neighbours along the rows, which are the last axis of the space then
  bool by_quads = false;    ///< and every quad is one of memory
};

/// Whether neighbours along the last axis of the space are quads of an input, through views and element by element.
bool readsQuads(const graph::Graph& body, graph::ValueId value, const graph::IndexMap& map, const Shape& space) {
  if (space.extent(2) % kQuad != 0) return false;
  const graph::Node& node = body.definition(value);
  if (graph::leafName(node) != nullptr)
    return laneForm(linearOffset(map, space, body.shapeOf(value)), space, kQuad) == LaneForm::Neighbours;
  if (const auto* view = std::get_if<graph::ViewLowering>(&*node.op->lower)) {
    const graph::IndexMap next = view->map(body, node);
    return next.guards.empty() && readsQuads(body, node.operands[0], compose(map, next, body.shapeOf(value)), space);
  }
  return std::holds_alternative<graph::ElementLowering>(*node.op->lower) && std::ranges::any_of(node.operands, [&](graph::ValueId operand) {
           return body.shapeOf(operand) == body.shapeOf(value) && readsQuads(body, operand, map, space);
         });
}

bool hasStrideOne(const graph::IndexExpr& offset, int32_t axis) {
  return std::ranges::find(offset.terms, graph::IndexTerm{.coefficient = 1, .axis = axis, .inner = {}}) != offset.terms.end();
}

QuadOperand quadOperand(const graph::Graph& body, const graph::Node& node, std::string name, size_t operand, const Shape& space,
                        const graph::IndexMap& map) {
  const graph::ValueId value = node.operands[operand];
  QuadOperand straight{.name = std::move(name), .operand = operand, .space = space, .map = map};
  straight.by_quads = readsQuads(body, value, map, space);
  if (straight.by_quads) return straight;
  QuadOperand turned = straight;
  turned.along_rows = true;
  turned.space = Shape{space.extent(0), space.extent(2), space.extent(1)};
  graph::IndexMap swap = graph::identityMap(3);
  std::swap(swap.source[1], swap.source[2]);
  turned.map = compose(swap, map, space);
  turned.by_quads = readsQuads(body, value, turned.map, turned.space);
  const graph::IndexExpr offset = linearOffset(map, space, body.shapeOf(value));
  return turned.by_quads || (hasStrideOne(offset, 1) && !hasStrideOne(offset, 2)) ? turned : straight;
}

void loadHook(kernel::Builder& b, BodyEmitter& emitter, const graph::Node& node, const QuadOperand& from) {
  const graph::ValueId value = node.operands[from.operand];
  std::vector<kernel::ValueId> index = openHook(b, "load_" + from.name + (from.by_quads ? "4" : ""));
  if (from.along_rows) std::swap(index[1], index[2]);
  emitter.pushScope();
  const auto element = [&] {
    return emitter.value(value, emitter.through(from.map, emitter.body().shapeOf(value), emitter.atAxes(from.space, index)));
  };
  if (from.by_quads) {
    std::vector<kernel::ValueId> elements;
    for (const kernel::ValueId number : emitter.neighbours(b.make(Op::Div, {index[2], b.u32(kQuad)}), kQuad, kQuad)) {
      index[2] = number;
      elements.push_back(element());
    }
    b.returnValue(b.construct(b.types().vector(kernel::Scalar::F32, kQuad), elements));
  } else {
    b.returnValue(element());
  }
  emitter.popScope();
}

/// The template is written with f16; units for bf16 take the same bits of memory. Both need subgroups of the size that the plan counts on.
kernel::Module forUnits(kernel::Module module, const TemplatePlan& plan) {
  for (kernel::Function& function : module.functions) {
    if (function.workgroup_size) function.subgroup_size = static_cast<uint32_t>(plan.overrides.at("lanes"));
  }
  if (plan.overrides.at(std::string(kMatrixBrain)) == 0) return module;
  return kernel::withComponents(std::move(module), kernel::Scalar::F16, kernel::Scalar::BF16);
}

/// With the bindings as they are; `by_element` gets those of which some element is read alone.
Result<kernel::Module> fillQuads(const TemplatePlan& plan, const EmitQuery& query, const BodyBindings& bindings,
                                 std::set<uint32_t>& by_element) {
  const graph::Graph& body = query.body;
  const ContractNode contract = findContract(body);
  const graph::ContractShape& shape = contract.shape;
  const graph::Node& node = body[contract.node];
  const QuadOperand left = quadOperand(body, node, "a", 0, Shape{shape.batch, shape.m, shape.k}, shape.a);
  const QuadOperand right = quadOperand(body, node, "b", 1, Shape{shape.batch, shape.k, shape.n}, shape.b);
  const int64_t run = shape.n % kQuad == 0 ? kQuad : plan.overrides.contains(kContractPairs) ? kContractRun : 1;

  std::vector<std::pair<std::string, double>> overrides = extentOverrides(shape);
  overrides.emplace_back("a_along_m", left.along_rows ? 1 : 0);
  overrides.emplace_back("b_along_k", right.along_rows ? 1 : 0);
  overrides.emplace_back("vector_a", left.by_quads ? 4 : 1);
  overrides.emplace_back("vector_b", right.by_quads ? 4 : 1);
  overrides.emplace_back("run", static_cast<double>(run));
  for (const auto& [name, value] : plan.overrides) {
    if (name != kContractPairs) overrides.emplace_back(name, static_cast<double>(value));
  }
  if (query.config.templates == nullptr) return fail("template.name", "there are no kernel templates here, and a plan asks for one");
  LS_TRY(kernel::Module module, query.config.templates("matmul_" + plan.name, overrides));
  if (plan.name == kMatrixTiled) module = forUnits(std::move(module), plan);
  kernel::Builder b(unrollLoops(std::move(module), plan.name == kMatrixTiled ? kUnrolledMatrices : kUnrolledQuads));
  BodyEmitter emitter(body, b, bindings);
  loadHook(b, emitter, node, left);
  loadHook(b, emitter, node, right);
  storeHook(b, emitter, contract, run);
  fillWorkgroupIndex(b, query);
  by_element = emitter.readByElement();
  return kernel::canonical(b.take(), true);
}

}  // namespace

Result<kernel::Module> emitQuads(const TemplatePlan& plan, const EmitQuery& query) {
  return withVectorBindings(query, kQuad, [&](const BodyBindings& bindings, std::set<uint32_t>& by_element) {
    return fillQuads(plan, query, bindings, by_element);
  });
}

}  // namespace lockstep::passes
