// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/at_call.h"

namespace lockstep::detail {

Location toLocation(const Where& where) { return {where.file_name(), where.line(), where.column()}; }

void throwAt(const Error& error, const Location& call, const Location& declared) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.where.file.empty()) {
      diagnostic.where = call;
    } else if (!diagnostic.where.known()) {
      diagnostic.notes.push_back({"the call is here", call});
    }
    if (declared.known() && diagnostic.code.starts_with("batch.")) diagnostic.notes.push_back({"the inputs are declared here", declared});
  }
  throw Error(std::move(diagnostics), error.exitCode());
}

}  // namespace lockstep::detail
