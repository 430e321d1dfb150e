// SPDX-License-Identifier: Apache-2.0
// Contractions by the templates quad_tiled and matrix_tiled of shaders/: how each operand lies in memory decides how it is loaded.
#include <set>

#include "ir/kernel/spread_matrices.h"
#include "passes/emit/contract_hooks.h"
#include "passes/emit/template_hooks.h"
#include "passes/fuse/views.h"
#include "passes/kernel/unroll_loops.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/quad_operands.h"

namespace lockstep::passes {

using kernel::Op;
using program::TemplatePlan;

namespace {

void loadHook(kernel::Builder& b, BodyEmitter& emitter, const graph::Node& node, const QuadOperand& from) {
  const graph::ValueId value = node.operands[from.operand];
  std::vector<kernel::ValueId> index = openHook(b, "load_" + std::string(from.name) + (from.by_quads ? "4" : ""));
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

/// Whether no op of the group takes many operations.
bool isBrief(const graph::Graph& body) {
  return std::ranges::none_of(body.body().nodes, [&](graph::NodeId id) { return takesManyOperations(body[id]); });
}

/// With the bindings as they are; `by_element` gets those of which some element is read alone.
Result<kernel::Module> fillQuads(const TemplatePlan& plan, const EmitQuery& query, const BodyBindings& bindings,
                                 std::set<uint32_t>& by_element) {
  const graph::Graph& body = query.body;
  const ContractNode contract = findContract(body);
  const graph::ContractShape& shape = contract.shape;
  const graph::Node& node = body[contract.node];
  const auto [left, right] = quadOperands(body, contract);
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
  if (plan.name == kMatrixTiled) overrides.emplace_back("brief", isBrief(body) ? 1 : 0);
  if (query.config.templates == nullptr) return fail("template.name", "there are no kernel templates here, and a plan asks for one");
  LS_TRY(kernel::Module module, query.config.templates("matmul_" + plan.name, overrides));
  if (plan.name == kMatrixTiled) module = forUnits(std::move(module), plan);
  kernel::Builder b(unrollLoops(std::move(module), plan.name == kMatrixTiled ? kUnrolledMatrices : kUnrolledQuads));
  BodyEmitter emitter(body, b, bindings);
  loadHook(b, emitter, node, left);
  loadHook(b, emitter, node, right);
  storeHook(b, emitter, contract, run);
  if (plan.name == kMatrixTiled && run == kQuad) storeQuadsHook(b, emitter, contract);
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
