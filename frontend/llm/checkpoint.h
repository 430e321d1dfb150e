// SPDX-License-Identifier: Apache-2.0
// Weights of language models in the files of Hugging Face: model.safetensors, or shards with model.safetensors.index.json.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/llm/language_config.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/module.h"

namespace lockstep::llm {

/// The values of a LanguageModel of this config, by the names of its parameters, from a folder. f32, f16 and bf16 weights; a head that is
/// tied may be in the files, too. Codes: those of io::readSafetensors() and file.read; language_weights.file where there are no weights, or
/// an index that is wrong; language_weights.missing, .unexpected and .shape, each with the tensor's name; language_weights.type for other
/// element types.
Result<ParameterValues> loadWeights(const LanguageConfig& config, const std::filesystem::path& folder);
/// The same of tensors; `name` stands for them in messages.
Result<ParameterValues> readWeights(const LanguageConfig& config, const io::TensorFile& file, const std::string& name);

/// What takes the values of a parameter.
using TakeWeight = std::function<Status(const std::string& parameter, std::vector<float> values)>;
/// Gets how many tensors were read, and how many there are.
using ReadProgress = std::function<void(size_t done, size_t all)>;
/// Whether loadWeights() finds what the config wants; reads no tensor. Codes as of that.
Status checkWeights(const LanguageConfig& config, const std::filesystem::path& folder);
/// loadWeights() with one tensor in memory at a time. Names, types and shapes are checked before the first one is read. Further codes:
/// those of `take`, which ends it.
Status eachWeight(const LanguageConfig& config, const std::filesystem::path& folder, const TakeWeight& take,
                  const ReadProgress& progress = {});

/// The tensors of a file as transformers reads it, in the type of config.dtype. Code language_weights.config for a config that no
/// config.json says (it was changed after it was read): another program would take the weights for something else.
Result<io::TensorFile> formatWeights(const LanguageConfig& config, const ParameterValues& values);
/// Writes config.json, model.safetensors and, where it was read, generation_config.json. The tokenizer's files are left to the caller.
/// Further codes: file.write, file.directory.
Status saveCheckpoint(const std::filesystem::path& folder, const LanguageConfig& config, const ParameterValues& values);

}  // namespace lockstep::llm
