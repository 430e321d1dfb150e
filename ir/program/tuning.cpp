// SPDX-License-Identifier: Apache-2.0
#include "ir/program/tuning.h"

#include <fmt/format.h>

#include "ir/graph/text.h"

namespace lockstep::program {

std::string print(const TuningTable& table) {
  std::string text = fmt::format("lockstep.tuning 1\ndevice {}\n", quote(table.device));
  for (const auto& [work, plan] : table.plans) text += fmt::format("{} = {}\n", quote(work), print(plan));
  return text + "end\n";
}

Result<TuningTable> parseTuning(std::string_view text, const std::string& file_name) {
  LS_TRY(TokenCursor cursor, TokenCursor::create(text, file_name));
  LS_CHECK(graph::parseVersion(cursor, "lockstep.tuning", 1));
  TuningTable table;
  LS_CHECK(cursor.expect("device"));
  LS_TRY(table.device, cursor.string());
  while (!cursor.accept("end")) {
    const Token token = cursor.peek();
    LS_TRY(std::string work, cursor.string());
    LS_CHECK(cursor.expect("="));
    LS_TRY(Plan plan, parsePlan(cursor));
    if (!table.plans.emplace(work, std::move(plan)).second)
      return fail("tuning.twice", fmt::format("'{}' has two plans", work), token.where, "keep the one that was measured last");
  }
  if (!cursor.atEnd()) return cursor.error("expected the end of the text after 'end'");
  return table;
}

TuningTable merge(TuningTable first, const TuningTable& second) {
  first.plans.insert(second.plans.begin(), second.plans.end());
  return first;
}

}  // namespace lockstep::program
