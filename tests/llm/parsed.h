// SPDX-License-Identifier: Apache-2.0
// A config.json, what is made of it, and what is said of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontend/llm/language_config.h"
#include "tests/llm/tiny.h"

namespace lockstep::llm::testing {

/// Whatever is wrong says where, and what helps.
inline Diagnostic wrongOf(const std::string& json) {
  const Result<LanguageConfig> parsed = LanguageConfig::parse(json, "here/config.json");
  if (parsed) return {};
  const Diagnostic& wrong = parsed.diagnostics()[0];
  EXPECT_EQ(wrong.where.file, "here/config.json") << toString(wrong);
  EXPECT_TRUE(!wrong.remedy.empty() || wrong.code == "json.text") << toString(wrong);
  return wrong;
}
inline std::string codeOf(const std::string& json) { return wrongOf(json).code; }
/// Of a Llama with other members.
inline LanguageConfig llama(const std::string& more) { return configOf(tinyJson("llama", more)); }
inline std::vector<int64_t> windowsOf(const LanguageConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.window);
  return windows;
}

}  // namespace lockstep::llm::testing
