// SPDX-License-Identifier: Apache-2.0
#include "tools/language/measured_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "console/text_format.h"
#include "frontend/llm/stored_weights.h"
#include "tools/language/text_model.h"
#include "tools/verb.h"

namespace lockstep::tools {

bool isLanguageModel(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / "config.json", ignored);
}

Result<llm::Generator> generatorToMeasure(const std::string& folder, const std::string& device, const WeightChoices& weights,
                                          int64_t context, const std::string& dump_ir) {
  constexpr int64_t kContext = 1024;
  LS_CHECK(checkContext(context));
  LS_TRY(const std::optional<nn::WeightFormat> format, weights.weights());
  LS_TRY(const graph::DType cache, weights.cache());
  LS_TRY(const llm::LanguageConfig read, llm::LanguageConfig::load(folder));
  LS_TRY(const llm::LanguageConfig config, llm::withFormat(read, format));
  const int64_t positions = context > 0 ? context : std::min(kContext, config.context > 0 ? config.context : kContext);
  fmt::print(stderr, "reading {}\n", folder);
  return llm::Generator::load(config, folder, {.device = device, .positions = positions, .chunk = 1, .cache = cache, .dump_ir = dump_ir});
}

ProfiledStep stepOf(llm::Generator& generator) {
  const int64_t at = generator.options().positions / 2;
  return {.prepare = [&generator, at] { generator.pretend(at); },
          .submit = [] {},
          .wait = [&generator] { (void)generator.feed({{0}}); },
          .timed = [&generator] { return generator.profile(); }};
}

std::string memoryText(const llm::GeneratorMemory& memory) {
  return fmt::format("memory: weights {}, keys, values and other states {}, activations {}", console::formatBytes(memory.weights),
                     console::formatBytes(memory.states), console::formatBytes(memory.activations));
}

}  // namespace lockstep::tools
