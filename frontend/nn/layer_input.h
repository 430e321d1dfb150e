// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what the layers of nn ask of the tensors that they are called with.
#pragma once

#include <string_view>
#include <vector>

#include "frontend/trace/module.h"
#include "ir/support/where.h"

namespace lockstep::nn {

struct LayerAxis {
  std::string_view name;       ///< "C"; "..." stands for any number of axes
  int64_t extent = 0;          ///< that the layer needs; 0: any
  std::string_view noun = {};  ///< what the extent counts: "channels"
};

struct LayerInput {
  std::string_view kind;        ///< of the layer: "Conv2d"
  std::vector<LayerAxis> axes;  ///< at most one "..."
  DType dtype = DType::F32;
  std::string_view operand = {};  ///< which argument, where that is not plain: "memory"
};

/// Errors "layer.type", "layer.rank" and "layer.extent". They name the layer by its kind and path and where it was declared, what it
/// expects and what came.
void checkInput(const Module& layer, const Tensor& x, const LayerInput& wanted, const Where& where);

}  // namespace lockstep::nn
