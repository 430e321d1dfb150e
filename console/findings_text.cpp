// SPDX-License-Identifier: Apache-2.0
#include "console/findings_text.h"

#include <fmt/format.h>

#include "console/diagnostic_text.h"

namespace lockstep::console {
namespace {

io::Json placeJson(const Location& where) {
  return io::Json::object().add("file", where.file).add("line", where.line).add("column", where.column);
}

}  // namespace

io::Json findingsJson(const std::vector<Finding>& findings) {
  io::Json list = io::Json::array();
  for (const Finding& finding : findings) {
    io::Json related = io::Json::array();
    for (const Note& note : finding.diagnostic.notes) related.add(placeJson(note.where).add("message", note.message));
    list.add(placeJson(finding.diagnostic.where)
                 .add("code", finding.diagnostic.code)
                 .add("severity", toString(finding.severity))
                 .add("message", finding.diagnostic.message)
                 .add("count", finding.count)
                 .add("invocation", finding.invocation)
                 .add("related", related));
  }
  return list;
}

void printFindings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) fmt::print(stderr, "{}\n", paintDiagnostic(toString(finding), stderr));
  fmt::print(stderr, "{}\n", countsOf(findings));
}

void addFindings(Failure& failure, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity != Finding::Severity::Error) continue;
    Diagnostic& added = failure.diagnostics.emplace_back(finding.diagnostic);
    if (!finding.invocation.empty()) added.notes.push_back({.message = "first in " + finding.invocation, .where = {}});
  }
}

}  // namespace lockstep::console
