// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "ir/ops/support/common.h"

namespace lockstep::graph::einsum_op {
namespace {

using Labels = std::string;  // one letter per axis

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

/// "ij,jk->ik"; nothing when it is written otherwise.
std::optional<Equation> parseEquation(std::string_view text) {
  size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return std::nullopt;
  Equation equation{{}, Labels(text.substr(arrow + 2))};
  std::string_view left = text.substr(0, arrow);
  for (size_t comma = left.find(','); comma != std::string_view::npos; comma = left.find(',')) {
    equation.operands.emplace_back(left.substr(0, comma));
    left.remove_prefix(comma + 1);
  }
  equation.operands.emplace_back(left);
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  bool letters = std::all_of(equation.result.begin(), equation.result.end(), letter);
  for (const Labels& labels : equation.operands) letters = letters && std::all_of(labels.begin(), labels.end(), letter);
  return letters ? std::optional(equation) : std::nullopt;
}
Equation equationOf(const Attributes& attributes) { return *parseEquation(attributes.get<std::string>("equation")); }

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }
bool hasRepeated(Labels labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) != labels.end();
}
Labels keepIf(const Labels& labels, const std::function<bool(char)>& wanted) {
  Labels kept;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(kept), wanted);
  return kept;
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const std::string& text = c.attributes.get<std::string>("equation");
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated("einsum", "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  std::optional<Equation> equation = parseEquation(text);
  if (!equation || equation->operands.size() != c.operands.size() || c.operands.empty() || c.operands.size() > 2)
    return violated("einsum", "C2", fmt::format("'{}' is no equation of {} operands such as 'ij,jk->ik'", text, c.operands.size()));
  std::map<char, Dim> extents;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Labels& labels = equation->operands[i];
    const Shape& shape = c.operands[i].shape;
    if (labels.size() != shape.rank())
      return violated("einsum", "C3", fmt::format("'{}' has {} labels for an operand {}", labels, labels.size(), toString(shape)));
    if (hasRepeated(labels)) return violated("einsum", "C4", fmt::format("'{}' has a label twice", labels));
    for (size_t axis = 0; axis < labels.size(); ++axis) {
      auto [known, added] = extents.try_emplace(labels[axis], shape[axis]);
      if (!added && known->second != shape[axis]) {
        return violated("einsum", "C5",
                        fmt::format("label '{}' has the extents {} and {}", labels[axis], known->second.maximum(), shape.extent(axis)));
      }
    }
  }
  std::vector<Dim> dims;
  for (char label : equation->result) {
    auto found = extents.find(label);
    if (found == extents.end()) return violated("einsum", "C6", fmt::format("label '{}' of the result is in no operand", label));
    dims.push_back(found->second);
  }
  if (hasRepeated(equation->result)) return violated("einsum", "C6", fmt::format("the result '{}' has a label twice", equation->result));
  Shape shape(std::move(dims));
  LS_CHECK(checkExtents("einsum", "C7", shape.extents()));
  return std::vector{f32(std::move(shape))};
}

/// A value with a letter an axis.
struct Labelled {
  ValueId value;
  Labels labels;
};

int64_t extentOf(Builder& b, const Labelled& x, char label) { return b.shapeOf(x.value).extent(x.labels.find(label)); }

/// Sums over the labels that are not in `kept`.
Labelled summed(Builder& b, Labelled x, const std::function<bool(char)>& kept) {
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < x.labels.size(); ++axis) {
    if (!kept(x.labels[axis])) axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) return x;
  return {b.make("sum", {x.value}, {{"axes", axes}, {"keep_dims", false}}), keepIf(x.labels, kept)};
}

ValueId ordered(Builder& b, const Labelled& x, const Labels& order) {
  if (x.labels == order) return x.value;
  std::vector<int64_t> permutation;
  for (char label : order) permutation.push_back(static_cast<int64_t>(x.labels.find(label)));
  return b.permute(x.value, std::move(permutation));
}

/// x with the axes of each group of labels merged into one; empty groups have extent 1.
ValueId regrouped(Builder& b, const Labelled& x, const std::vector<Labels>& groups) {
  Labels order;
  std::vector<int64_t> extents;
  for (const Labels& group : groups) {
    order += group;
    extents.push_back(1);
    for (char label : group) extents.back() *= extentOf(b, x, label);
  }
  return b.reshape(ordered(b, x, order), Shape(extents));
}

/// The product of two operands as one batched matrix product.
Labelled contracted(Builder& b, const Labelled& x, const Labelled& y, const Labels& result) {
  Labels batch = keepIf(x.labels, [&](char l) { return has(y.labels, l) && has(result, l); });
  Labels rows = keepIf(x.labels, [&](char l) { return !has(y.labels, l); });
  Labels inner = keepIf(x.labels, [&](char l) { return has(y.labels, l) && !has(result, l); });
  Labels columns = keepIf(y.labels, [&](char l) { return !has(x.labels, l); });
  Labels made = batch + rows + columns;
  std::vector<int64_t> extents;
  for (char label : made) extents.push_back(extentOf(b, has(x.labels, label) ? x : y, label));
  ValueId product;
  if (inner.empty()) {
    ValueId left = regrouped(b, x, {batch, rows, {}}), right = regrouped(b, y, {batch, {}, columns});
    product = b.mul(left, right);
  } else if (batch.empty()) {
    ValueId left = regrouped(b, x, {rows, inner}), right = regrouped(b, y, {inner, columns});
    product = b.make("matmul", {left, right});
  } else {
    ValueId left = regrouped(b, x, {batch, rows, inner}), right = regrouped(b, y, {batch, inner, columns});
    product = b.make("matmul", {left, right});
  }
  return {b.reshape(product, Shape(extents)), made};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Equation equation = equationOf(node.attributes);
  const Labels& result = equation.result;
  Labelled x{operands[0], equation.operands[0]};
  if (operands.size() == 1) {
    x = summed(b, x, [&](char l) { return has(result, l); });
    return {ordered(b, x, result)};
  }
  Labelled y{operands[1], equation.operands[1]};
  x = summed(b, x, [&](char l) { return has(result, l) || has(equation.operands[1], l); });
  y = summed(b, y, [&](char l) { return has(result, l) || has(equation.operands[0], l); });
  return {ordered(b, contracted(b, x, y, result), result)};
}

// The equation with the labels of one operand and of the result exchanged; labels that only the operand has were summed, so it repeats.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Equation equation = equationOf(g.node.attributes);
  std::vector<ValueId> gradients;
  for (size_t i = 0; i < g.operands.size(); ++i) {
    const Labels& labels = equation.operands[i];
    Labels others = equation.result;
    std::string left = equation.result;
    std::vector<ValueId> operands{g.cotangents[0]};
    for (size_t other = 0; other < g.operands.size(); ++other) {
      if (other == i) continue;
      others += equation.operands[other];
      left += fmt::format(",{}", equation.operands[other]);
      operands.push_back(g.operands[other]);
    }
    Labels known = keepIf(labels, [&](char l) { return has(others, l); });
    ValueId d = b.make("einsum", operands, {{"equation", fmt::format("{}->{}", left, known)}});
    Shape shape = b.shapeOf(g.operands[i]);
    std::vector<int64_t> kept;
    for (size_t axis = 0; axis < labels.size(); ++axis) kept.push_back(has(others, labels[axis]) ? shape.extent(axis) : 1);
    gradients.push_back(b.broadcastTo(b.reshape(d, Shape(kept)), shape));
  }
  return gradients;
}

std::vector<Tensor> evaluateEinsum(const EvaluateContext& c) {
  Equation equation = equationOf(c.node.attributes);
  Labels all = equation.result;
  std::vector<int64_t> extents = c.results[0].shape.extents();
  std::vector<ElementReader> readers;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    readers.emplace_back(*c.operands[i]);
    for (size_t axis = 0; axis < equation.operands[i].size(); ++axis) {
      if (has(all, equation.operands[i][axis])) continue;
      all += equation.operands[i][axis];
      extents.push_back(c.operands[i]->type.shape.extent(axis));
    }
  }
  std::vector<int64_t> summed_extents(extents.begin() + static_cast<std::ptrdiff_t>(equation.result.size()), extents.end());
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    double sum = 0;
    std::vector<int64_t> over(summed_extents.size(), 0);
    do {
      double product = 1;
      for (size_t i = 0; i < readers.size(); ++i) {
        std::vector<int64_t> at;
        for (char label : equation.operands[i]) {
          size_t position = all.find(label);
          at.push_back(position < index.size() ? index[position] : over[position - index.size()]);
        }
        product *= readers[i](at);
      }
      sum += product;
    } while (nextIndex(over, summed_extents));
    return sum;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, std::string equation, std::vector<Shape> shapes) {
    OpCase made{name, {}, {{"equation", std::move(equation)}}, 2e-6, "sums of at most 100 products"};
    for (Shape& shape : shapes) made.operands.push_back({f32(std::move(shape)), -1, 1});
    return made;
  };
  return {make("product", "ij,jk->ik", {{4, 5}, {5, 6}}),
          make("batched", "bij,bkj->kbi", {{3, 4, 5}, {3, 6, 5}}),
          make("attention", "bthd,bshd->bhts", {{2, 3, 2, 4}, {2, 5, 2, 4}}),
          make("outer", "i,j->ji", {{5}, {7}}),
          make("dot", "i,i->", {{9}, {9}}),
          make("elements", "ij,ij->ij", {{3, 4}, {3, 4}}),
          make("transpose", "ijk->kij", {{2, 3, 4}}),
          make("sum", "ijk->j", {{2, 3, 4}}),
          make("lonely", "ijx,yjk->ki", {{2, 3, 4}, {3, 3, 5}})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "einsum",
    .summary = "Sums of products by labels, one letter per axis: a label that is not in the result is summed over.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "the equation has letters for one or two operands, an arrow and letters for the result"},
                                            {"C3", "each operand has as many labels as axes"},
                                            {"C4", "no operand has a label twice (a diagonal)"},
                                            {"C5", "axes of one label have one extent"},
                                            {"C6", "the result has labels of the operands, each once"},
                                            {"C7", "the element count of the result is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x..."},
    .attributes = ConstantList<AttributeDef>{{"equation", AttributeKind::String, "such as ij,jk->ik"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateEinsum,
    .cases = cases,
    .mixed = MixedRole::Product,
};

}  // namespace lockstep::graph::einsum_op
