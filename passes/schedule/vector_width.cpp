// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/vector_width.h"

#include <algorithm>

#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using namespace graph;
using program::ExecutionStyle;

int64_t vectorElements(const PlanQuery& q, int64_t elements) {
  int64_t bytes = 1;
  const auto look = [&](ValueId value) {
    if (q.body.shapeOf(value).elementCount() >= elements)
      bytes = std::max(bytes, static_cast<int64_t>(byteSize(q.body.typeOf(value).dtype)));
  };
  for (const ValueId input : inputsOf(q.body)) look(input);
  for (const Output& output : q.body.outputs) look(output.value);
  return std::min(cost::kVectorBytes / bytes, cost::kMostVectorElements);
}

int64_t vectorAlong(const PlanQuery& q, int64_t contiguous, int64_t elements, int64_t places) {
  if (q.profile.style != ExecutionStyle::Gpu || elementRounds(q.body) > 0 || q.body.nodes.size() > cost::kVectorBody) return 1;
  for (const int64_t width : {vectorElements(q, elements), cost::kVectorElements}) {
    if (contiguous % width == 0 && elements / width >= places) return width;
  }
  return 1;
}

int64_t wordElements(const PlanQuery& q) {
  int64_t words = 1;
  for (const Output& output : q.body.outputs) words = std::max(words, elementsPerWord(q.body.typeOf(output.value).dtype));
  return words;
}

}  // namespace lockstep::passes
