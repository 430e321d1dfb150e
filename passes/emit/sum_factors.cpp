// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/sum_factors.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"
#include "passes/schedule/row_inputs.h"

namespace lockstep::passes {

using namespace graph;

namespace {

class Finder {
 public:
  Finder(const Graph& body, int64_t columns, int64_t width) : body_(body), columns_(columns), width_(width) {}

  void split(ValueId given, SumFactors& found) const {
    const ViewedValue viewed = throughViews(body_, given);
    const bool is_itself = !isGuarded(given) && isLinearIdentity(viewed.map, body_.shapeOf(given), body_.shapeOf(viewed.base));
    const ValueId value = is_itself ? viewed.base : given;
    const Node& node = body_.definition(value);
    if (isShared(value)) {
      found.shared.push_back(value);
    } else if (*node.op->name == "mul") {
      for (const ValueId operand : node.operands) split(operand, found);
    } else {
      found.own.push_back(value);
    }
  }

 private:
  [[nodiscard]] bool isShared(ValueId value) const {
    const Node& node = body_.definition(value);
    if (std::holds_alternative<ViewLowering>(*node.op->lower)) {
      const int64_t shared = sharedByNeighbours(body_, value);
      return !isGuarded(value) && (shared >= columns_ || shared % width_ == 0);
    }
    const bool is_element = std::holds_alternative<ElementLowering>(*node.op->lower) && !node.operands.empty();
    return is_element && std::ranges::all_of(node.operands, [&](ValueId operand) { return isShared(operand); });
  }

  /// Whether a view on the way gives something else past the ends of what it shows.
  [[nodiscard]] bool isGuarded(ValueId value) const {
    for (; leafName(body_.definition(value)) == nullptr && isView(body_, value); value = body_.definition(value).operands[0]) {
      const Node& view = body_.definition(value);
      if (!std::get<ViewLowering>(*view.op->lower).map(body_, view).guards.empty()) return true;
    }
    return false;
  }

  const Graph& body_;
  int64_t columns_, width_;
};

}  // namespace

SumFactors factorsOf(const Graph& body, const Node& reduce, int64_t columns, int64_t width) {
  SumFactors found;
  const ValueId summed = reduce.operands[0];
  if (*reduce.op->name == "sum" && body.typeOf(summed).dtype == DType::F32 && width > 1) Finder(body, columns, width).split(summed, found);
  if (found.own.empty() || found.shared.empty()) return {.own = {summed}, .shared = {}};
  return found;
}

}  // namespace lockstep::passes
