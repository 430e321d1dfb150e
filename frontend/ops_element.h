// SPDX-License-Identifier: Apache-2.0
// Ops that work element by element; two operands broadcast against each other, one of them may be a number.
#pragma once

#include "frontend/tensor.h"

namespace lockstep {

// On integer tensors a number must be an integer; division by the number 0 is an error. At a tie of min and max the gradient goes to the
// second operand; a number counts as the second one, so max(x, 0) and max(0, x) have gradient 0 at 0.
Tensor add(Operand a, Operand b, Where where = Where::current());
Tensor sub(Operand a, Operand b, Where where = Where::current());
Tensor mul(Operand a, Operand b, Where where = Where::current());
Tensor div(Operand a, Operand b, Where where = Where::current());
Tensor min(Operand a, Operand b, Where where = Where::current());
Tensor max(Operand a, Operand b, Where where = Where::current());
/// bool results
Tensor less(Operand a, Operand b, Where where = Where::current());
Tensor greater(Operand a, Operand b, Where where = Where::current());
/// condition (bool) ? a : b; all three broadcast.
Tensor where(Tensor condition, Operand a, Operand b, Where where = Where::current());

#define LS_UNARY(name) Tensor name(Tensor x, Where where = Where::current());
#include "frontend/unary_ops.def"  // neg, sqrt, exp, ...
#undef LS_UNARY
Tensor square(Tensor x, Where where = Where::current());

}  // namespace lockstep
