// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/explanations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "ir/graph/op_def.h"
#include "tools/explain/error_page.h"

namespace lockstep::tools {
namespace {

constexpr const char *kErrors = "docs/errors.md", *kOps = "docs/ops.md";

struct Row {
  std::vector<std::string> codes;
  std::string meaning;
};

/// Of a line "| <a id=...></a>`file.read`, <a id=...></a>`file.write` | the operating system refused |"; no codes for any other line.
Row rowOf(std::string_view line) {
  Row row;
  const size_t middle = line.find(" | ", 2), end = line.rfind(" |");
  if (!line.starts_with("| ") || middle == std::string_view::npos || end <= middle) return row;
  const std::string_view codes = line.substr(0, middle);
  for (size_t open = codes.find('`'); open != std::string_view::npos;) {
    const size_t close = codes.find('`', open + 1);
    if (close == std::string_view::npos) break;
    row.codes.emplace_back(codes.substr(open + 1, close - open - 1));
    open = codes.find('`', close + 1);
  }
  row.meaning = line.substr(middle + 3, end - middle - 3);
  return row;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (size_t start = 0, end = 0; (end = kErrorPage.find('\n', start)) != std::string_view::npos; start = end + 1) {
    if (Row row = rowOf(kErrorPage.substr(start, end - start)); !row.codes.empty()) all.push_back(std::move(row));
  }
  return all;
}

bool varies(std::string_view code) { return code.find('<') != std::string_view::npos; }

/// Whether "vulkan.vkQueueSubmit" is one of "vulkan.<call>": a name stands for what is in brackets.
bool fits(std::string_view code, std::string_view pattern) {
  const size_t open = pattern.find('<'), close = pattern.find('>');
  const std::string_view before = pattern.substr(0, open), after = pattern.substr(close + 1);
  if (code.size() <= before.size() + after.size() || !code.starts_with(before) || !code.ends_with(after)) return false;
  return std::ranges::all_of(code.substr(before.size(), code.size() - before.size() - after.size()),
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::string codeOf(const graph::OpDef& op, const graph::Constraint& constraint) { return fmt::format("{}.{}", *op.name, constraint.label); }

}  // namespace

std::optional<Explanation> explanationOf(const std::string& code) {
  const std::vector<Row> all = rows();
  for (const Row& row : all) {
    if (std::ranges::find(row.codes, code) != row.codes.end() && !varies(code)) {
      return Explanation{.meaning = row.meaning, .page = kErrors, .anchor = code};
    }
  }
  for (const graph::OpDef* op : graph::allOps()) {
    for (const graph::Constraint& constraint : *op->constraints) {
      if (codeOf(*op, constraint) != code) continue;
      return Explanation{.meaning = fmt::format("a constraint of the op '{}': {}", *op->name, constraint.text),
                         .page = kOps,
                         .anchor = std::string(*op->name)};
    }
  }
  for (const Row& row : all) {
    for (const std::string& pattern : row.codes) {
      if (varies(pattern) && fits(code, pattern)) return Explanation{.meaning = row.meaning, .page = kErrors, .anchor = {}};
    }
  }
  return {};
}

std::vector<std::string> explainedCodes() {
  std::vector<std::string> codes;
  for (const Row& row : rows())
    std::ranges::copy_if(row.codes, std::back_inserter(codes), [](const std::string& code) { return !varies(code); });
  for (const graph::OpDef* op : graph::allOps()) {
    for (const graph::Constraint& constraint : *op->constraints) codes.push_back(codeOf(*op, constraint));
  }
  return codes;
}

}  // namespace lockstep::tools
