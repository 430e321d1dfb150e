// SPDX-License-Identifier: Apache-2.0
#include "tests/house/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <regex>
#include <set>
#include <span>
#include <sstream>

namespace lockstep::house {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> kRooms = {"ir",         "passes",   "backends",    "runtime", "frontend", "console",
                                                     "experiment", "examples", "conformance", "tools",   "bench",    "tests"};

/// Files whose path starts with `folder` may include only what starts with one of `allowed`. The first row that matches counts.
struct DirectionRow {
  std::string_view folder;
  std::vector<std::string_view> allowed;
};
const std::vector<DirectionRow>& directions() {
  static const std::vector<DirectionRow> rows = {
      {"ir/support/", {"ir/support/"}},
      {"ir/kernel/", {"ir/support/", "ir/kernel/"}},
      {"ir/", {"ir/"}},
      {"passes/", {"ir/", "passes/"}},
      {"backends/reference/",
       {"ir/kernel/", "ir/program/", "ir/support/", "backends/backend.h", "backends/dispatch.h", "backends/perturb.h",
        "backends/sanitize.h", "backends/why.h", "backends/reference/"}},
      {"backends/vulkan/", {"ir/kernel/", "ir/program/", "ir/support/", "backends/backend.h", "backends/vulkan/"}},
      {"backends/", {"ir/program/", "ir/kernel/", "ir/support/", "backends/"}},
      {"runtime/", {"ir/", "backends/backend.h", "frontend/io/", "runtime/"}},
      {"frontend/wgsl/", {"ir/kernel/", "ir/support/", "frontend/wgsl/"}},
      {"frontend/io/", {"ir/support/", "frontend/io/"}},
      {"frontend/text/", {"ir/support/", "frontend/io/", "frontend/text/"}},
      {"frontend/data/", {"ir/support/", "frontend/data/", "frontend/trace/host_values.h", "frontend/trace/throw_error.h"}},
      {"frontend/", {"ir/", "passes/", "backends/backend.h", "runtime/", "frontend/"}},
      {"console/", {"ir/support/", "frontend/io/", "console/"}},
      {"experiment/", {"ir/support/", "frontend/", "console/", "experiment/"}},
      {"examples/models/", {"frontend/", "examples/models/"}},
      {"examples/", {"frontend/", "experiment/", "examples/"}},
      {"conformance/",
       {"ir/", "passes/kernel/make_robust.h", "backends/backend.h", "backends/dispatch.h", "backends/reference/reference.h",
        "frontend/io/regular_file.h", "frontend/wgsl/", "conformance/"}},
      {"tools/",
       {"ir/", "passes/", "backends/backend.h", "backends/dispatch.h", "backends/driver_check.h", "backends/kernel_spirv.h",
        "backends/sanitize.h", "backends/why.h", "runtime/", "frontend/", "console/", "experiment/", "examples/", "conformance/",
        "tools/"}},
      {"bench/", {"ir/", "passes/", "backends/", "runtime/", "frontend/", "experiment/", "examples/", "tools/", "bench/"}},
      {"tests/",
       {"ir/", "passes/", "backends/", "runtime/", "frontend/", "console/", "experiment/", "examples/", "conformance/", "tools/",
        "tests/"}},
  };
  return rows;
}

/// System headers that start with `prefix` may appear only below `folders`; in a header only where `private_headers` says so.
struct LibraryRow {
  std::string_view prefix;
  std::vector<std::string_view> folders;
  bool private_headers = false;
};
const std::vector<LibraryRow>& libraries() {
  static const std::vector<LibraryRow> rows = {
      {"vulkan/", {"backends/vulkan/", "tools/devices/vulkan_instance.cpp", "tests/faults/fail_vulkan.cpp"}, true},
      {"volk", {"backends/vulkan/"}, true},
      {"glslang/", {"backends/vulkan/", "tests/"}, true},
      {"SPIRV/", {"backends/vulkan/", "tests/"}, true},
      {"spirv-tools/", {"backends/vulkan/", "tests/"}, true},
      {"tbb/", {"backends/reference/", "ir/graph/evaluate", "bench/", "tests/"}, true},
      {"oneapi/tbb", {"backends/reference/", "ir/graph/evaluate", "bench/", "tests/"}, true},
      {"nlohmann/", {"frontend/io/", "frontend/text/", "experiment/", "conformance/", "tools/", "bench/", "tests/"}, false},
      {"CLI/", {"console/", "bench/"}, false},
      {"png.h", {"frontend/io/"}, false},
      {"pcre2.h", {"frontend/text/"}, false},
      {"utf8proc.h", {"frontend/text/"}, false},
      {"zlib.h", {"frontend/io/", "conformance/", "tests/"}, false},
  };
  return rows;
}

bool startsWithAny(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool isHeader(const SourceFile& file) { return file.path.ends_with(".h"); }

/// The examples of docs/extending.md stand in a folder as they would in the tree.
std::string exampleTree(const SourceFile& file) {
  constexpr std::string_view kTree = "tests/docs/extending/";
  return std::string(file.path.starts_with(kTree) ? kTree : "");
}

}  // namespace

std::vector<SourceFile> readSources(const fs::path& root) {
  std::vector<SourceFile> files;
  for (const std::string_view room : kRooms) {
    if (!fs::is_directory(root / room)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const std::string ending = entry.path().extension().string();
      if (!entry.is_regular_file() || (ending != ".h" && ending != ".cpp")) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << stream.rdbuf();
      files.push_back({.path = fs::relative(entry.path(), root).generic_string(), .text = text.str()});
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

std::vector<Include> includesOf(const SourceFile& file) {
  std::vector<Include> includes;
  std::istringstream stream(file.text);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    const size_t close = line.find(line[open] == '"' ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    includes.push_back({.name = line.substr(open + 1, close - open - 1), .quoted = line[open] == '"', .line = number});
  }
  return includes;
}

Violations checkDirection(const SourceFile& file, const fs::path& root) {
  Violations violations;
  const auto row =
      std::ranges::find_if(directions(), [&](const DirectionRow& candidate) { return file.path.starts_with(candidate.folder); });
  if (row == directions().end()) return {fmt::format("{}: no rule says what this folder may include", file.path)};
  for (const Include& include : includesOf(file)) {
    const std::string place = fmt::format("{}:{}: ", file.path, include.line);
    if (!include.quoted) {
      if (startsWithAny(include.name, {{"ir/", "passes/", "backends/", "runtime/", "frontend/", "tools/"}})) {
        violations.push_back(place + "our own header is included with <>");
      }
      continue;
    }
    if (!startsWithAny(include.name, row->allowed)) {
      violations.push_back(fmt::format("{}{} may not include {}", place, row->folder, include.name));
    } else if (!fs::exists(root / include.name) && !fs::exists(root / exampleTree(file) / include.name) &&
               !file.path.starts_with("tests/house/")) {
      violations.push_back(fmt::format("{}\"{}\" is not a path from the root", place, include.name));
    }
  }
  return violations;
}

Violations checkLibraries(const SourceFile& file) {
  Violations violations;
  for (const Include& include : includesOf(file)) {
    const auto row =
        std::ranges::find_if(libraries(), [&](const LibraryRow& candidate) { return include.name.starts_with(candidate.prefix); });
    if (include.quoted || row == libraries().end()) continue;
    const std::string place = fmt::format("{}:{}: ", file.path, include.line);
    if (!startsWithAny(file.path, row->folders)) {
      violations.push_back(fmt::format("{}<{}> does not belong in this folder", place, include.name));
    } else if (isHeader(file) && !row->private_headers) {
      violations.push_back(fmt::format("{}<{}> belongs in a .cpp file", place, include.name));
    }
  }
  return violations;
}

Violations checkOpChoice(const SourceFile& file) {
  constexpr std::array<std::string_view, 5> kChecked = {"ir/graph/", "ir/program/", "passes/", "frontend/", "backends/backend"};
  // Kernel passes and the WGSL reader work on kernel ops.
  constexpr std::array<std::string_view, 2> kExempt = {"passes/kernel/", "frontend/wgsl/"};
  if (!startsWithAny(file.path, kChecked) || startsWithAny(file.path, kExempt)) return {};
  Violations violations;
  static const std::regex a_switch(R"(switch\s*\([^)]*\bop\b[^)]*\))");
  if (std::regex_search(file.text, a_switch)) violations.push_back(file.path + ": a switch over ops belongs in ir/ops as a facet");
  static const std::regex a_comparison(R"(op->name\s*[!=]=\s*\"(\w+)\")");
  std::set<std::string> names;
  for (std::sregex_iterator match(file.text.begin(), file.text.end(), a_comparison), end; match != end; ++match) names.insert((*match)[1]);
  // The pattern that a pass looks for has a few; more is a switch in disguise.
  constexpr size_t kMostNames = 2;
  if (names.size() > kMostNames) {
    violations.push_back(
        fmt::format("{}: compares with {} op names, which is a switch over ops; make it a facet of OpDef", file.path, names.size()));
  }
  return violations;
}

namespace {

/// A function that puts codes together from its first argument: in files whose path starts with `file`, `call` finds that argument.
struct CompositionRow {
  std::string_view file;
  std::string_view call;
  std::vector<std::string_view> codes;  ///< "{}" stands for the argument
};
const std::vector<CompositionRow>& compositions() {
  static const std::vector<CompositionRow> rows = {
      {"", R"re(\busage\(\s*"(\w+)")re", {"usage.{}"}},
      {"frontend/train/checkpoint", R"re(\bincompatible\(\s*"(\w+)")re", {"checkpoint.{}"}},
      {"frontend/io/npy.cpp", R"re(\bdamaged\(\s*"(\w+)")re", {"npy.{}"}},
      {"frontend/io/safetensors.cpp", R"re(\berror\(\s*"(\w+)")re", {"safetensors.{}"}},
      {"frontend/llm/generator.cpp", R"re(\brefuse\(\s*"(\w+)")re", {"language_model.{}"}},
      {"frontend/ops/losses.cpp", R"re(\bcheck\(\s*"(\w+)")re", {"{}.C1", "{}.C2"}},
      {"frontend/ops/conv.cpp", R"re(\brequireImage\(\s*"(\w+)")re", {"{}.C1"}},
      {"frontend/ops/element.cpp", R"re(\b(?:binary|symmetric)\(\s*"(\w+)")re", {"{}.C1", "{}.C2"}},
      {"frontend/ops/quantized.cpp", R"re(\bunpacked\(\s*"(\w+)")re", {"{}.C1", "{}.C2"}},
      {"frontend/ops/reduce.cpp", R"re(\bholds\(\s*"(\w+)")re", {"{}.C1"}},
      {"frontend/ops/view.cpp", R"re(\baboveDiagonal\(\s*"(\w+)")re", {"{}.C1"}},
      {"tools/verify/golden.cpp", R"re(\berror\(\s*"(\w+)")re", {"golden.{}"}},
  };
  return rows;
}

std::vector<std::string> composedCodesOf(const std::string& path, const std::string& text) {
  std::vector<std::string> codes;
  for (const CompositionRow& row : compositions()) {
    if (!path.starts_with(row.file)) continue;
    const std::regex call{std::string(row.call)};
    for (auto match = std::sregex_iterator(text.begin(), text.end(), call); match != std::sregex_iterator(); ++match) {
      for (const std::string_view code : row.codes) codes.push_back(fmt::format(fmt::runtime(code), (*match)[1].str()));
    }
  }
  return codes;
}

}  // namespace

std::vector<std::string> errorCodesOf(const SourceFile& file) {
  // Endings of file names, formats of texts and files, instruction sets of SPIR-V, inputs and results that programs have of themselves.
  static const std::regex kLiteral("\"([a-zA-Z_]+\\.[a-zA-Z_0-9]+)\"");
  static const std::regex kNoCode(
      "lockstep\\..*|tokenizer\\.model|NonSemantic\\..*|.*\\.(d|graph|program|safetensors|json|jsonl|jinja|png|html|txt|wgsl|kir|sh)|"
      "step\\.(scalars|extent|"
      "grad_"
      "norm|"
      "loss_scale|key)"
      "|"
      "random\\.key|"
      // Names of weights, and keys of config.json.
      "(tokens|places|norm|head)\\.[Wgb]|lm_head\\.weight|rope_parameters\\.\\w+|transformers\\.js_config");
  std::vector<std::string> codes;
  std::string code_alone;
  std::istringstream lines(file.text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find("//"));
    for (auto match = std::sregex_iterator(line.begin(), line.end(), kLiteral); match != std::sregex_iterator(); ++match) {
      if (!std::regex_match((*match)[1].str(), kNoCode)) codes.push_back((*match)[1]);
    }
    code_alone += line + "\n";
  }
  for (std::string& code : composedCodesOf(file.path, code_alone)) codes.push_back(std::move(code));
  return codes;
}

namespace {

/// How docs/errors.md writes a code, so that errors.md#area.name leads to it.
std::string anchoredCode(const std::string& code) { return fmt::format("<a id=\"{0}\"></a>`{0}`", code); }

}  // namespace

Violations checkErrorPage(const std::string& errors_page) {
  static const std::regex kCode("`([^`]*)`"), kAnchor("<a id=\"([^\"]*)\"></a>");
  Violations violations;
  std::set<std::string> anchors;
  std::istringstream lines(errors_page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    const std::string codes = line.substr(0, line.find(" | ", 2));
    for (auto match = std::sregex_iterator(codes.begin(), codes.end(), kCode); match != std::sregex_iterator(); ++match) {
      const std::string code = (*match)[1], anchored = anchoredCode(code);
      if (code.find('<') != std::string::npos) continue;  // "<op>.C1" stands for many
      if (codes.find(anchored) == std::string::npos) violations.push_back("docs/errors.md: write " + anchored);
    }
    for (auto match = std::sregex_iterator(line.begin(), line.end(), kAnchor); match != std::sregex_iterator(); ++match) {
      if (!anchors.insert((*match)[1]).second) violations.push_back("docs/errors.md: two anchors are " + (*match)[1].str());
      if (codes.find(anchoredCode((*match)[1])) == std::string::npos) {
        violations.push_back("docs/errors.md: no code of the row belongs to the anchor " + (*match)[1].str());
      }
    }
  }
  return violations;
}

Violations checkErrorCodes(const SourceFile& file, const std::string& errors_page, const std::string& ops_page) {
  Violations violations;
  for (const std::string& code : errorCodesOf(file)) {
    if (errors_page.find(anchoredCode(code)) != std::string::npos) continue;
    size_t dot = code.find('.'), section = ops_page.find("\n### " + code.substr(0, dot) + "\n");
    size_t label = ops_page.find("\n- " + code.substr(dot + 1) + ": ", section);
    if (section != std::string::npos && label < ops_page.find("\n### ", section + 1)) continue;
    violations.push_back(
        fmt::format("{}: error '{}' is not explained in docs/errors.md; a row begins with | {} |", file.path, code, anchoredCode(code)));
  }
  return violations;
}

std::vector<std::string> variablesOf(const SourceFile& file) {
  static const std::regex kCall(R"re(\b(?:getenv|environment|value)\(\s*"([A-Z][A-Z0-9_]+)")re");
  static const std::regex kList(R"(for \(const char\* variable : \{([^}]*)\})"), kName("\"([A-Z][A-Z0-9_]+)\"");
  static const std::regex kScript(R"(\$\{([A-Z][A-Z0-9_]+):-)");
  using Matches = std::sregex_iterator;
  std::vector<std::string> names;
  const std::string& text = file.text;
  if (!file.path.ends_with(".cpp") && !file.path.ends_with(".h")) {
    for (auto match = Matches(text.begin(), text.end(), kScript); match != Matches(); ++match) names.push_back((*match)[1]);
  } else if (text.find("std::getenv(") != std::string::npos) {
    for (auto match = Matches(text.begin(), text.end(), kCall); match != Matches(); ++match) names.push_back((*match)[1]);
    for (auto list = Matches(text.begin(), text.end(), kList); list != Matches(); ++list) {
      const std::string inner = (*list)[1];
      for (auto match = Matches(inner.begin(), inner.end(), kName); match != Matches(); ++match) names.push_back((*match)[1]);
    }
  }
  return names;
}

Violations checkVariables(const SourceFile& file) {
  // Each has one helper that takes a name.
  constexpr std::array<std::string_view, 3> kHelpers = {"tools/devices/vulkan_probe.cpp", "tools/profile/peaks.cpp",
                                                        "tests/backends/vulkan/variable.h"};
  static const std::regex kNoLiteral(R"re(std::getenv\((?!"))re");
  if (startsWithAny(file.path, kHelpers) || !std::regex_search(file.text, kNoLiteral)) return {};
  return {file.path + ": getenv() takes a literal, so that docs/environment.md can be compared with it"};
}

std::vector<std::string> documentedVariables(const std::string& page) {
  static const std::regex kName("`([A-Z][A-Z0-9_]*)`");
  std::vector<std::string> names;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string first = line.substr(0, line.find(" | ", 2));
    for (auto match = std::sregex_iterator(first.begin(), first.end(), kName); match != std::sregex_iterator(); ++match) {
      names.push_back((*match)[1]);
    }
  }
  return names;
}

Violations checkForm(const SourceFile& file) {
  Violations violations;
  if (!file.text.starts_with("// SPDX-License-Identifier: Apache-2.0\n"))
    violations.push_back(file.path + ":1: the licence line is missing");
  if (isHeader(file) && file.text.find("\n#pragma once\n") == std::string::npos)
    violations.push_back(file.path + ": #pragma once is missing");
  const auto lines = std::ranges::count(file.text, '\n');
  constexpr std::ptrdiff_t kMostLines = 800;
  if (lines > kMostLines) violations.push_back(fmt::format("{}: {} lines; split it by topic (at most {})", file.path, lines, kMostLines));
  return violations;
}

}  // namespace lockstep::house
