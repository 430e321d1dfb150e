// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/inner_axis.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Shorter runs are not worth a loop of their own.
constexpr int64_t kShortestRun = 3;

/// Goes through the views of an operand and collects by what its index along the inner axis is divided.
class Walk {
 public:
  Walk(const Graph& body, int32_t axis, int64_t extent) : body_(body), axis_(axis), extent_(extent) {}

  void visit(ValueId value, const IndexMap& map) {
    const Node& node = body_.definition(value);
    if (leafName(node) != nullptr) return;
    if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
      IndexMap path = compose(map, view->map(body_, node), body_.shapeOf(value));
      for (const IndexGuard& guard : path.guards) collect(guard.expr);
      path.guards.clear();
      for (const IndexExpr& expr : path.source) collect(expr);
      visit(node.operands[0], path);
    } else if (std::holds_alternative<ElementLowering>(*node.op->lower)) {
      for (const ValueId operand : node.operands) {
        if (body_.shapeOf(operand) == body_.shapeOf(value)) visit(operand, map);
      }
    }
  }

  [[nodiscard]] int64_t shortest() const { return shortest_; }

 private:
  void collect(const IndexExpr& expr) {
    for (const IndexTerm& term : expr.terms) {
      if (term.axis < 0) collect(term.inner.front());
      const bool divides = term.axis == axis_ && term.divide >= kShortestRun && extent_ % term.divide == 0;
      if (divides && (shortest_ == 1 || term.divide < shortest_)) shortest_ = term.divide;
    }
  }

  const Graph& body_;
  int32_t axis_;
  int64_t extent_, shortest_ = 1;
};

}  // namespace

int64_t innerRun(const Graph& body, const ContractNode& contract) {
  const ContractShape& shape = contract.shape;
  const Node& node = body[contract.node];
  const auto runOf = [&](size_t operand, int32_t axis, const IndexMap& map) {
    Walk walk(body, axis, shape.k);
    walk.visit(node.operands[operand], map);
    return walk.shortest();
  };
  const int64_t left = runOf(0, 2, shape.a), right = runOf(1, 1, shape.b);
  const int64_t both = left == 1 || right == 1 ? std::max(left, right) : std::gcd(left, right);
  return both < kShortestRun ? 1 : both;
}

}  // namespace lockstep::passes
