// SPDX-License-Identifier: Apache-2.0
// One program for many extents of a dynamic axis, from traces at two of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/open_axes.h"

namespace lockstep::passes {

/// The input, i32[], that says which extent a step has. It must be at least 1 and at most the capacity.
inline constexpr std::string_view kExtentInput = "step.extent";
/// What `disable` names so that each extent gets a program of its own.
inline constexpr std::string_view kOpenExtents = "openExtents";

/// And those that give the numbers of the function that depend on the extent, such as that of a mean: scalars step.number0, ...
std::string extentNumber(size_t i);

struct OpenExtents {
  /// The trace at the capacity, with the input kExtentInput: what does not count is left out of all sums, means, maxima and products, so
  /// every result is that of a program for the extent, up to rounding. What lies in the surplus of the inputs must be numbers that the
  /// function can take, such as rows of the batch once more: they are computed with, and their gradients are 0 times something finite.
  graph::Graph graph;
  std::vector<graph::OpenAxes> outputs;              ///< as OpenExtents::graph.outputs: what to take of each
  std::vector<double> wide_numbers, narrow_numbers;  ///< at the capacity and at the extent
};

/// `wide` and `narrow` are traces of one function at the extents `capacity` and `extent`, which is less. Equal graphs come out for all
/// extents for which one program is right. An empty graph, and `why`, when the function does something else at each extent, or something
/// along the axis that one program cannot do for all (a sort, a shift, positions from the end).
OpenExtents openExtents(const graph::Graph& wide, const graph::Graph& narrow, int64_t capacity, int64_t extent, std::string& why);

}  // namespace lockstep::passes
