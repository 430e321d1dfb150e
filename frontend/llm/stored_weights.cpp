// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/stored_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "frontend/io/file.h"
#include "frontend/llm/language_model.h"
#include "frontend/llm/quantise.h"
#include "frontend/llm/weight_names.h"
#include "frontend/llm/weight_source.h"
#include "frontend/text/json_value.h"
#include "runtime/memory_array.h"

namespace lockstep::llm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "model.safetensors";

/// The same model, to be trained.
LanguageConfig trainable(LanguageConfig config) {
  config.weights = {};
  config.init_scale = 0;
  return config;
}

/// The matrix that a parameter is; null for others.
const nn::Weight* weightOf(const Parameter& parameter) {
  const nn::Weight* weight = nullptr;
  if (const auto* linear = dynamic_cast<const nn::Linear*>(&parameter.owner())) weight = &linear->W;
  if (const auto* table = dynamic_cast<const nn::Embedding*>(&parameter.owner())) weight = &table->W;
  return weight != nullptr && &weight->parameter() == &parameter ? weight : nullptr;
}

Failure wrongValue(const std::string& name, const graph::TensorType& type, size_t at, float value, const std::string& format) {
  const size_t columns = static_cast<size_t>(type.shape.extents().back());
  const std::string place = type.shape.rank() > 1 ? fmt::format("[{}, {}]", at / columns, at % columns) : fmt::format("[{}]", at);
  if (!std::isfinite(value)) {
    return fail("language_weights.value", fmt::format("'{}' has {} at {}", name, value, place), {},
                "repair the file: no answer of this model can be right");
  }
  return fail("language_weights.value", fmt::format("'{}' has {} at {}, which {} cannot hold", name, value, place, format), {},
              "keep weights as f32, or as bf16");
}

Status store(const std::string& name, const Parameter& parameter, const nn::WeightFormat& format, const std::vector<float>& values,
             const TakeArray& take) {
  const graph::TensorType& type = parameter.type();
  const nn::Weight* weight = format.isF32() ? nullptr : weightOf(parameter);
  for (size_t i = 0; i < values.size() && !format.isF32(); ++i) {
    if (!std::isfinite(values[i])) return wrongValue(name, type, i, values[i], toString(format));
  }
  // Positions that are learned are added to what is looked up: a small table.
  if (weight == nullptr || name == "places.W") {
    return take(name, detail::encodeArray(type, values));
  }
  if (format.bits() > 0) {
    QuantizedMatrix made = quantise(format, weight->sums(), values, type.shape.extent(0), type.shape.extent(1));
    LS_CHECK(take(name + "_words", std::move(made.words)));
    return take(name + "_scales", std::move(made.scales));
  }
  io::Array array = detail::encodeArray({format.dtype(), type.shape}, values);
  const std::vector<float> rounded = array.toFloats();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(rounded[i])) return wrongValue(name, type, i, values[i], toString(format));
  }
  if (weight->is_turned()) {
    const int64_t rows = type.shape.extent(0), columns = type.shape.extent(1);
    array = detail::encodeArray({format.dtype(), graph::Shape{columns, rows}},
                                transposed(values, static_cast<size_t>(rows), static_cast<size_t>(columns)));
    return take(name + "_transposed", std::move(array));
  }
  return take(name, std::move(array));
}

TakeArray into(io::TensorFile& file) {
  return [&file](const std::string& name, io::Array array) -> Status {
    file.tensors.emplace(name, std::move(array));
    return Success{};
  };
}

Status checkStored(const LanguageConfig& config, const WeightSource& source) {
  const LanguageModel model([&] {
    LanguageConfig its = config;
    its.init_scale = 0;
    return its;
  }());
  std::map<std::string, graph::TensorType, std::less<>> wanted;
  for (const NamedParameter& named : model.parameters()) wanted.emplace(named.name, named.parameter->type());
  for (const NamedBuffer& named : model.buffers()) wanted.emplace(named.name, named.buffer->type());
  const auto wrong = [&](const std::string& message) {
    return fail("language_weights.stored", message, {.file = source.name}, "quantise the model again");
  };
  for (const auto& [its, type] : wanted) {
    const auto found = source.tensors.find(its);
    if (found == source.tensors.end()) return wrong(fmt::format("tensor '{}', {}, is missing", its, toString(type)));
    const WeightSource::Facts& facts = found->second;
    if (facts.type != detail::elementType(type.dtype) || facts.shape != type.shape.extents())
      return wrong(fmt::format("tensor '{}' is {}, wanted {}", its, describe(facts), toString(type)));
  }
  for (const auto& [its, facts] : source.tensors) {
    if (!wanted.contains(its)) return wrong(fmt::format("tensor '{}' belongs to no part of the model", its));
  }
  return Success{};
}

io::TensorFile emptyFile(const LanguageConfig& config) {
  return {.tensors = {}, .metadata = {{std::string(kStoredAs), toString(config.weights)}}};
}

/// config.json with what other programs refuse: in place of a null, or in front of all other keys.
Result<std::string> withQuantizationConfig(const LanguageConfig& config) {
  static const std::regex kNull(R"("quantization_config"\s*:\s*null)");
  const std::string entry =
      fmt::format(R"("quantization_config": {{"quant_method": "lockstep", "weights": "{}"}})", toString(config.weights));
  std::string json = std::regex_replace(config.config_json, kNull, entry, std::regex_constants::format_first_only);
  if (json == config.config_json) json.insert(std::min(json.find('{'), json.size() - 1) + 1, fmt::format("\n  {},", entry));
  // Of a folder that has small weights already the key would come twice, which is refused.
  Result<LanguageConfig> read = LanguageConfig::parse(json, "config.json", config.generation_json);
  if (read.ok()) read->config_json = config.config_json;
  if (read.ok() && *read == config) return json;
  return fail("language_weights.config", "the config is not as its config.json says, but for the format of its weights", {},
              "read the config of the model, and change its format alone");
}

}  // namespace

Result<io::TensorFile> storeWeights(const LanguageConfig& config, ParameterValues values) {
  const LanguageModel model(trainable(config));
  io::TensorFile file = emptyFile(config);
  for (const NamedParameter& named : model.parameters()) {
    const auto count = static_cast<size_t>(named.parameter->type().shape.elementCount());
    // Both forms together may be more than the machine's memory, so the values go one by one.
    const auto its = values.extract(named.name);
    if (its.empty() || its.mapped().size() != count)
      return fail("language_weights.missing", fmt::format("there are no {} values for '{}'", count, named.name), {},
                  "give the values of all parameters, as loadWeights() and download() do");
    LS_CHECK(store(named.name, *named.parameter, config.weights, its.mapped(), into(file)));
  }
  return file;
}

Result<LanguageConfig> withFormat(LanguageConfig config, std::optional<nn::WeightFormat> format) {
  if (!format || *format == config.weights) return config;
  if (!config.weights.isF32()) {
    return fail("language_model.weights",
                fmt::format("weights are wanted as {}, and the folder has them as {}", toString(*format), toString(config.weights)), {},
                "say nothing of weights, or give the folder that this one was made from");
  }
  config.weights = *format;
  return config;
}

Result<io::TensorFile> loadStoredWeights(const LanguageConfig& config, const fs::path& folder) {
  io::TensorFile file = emptyFile(config);
  LS_CHECK(eachStoredWeight(config, folder, into(file)));
  return file;
}

Status eachStoredWeight(const LanguageConfig& config, const fs::path& folder, const TakeArray& take, const ReadProgress& progress) {
  LS_TRY(const LanguageConfig there, LanguageConfig::load(folder));
  if (there.weights.isF32()) {
    const LanguageModel model(trainable(config));
    std::map<std::string, const Parameter*, std::less<>> parameters;
    for (const NamedParameter& named : model.parameters()) parameters.emplace(named.name, named.parameter);
    const auto stored = [&](const std::string& name, const std::vector<float>& values) {
      return store(name, *parameters.at(name), config.weights, values, take);
    };
    return eachWeight(there, folder, stored, progress);
  }
  LS_TRY(const WeightSource source, openWeights(folder));
  LS_CHECK(checkStored(config, source));
  size_t done = 0;
  for (const auto& [name, facts] : source.tensors) {
    LS_TRY(io::Array array, source.read(name));
    LS_CHECK(take(name, std::move(array)));
    if (progress) progress(++done, source.tensors.size());
  }
  return Success{};
}

Status checkStoredFolder(const LanguageConfig& config, const fs::path& folder) {
  LS_TRY(const LanguageConfig there, LanguageConfig::load(folder));
  if (there.weights.isF32()) return checkWeights(there, folder);
  LS_TRY(const WeightSource source, openWeights(folder));
  return checkStored(config, source);
}

Status checkStoredWeights(const LanguageConfig& config, const io::TensorFile& file, const std::string& name) {
  return checkStored(config, sourceOf(file, name));
}

Status saveStoredWeights(const fs::path& folder, const LanguageConfig& config, const io::TensorFile& file) {
  if (config.weights.isF32() || config.config_json.empty())
    return fail("language_weights.config", "the config is of plain weights, or has no config.json", {},
                "saveCheckpoint() writes plain weights; give a config that was read, with another format");
  LS_CHECK(checkStoredWeights(config, file, (folder / kFile).string()));
  LS_TRY(const std::string json, withQuantizationConfig(config));
  LS_CHECK(io::makeDirectories(folder));
  LS_CHECK(io::writeFileAtomically(folder / "config.json", std::string_view(json)));
  if (!config.generation_json.empty())
    LS_CHECK(io::writeFileAtomically(folder / "generation_config.json", std::string_view(config.generation_json)));
  return io::writeSafetensors(folder / kFile, file);
}

int64_t parameterCount(const LanguageConfig& config) {
  const LanguageModel model(trainable(config));
  int64_t count = 0;
  for (const NamedParameter& named : model.parameters()) count += named.parameter->type().shape.elementCount();
  return count;
}

uint64_t byteCount(const io::TensorFile& file) {
  uint64_t count = 0;
  for (const auto& [name, array] : file.tensors) count += array.data.size();
  return count;
}

}  // namespace lockstep::llm
