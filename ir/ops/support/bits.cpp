// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/bits.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::graph {
namespace {

constexpr std::string_view kBitsReason = "bits are moved or combined, never rounded";

uint32_t bitsOf(double value) { return static_cast<uint32_t>(static_cast<int64_t>(value)); }

OperandCase whole(DType dtype, Shape shape) {
  const IntegerRange range = *rangeOf(dtype);
  return {{dtype, std::move(shape)}, static_cast<double>(range.lo), static_cast<double>(range.hi)};
}

}  // namespace

Result<std::vector<TensorType>> inferShift(std::string_view op, const InferContext& context) {
  const TensorType &x = context.operands[0], &count = context.operands[1];
  if (x.dtype != DType::I32 && x.dtype != DType::U32)
    return violated(op, "C1", fmt::format("x is {}, wanted i32 or u32", toString(x.dtype)));
  if (count.dtype != DType::U32) return violated(op, "C2", fmt::format("the count is {}, wanted u32", toString(count.dtype)));
  if (x.shape != count.shape)
    return violated(op, "C3", fmt::format("x is {} and the count {}, wanted one shape", toString(x.shape), toString(count.shape)));
  return std::vector{x};
}

std::vector<Tensor> evaluateBits(const EvaluateContext& context, uint32_t (*function)(uint32_t, uint32_t)) {
  Tensor out{context.results[0], {}};
  const std::vector<double>&a = context.operands[0]->data, &b = context.operands[1]->data;
  out.data.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) out.data.push_back(wrapped(function(bitsOf(a[i]), bitsOf(b[i])), out.type.dtype));
  return {std::move(out)};
}

std::vector<OpCase> bitCases() {
  std::vector<OpCase> cases;
  for (const auto& [name, dtype] : {std::pair<std::string_view, DType>{"i32", DType::I32}, {"u32", DType::U32}})
    cases.push_back({name, {whole(dtype, {3, 257}), whole(dtype, {3, 257})}, {}, 0, kBitsReason});
  cases.push_back({"four_axes", {whole(DType::I32, {2, 3, 4, 5}), whole(DType::I32, {2, 3, 4, 5})}, {}, 0, kBitsReason});
  return cases;
}

std::vector<OpCase> shiftCases() {
  std::vector<OpCase> cases;
  for (const auto& [name, dtype] : {std::pair<std::string_view, DType>{"i32", DType::I32}, {"u32", DType::U32}})
    cases.push_back({name, {whole(dtype, {3, 257}), {u32({3, 257}), 0, 70}}, {}, 0, kBitsReason});
  cases.push_back({"four_axes", {whole(DType::I32, {2, 3, 4, 5}), {u32({2, 3, 4, 5}), 0, 31}}, {}, 0, kBitsReason});
  return cases;
}

}  // namespace lockstep::graph
