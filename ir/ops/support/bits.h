// SPDX-License-Identifier: Apache-2.0
// What ops on the bits of integers share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

inline constexpr std::string_view kBitsHaveNoGradient = "the operands are integers";

/// C1: `x` is i32 or u32; C2: the count is u32; C3: one shape. Result: the type of `x`.
Result<std::vector<TensorType>> inferShift(std::string_view op, const InferContext& context);
/// Result i = function(bits of operand 0, bits of operand 1), as the element type of the result has them.
std::vector<Tensor> evaluateBits(const EvaluateContext& context, uint32_t (*function)(uint32_t, uint32_t));
/// Of an op with two operands of one type: any i32 and any u32.
std::vector<OpCase> bitCases();
/// i32 and u32 with counts up to 70, beyond the width.
std::vector<OpCase> shiftCases();

}  // namespace lockstep::graph
