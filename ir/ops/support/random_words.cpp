// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/random_words.h"

#include <fmt/format.h>

#include "ir/support/philox.h"

namespace lockstep::graph {

using kernel::Op;

namespace {

// Parameters are drawn with counters whose second word has a clear top bit, so no random op repeats their numbers.
constexpr uint32_t kOpSalt = 0x80000000u;

uint32_t saltOf(const Node& node) { return static_cast<uint32_t>(node.attributes.get<int64_t>("salt")) | kOpSalt; }

/// High word of x * multiplier, from 16-bit halves: WGSL has no 64-bit product.
kernel::ValueId emitHighProduct(kernel::Builder& b, kernel::ValueId x, uint32_t multiplier) {
  kernel::ValueId half = b.u32(0xFFFFu), sixteen = b.u32(16), low = b.u32(multiplier & 0xFFFFu), high = b.u32(multiplier >> 16);
  kernel::ValueId x_low = b.make(Op::And, {x, half}), x_high = b.make(Op::Shr, {x, sixteen});
  kernel::ValueId carry = b.make(Op::Shr, {b.make(Op::Mul, {x_low, low}), sixteen});
  kernel::ValueId middle = b.make(Op::Add, {b.make(Op::Mul, {x_high, low}), carry});
  kernel::ValueId other = b.make(Op::Add, {b.make(Op::Mul, {x_low, high}), b.make(Op::And, {middle, half})});
  kernel::ValueId top = b.make(Op::Add, {b.make(Op::Mul, {x_high, high}), b.make(Op::Shr, {middle, sixteen})});
  return b.make(Op::Add, {top, b.make(Op::Shr, {other, sixteen})});
}

}  // namespace

Result<std::vector<TensorType>> inferRandom(std::string_view op, const InferContext& c) {
  if (c.operands[0] != u32({4})) return violated(op, "C1", fmt::format("the key is {}, wanted u32[4]", toString(c.operands[0])));
  const auto& extents = c.attributes.get<std::vector<int64_t>>("shape");
  LS_CHECK(checkExtents(op, "C2", extents));
  int64_t salt = c.attributes.get<int64_t>("salt");
  if (salt < 0 || salt > INT32_MAX) return violated(op, "C3", fmt::format("the salt {} is outside 0 to 2^31 - 1", salt));
  return std::vector{f32(Shape(extents))};
}

std::array<kernel::ValueId, 4> emitRandomWords(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  std::vector<int64_t> strides = e.graph().shapeOf(e.node().results[0]).strides();
  kernel::ValueId element = b.u32(0);
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    kernel::ValueId part = b.make(Op::Mul, {e.index()[axis], b.u32(static_cast<uint32_t>(strides[axis]))});
    element = b.make(Op::Add, {element, part});
  }
  std::array<kernel::ValueId, 2> key{e.operandAt(0, {b.u32(0)}), e.operandAt(0, {b.u32(1)})};
  kernel::ValueId step_low = e.operandAt(0, {b.u32(2)}), step_high = e.operandAt(0, {b.u32(3)});
  std::array<kernel::ValueId, 4> counter{element, b.u32(saltOf(e.node())), step_low, step_high};
  for (int round = 0; round < philox::kRounds; ++round) {
    kernel::ValueId high0 = emitHighProduct(b, counter[0], philox::kMultipliers[0]);
    kernel::ValueId high1 = emitHighProduct(b, counter[2], philox::kMultipliers[1]);
    kernel::ValueId low0 = b.make(Op::Mul, {counter[0], b.u32(philox::kMultipliers[0])});
    kernel::ValueId low1 = b.make(Op::Mul, {counter[2], b.u32(philox::kMultipliers[1])});
    kernel::ValueId first = b.make(Op::Xor, {b.make(Op::Xor, {high1, counter[1]}), key[0]});
    kernel::ValueId third = b.make(Op::Xor, {b.make(Op::Xor, {high0, counter[3]}), key[1]});
    counter = {first, low1, third, low0};
    for (size_t i = 0; i < 2; ++i) key[i] = b.make(Op::Add, {key[i], b.u32(philox::kWeyl[i])});
  }
  return counter;
}

kernel::ValueId emitUniform(kernel::Builder& b, kernel::ValueId word) {
  kernel::ValueId odd = b.make(Op::Or, {b.make(Op::Shr, {word, b.u32(8)}), b.u32(1)});
  return b.make(Op::Mul, {b.convert(b.types().f32(), odd), b.f32(0x1p-24f)});
}

std::vector<Tensor> evaluateRandom(const EvaluateContext& c, double (*function)(const std::array<uint32_t, 4>&)) {
  std::array<uint32_t, 4> key{};
  for (size_t i = 0; i < 4; ++i) key[i] = static_cast<uint32_t>(c.operands[0]->data[i]);
  Tensor out{c.results[0], {}};
  int64_t count = out.type.shape.elementCount();
  for (int64_t i = 0; i < count; ++i) {
    out.data.push_back(function(philox::words({static_cast<uint32_t>(i), saltOf(c.node), key[2], key[3]}, {key[0], key[1]})));
  }
  return {std::move(out)};
}

double uniformOf(uint32_t word) { return static_cast<double>((word >> 8) | 1u) * 0x1p-24; }

std::vector<OpCase> randomCases(double tolerance, std::string_view reason) {
  auto make = [&](std::string_view name, std::vector<int64_t> shape, int64_t salt) {
    return OpCase{name, {{u32({4}), 0, 4e9}}, {{"shape", std::move(shape)}, {"salt", salt}}, tolerance, reason};
  };
  return {make("vector", {259}, 0), make("four", {2, 3, 5, 7}, 3), make("scalar", {}, 1), make("large_salt", {64, 33}, 0x7FFFFFFF)};
}

}  // namespace lockstep::graph
