// SPDX-License-Identifier: Apache-2.0
// Random programs for differential tests: a list of numbers becomes a valid DAG of ops. Any list is a program, so a failing one can be made
// shorter and smaller number by number.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/evaluate.h"

namespace lockstep {

struct RandomProgram {
  graph::Graph graph;  ///< results r0, r1, ...; when differentiable also a loss
  graph::LeafValues leaves;
  std::vector<std::string> wrt;  ///< f32 inputs; empty when the program has ops whose gradient jumps
};

/// Values stay within a few units and gradients away from kinks, so that f32 must be close to f64.
RandomProgram makeRandomProgram(const std::vector<uint32_t>& choices, uint32_t seed);

}  // namespace lockstep
