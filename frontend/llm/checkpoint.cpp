// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "frontend/io/file.h"
#include "frontend/llm/families.h"
#include "frontend/llm/stored_weights.h"
#include "frontend/llm/weight_names.h"
#include "frontend/text/json_value.h"
#include "ir/support/nearest.h"

namespace lockstep::llm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool isThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Failure wrongIndex(const fs::path& index, const std::string& message, const std::string& remedy) {
  return fail("language_weights.file", message, {.file = index.string()}, remedy);
}

/// The tensors of all shards.
Result<io::TensorFile> readShards(const fs::path& folder) {
  const fs::path index = folder / kIndex;
  LS_TRY(const std::string json, io::readTextFile(index));
  LS_TRY(const text::JsonValue value, text::parseJson(json, index.string()));
  const text::JsonValue* map = value.find("weight_map");
  if (map == nullptr || map->object() == nullptr) return wrongIndex(index, "there is no weight_map", "download the file again");
  std::map<std::string, std::vector<std::string>> by_shard;
  for (const auto& [tensor, shard] : map->object()->members) {
    // A name, and no path to elsewhere.
    if (shard.string() == nullptr || fs::path(*shard.string()).filename() != *shard.string())
      return wrongIndex(index, fmt::format("the shard of '{}' is not the name of a file", tensor), "download the file again");
    by_shard[*shard.string()].push_back(tensor);
  }
  io::TensorFile all;
  for (const auto& [shard, tensors] : by_shard) {
    if (!isThere(folder / shard))
      return wrongIndex(index, fmt::format("the shard '{}' is not there, and {} tensors are in it", shard, tensors.size()),
                        "download all files of the model");
    LS_TRY(io::TensorFile part, io::readSafetensors(folder / shard));
    for (const std::string& tensor : tensors) {
      if (part.find(tensor) == nullptr)
        return wrongIndex(index, fmt::format("tensor '{}' is not in '{}'", tensor, shard), "download both files again");
    }
    all.tensors.merge(part.tensors);
    if (!part.tensors.empty())
      return wrongIndex(index, fmt::format("tensor '{}' is in two shards", part.tensors.begin()->first), "remove shards of another model");
  }
  return all;
}

/// Files of the inner model lack the prefix of its names: "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight".
std::string nameIn(const io::TensorFile& file, const Family& family, const std::string& name) {
  const bool has_prefix =
      std::ranges::any_of(file.tensors, [&](const auto& one) { return std::string_view(one.first).starts_with(family.prefix); });
  return !has_prefix && name.starts_with(family.prefix) ? name.substr(family.prefix.size()) : name;
}

bool isSurplus(const LanguageConfig& config, const Family& family, const std::string& name) {
  // A tied head is the table of tokens; some files have it twice.
  if (config.tied_head && name == "lm_head.weight") return true;
  return std::ranges::any_of(family.surplus, [&](std::string_view ending) { return name.ends_with(ending); });
}

bool isWeight(io::ElementType type) {
  return type == io::ElementType::F32 || type == io::ElementType::F16 || type == io::ElementType::BF16;
}

Result<const Family*> familyOf(const LanguageConfig& config) {
  const Family* family = findFamily(config.family);
  if (family == nullptr)
    return fail("language_config.family", fmt::format("models of type '{}' are not supported", config.family), {},
                "it is one of " + joinNames(families(), [](const Family& one) { return one.model_type; }));
  return family;
}

Status takeParts(const WeightTensor& tensor, std::vector<float> whole, const TakeWeight& take) {
  if (tensor.parts.size() == 1) return take(tensor.parts[0].parameter, std::move(whole));
  const auto row = static_cast<size_t>(tensor.ours.back());
  size_t first = 0;
  for (const WeightPart& part : tensor.parts) {
    const auto columns = static_cast<size_t>(part.columns);
    std::vector<float> taken;
    taken.reserve(whole.size() / row * columns);
    for (size_t start = first; start < whole.size(); start += row)
      taken.insert(taken.end(), whole.begin() + static_cast<ptrdiff_t>(start), whole.begin() + static_cast<ptrdiff_t>(start + columns));
    first += columns;
    LS_CHECK(take(part.parameter, std::move(taken)));
  }
  return Success{};
}

/// Those of the model, once all are there, and are as the config says.
Result<std::vector<WeightTensor>> checkedTensors(const LanguageConfig& config, const Family& family, const io::TensorFile& file,
                                                 const std::string& name) {
  if (const auto stored = file.metadata.find(kStoredAs); stored != file.metadata.end()) {
    return fail("language_weights.type", fmt::format("the weights are kept as {}, and f32 was lost", stored->second), {.file = name},
                "generate with them as they are, or give the folder that this one was made from");
  }
  LS_TRY(std::vector<WeightTensor> tensors, weightTensors(config, family));
  std::set<std::string> taken;
  std::vector<std::string> missing, unexpected;
  for (const WeightTensor& tensor : tensors) {
    const std::string its = nameIn(file, family, tensor.name);
    const io::Array* array = file.find(its);
    taken.insert(its);
    if (array == nullptr) {
      missing.push_back(its);
      continue;
    }
    if (!isWeight(array->type)) {
      return fail("language_weights.type", fmt::format("tensor '{}' is {}", its, describe(*array)), {.file = name},
                  "weights are f32, f16 or bf16; quantised ones are not supported");
    }
    if (array->shape != tensor.theirs()) {
      return fail("language_weights.shape",
                  fmt::format("tensor '{}' is {}, but the config wants [{}]", its, describe(*array), fmt::join(tensor.theirs(), ",")),
                  {.file = name}, "config.json and the weights are of different models");
    }
  }
  for (const auto& [other, array] : file.tensors) {
    if (!taken.contains(other) && !isSurplus(config, family, other)) unexpected.push_back(other);
  }
  constexpr size_t kShown = 5;
  const auto list = [&](std::vector<std::string> names) {
    const size_t more = names.size() > kShown ? names.size() - kShown : 0;
    names.resize(names.size() - more);
    return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  };
  if (!missing.empty()) {
    std::string message = "the weights lack " + list(missing);
    if (!unexpected.empty()) message += fmt::format(", and have {}, which the model does not take", list(unexpected));
    return fail("language_weights.missing", message, {.file = name},
                "download all files of the model; config.json must be of the same one");
  }
  if (!unexpected.empty()) {
    return fail("language_weights.unexpected", fmt::format("the weights have {}, which the model does not take", list(unexpected)),
                {.file = name}, "config.json and the weights are of different models, or the model has parts that are not supported");
  }
  return tensors;
}

Status eachOf(const LanguageConfig& config, io::TensorFile file, const std::string& name, const TakeWeight& take) {
  LS_TRY(const Family* family, familyOf(config));
  LS_TRY(const std::vector<WeightTensor> tensors, checkedTensors(config, *family, file, name));
  std::vector<std::string> names;  // what the prefix is, depends on all that are there
  for (const WeightTensor& tensor : tensors) names.push_back(nameIn(file, *family, tensor.name));
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<float> whole = file.tensors.extract(names[i]).mapped().toFloats();
    LS_CHECK(takeParts(tensors[i], toOurs(tensors[i], std::move(whole)), take));
  }
  return Success{};
}

TakeWeight into(ParameterValues& values) {
  return [&values](const std::string& parameter, std::vector<float> its) -> Status {
    values.insert_or_assign(parameter, std::move(its));
    return Success{};
  };
}

}  // namespace

Result<ParameterValues> readWeights(const LanguageConfig& config, const io::TensorFile& file, const std::string& name) {
  ParameterValues values;
  LS_CHECK(eachOf(config, file, name, into(values)));
  return values;
}

Result<ParameterValues> loadWeights(const LanguageConfig& config, const fs::path& folder) {
  ParameterValues values;
  LS_CHECK(eachWeight(config, folder, into(values)));
  return values;
}

Status eachWeight(const LanguageConfig& config, const fs::path& folder, const TakeWeight& take) {
  if (isThere(folder / kWhole)) {
    LS_TRY(io::TensorFile file, io::readSafetensors(folder / kWhole));
    return eachOf(config, std::move(file), (folder / kWhole).string(), take);
  }
  if (isThere(folder / kIndex)) {
    LS_TRY(io::TensorFile file, readShards(folder));
    return eachOf(config, std::move(file), (folder / kIndex).string(), take);
  }
  return fail("language_weights.file", fmt::format("there is neither {} nor {}", kWhole, kIndex), {.file = folder.string()},
              "give the folder of a model with weights as safetensors; those of PyTorch (.bin) must be converted");
}

Result<io::TensorFile> formatWeights(const LanguageConfig& config, const ParameterValues& values) {
  LS_TRY(const Family* family, familyOf(config));
  if (!config.weights.isF32()) {
    return fail("language_weights.config", fmt::format("the config wants weights kept as {}", toString(config.weights)), {},
                "save plain weights with the config of the model itself; saveStoredWeights() writes others");
  }
  LS_TRY(const LanguageConfig read, LanguageConfig::parse(config.config_json, "config.json", config.generation_json));
  if (!(read == config)) {
    return fail("language_weights.config", "the config was changed after it was read, so its config.json says something else", {},
                "write a config.json that says the same, and read that");
  }
  LS_TRY(const std::vector<WeightTensor> tensors, weightTensors(config, *family));
  io::TensorFile file{.tensors = {}, .metadata = {{"format", "pt"}}};
  for (const WeightTensor& tensor : tensors) {
    const auto row = static_cast<size_t>(tensor.ours.back());
    std::vector<float> whole;
    size_t first = 0;
    for (const WeightPart& part : tensor.parts) {
      const auto found = values.find(part.parameter);
      const auto count = static_cast<size_t>(part.type.shape.elementCount()), columns = static_cast<size_t>(part.columns);
      if (found == values.end() || found->second.size() != count)
        return fail("language_weights.missing", fmt::format("there are no {} values for '{}'", count, part.parameter), {},
                    "give the values of all parameters, as download() does");
      whole.resize(count / columns * row);
      for (size_t i = 0; i < count; ++i) whole[i / columns * row + first + i % columns] = found->second[i];
      first += columns;
    }
    whole = toTheirs(tensor, std::move(whole));
    const std::vector<double> numbers(whole.begin(), whole.end());
    io::Array array = io::Array::from(config.dtype, tensor.theirs(), numbers);
    const std::vector<float> written = array.toFloats();
    for (size_t i = 0; i < whole.size(); ++i) {
      if (std::isfinite(whole[i]) && !std::isfinite(written[i]))
        return fail("language_weights.value",
                    fmt::format("'{}' has {}, which is too large for {}", tensor.name, whole[i], toString(config.dtype)), {},
                    "save with a config of another dtype");
    }
    file.tensors.emplace(tensor.name, std::move(array));
  }
  return file;
}

Status saveCheckpoint(const fs::path& folder, const LanguageConfig& config, const ParameterValues& values) {
  LS_TRY(const io::TensorFile file, formatWeights(config, values));
  LS_CHECK(io::makeDirectories(folder));
  LS_CHECK(io::writeFileAtomically(folder / "config.json", std::string_view(config.config_json)));
  if (!config.generation_json.empty())
    LS_CHECK(io::writeFileAtomically(folder / "generation_config.json", std::string_view(config.generation_json)));
  return io::writeSafetensors(folder / kWhole, file);
}

}  // namespace lockstep::llm
