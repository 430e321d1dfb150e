// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "frontend/io/regular_file.h"
#include "frontend/llm/language_config.h"

namespace lockstep::llm {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostSettingsBytes = uint64_t{1} << 26;

}  // namespace

Result<LanguageConfig> LanguageConfig::load(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "config.json", ignored)) {
    const std::string name = folder.string();
    return fail(
        "file.read",
        fs::is_directory(folder, ignored) ? fmt::format("'{}' has no config.json", name) : fmt::format("there is no folder '{}'", name), {},
        "give the folder of a model of Hugging Face: config.json, weights as safetensors, tokenizer.json");
  }
  LS_TRY(const std::string config, io::readRegularTextFile(folder / "config.json", kMostSettingsBytes));
  std::string generation;
  if (const fs::path path = folder / "generation_config.json"; fs::exists(path, ignored)) {
    LS_TRY(generation, io::readRegularTextFile(path, kMostSettingsBytes));
  }
  return parse(config, (folder / "config.json").string(), generation);
}

}  // namespace lockstep::llm
