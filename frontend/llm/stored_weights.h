// SPDX-License-Identifier: Apache-2.0
// Weights of language models as a device keeps them: in the format of LanguageConfig::weights. A folder may have them so, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/io/safetensors.h"
#include "frontend/llm/checkpoint.h"
#include "frontend/llm/language_config.h"
#include "frontend/trace/host_values.h"

namespace lockstep::llm {

/// In the metadata of a file of such weights: their format.
inline constexpr std::string_view kStoredAs = "lockstep.weights";

/// The values of a LanguageModel, by the names of its parameters and buffers, with matrices in config.weights. Codes
/// language_weights.missing for a parameter without values, language_weights.value for a matrix with a number that is not finite, or too
/// large for f16.
Result<io::TensorFile> storeWeights(const LanguageConfig& config, ParameterValues values);

/// The config with another format: none is its own. Code language_model.weights where the folder has weights of one already.
Result<LanguageConfig> withFormat(LanguageConfig config, std::optional<nn::WeightFormat> format);

/// Of a folder, whose config is config but for its format: its weights in config.weights, one after the other; or, of a folder that has
/// them so, the same bits. Codes: those of eachWeight() and storeWeights(), language_weights.stored for a file that does not fit.
Result<io::TensorFile> loadStoredWeights(const LanguageConfig& config, const std::filesystem::path& folder);

/// What takes a parameter or a buffer.
using TakeArray = std::function<Status(const std::string& name, io::Array array)>;
/// loadStoredWeights() with one tensor in memory at a time; all of them are checked before the first one is read.
Status eachStoredWeight(const LanguageConfig& config, const std::filesystem::path& folder, const TakeArray& take,
                        const ReadProgress& progress = {});
/// Whether that finds what the config wants; reads no tensor. Codes as of that.
Status checkStoredFolder(const LanguageConfig& config, const std::filesystem::path& folder);

/// "language_weights.stored" unless the file has every parameter and buffer of a LanguageModel of this config with its type, and no more;
/// `name` stands for it in messages.
Status checkStoredWeights(const LanguageConfig& config, const io::TensorFile& file, const std::string& name);

/// Writes a folder that load() and loadStoredWeights() read: config.json with a "quantization_config" of the method "lockstep", which
/// other programs refuse; model.safetensors; generation_config.json where it was read. Codes language_weights.config for a config that is
/// f32, or was read from such a folder; file.write, file.directory.
Status saveStoredWeights(const std::filesystem::path& folder, const LanguageConfig& config, const io::TensorFile& file);

/// Numbers of all parameters, whatever the format.
int64_t parameterCount(const LanguageConfig& config);
/// Bytes of all arrays.
uint64_t byteCount(const io::TensorFile& file);

}  // namespace lockstep::llm
