// SPDX-License-Identifier: Apache-2.0
// Elements of packed types in kernels: rounding, and the way from a word to a register and back. All of it in integers, so that every
// device gives the same bits: WGSL leaves the rounding of floats open, and what a pack2x16float does with a number that is too large.
#pragma once

#include "ir/graph/type.h"
#include "ir/kernel/builder.h"

namespace lockstep::graph {

/// The nearest value that an element of type `to` has, ties to even, in the register type of `to`. `value` is f32, i32 or u32, a vector or
/// a scalar: a float for a float type, an integer for an integer type, of which the low bits are kept. A NaN stays one.
kernel::ValueId emitRounded(kernel::Builder& builder, DType to, kernel::ValueId value);

/// The element in the low bits of a u32, the others 0. `value` is one that the type has, as emitRounded gives it.
kernel::ValueId emitEncoded(kernel::Builder& builder, DType dtype, kernel::ValueId value);

/// Element `place` of a word, as a register has it. `place` is a u32 below elementsPerWord(dtype).
kernel::ValueId emitDecoded(kernel::Builder& builder, DType dtype, kernel::ValueId word, kernel::ValueId place);

}  // namespace lockstep::graph
