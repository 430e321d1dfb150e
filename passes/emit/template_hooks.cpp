// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/template_hooks.h"

#include "passes/emit/loop_budget.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using kernel::Op;

std::vector<kernel::ValueId> openHook(kernel::Builder& b, std::string_view name) {
  for (kernel::Function& function : b.module().functions) {
    if (function.name != name) continue;
    const kernel::BlockId block = b.newBlock();
    function.body = block;
    b.setBlock(block);
    std::vector<kernel::ValueId> parameters;
    for (const kernel::Parameter& parameter : function.parameters) parameters.push_back(parameter.value);
    return parameters;
  }
  internalError("a kernel template lacks the hook '" + std::string(name) + "'");
}

PositionId placeInOutput(BodyEmitter& emitter, size_t output, const graph::Shape& space, PositionId here) {
  const graph::Shape& shape = emitter.body().shapeOf(emitter.body().outputs[output].value);
  return emitter.through(graph::reshapeMap(space, shape), shape, here);
}

void storeOutputs(BodyEmitter& emitter, const graph::Shape& space, PositionId here) {
  const std::vector<graph::Output>& outputs = emitter.body().outputs;
  std::vector<std::pair<PositionId, kernel::ValueId>> made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PositionId place = placeInOutput(emitter, i, space, here);
    made.emplace_back(place, emitter.value(outputs[i].value, place));
  }
  for (size_t i = 0; i < made.size(); ++i) emitter.store(i, made[i].first, made[i].second);
}

void fillWorkgroupIndex(kernel::Builder& b, const EmitQuery& query) {
  const std::vector<kernel::ValueId> group = openHook(b, "workgroup_index");
  kernel::ValueId flat = b.extract(group[0], 0u);
  if (query.groups[1] > 1) flat = b.make(Op::Add, {flat, b.make(Op::Mul, {b.extract(group[0], 1u), b.u32(query.groups[0])})});
  b.returnValue(flat);
}

Result<kernel::Module> withinRounds(const EmitQuery& query, const std::function<Result<kernel::Module>(bool)>& fill) {
  LS_TRY(kernel::Module module, fill(false));
  const auto most = static_cast<uint64_t>(plannedRounds(query.config.profile));
  if (query.config.profile.max_loop_iterations == 0 || roundsOf(module, most) <= most) return module;
  return fill(true);
}

Result<kernel::Module> withVectorBindings(
    const EmitQuery& query, int64_t width,
    const std::function<Result<kernel::Module>(const BodyBindings& bindings, std::set<uint32_t>& by_element)>& fill) {
  BodyBindings bindings = query.bindings;
  bindings.width = width;
  for (;;) {
    std::set<uint32_t> by_element;
    LS_TRY(kernel::Module module, fill(bindings, by_element));
    if (by_element.empty()) return module;
    bindings.scalars.insert(by_element.begin(), by_element.end());
  }
}

}  // namespace lockstep::passes
