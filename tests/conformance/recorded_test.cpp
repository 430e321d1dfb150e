// SPDX-License-Identifier: Apache-2.0
// The recorded data, when LOCKSTEP_CONFORMANCE names its folder (docs/conformance.md says what it is).
#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/conformance.h"

namespace lockstep::conformance {
namespace {

void replay(const char* file) {
  const char* folder = std::getenv("LOCKSTEP_CONFORMANCE");
  if (folder == nullptr) GTEST_SKIP() << "LOCKSTEP_CONFORMANCE does not name the folder of the recorded data";
  const auto check = [](const FileReport& report) {
    EXPECT_GT(report.counts.agree, 0u);
    EXPECT_EQ(report.counts.disagree, 0u);
    for (const Difference& difference : report.first) ADD_FAILURE() << difference.test << "\n" << difference.why;
  };
  const Status status = run({.folder = folder, .files = {file}, .only = {}}, check);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : toString(status.diagnostics().front()));
}

TEST(RecordedData, ConstantExpressions) { replay("cts_expr_const_modules"); }
TEST(RecordedData, Expressions) { replay("cts_expr_runs"); }

}  // namespace
}  // namespace lockstep::conformance
