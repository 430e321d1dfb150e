// SPDX-License-Identifier: Apache-2.0
#include "tests/frontend/wgsl/wgsl_reading.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace lockstep::wgsl::testing {

kernel::Module readGood(const std::string& source, const ReadOptions& options) {
  Result<kernel::Module> module = read(source, options);
  if (!module.ok()) {
    ADD_FAILURE() << renderDiagnostics(module.diagnostics(), source);
    return {};
  }
  const std::string text = kernel::print(*module);
  const auto valid = kernel::validate(*module);
  if (!valid.ok()) ADD_FAILURE() << toString(valid.diagnostics()) << "\n" << text << "\nread from\n" << source;
  const auto parsed = kernel::parse(text);
  if (!parsed.ok()) {
    ADD_FAILURE() << toString(parsed.diagnostics()) << "\n" << text;
  } else {
    EXPECT_EQ(kernel::print(*parsed), text);
    kernel::Module expected = kernel::canonical(*module);
    // Locations are not part of the text.
    expected.locations.clear();
    for (kernel::Instruction& instruction : expected.instructions) instruction.location = 0;
    EXPECT_TRUE(*parsed == kernel::canonical(expected)) << text;
  }
  return *module;
}

std::string firstError(const std::string& source, const ReadOptions& options) {
  const Result<kernel::Module> module = read(source, options);
  if (module.ok()) return "accepted";
  const Diagnostic& first = module.diagnostics().front();
  return fmt::format("{}:{} {}: {}", first.where.line, first.where.column, first.code, first.message);
}

std::string inShader(const std::string& statements) {
  return fmt::format(
      "struct S {{ a: f32, b: vec3<f32>, c: array<i32, 4> }}\n"
      "@group(0) @binding(0) var<storage, read> buf: array<f32>;\n"
      "@group(0) @binding(1) var<storage, read_write> out: array<i32>;\n"
      "fn f(x: i32) -> i32 {{ return x + 1; }}\n"
      "@compute @workgroup_size(64)\n"
      "fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n{}\n}}\n",
      statements);
}

std::string withoutNames(kernel::Module module) {
  for (kernel::Value& value : module.values) {
    if (value.kind == kernel::ValueKind::Instruction || value.kind == kernel::ValueKind::Parameter) value.name.clear();
  }
  return kernel::print(kernel::canonical(module));
}

std::string roundTripProblem(const kernel::Module& module) {
  const std::string text = write(module);
  const Result<kernel::Module> again = read(text, {.file_name = "written.wgsl", .overrides = {}});
  if (!again.ok()) return "what is written is refused:\n" + renderDiagnostics(again.diagnostics(), text);
  const std::string before = withoutNames(module), after = withoutNames(*again);
  if (before != after) return fmt::format("the module differs:\n{}\n--- written as\n{}\n--- reads as\n{}", before, text, after);
  const std::string second = write(*again);
  return second == text ? "" : fmt::format("the text is not stable:\n{}\n--- then\n{}", text, second);
}

std::string readFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::vector<std::filesystem::path> dataFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/frontend/wgsl/data")) {
    if (entry.path().extension() == ".wgsl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

ReadOptions optionsOf(const std::string& source) {
  ReadOptions options;
  constexpr std::string_view kPrefix = "// overrides: ";
  if (!source.starts_with(kPrefix)) return options;
  std::stringstream list(source.substr(kPrefix.size(), source.find('\n') - kPrefix.size()));
  for (std::string item; std::getline(list, item, ',');) {
    const size_t begin = item.find_first_not_of(' '), equals = item.find('=');
    options.overrides[item.substr(begin, equals - begin)] = std::stod(item.substr(equals + 1));
  }
  return options;
}

}  // namespace lockstep::wgsl::testing
