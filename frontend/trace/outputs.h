// SPDX-License-Identifier: Apache-2.0
// What a function of a model gives back.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// One tensor, or several by name: `return model(in["x"]);` or `return ls::Outputs{{"mean", mean}, {"deviation", deviation}};`. A single
/// one is named "output".
class Outputs {
 public:
  Outputs(Tensor one) : tensors_{{"output", one}} {}  // NOLINT(google-explicit-constructor): a tensor is what functions give
  Outputs(std::initializer_list<std::pair<std::string, Tensor>> several) : tensors_(several) {}
  explicit Outputs(std::vector<std::pair<std::string, Tensor>> several) : tensors_(std::move(several)) {}
  [[nodiscard]] const std::vector<std::pair<std::string, Tensor>>& tensors() const { return tensors_; }

 private:
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

}  // namespace lockstep
