// SPDX-License-Identifier: Apache-2.0
#include "frontend/templates.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "frontend/embedded.h"
#include "frontend/wgsl/wgsl.h"

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

}  // namespace

Result<kernel::Module> readTemplate(std::string_view name, const std::vector<std::pair<std::string, double>>& overrides) {
  const EmbeddedShader* found = nullptr;
  for (const EmbeddedShader& shader : embeddedShaders()) {
    if (shader.name == name) found = &shader;
  }
  if (found == nullptr) return fail("template.name", fmt::format("there is no kernel template '{}'", name));
  std::pair<std::string, Overrides> key{std::string(name), Overrides(overrides.begin(), overrides.end())};
  std::lock_guard lock(cache().mutex);
  if (auto known = cache().modules.find(key); known != cache().modules.end()) return known->second;
  LS_TRY(kernel::Module module,
         wgsl::read(found->text,
                    {.file_name = fmt::format("shaders/{}.wgsl", name), .overrides = key.second, .overrides_are_constants = true}));
  return cache().modules.emplace(std::move(key), std::move(module)).first->second;
}

passes::TemplateSource templateSource() { return embeddedShaders().empty() ? nullptr : &readTemplate; }

}  // namespace lockstep::detail
