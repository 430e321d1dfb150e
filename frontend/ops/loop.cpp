// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/loop.h"

#include <fmt/format.h>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/detached.h"
#include "frontend/trace/trace.h"
#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"

namespace lockstep {

using detail::Detached;
using detail::DetachedGraph;
using detail::raise;
using detail::Trace;

namespace {

int64_t stepsOf(const std::vector<Tensor>& sliced, const LoopOptions& options, const Where& where) {
  std::optional<int64_t> steps = options.steps;
  for (const Tensor& one : sliced) {
    if (one.rank(where) == 0) raise("scan.steps", "a scalar has no rows to slice", {one}, where, "give it a first axis of steps");
    const int64_t rows = one.extent(0, where);
    if (steps && *steps != rows)
      raise("scan.steps", fmt::format("{} steps were asked for, and this has {} rows", *steps, rows), {one}, where,
            "give all slices one row per step");
    steps = rows;
  }
  if (!steps) raise("scan.steps", "nothing says how many steps there are", {}, where, "give scan something to slice, or .steps");
  if (*steps < 1) raise("scan.steps", fmt::format("{} steps are none", *steps), {}, where, "ask for at least one");
  return *steps;
}

/// The carries as they come back, which have to be as they went in.
void checkCarry(const std::vector<Tensor>& before, const std::vector<Tensor>& after, const Where& where) {
  if (after.size() != before.size())
    raise("scan.carry", fmt::format("the body got {} tensors and carries {} on", before.size(), after.size()), {}, where,
          "return as many as it gets");
  for (size_t i = 0; i < before.size(); ++i) {
    if (after[i].type(where) == before[i].type(where)) continue;
    raise("scan.carry",
          fmt::format("carry {} is {} and becomes {}", i, toString(before[i].type(where)), toString(after[i].type(where))), {after[i]},
          where, "cast, reshape or broadcast what is carried at first, or what the body returns");
  }
}

/// A key for each step: the number of the step goes where the high word of the number of the run is, which no run reaches.
Tensor keysOf(Trace& trace, int64_t steps, const Where& where) {
  const Tensor numbers = add(arange(steps, DType::U32, where), 1.0, where);
  const Tensor words = pad(reshape(numbers, {steps, 1}, where), {{}, {.before = 3}}, 0, where);
  return add(reshape(trace.randomKey(), {1, 4}, where), words, where);
}

}  // namespace

LoopResult scan(const LoopBody& body, std::vector<Tensor> carry, std::vector<Tensor> sliced, LoopOptions options, Where where) {
  Trace& trace = Trace::require("scan", where);
  const int64_t steps = stepsOf(sliced, options, where);
  const size_t carries = carry.size();
  DetachedGraph made;
  {
    Detached detached(trace, "scan", where);
    std::vector<Tensor> inside, rows;
    for (const Tensor& one : carry) inside.push_back(detached.input(graph::carryName(inside.size()), one.type(where)));
    for (const Tensor& one : sliced) rows.push_back(detached.input(graph::sliceName(rows.size()), graph::rowType(one.type(where))));
    const LoopStep step = body(inside, rows);
    checkCarry(inside, step.carry, where);
    std::vector<Tensor> results = step.carry;
    results.insert(results.end(), step.results.begin(), step.results.end());
    if (results.empty()) raise("scan.carry", "the body gives nothing", {}, where, "return a carry or a result");
    std::vector<std::string> names;
    for (size_t i = 0; i < results.size(); ++i) names.push_back(i < carries ? graph::carryName(i) : graph::resultName(i - carries));
    made = detached.take(results, names);
  }
  if (made.is_random) {
    const graph::ValueId leaf = graph::findLeaf(made.graph, graph::kRandomKeyInput);
    made.graph.nodes[made.graph[leaf].node.index()].attributes.set("name", graph::sliceName(sliced.size()));
    sliced.push_back(keysOf(trace, steps, where));
  }
  std::vector<Tensor> operands = std::move(carry);
  operands.insert(operands.end(), sliced.begin(), sliced.end());
  for (const graph::ValueId value : made.captures) operands.push_back(trace.tensor(value));
  const std::vector<Tensor> stacks = trace.emitAll("loop", operands,
                                                   {{"iterations", steps},
                                                    {"carries", static_cast<int64_t>(carries)},
                                                    {"slices", static_cast<int64_t>(sliced.size())},
                                                    {"reverse", options.reverse},
                                                    {"body", graph::NestedGraph(std::move(made.graph))}},
                                                   where);
  LoopResult result;
  for (size_t i = 0; i < carries; ++i) {
    result.carry.push_back(squeeze(narrow(stacks[i], 0, options.reverse ? 0 : steps, 1, where), 0, where));
    result.history.push_back(narrow(stacks[i], 0, options.reverse ? 0 : 1, steps, where));
  }
  result.results.assign(stacks.begin() + static_cast<std::ptrdiff_t>(carries), stacks.end());
  return result;
}

}  // namespace lockstep
