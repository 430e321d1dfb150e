// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/waiting.h"

#include <algorithm>
#include <iterator>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

namespace {

constexpr int64_t kMostShown = 16;  ///< times what a view shows, of which so much is kept

}  // namespace

std::vector<ValueId> waitFor(Builder& builder, std::span<const ValueId> values, std::span<const ValueId> others) {
  std::vector<ValueId> held;
  for (const ValueId value : values) {
    std::vector<NodeId> views;
    ValueId shown = value;
    while (std::holds_alternative<ViewLowering>(*builder.graph().definition(shown).op->lower)) {
      views.push_back(builder.graph()[shown].node);
      shown = builder.graph()[views.back()].operands[0];
    }
    // Where it shows little of it, a copy takes less memory than what is kept.
    if (kMostShown * builder.shapeOf(value).elementCount() < builder.shapeOf(shown).elementCount()) {
      views.clear();
      shown = value;
    }
    std::vector<ValueId> read{shown};
    std::ranges::copy_if(others, std::back_inserter(read), [](ValueId other) { return other.valid(); });
    ValueId made = builder.make("barrier", std::move(read));
    for (size_t i = views.size(); i-- > 0;) {
      const Node view = builder.graph()[views[i]];
      made = builder.make(*view.op->name, {made}, view.attributes);
    }
    held.push_back(made);
  }
  return held;
}

}  // namespace lockstep::graph
