// SPDX-License-Identifier: Apache-2.0
#include "frontend/templates.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <regex>
#include <sstream>

#include "frontend/embedded.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/support/text.h"

namespace lockstep::detail {

namespace {

using Overrides = std::map<std::string, double>;

/// Modules that were read, by template and override values. Reading is a pure function, so sharing the results shows nowhere.
struct Cache {
  std::mutex mutex;
  std::map<std::pair<std::string, Overrides>, kernel::Module> modules;
};
Cache& cache() {
  static Cache instance;
  return instance;
}

/// The template with each `override` as a `const` of its value. WGSL sizes local arrays by constants only, and a kernel that is compiled
/// for one use has no overrides left anyway.
Result<std::string> instantiate(const EmbeddedShader& shader, Overrides values) {
  static const std::regex declaration(R"(^override\s+(\w+)\s*:\s*(\w+)\s*=\s*([^;]+);)");
  std::string out;
  std::istringstream lines{std::string(shader.text)};
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_search(line, parts, declaration)) {
      std::string name = parts[1], type = parts[2], value = parts[3];
      if (auto given = values.find(name); given != values.end()) {
        value = type == "f32" ? formatFloat(given->second) : fmt::format("{}", static_cast<int64_t>(given->second));
        values.erase(given);
      }
      line = fmt::format("const {}: {} = {};{}", name, type, value, std::string(parts.suffix()));
    }
    out += line + "\n";
  }
  if (!values.empty()) {
    return fail("template.override", fmt::format("kernel template '{}' has no override '{}'", shader.name, values.begin()->first));
  }
  return out;
}

}  // namespace

std::vector<std::string> templateNames() {
  std::vector<std::string> names;
  for (const EmbeddedShader& shader : embeddedShaders()) names.emplace_back(shader.name);
  return names;
}

Result<kernel::Module> readTemplate(std::string_view name, const std::vector<std::pair<std::string, double>>& overrides) {
  const EmbeddedShader* found = nullptr;
  for (const EmbeddedShader& shader : embeddedShaders()) {
    if (shader.name == name) found = &shader;
  }
  if (found == nullptr) return fail("template.name", fmt::format("there is no kernel template '{}'", name));
  std::pair<std::string, Overrides> key{std::string(name), Overrides(overrides.begin(), overrides.end())};
  std::lock_guard lock(cache().mutex);
  if (auto known = cache().modules.find(key); known != cache().modules.end()) return known->second;
  LS_TRY(std::string text, instantiate(*found, key.second));
  auto module = wgsl::read(text, {.file_name = fmt::format("shaders/{}.wgsl", name), .overrides = {}});
  if (!module) return module.failure();
  return cache().modules.emplace(std::move(key), std::move(*module)).first->second;
}

passes::TemplateSource templateSource() { return embeddedShaders().empty() ? nullptr : &readTemplate; }

}  // namespace lockstep::detail
