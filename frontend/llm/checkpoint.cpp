// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/io/file.h"
#include "frontend/llm/families.h"
#include "frontend/llm/stored_weights.h"
#include "frontend/llm/weight_names.h"
#include "frontend/llm/weight_source.h"
#include "ir/support/nearest.h"

namespace lockstep::llm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kHead = "lm_head.weight";

/// Files of the inner model lack the prefix of its names: "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight".
std::string nameIn(const WeightSource& source, const Family& family, const std::string& name) {
  const bool has_prefix =
      std::ranges::any_of(source.tensors, [&](const auto& one) { return std::string_view(one.first).starts_with(family.prefix); });
  return !has_prefix && name.starts_with(family.prefix) ? name.substr(family.prefix.size()) : name;
}

bool isSurplus(const LanguageConfig& config, const Family& family, const std::string& name) {
  // A tied head is the table of tokens; some files have it twice.
  if (config.tied_head && name == kHead) return true;
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

/// Gives the values of each parameter that is a part of the tensor.
Status giveParts(const WeightTensor& tensor, std::vector<float> whole, const TakeWeight& take) {
  if (tensor.parts.size() == 1) return take(tensor.parts[0].parameter, std::move(whole));
  const auto row = static_cast<size_t>(tensor.ours.back());
  size_t first = 0;
  for (const WeightPart& part : tensor.parts) {
    const auto columns = static_cast<size_t>(part.columns);
    std::vector<float> taken;
    taken.reserve(whole.size() / row * columns);
    for (size_t start = first; start < whole.size(); start += row)
      taken.insert(taken.end(), whole.begin() + static_cast<ptrdiff_t>(start), whole.begin() + static_cast<ptrdiff_t>(start + columns));
    LS_CHECK(take(part.parameter, std::move(taken)));
    first += columns;
  }
  return Success{};
}

/// "a, b, c and 7 more"
std::string listOf(std::vector<std::string> names) {
  constexpr size_t kShown = 5;
  const size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Whether the source has the tensors of the model, with their types and shapes, and no others.
Status checkTensors(const LanguageConfig& config, const Family& family, const std::vector<WeightTensor>& tensors,
                    const WeightSource& source) {
  std::set<std::string> taken;
  std::vector<std::string> missing, unexpected;
  for (const WeightTensor& tensor : tensors) {
    const std::string its = nameIn(source, family, tensor.name);
    taken.insert(its);
    const auto found = source.tensors.find(its);
    if (found == source.tensors.end()) {
      missing.push_back(its);
      continue;
    }
    const WeightSource::Facts& facts = found->second;
    if (!isWeight(facts.type)) {
      return fail("language_weights.type", fmt::format("tensor '{}' is {}", its, describe(facts)), {.file = source.name},
                  "weights are f32, f16 or bf16; quantised ones are not supported");
    }
    if (facts.shape != tensor.theirs()) {
      return fail("language_weights.shape",
                  fmt::format("tensor '{}' is {}, but the config wants [{}]", its, describe(facts), fmt::join(tensor.theirs(), ",")),
                  {.file = source.name}, "config.json and the weights are of different models");
    }
  }
  for (const auto& [other, facts] : source.tensors) {
    if (!taken.contains(other) && !isSurplus(config, family, other)) unexpected.push_back(other);
  }
  if (!missing.empty()) {
    std::string message = "the weights lack " + listOf(missing);
    if (!unexpected.empty()) message += fmt::format(", and have {}, which the model does not take", listOf(unexpected));
    return fail("language_weights.missing", message, {.file = source.name},
                "download all files of the model; config.json must be of the same one");
  }
  if (!unexpected.empty()) {
    return fail("language_weights.unexpected", fmt::format("the weights have {}, which the model does not take", listOf(unexpected)),
                {.file = source.name},
                "config.json and the weights are of different models, or the model has parts that are not supported");
  }
  return Success{};
}

Failure notPlain(const std::string& format, const std::string& name) {
  return fail("language_weights.type", fmt::format("the weights are kept as {}, and f32 was lost", format), {.file = name},
              "generate with them as they are, or give the folder that this one was made from");
}

Result<std::vector<WeightTensor>> checkedTensors(const LanguageConfig& config, const WeightSource& source) {
  LS_TRY(const Family* family, familyOf(config));
  if (!config.weights.isF32()) return notPlain(toString(config.weights), source.name);
  LS_TRY(std::vector<WeightTensor> tensors, weightTensors(config, *family));
  LS_CHECK(checkTensors(config, *family, tensors, source));
  return tensors;
}

/// A tied head that the files have twice must be the table of tokens: programs differ in which of the two counts otherwise.
Status checkHead(const LanguageConfig& config, const WeightSource& source, const std::string& name, const io::Array& table) {
  if (!config.tied_head || !source.tensors.contains(kHead)) return Success{};
  LS_TRY(const io::Array head, source.read(kHead));
  const bool alike = head.type == table.type ? head.data == table.data : head.toFloats() == table.toFloats();
  if (head.shape == table.shape && alike) return Success{};
  return fail("language_weights.unexpected", fmt::format("'{}' is not the same as '{}', but tie_word_embeddings is true", kHead, name),
              {.file = source.name}, "set it to false where the model has a head of its own, or remove that tensor");
}

Status streamFrom(const LanguageConfig& config, const WeightSource& source, const TakeWeight& take, const ReadProgress& progress) {
  LS_TRY(const Family* family, familyOf(config));
  LS_TRY(const std::vector<WeightTensor> tensors, checkedTensors(config, source));
  size_t done = 0;
  for (const WeightTensor& tensor : tensors) {
    const std::string name = nameIn(source, *family, tensor.name);
    LS_TRY(const io::Array array, source.read(name));
    if (tensor.parts.front().parameter == "tokens.W") LS_CHECK(checkHead(config, source, name, array));
    LS_CHECK(giveParts(tensor, toOurs(tensor, array.toFloats()), take));
    if (progress) progress(++done, tensors.size());
  }
  return Success{};
}

Result<ParameterValues> valuesFrom(const LanguageConfig& config, const WeightSource& source) {
  ParameterValues values;
  const auto keep = [&](const std::string& parameter, std::vector<float> its) -> Status {
    values.emplace(parameter, std::move(its));
    return Success{};
  };
  LS_CHECK(streamFrom(config, source, keep, {}));
  return values;
}

}  // namespace

Result<ParameterValues> readWeights(const LanguageConfig& config, const io::TensorFile& file, const std::string& name) {
  if (const auto stored = file.metadata.find(kStoredAs); stored != file.metadata.end()) return notPlain(stored->second, name);
  return valuesFrom(config, sourceOf(file, name));
}

Result<ParameterValues> loadWeights(const LanguageConfig& config, const fs::path& folder) {
  LS_TRY(const WeightSource source, openWeights(folder));
  return valuesFrom(config, source);
}

Status checkWeights(const LanguageConfig& config, const fs::path& folder) {
  LS_TRY(const WeightSource source, openWeights(folder));
  LS_CHECK(checkedTensors(config, source));
  return Success{};
}

Status eachWeight(const LanguageConfig& config, const fs::path& folder, const TakeWeight& take, const ReadProgress& progress) {
  LS_TRY(const WeightSource source, openWeights(folder));
  return streamFrom(config, source, take, progress);
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
