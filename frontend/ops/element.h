// SPDX-License-Identifier: Apache-2.0
// Ops that work element by element; two operands broadcast against each other, one of them may be a number.
#pragma once

#include "frontend/trace/tensor.h"

namespace lockstep {

// On integer tensors a number must be an integer; division by the number 0 is an error. At a tie of min and max the gradient goes to the
// second operand; a number counts as the second one, so max(x, 0) and max(0, x) have gradient 0 at 0.
Tensor add(Operand a, Operand b, Where where = Where::current());
Tensor sub(Operand a, Operand b, Where where = Where::current());
Tensor mul(Operand a, Operand b, Where where = Where::current());
Tensor div(Operand a, Operand b, Where where = Where::current());
Tensor min(Operand a, Operand b, Where where = Where::current());
Tensor max(Operand a, Operand b, Where where = Where::current());
/// a to the power of b, f32. A negative a has whole powers only and else gives NaN.
Tensor pow(Operand a, Operand b, Where where = Where::current());

// Comparisons, with bool results. A NaN differs from everything and is neither less nor greater. equal and not_equal take bool too.
Tensor equal(Operand a, Operand b, Where where = Where::current());
Tensor not_equal(Operand a, Operand b, Where where = Where::current());
Tensor less(Operand a, Operand b, Where where = Where::current());
Tensor less_equal(Operand a, Operand b, Where where = Where::current());
Tensor greater(Operand a, Operand b, Where where = Where::current());
Tensor greater_equal(Operand a, Operand b, Where where = Where::current());
/// Of bool tensors, which broadcast.
Tensor logical_and(Tensor a, Tensor b, Where where = Where::current());
Tensor logical_or(Tensor a, Tensor b, Where where = Where::current());

// Bits of i32 or u32 tensors. A shift takes the bits of x as many places on as `count` (u32, or a number) says, modulo 32; to the right an
// i32 keeps its sign.
Tensor bitwise_and(Operand a, Operand b, Where where = Where::current());
Tensor bitwise_or(Operand a, Operand b, Where where = Where::current());
Tensor bitwise_xor(Operand a, Operand b, Where where = Where::current());
Tensor left_shift(Tensor x, Operand count, Where where = Where::current());
Tensor right_shift(Tensor x, Operand count, Where where = Where::current());

/// condition (bool) ? a : b; all three broadcast.
Tensor where(Tensor condition, Operand a, Operand b, Where where = Where::current());

#define LS_UNARY(name) Tensor name(Tensor x, Where where = Where::current());
#include "frontend/ops/unary_ops.def"  // neg, sqrt, exp, ...
#undef LS_UNARY
Tensor square(Tensor x, Where where = Where::current());
/// The elements as another type, as in cast(x, f32). A float becomes an integer by truncation towards zero, saturated, NaN as 0; integers
/// keep their low bits; f16 and bf16 are rounded to nearest even; a bool is whether x differs from 0. Gradients flow between floats only,
/// and are f32.
Tensor cast(Tensor x, DType dtype, Where where = Where::current());
/// x within [lo, hi]; the gradient is 0 at the bounds and beyond. Error "clamp.C2" unless lo <= hi.
Tensor clamp(Tensor x, double lo, double hi, Where where = Where::current());

// Activations with a parameter; relu, sigmoid, tanh, softplus, silu, gelu, gelu_tanh, hard_sigmoid, hard_swish and hard_tanh are among
// those above.
/// x where it is positive, else alpha x.
Tensor leaky_relu(Tensor x, double alpha = 0.01, Where where = Where::current());
/// x where it is positive, else alpha (e^x - 1).
Tensor elu(Tensor x, double alpha = 1, Where where = Where::current());

}  // namespace lockstep
