// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/kernel_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "console/options.h"
#include "frontend/io/file.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/claims.h"
#include "ir/support/text.h"

namespace lockstep::tools {

Result<std::map<std::string, double>> parseOverrides(const std::vector<std::string>& texts) {
  std::map<std::string, double> values;
  for (const std::string& text : texts) {
    const size_t equals = std::min(text.find('='), text.size());
    double value = 0;
    const char* begin = text.data() + std::min(equals + 1, text.size());
    const char* end = text.data() + text.size();
    const std::string_view given(begin, end);
    const bool is_true = given == "true", is_truth = is_true || given == "false";
    const auto parsed = std::from_chars(begin, end, value);
    if (is_truth) value = is_true ? 1 : 0;
    if (equals == 0 || begin == end || (!is_truth && (parsed.ec != std::errc() || parsed.ptr != end))) {
      return console::usage("override", fmt::format("--override '{}' is not NAME=NUMBER", text),
                            "NUMBER is a decimal number, true or false");
    }
    if (!values.emplace(text.substr(0, equals), value).second) {
      return console::usage("override", fmt::format("--override gives '{}' twice", text.substr(0, equals)));
    }
  }
  return values;
}

Result<kernel::Module> readKernelText(const std::string& text, const std::string& path) {
  LS_TRY(kernel::Module module, kernel::parse(text, path));
  if (const Result<kernel::ValidModule> valid = kernel::validate(module); !valid.ok()) {
    return pointInto(valid.failure(), module.name.empty() ? "kernel" : module.name, kernel::print(module), text, path);
  }
  return module;
}

Result<kernel::Module> readKernelFile(const std::string& path, const std::map<std::string, double>& overrides, const std::string& entry,
                                      std::array<uint32_t, 3> groups, const wgsl::UniformContents& uniforms) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".kir" && ending != ".wgsl") {
    return fail("run.file", fmt::format("'{}' is neither a .wgsl nor a .kir file", path), {}, "the ending says how a kernel is read");
  }
  LS_TRY(const std::string text, io::readTextFile(path));
  if (ending == ".wgsl") {
    std::vector<wgsl::Warning> warnings;
    Result<kernel::Module> module = wgsl::read(
        text,
        {.file_name = path, .overrides = overrides, .entry_point = entry, .groups = groups, .uniforms = uniforms, .warnings = &warnings});
    fmt::print(stderr, "{}", wgsl::renderWarnings(warnings, text));
    if (module.ok()) module->source = text;
    return module;
  }
  if (!overrides.empty()) return fail("run.override", fmt::format("'{}' has no override constants", path), {}, "only WGSL has them");
  LS_TRY(kernel::Module module, readKernelText(text, path));
  return kernel::dropClaims(std::move(module));
}

}  // namespace lockstep::tools
