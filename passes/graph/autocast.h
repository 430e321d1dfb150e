// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Mixed precision: what products (matmul, einsum, convolutions, attention) read and make is rounded to `low`, a packed float type, and
/// widened again, so that it can be kept packed. Everything else, parameters included, stays f32 and is computed in f32.
///   %y = matmul %x, %w    =>    %a = cast %x {bf16}  %b = cast %a {f32}  %c = cast %w {bf16}  %d = cast %c {f32}
///                               %e = matmul %b, %d   %f = cast %e {bf16}  %y = cast %f {f32}
/// A value is rounded once, however many products read it, and before views of it. Cheap operations that only add smaller values to a
/// product (its bias, a scale) come before its rounding. Gradients are rounded where the values are, except those of parameters, which
/// the optimizer reads in f32. keep_f32 says what is not to be rounded, and is gone afterwards.
graph::Graph autocast(const graph::Graph& graph, graph::DType low);

/// For each value the one that holds its elements rounded, where autocast made one; else invalid.
std::vector<graph::ValueId> roundedCopies(const graph::Graph& graph);

/// The type that autocast rounded the operands of a product to; f32 where it did not.
graph::DType roundedType(const graph::Graph& graph, const graph::Node& product);

}  // namespace lockstep::passes
