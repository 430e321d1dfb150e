// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::tools {

Result<kernel::Module> readKernelFile(const std::string& path, const std::map<std::string, double>& overrides) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".kir" && ending != ".wgsl") {
    return fail("run.file", fmt::format("'{}' is neither a .wgsl nor a .kir file", path), {}, "the ending says how a kernel is read");
  }
  LS_TRY(const std::string text, io::readTextFile(path));
  if (ending == ".wgsl") {
    std::vector<wgsl::Warning> warnings;
    Result<kernel::Module> module = wgsl::read(text, {.file_name = path, .overrides = overrides, .warnings = &warnings});
    fmt::print(stderr, "{}", wgsl::renderWarnings(warnings, text));
    return module;
  }
  if (!overrides.empty()) return fail("run.override", fmt::format("'{}' has no override constants", path), {}, "only WGSL has them");
  return kernel::parse(text, path);
}

}  // namespace lockstep::tools
