// SPDX-License-Identifier: Apache-2.0
// Private: tensors under their names in files, to be read one by one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "ir/support/result.h"

namespace lockstep::llm {

struct WeightSource {
  struct Facts {
    io::ElementType type = io::ElementType::F32;
    std::vector<int64_t> shape = {};
  };
  std::string name;  ///< that messages call it
  std::map<std::string, Facts, std::less<>> tensors = {};
  std::function<Result<io::Array>(const std::string& tensor)> read = {};
};

/// "f32[256,64]"
std::string describe(const WeightSource::Facts& facts);
/// Of a file in memory, which must outlive it.
WeightSource sourceOf(const io::TensorFile& file, const std::string& name);
/// Of model.safetensors, or of shards with an index. Only their headers are read. Code language_weights.file, and those of TensorReader.
Result<WeightSource> openWeights(const std::filesystem::path& folder);

}  // namespace lockstep::llm
