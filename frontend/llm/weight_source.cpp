// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/weight_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>

#include "frontend/io/regular_file.h"
#include "frontend/io/tensor_reader.h"
#include "frontend/text/json_value.h"

namespace lockstep::llm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr uint64_t kMostIndexBytes = uint64_t{1} << 28;

bool isThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Failure wrongIndex(const fs::path& index, const std::string& message, const std::string& remedy) {
  return fail("language_weights.file", message, {.file = index.string()}, remedy);
}

using Readers = std::vector<std::shared_ptr<const io::TensorReader>>;

/// The tensors of all shards.
Result<Readers> openShards(const fs::path& folder) {
  const fs::path index = folder / kIndex;
  LS_TRY(const std::string json, io::readRegularTextFile(index, kMostIndexBytes));
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
  Readers readers;
  std::set<std::string, std::less<>> all;
  for (const auto& [shard, tensors] : by_shard) {
    if (!isThere(folder / shard))
      return wrongIndex(index, fmt::format("the shard '{}' is not there, and {} tensors are in it", shard, tensors.size()),
                        "download all files of the model");
    LS_TRY(io::TensorReader part, io::TensorReader::open(folder / shard));
    for (const std::string& tensor : tensors) {
      if (!part.tensors().contains(tensor))
        return wrongIndex(index, fmt::format("tensor '{}' is not in '{}'", tensor, shard), "download both files again");
    }
    for (const auto& [tensor, place] : part.tensors()) {
      if (!all.insert(tensor).second)
        return wrongIndex(index, fmt::format("tensor '{}' is in two shards", tensor), "remove shards of another model");
    }
    readers.push_back(std::make_shared<const io::TensorReader>(std::move(part)));
  }
  return readers;
}

WeightSource sourceOf(const Readers& readers, const std::string& name) {
  WeightSource source{.name = name};
  std::map<std::string, std::shared_ptr<const io::TensorReader>, std::less<>> owners;
  for (const auto& reader : readers) {
    for (const auto& [tensor, place] : reader->tensors()) {
      source.tensors.emplace(tensor, WeightSource::Facts{.type = place.type, .shape = place.shape});
      owners.emplace(tensor, reader);
    }
  }
  source.read = [owners = std::move(owners)](const std::string& tensor) { return owners.at(tensor)->read(tensor); };
  return source;
}

}  // namespace

std::string describe(const WeightSource::Facts& facts) { return fmt::format("{}[{}]", toString(facts.type), fmt::join(facts.shape, ",")); }

WeightSource sourceOf(const io::TensorFile& file, const std::string& name) {
  WeightSource source{.name = name};
  for (const auto& [tensor, array] : file.tensors)
    source.tensors.emplace(tensor, WeightSource::Facts{.type = array.type, .shape = array.shape});
  source.read = [&file](const std::string& tensor) -> Result<io::Array> { return *file.find(tensor); };
  return source;
}

Result<WeightSource> openWeights(const fs::path& folder) {
  if (isThere(folder / kWhole)) {
    LS_TRY(io::TensorReader whole, io::TensorReader::open(folder / kWhole));
    return sourceOf({std::make_shared<const io::TensorReader>(std::move(whole))}, (folder / kWhole).string());
  }
  if (isThere(folder / kIndex)) {
    LS_TRY(const Readers readers, openShards(folder));
    return sourceOf(readers, (folder / kIndex).string());
  }
  return fail("language_weights.file", fmt::format("there is neither {} nor {}", kWhole, kIndex), {.file = folder.string()},
              "give the folder of a model with weights as safetensors; those of PyTorch (.bin) must be converted");
}

}  // namespace lockstep::llm
