// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/contract_hooks.h"

#include "passes/emit/template_hooks.h"
#include "passes/schedule/quad_operands.h"

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

namespace {

/// What is stored of neighbouring results of the contraction.
struct Neighbours {
  std::vector<kernel::ValueId> first;                ///< by output: the place of the first one
  std::vector<std::vector<kernel::ValueId>> values;  ///< by output
};

/// Computes what is fused into the stores, for the `sums` of `sums.size()` columns from a multiple of that on.
Neighbours valuesOf(kernel::Builder& b, BodyEmitter& emitter, const ContractNode& contract, kernel::ValueId batch, kernel::ValueId m,
                    kernel::ValueId column, std::span<const kernel::ValueId> sums) {
  const graph::Graph& body = emitter.body();
  const Shape space{contract.shape.batch, contract.shape.m, contract.shape.n};
  const auto run = static_cast<uint32_t>(sums.size());
  const std::vector<kernel::ValueId> columns = emitter.neighbours(b.make(Op::Div, {column, b.u32(run)}), run, run);
  Neighbours made{{}, std::vector<std::vector<kernel::ValueId>>(body.outputs.size())};
  for (uint32_t lane = 0; lane < run; ++lane) {
    emitter.pushScope();
    emitter.define(body[contract.node].results[0], sums[lane]);
    const PositionId here = emitter.atAxes(space, {batch, m, columns[lane]});
    for (size_t i = 0; i < made.values.size(); ++i) {
      const PositionId place = placeInOutput(emitter, i, space, here);
      made.values[i].push_back(emitter.value(body.outputs[i].value, place));
      if (lane == 0) made.first.push_back(emitter.linear(place));
    }
    emitter.popScope();
  }
  return made;
}

void store(BodyEmitter& emitter, const Neighbours& made) {
  for (size_t i = 0; i < made.values.size(); ++i) emitter.storeFrom(i, made.first[i], made.values[i]);
}

void storeOne(BodyEmitter& emitter, const ContractNode& contract, const std::vector<kernel::ValueId>& parameters) {
  const graph::Graph& body = emitter.body();
  const Shape space{contract.shape.batch, contract.shape.m, contract.shape.n};
  emitter.define(body[contract.node].results[0], parameters[3]);
  storeOutputs(emitter, space, emitter.atAxes(space, {parameters[0], parameters[1], parameters[2]}));
}

}  // namespace

void storeHook(kernel::Builder& b, BodyEmitter& emitter, const ContractNode& contract, int64_t run) {
  const std::vector<kernel::ValueId> parameters = openHook(b, storeOf(run));
  emitter.pushScope();
  if (run == 1) {
    storeOne(emitter, contract, parameters);
  } else {
    store(emitter, valuesOf(b, emitter, contract, parameters[0], parameters[1], parameters[2], std::span(parameters).subspan(3)));
  }
  b.returnVoid();
  emitter.popScope();
}

void storeQuadsHook(kernel::Builder& b, BodyEmitter& emitter, const ContractNode& contract) {
  const std::vector<kernel::ValueId> parameters = openHook(b, "store_quads");
  emitter.pushScope();
  std::vector<Neighbours> made;
  for (uint32_t quad = 0; quad < kQuad; ++quad) {
    std::vector<kernel::ValueId> sums;
    for (uint32_t i = 0; i < kQuad; ++i) sums.push_back(b.extract(parameters[3 + quad], i));
    made.push_back(valuesOf(b, emitter, contract, parameters[0], b.extract(parameters[1], quad), b.extract(parameters[2], quad), sums));
  }
  for (const Neighbours& each : made) store(emitter, each);
  b.returnVoid();
  emitter.popScope();
}

}  // namespace lockstep::passes
