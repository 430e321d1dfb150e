// SPDX-License-Identifier: Apache-2.0
// A config.json, what is made of it, and what is said of it.
#pragma once

#include <string>
#include <vector>

#include "frontend/llm/language_config.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm::testing {

inline std::string codeOf(const std::string& json) {
  const Result<LanguageConfig> parsed = LanguageConfig::parse(json, "config.json");
  return parsed ? "" : parsed.diagnostics()[0].code;
}
inline Diagnostic wrongOf(const std::string& json) {
  const Result<LanguageConfig> parsed = LanguageConfig::parse(json, "here/config.json");
  return parsed ? Diagnostic{} : parsed.diagnostics()[0];
}
/// Of a Llama with other members.
inline LanguageConfig llama(const std::string& more) { return configOf(tinyJson("llama", more)); }
inline std::vector<int64_t> windowsOf(const LanguageConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.window);
  return windows;
}

}  // namespace lockstep::llm::testing
