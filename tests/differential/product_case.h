// SPDX-License-Identifier: Apache-2.0
// Products for the templates of contractions: each order of the operands, odd extents, packed elements, what is fused in front and behind.
#pragma once

#include <random>
#include <string>

#include "frontend/train/graph_runner.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {

struct ProductCase {
  std::string name;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::string order = "nn";  ///< t: the operand is stored transposed
  bool fused = false;        ///< with a bias and gelu of an operand in front, and a bias and a residual behind
  graph::DType stored = graph::DType::F32;
  bool one_right = false;  ///< all batches share the right operand
  bool is_second = false;  ///< of two cases after one another
};
inline void PrintTo(const ProductCase& one, std::ostream* out) { *out << one.name; }

/// A product and the values of its leaves.
struct Product {
  graph::Graph graph;
  graph::LeafValues leaves;
};

inline Product makeProduct(const ProductCase& c) {
  using graph::DType;
  using graph::OutputKind;
  using graph::Shape;
  using graph::ValueId;
  graph::Builder b;
  graph::LeafValues leaves;
  std::mt19937 random{11};
  const auto leaf = [&](const std::string& name, const Shape& shape, DType dtype) {
    leaves.emplace(name, graph::testing::randomTensor({dtype, shape}, -1, 1, random));
    const ValueId value = graph::testing::addInput(b, name, {dtype, shape});
    return dtype == DType::F32 ? value : b.make("cast", {value}, {{"dtype", DType::F32}});
  };
  const auto operand = [&](const std::string& name, int64_t batch, int64_t rows, int64_t columns, bool turned) {
    if (!turned) return leaf(name, Shape{batch, rows, columns}, c.stored);
    return b.make("permute", {leaf(name, Shape{batch, columns, rows}, c.stored)}, {{"permutation", std::vector<int64_t>{0, 2, 1}}});
  };
  ValueId left = operand("a", c.batch, c.m, c.k, c.order[0] == 't');
  const ValueId right = operand("b", c.one_right ? 1 : c.batch, c.k, c.n, c.order[1] == 't');
  if (c.fused) left = b.make("gelu", {b.add(left, leaf("shift", Shape{c.k}, DType::F32))});
  ValueId out = b.make("matmul", {left, right});
  if (c.fused) out = b.add(b.add(out, leaf("bias", Shape{c.n}, DType::F32)), leaf("residual", Shape{c.batch, c.m, c.n}, DType::F32));
  if (c.stored != DType::F32) out = b.make("cast", {out}, {{"dtype", c.stored}});
  b.output(OutputKind::Result, "out", out);
  return {.graph = b.graph(), .leaves = std::move(leaves)};
}

}  // namespace lockstep
