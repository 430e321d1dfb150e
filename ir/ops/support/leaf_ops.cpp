// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/leaf_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

Result<std::vector<TensorType>> inferLeaf(std::string_view op, const InferContext& context) {
  const auto& extents = context.attributes.get<std::vector<int64_t>>("shape");
  LS_CHECK(checkExtents(op, "C1", extents));
  return std::vector{TensorType{context.attributes.get<DType>("dtype"), Shape(extents)}};
}

ValueId makeDense(Builder& b, Constant constant) {
  std::vector<Constant>& constants = b.mutableGraph().constants;
  auto found = std::find(constants.begin(), constants.end(), constant);
  ConstantId id(static_cast<size_t>(found - constants.begin()));
  if (found == constants.end()) constants.push_back(std::move(constant));
  return b.make("dense", {}, {{"data", id}});
}

std::vector<Tensor> evaluateNoLeaf(const EvaluateContext& context) {
  internalError(fmt::format("'{}' has no value of its own", *context.node.op->name));
}

std::vector<OpCase> noCases() { return {}; }

}  // namespace lockstep::graph
