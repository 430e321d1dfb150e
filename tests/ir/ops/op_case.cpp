// SPDX-License-Identifier: Apache-2.0
#include "tests/ir/ops/op_case.h"

#include <cmath>

namespace lockstep::graph::testing {

Tensor randomTensor(const TensorType& type, double lo, double hi, std::mt19937& random) {
  Tensor tensor{type, {}};
  // Not std::uniform_*_distribution, whose numbers differ between standard libraries.
  for (int64_t i = 0; i < type.shape.elementCount(); ++i) {
    double unit = static_cast<double>(random()) / 0x1p32;
    tensor.data.push_back(isFloat(type.dtype) ? roundedTo(type.dtype, lo + unit * (hi - lo)) : std::floor(lo + unit * (hi - lo + 1)));
  }
  return tensor;
}

ValueId addInput(Builder& builder, const std::string& name, const TensorType& type) {
  return builder.make("input", {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
}

CaseGraph buildCase(const OpDef& op, const OpCase& op_case, uint32_t seed, DType floats) {
  CaseGraph made;
  std::mt19937 random(seed);
  for (const OperandCase& operand : op_case.operands) {
    const std::string name = "operand" + std::to_string(made.operands.size());
    const bool is_cast = operand.type.dtype == DType::F32 && floats != DType::F32;
    const TensorType stored{is_cast ? floats : operand.type.dtype, operand.type.shape};
    const ValueId input = addInput(made.builder, name, stored);
    made.operands.push_back(is_cast ? made.builder.make("cast", {input}, {{"dtype", DType::F32}}) : input);
    made.leaves.emplace(name, randomTensor(stored, operand.lo, operand.hi, random));
  }
  made.results = made.builder.makeAll(*op.name, made.operands, op_case.attributes);
  return made;
}

ValueId weightedSum(Builder& builder, ValueId value, const std::string& weight_name, LeafValues& leaves, std::mt19937& random) {
  TensorType type = builder.typeOf(value);
  leaves.emplace(weight_name, randomTensor(type, -1, 1, random));
  ValueId product = builder.mul(value, addInput(builder, weight_name, type));
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < type.shape.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes.empty() ? product : builder.make("sum", {product}, {{"axes", axes}, {"keep_dims", false}});
}

std::vector<Tensor> run(const Graph& graph, const LeafValues& leaves) { return evaluate(graph, leaves).orThrow(); }

std::vector<NamedCase> namedCases(bool (*wanted)(const OpDef&)) {
  std::vector<NamedCase> named;
  for (const OpDef* op : allOps()) {
    if (!wanted(*op)) continue;
    for (OpCase& op_case : (*op->cases)()) named.push_back({op, std::move(op_case)});
  }
  return named;
}

}  // namespace lockstep::graph::testing
