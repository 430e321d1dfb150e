// SPDX-License-Identifier: Apache-2.0
// A case of an op as a graph with random leaves: what the tests of this folder share.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ir/graph/evaluate.h"

namespace lockstep::graph::testing {

struct CaseGraph {
  Builder builder;
  std::vector<ValueId> operands;  ///< inputs named operand0, operand1, ..., or what they were cast to
  std::vector<ValueId> results;
  LeafValues leaves;
};

/// A tensor of random values that its type has.
Tensor randomTensor(const TensorType& type, double lo, double hi, std::mt19937& random);
/// One node of the op on inputs with random values. `floats` is what inputs of f32 are in memory: those of another type are cast.
CaseGraph buildCase(const OpDef& op, const OpCase& op_case, uint32_t seed = 1, DType floats = DType::F32);
ValueId addInput(Builder& builder, const std::string& name, const TensorType& type);
/// Adds sum(value * weight) with a random input `weight_name`; a f32 scalar.
ValueId weightedSum(Builder& builder, ValueId value, const std::string& weight_name, LeafValues& leaves, std::mt19937& random);
std::vector<Tensor> run(const Graph& graph, const LeafValues& leaves);

/// One case of one op, as the parameter of a test; its test name is "<op>_<case>".
struct NamedCase {
  const OpDef* op;
  OpCase op_case;
  [[nodiscard]] std::string name() const { return std::string(*op->name) + "_" + std::string(op_case.name); }
};
std::vector<NamedCase> namedCases(bool (*wanted)(const OpDef&));
/// For gtest's messages.
inline void PrintTo(const NamedCase& named, std::ostream* out) { *out << named.name(); }

}  // namespace lockstep::graph::testing
