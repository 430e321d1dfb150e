// SPDX-License-Identifier: Apache-2.0
// What an error code means: the words of docs/errors.md, or an op's own constraint.
#include <fmt/format.h>

#include <vector>

#include "frontend/io/jsonl.h"
#include "ir/graph/op_def.h"
#include "ir/support/nearest.h"
#include "tools/error_page.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

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

ExitCode say(const std::string& code, const std::string& meaning, const std::string& link, bool json) {
  if (json) {
    fmt::print("{}\n", io::Json::object().add("code", code).add("meaning", meaning).add("link", link).text());
  } else {
    fmt::print("{}: {}\n{}\n", code, meaning, link);
  }
  return ExitCode::Ok;
}

}  // namespace

Result<ExitCode> explainVerb(Arguments arguments) {
  std::string code;
  bool json = false;
  Options options("lockstep explain", "Says what an error code means: 'lockstep explain matmul.C3'.");
  options.argument(code, "CODE", "as it stands after 'error:'");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  std::vector<std::string> known;
  for (const Row& row : rows()) {
    for (const std::string& each : row.codes) {
      if (each == code) return say(code, row.meaning, fmt::format("docs/errors.md#{}", code), json);
      known.push_back(each);
    }
  }
  for (const graph::OpDef* op : graph::allOps()) {
    for (const graph::Constraint& constraint : *op->constraints) {
      const std::string each = fmt::format("{}.{}", *op->name, constraint.label);
      if (each == code) {
        return say(code, fmt::format("a constraint of the op '{}': {}", *op->name, constraint.text),
                   fmt::format("docs/ops.md#{}", *op->name), json);
      }
      known.push_back(each);
    }
  }
  const std::string near = nearestName(code, known);
  return usage("code", fmt::format("there is no error code '{}'", code),
               near.empty() ? "docs/errors.md lists them all" : fmt::format("did you mean '{}'?", near));
}

}  // namespace lockstep::tools
