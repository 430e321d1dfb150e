// SPDX-License-Identifier: Apache-2.0
// A model as a graph of its modules: what a report draws.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

namespace graph {
struct Graph;
}

/// The forward function, reduced to the inputs, the uses of parameters, the places where data comes together, and the result.
struct ModelOutline {
  struct Box {
    std::string name;        ///< of the module ("layers.0.attn.q"), the input or the result; empty where data comes together
    std::string op;          ///< the first that reads the module's parameters, or brings data together; "input", "output"
    std::string type;        ///< of what comes out: "f32[256,64]"
    int64_t parameters = 0;  ///< numbers in the parameters that it reads
    friend bool operator==(const Box&, const Box&) = default;
  };
  std::vector<Box> boxes;  ///< in the order of execution
  /// From box to box, where data flows through no third one; each once, sorted.
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  friend bool operator==(const ModelOutline&, const ModelOutline&) = default;
};

namespace detail {
/// Of a graph as it was traced. Consecutive nodes that read parameters of one module are one box.
ModelOutline outlineOf(const graph::Graph& traced);
}  // namespace detail

}  // namespace lockstep
