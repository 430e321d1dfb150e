// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph/builder.h"

namespace lockstep {

/// An input of f32.
inline graph::ValueId f32Input(graph::Builder& b, std::string name, std::vector<int64_t> shape) {
  return b.make("input", {}, {{"name", std::move(name)}, {"shape", std::move(shape)}, {"dtype", graph::DType::F32}});
}

}  // namespace lockstep
