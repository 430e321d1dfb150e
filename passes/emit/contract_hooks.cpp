// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/contract_hooks.h"

#include "passes/emit/template_hooks.h"

namespace lockstep::passes {

using graph::Shape;
using kernel::Op;

std::vector<std::pair<std::string, double>> extentOverrides(const graph::ContractShape& shape) {
  return {{"batches", static_cast<double>(shape.batch)},
          {"m_extent", static_cast<double>(shape.m)},
          {"n_extent", static_cast<double>(shape.n)},
          {"k_extent", static_cast<double>(shape.k)}};
}

std::string_view storeOf(int64_t run) { return run == 4 ? "store_quad" : run == 2 ? "store_pair" : "store_c"; }

void storeHook(kernel::Builder& b, BodyEmitter& emitter, const ContractNode& contract, int64_t run) {
  const graph::Graph& body = emitter.body();
  const Shape space{contract.shape.batch, contract.shape.m, contract.shape.n};
  const std::vector<kernel::ValueId> parameters = openHook(b, storeOf(run));
  emitter.pushScope();
  std::vector<kernel::ValueId> columns{parameters[2]};
  if (run > 1) columns = emitter.neighbours(b.make(Op::Div, {parameters[2], b.u32(static_cast<uint32_t>(run))}), run, run);
  std::vector<PositionId> first(body.outputs.size());
  std::vector<std::vector<kernel::ValueId>> values(body.outputs.size());
  for (size_t lane = 0; lane < columns.size(); ++lane) {
    emitter.pushScope();
    emitter.define(body[contract.node].results[0], parameters[3 + lane]);
    const PositionId here = emitter.atAxes(space, {parameters[0], parameters[1], columns[lane]});
    for (size_t i = 0; i < values.size(); ++i) {
      const Shape& shape = body.shapeOf(body.outputs[i].value);
      const PositionId position = emitter.through(graph::reshapeMap(space, shape), shape, here);
      if (lane == 0) first[i] = position;
      values[i].push_back(emitter.value(body.outputs[i].value, position));
    }
    if (lane + 1 < columns.size()) emitter.popScope();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (run == 1) {
      emitter.store(i, first[i], values[i].front());
    } else {
      emitter.storeFrom(i, emitter.linear(first[i]), values[i]);
    }
  }
  emitter.popScope();
  b.returnVoid();
  emitter.popScope();
}

}  // namespace lockstep::passes
