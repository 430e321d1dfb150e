// SPDX-License-Identifier: Apache-2.0
// Contractions: the naive form (one invocation per result) and the templates of shaders/ with their hooks filled in.
#include <algorithm>

#include "passes/emit/contract_hooks.h"
#include "passes/emit/template_hooks.h"
#include "passes/kernel/unroll_loops.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using graph::Shape;
using kernel::Op;
using program::TemplatePlan;

Result<kernel::Module> emitKernel(const program::NaiveContractPlan& plan, const EmitQuery& query) {
  const graph::Graph& body = query.body;
  ContractNode contract = findContract(body);
  const graph::ContractShape& shape = contract.shape;
  const graph::Node& node = body[contract.node];
  kernel::Builder b;
  BodyEmitter emitter(body, b, query.bindings);
  auto lanes = static_cast<uint32_t>(plan.lanes);
  Entry entry = beginEntry(b, query, lanes);
  kernel::ValueId index = b.make(Op::Add, {b.make(Op::Mul, {entry.group, b.u32(lanes)}), entry.lane});
  b.ifThen(b.make(Op::Lt, {index, b.u32(static_cast<uint32_t>(shape.batch * shape.m * shape.n))}), [&] {
    emitter.pushScope();
    PositionId result = emitter.flat(Shape{shape.batch, shape.m, shape.n}, index);
    kernel::ValueId batch = emitter.axis(result, 0), m = emitter.axis(result, 1), n = emitter.axis(result, 2);
    kernel::ValueId sum = b.var(b.types().f32(), "sum", b.f32(0));
    forRange(b, b.u32(0), b.u32(static_cast<uint32_t>(shape.k)), 1, plan.unroll, "k", [&](kernel::ValueId k) {
      emitter.pushScope();
      PositionId at_a = emitter.atAxes(Shape{shape.batch, shape.m, shape.k}, {batch, m, k});
      PositionId at_b = emitter.atAxes(Shape{shape.batch, shape.k, shape.n}, {batch, k, n});
      kernel::ValueId a = emitter.value(node.operands[0], emitter.through(shape.a, body.shapeOf(node.operands[0]), at_a));
      kernel::ValueId right = emitter.value(node.operands[1], emitter.through(shape.b, body.shapeOf(node.operands[1]), at_b));
      b.store(sum, b.make(Op::Add, {b.load(sum), b.make(Op::Mul, {a, right})}));
      emitter.popScope();
    });
    emitter.define(node.results[0], b.load(sum));
    emitter.storeAll(index);
    emitter.popScope();
  });
  return b.take();
}

namespace {

// What the stores of a tile may grow to as one text. Left as a loop, they index the tile's sums by a counter, which keeps all of them in
// memory unless the driver unrolls it; llvmpipe does up to a limit that two more operations in an epilogue go beyond, for half the speed.
constexpr size_t kUnrolledStores = 1024;

// The loops over the block of one invocation; those along the inner axis are longer.
constexpr size_t kUnrolledBlock = 2048;

size_t sizeOf(const kernel::Module& module, kernel::BlockId block) {
  size_t count = 0;
  for (const kernel::InstructionId id : module[block].instructions) {
    ++count;
    for (const kernel::BlockId inner : module[id].blocks) count += sizeOf(module, inner);
  }
  return count;
}

/// With the loops that store the `tile` results of an invocation dissolved, where that stays short.
kernel::Module unrollStores(kernel::Module module, int64_t stores, std::string_view store) {
  const auto hook = std::ranges::find(module.functions, store, &kernel::Function::name);
  if (static_cast<size_t>(stores) * sizeOf(module, hook->body) > kUnrolledStores) return module;
  return unrollLoops(std::move(module), kUnrolledTile, store);
}

/// A template with its hooks filled in from the group.
Result<kernel::Module> fillTemplate(const TemplatePlan& plan, const EmitQuery& query, bool unrolled) {
  const graph::Graph& body = query.body;
  ContractNode contract = findContract(body);
  const graph::ContractShape& shape = contract.shape;
  const graph::Node& node = body[contract.node];

  std::vector<std::pair<std::string, double>> overrides = extentOverrides(shape);
  for (const auto& [name, value] : plan.overrides) overrides.emplace_back(name, static_cast<double>(value));
  if (query.config.templates == nullptr) return fail("template.name", "there are no kernel templates here, and a plan asks for one");
  LS_TRY(kernel::Module module, query.config.templates("matmul_" + plan.name, overrides));

  const bool is_register_rows = plan.name == kRegisterRows;
  if (is_register_rows) {
    module = unrollLoops(std::move(module), unrolled ? kUnrolledTile : kUnrolledBlock);
  } else if (unrolled) {
    module = unrollLoops(std::move(module), kUnrolledTile);
  }
  kernel::Builder b(std::move(module));
  BodyEmitter emitter(body, b, query.bindings);
  const auto operandHook = [&](std::string_view name, size_t operand, const Shape& space, const graph::IndexMap& map) {
    std::vector<kernel::ValueId> index = openHook(b, name);
    emitter.pushScope();
    PositionId position = emitter.through(map, body.shapeOf(node.operands[operand]), emitter.atAxes(space, index));
    b.returnValue(emitter.value(node.operands[operand], position));
    emitter.popScope();
  };
  const Shape left{shape.batch, shape.m, shape.k}, right{shape.batch, shape.k, shape.n};
  if (is_register_rows) {
    // The template gives an element of the inner axis as two numbers.
    const auto split = plan.overrides.find(kContractInner);
    const int64_t near = split == plan.overrides.end() ? 1 : split->second, far = shape.k / near;
    const Shape split_left{shape.batch, shape.m, far, near}, split_right{shape.batch, far, near, shape.n};
    operandHook("load_a", 0, split_left, compose(graph::reshapeMap(split_left, left), shape.a, left));
    operandHook("load_b", 1, split_right, compose(graph::reshapeMap(split_right, right), shape.b, right));
  } else {
    operandHook("load_a", 0, left, shape.a);
    operandHook("load_b", 1, right, shape.b);
  }

  const int64_t run = plan.overrides.contains(kContractPairs) ? kContractRun : 1;
  storeHook(b, emitter, contract, run);

  fillWorkgroupIndex(b, query);
  module = b.take();
  if (plan.unrolled_stores > 0) module = unrollStores(std::move(module), plan.unrolled_stores / run, storeOf(run));
  return kernel::canonical(module, true);
}

}  // namespace

Result<kernel::Module> emitKernel(const TemplatePlan& plan, const EmitQuery& query) {
  if (plan.name == kQuadTiled || plan.name == kMatrixTiled) return emitQuads(plan, query);
  return withinRounds(query, [&](bool unrolled) { return fillTemplate(plan, query, unrolled); });
}

}  // namespace lockstep::passes
