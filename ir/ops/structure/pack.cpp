// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"

namespace lockstep::graph::pack_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const auto& offsets = c.attributes.get<std::vector<int64_t>>("offsets");
  int64_t total = c.attributes.get<int64_t>("total");
  for (const TensorType& part : c.operands) {
    if (part.dtype != DType::F32) return violated("pack", "C1", fmt::format("a part is {}, wanted f32", toString(part)));
  }
  if (offsets.size() != c.operands.size())
    return violated("pack", "C2", fmt::format("{} parts have {} offsets", c.operands.size(), offsets.size()));
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] % kParameterAlignment != 0)
      return violated("pack", "C3", fmt::format("offset {} is not a multiple of {}", offsets[i], kParameterAlignment));
    if (offsets[i] < end) return violated("pack", "C4", fmt::format("part {} starts at {}, before {}", i, offsets[i], end));
    if (offsets[i] > total || c.operands[i].shape.elementCount() > total - offsets[i])
      return violated("pack", "C4", fmt::format("part {} at {} does not lie within {} elements", i, offsets[i], total));
    end = offsets[i] + c.operands[i].shape.elementCount();
  }
  LS_CHECK(checkExtents("pack", "C5", {total}));
  return std::vector{f32({total})};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  const auto& offsets = g.node.attributes.get<std::vector<int64_t>>("offsets");
  std::vector<ValueId> cotangents;
  for (size_t i = 0; i < offsets.size(); ++i) {
    Shape shape = b.shapeOf(g.operands[i]);
    ValueId part = b.make("narrow", {g.cotangents[0]}, {{"axis", int64_t{0}}, {"start", offsets[i]}, {"length", shape.elementCount()}});
    cotangents.push_back(b.reshape(part, shape));
  }
  return cotangents;
}

std::vector<Tensor> evaluatePack(const EvaluateContext& c) {
  const auto& offsets = c.node.attributes.get<std::vector<int64_t>>("offsets");
  Tensor out{c.results[0], std::vector<double>(static_cast<size_t>(c.results[0].shape.elementCount()), 0.0)};
  for (size_t i = 0; i < offsets.size(); ++i)
    std::copy(c.operands[i]->data.begin(), c.operands[i]->data.end(), out.data.begin() + static_cast<ptrdiff_t>(offsets[i]));
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, std::vector<OperandCase> parts, std::vector<int64_t> offsets, int64_t total) {
    return OpCase{name, std::move(parts), {{"offsets", std::move(offsets)}, {"total", total}}, 0, kExactReason};
  };
  return {make("three", {{f32({3, 5})}, {f32({64})}, {f32({})}}, {0, 64, 128}, 192),
          make("gaps", {{f32({70})}, {f32({2})}}, {64, 256}, 300), make("one", {{f32({8, 8})}}, {0}, 64)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "pack",
    .summary = "Tensors written one after another into a flat one, each at its offset; the rest is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "parts are f32"},
                                            {"C2", "each part has an offset"},
                                            {"C3", "offsets are multiples of 64 elements"},
                                            {"C4", "parts lie in ascending order, without overlap, within the total"},
                                            {"C5", "the total is at least 1 and at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"parts..."},
    .attributes = ConstantList<AttributeDef>{{"offsets", AttributeKind::Integers, "first element of each part"},
                                             {"total", AttributeKind::Integer, "elements of the result"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = StorageLowering{},
    .alias = AliasPack{},
    .evaluate = evaluatePack,
    .cases = cases,
};

}  // namespace lockstep::graph::pack_op
