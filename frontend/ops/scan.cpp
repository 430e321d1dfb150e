// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/scan.h"

#include <fmt/format.h>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/detached.h"
#include "frontend/trace/trace.h"
#include "ir/graph/op_def.h"

namespace lockstep {

using detail::normaliseAxis;
using detail::raise;
using detail::Trace;

Tensor linear_recurrence(Tensor a, Tensor b, int64_t axis, RecurrenceOptions options, Where where) {
  Trace& trace = Trace::require("linear_recurrence", where);
  const int64_t along = normaliseAxis("linear_recurrence", axis, a, where);
  const std::vector<Tensor> operands{a, b};
  const std::vector<Tensor> made = trace.emitAll("linear_recurrence", operands, {{"axis", along}, {"reverse", options.reverse}}, where);
  if (!options.initial) return made[1];
  std::vector<int64_t> wanted = a.shape(where).extents();
  wanted.erase(wanted.begin() + along);
  if (options.initial->shape(where).extents() != wanted) {
    raise("linear_recurrence.initial",
          fmt::format("the initial state is {}, wanted {}", toString(options.initial->type(where)), toString(Shape(wanted))),
          {a, *options.initial}, where, "give it the shape of a without the axis");
  }
  return add(made[1], mul(made[0], expand_dims(*options.initial, along, where), where), where);
}

namespace {

/// The text of the function; `op` names the call in messages.
std::string recordCombine(Trace& trace, const std::string& op, const Combine& combine, const std::vector<Tensor>& elements,
                          const Where& where) {
  detail::DetachedGraph function;
  {
    detail::Detached detached(trace, op, where);
    const auto inputs = [&](std::string_view tuple) {
      std::vector<Tensor> made;
      for (const Tensor& element : elements)
        made.push_back(detached.input(fmt::format("{}{}", tuple, made.size()), {element.dtype(where), {}}));
      return made;
    };
    const std::vector<Tensor> earlier = inputs("earlier"), later = inputs("later");
    const std::vector<Tensor> results = combine(earlier, later);
    function = detached.take(results, std::vector<std::string>(results.size()));
  }
  if (!function.captures.empty() || function.is_random) {
    std::vector<Tensor> captured;
    for (const graph::ValueId value : function.captures) captured.push_back(trace.tensor(value));
    raise(op + ".capture", "the function reads a tensor that is not one of its arguments",
          captured.empty() ? std::initializer_list<Tensor>{} : std::initializer_list<Tensor>{captured.front()}, where,
          "pass the tensor as one more element, and return it unchanged");
  }
  return print(canonical(function.graph));
}

int64_t axisOfTuples(const std::string& op, const std::vector<Tensor>& elements, int64_t axis, const Where& where) {
  if (elements.empty()) raise(op + ".C1", "there are no operands", {}, where, "give it at least one tensor");
  return normaliseAxis(op, axis, elements[0], where);
}

}  // namespace

std::vector<Tensor> associative_scan(const Combine& combine, std::vector<Tensor> elements, int64_t axis, ScanOptions options, Where where) {
  const std::string op = "associative_scan";
  Trace& trace = Trace::require(op, where);
  const int64_t along = axisOfTuples(op, elements, axis, where);
  const std::string function = recordCombine(trace, op, combine, elements, where);
  return trace.emitAll(op, elements, {{"axis", along}, {"reverse", options.reverse}, {"combine", function}}, where);
}

std::vector<Tensor> associative_reduce(const Combine& combine, std::vector<Tensor> elements, int64_t axis, ReduceOptions options,
                                       Where where) {
  const std::string op = "associative_reduce";
  Trace& trace = Trace::require(op, where);
  const int64_t along = axisOfTuples(op, elements, axis, where);
  const std::string function = recordCombine(trace, op, combine, elements, where);
  std::vector<Tensor> totals = trace.emitAll(op, elements, {{"axis", along}, {"combine", function}}, where);
  for (Tensor& total : totals) {
    if (options.keep_dims) total = expand_dims(total, along, where);
  }
  return totals;
}

}  // namespace lockstep
