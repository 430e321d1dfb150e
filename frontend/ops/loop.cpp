// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/detached.h"
#include "frontend/trace/trace.h"
#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"
#include "ir/graph/state_versions.h"

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
    raise("scan.carry", fmt::format("carry {} is {} and becomes {}", i, toString(before[i].type(where)), toString(after[i].type(where))),
          {after[i]}, where, "cast, reshape or broadcast what is carried at first, or what the body returns");
  }
}

/// Whether a carry is changed by write_rows alone, which then happens in its place.
bool isWritten(const graph::Graph& body, size_t carry) {
  return versionsInPlace(body, findLeaf(body, graph::carryName(carry)), body.outputs[carry].value).size() > 1;
}

/// Makes states of the carries that are held in place and numbers the others anew. `is_held`: by carry.
void holdCarries(graph::Graph& body, const std::vector<bool>& is_held) {
  size_t carries = 0, held = 0;
  std::vector<graph::Output> next, states;
  for (size_t i = 0; i < is_held.size(); ++i) {
    const std::string name = is_held[i] ? graph::heldName(held++) : graph::carryName(carries++);
    // Names of carries only become smaller, so none is taken twice.
    graph::Node& leaf = body.nodes[body[graph::findLeaf(body, graph::carryName(i))].node.index()];
    leaf.attributes.set("name", name);
    graph::Output output{is_held[i] ? graph::OutputKind::NextState : graph::OutputKind::Result, name, body.outputs[i].value};
    (is_held[i] ? states : next).push_back(std::move(output));
    if (!is_held[i]) continue;
    leaf.op = &graph::op("state");
    leaf.attributes.set("init", 0.0);
  }
  std::ranges::copy(states, std::ranges::copy(next, body.outputs.begin()).out);
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
  std::vector<bool> is_held(carries);
  for (size_t i = 0; i < carries; ++i) is_held[i] = isWritten(made.graph, i);
  holdCarries(made.graph, is_held);
  const auto held = std::ranges::count(is_held, true);
  std::vector<Tensor> operands;
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < carries; ++i) {
      if (is_held[i] == wanted) operands.push_back(carry[i]);
    }
  }
  operands.insert(operands.end(), sliced.begin(), sliced.end());
  for (const graph::ValueId value : made.captures) operands.push_back(trace.tensor(value));
  graph::Attributes attributes{{"iterations", steps},
                               {"carries", static_cast<int64_t>(carries) - held},
                               {"slices", static_cast<int64_t>(sliced.size())},
                               {"reverse", options.reverse},
                               {"body", graph::NestedGraph(std::move(made.graph))}};
  if (held > 0) attributes.set("held", static_cast<int64_t>(held));
  const std::vector<Tensor> stacks = trace.emitAll("loop", operands, std::move(attributes), where);
  LoopResult result;
  size_t next_carry = 0, next_held = carries - static_cast<size_t>(held);
  for (size_t i = 0; i < carries; ++i) {
    const Tensor& made_of_it = stacks[is_held[i] ? next_held++ : next_carry++];
    result.carry.push_back(is_held[i] ? made_of_it : squeeze(narrow(made_of_it, 0, options.reverse ? 0 : steps, 1, where), 0, where));
    result.history.push_back(is_held[i] ? Tensor() : narrow(made_of_it, 0, options.reverse ? 0 : 1, steps, where));
  }
  result.results.assign(stacks.begin() + static_cast<std::ptrdiff_t>(carries), stacks.end());
  return result;
}

}  // namespace lockstep
