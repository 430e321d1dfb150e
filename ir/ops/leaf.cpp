// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/leaf.h"

#include <fmt/format.h>

namespace lockstep::graph {

Result<std::vector<TensorType>> inferLeaf(std::string_view op, const InferContext& context) {
  const auto& extents = context.attributes.get<std::vector<int64_t>>("shape");
  for (int64_t extent : extents) {
    if (extent < 1) return violated(op, "C1", fmt::format("extent {} of shape {} is below 1", extent, fmt::join(extents, "x")));
  }
  return std::vector{TensorType{context.attributes.get<DType>("dtype"), Shape(extents)}};
}

std::vector<Tensor> evaluateNoLeaf(const EvaluateContext& context) {
  internalError(fmt::format("'{}' has no value of its own", *context.node.op->name));
}

std::vector<OpCase> noCases() { return {}; }

}  // namespace lockstep::graph
