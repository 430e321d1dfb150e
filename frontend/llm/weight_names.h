// SPDX-License-Identifier: Apache-2.0
// Private: which tensors the files of a model have, and which parameters they are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/llm/families.h"
#include "ir/graph/type.h"

namespace lockstep::llm {

/// A parameter that is all of a tensor, or some columns of it.
struct WeightPart {
  std::string parameter;
  graph::TensorType type;
  int64_t columns = 0;  ///< extent of its last axis
};

struct WeightTensor {
  std::string name;
  Layout layout = Layout::Same;
  std::vector<WeightPart> parts;  ///< side by side along the last axis of ours
  std::vector<int64_t> ours;      ///< shape of all parts together
  /// As in files.
  [[nodiscard]] std::vector<int64_t> theirs() const;
};

/// Of each parameter of the model, in the order of the first parts. Code language_weights.config for a parameter that the family has no
/// name for.
Result<std::vector<WeightTensor>> weightTensors(const LanguageConfig& config, const Family& family);

/// The transpose of a matrix [rows, columns], in blocks that a cache holds.
std::vector<float> transposed(std::span<const float> values, size_t rows, size_t columns);

/// Row-major values of a tensor, from how files have it to how we have it and back.
std::vector<float> toOurs(const WeightTensor& tensor, std::vector<float> values);
std::vector<float> toTheirs(const WeightTensor& tensor, std::vector<float> values);

}  // namespace lockstep::llm
