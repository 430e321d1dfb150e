// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct DecomposeConfig {
  program::DeviceProfile profile = {};
  bool templates = false;              ///< shaders/ are at hand
  std::vector<std::string> disabled;   ///< "template:attention": ops with this choice always become products and a softmax
  std::vector<std::string> preferred;  ///< names of choices that are taken wherever the device can run them, however little they save
};

/// Replaces every op whose lowering is a decomposition (softmax, layer_norm, cross_entropy, ...) by the ordinary ops that it stands for, or
/// by ops with templates where there is that choice, the device can run them and they save enough memory.
///   %2 = softmax %1    =>    %3 = reduce_max_number %1 ...  %9 = div %6, %8
///   %2, %3 = scaled_dot_product_attention %q, %k, %v    =>    %4, %5 = attend %q, %k, %v
/// Updates of packed states that share words with other elements become updates of whole words (whole_word_updates.h). Error
/// "decompose.elements" when a decomposition would need a tensor of 2^31 elements or more.
Result<graph::Graph> decompose(const graph::Graph& graph, const DecomposeConfig& config = {});

/// "loops", "template:attention", ...: what `disabled` may name.
std::vector<std::string> decomposeChoices();

}  // namespace lockstep::passes
