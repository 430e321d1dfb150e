// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>

#include "frontend/train/embedded_shaders.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::detail {

namespace {

using Overrides = std::map<std::string, double>;

using Key = std::pair<std::string, Overrides>;

/// The modules that were used last, by template and override values. Reading is a pure function, so sharing the results shows nowhere.
/// Extents are override values: without a limit a program with dynamic extents would keep a module for each extent there ever was.
struct Cache {
  std::mutex mutex;
  std::list<std::pair<Key, kernel::Module>> modules;  ///< the last used one first

  /// Null when there is none.
  const kernel::Module* find(const Key& key) {
    const auto found = std::ranges::find(modules, key, &std::pair<Key, kernel::Module>::first);
    if (found == modules.end()) return nullptr;
    modules.splice(modules.begin(), modules, found);
    return &modules.front().second;
  }
  void insert(Key key, const kernel::Module& module) {
    if (modules.size() == kMostTemplates) modules.pop_back();
    modules.emplace_front(std::move(key), module);
  }
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
  Key key{std::string(name), Overrides(overrides.begin(), overrides.end())};
  std::lock_guard lock(cache().mutex);
  if (const kernel::Module* known = cache().find(key)) return *known;
  LS_TRY(kernel::Module module,
         wgsl::read(found->text,
                    {.file_name = fmt::format("shaders/{}.wgsl", name), .overrides = key.second, .overrides_are_constants = true}));
  cache().insert(std::move(key), module);
  return module;
}

size_t templatesKept() {
  std::lock_guard lock(cache().mutex);
  return cache().modules.size();
}

passes::TemplateSource templateSource() { return embeddedShaders().empty() ? nullptr : &readTemplate; }

}  // namespace lockstep::detail
