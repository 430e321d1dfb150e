// SPDX-License-Identifier: Apache-2.0
// The inputs of a program inside its trace.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/tensor.h"

namespace lockstep {

/// Tensors by the names of their declarations.
class Inputs {
 public:
  explicit Inputs(std::map<std::string, Tensor, std::less<>> tensors) : tensors_(std::move(tensors)) {}
  /// Error "inputs.name" when it was not declared.
  Tensor operator[](std::string_view name) const;

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace lockstep
