// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "ir/kernel/op.h"
#include "ir/kernel/type.h"

namespace lockstep::passes {

/// What an operation gives for scalar operands of one type (i32, u32 or bool), as bits: WGSL's rules, see ops.def. For the shifts
/// `type` is that of the first operand. Nullopt for an operation or type that is not computed here, floats among them.
std::optional<uint32_t> evaluateInteger(kernel::Op op, kernel::Scalar type, std::span<const uint32_t> operands);

}  // namespace lockstep::passes
