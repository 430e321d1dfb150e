// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "console/diagnostic_text.h"
#include "frontend/io/file.h"
#include "tests/io/scratch.h"

namespace lockstep::console {
namespace {

TEST(DiagnosticText, shows_the_line_and_a_caret) {
  const testing::ScratchDirectory scratch("diagnostics");
  const std::string path = scratch / "k.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view("one\n\tlet x = ?;\nthree")).ok());
  const Diagnostic diagnostic{
      .code = "wgsl.token", .message = "this is no token", .where = {.file = path, .line = 2, .column = 10}, .notes = {}, .remedy = {}};
  EXPECT_EQ(renderWithSource({diagnostic}), path + ":2:10: error: wgsl.token: this is no token\n    \tlet x = ?;\n    \t        ^\n");
}

TEST(DiagnosticText, text_inside_of_a_file_brings_its_line) {
  const Location where{.file = "kernel 'scale' at model.cpp:12", .line = 2, .column = 3, .embedded = true};
  const std::string text = "first\n\té = 1;\r\n";
  const Note note{.message = "declared here",
                  .where = {.file = where.file, .line = 1, .column = 1, .embedded = true},
                  .excerpt = excerptOf(text, Location{"", 1, 1}, 5)};
  const Diagnostic diagnostic{
      .code = "a.b", .message = "bad", .where = where, .notes = {note}, .remedy = "do c", .excerpt = excerptOf(text, where, 2)};
  EXPECT_EQ(renderWithSource({diagnostic}),
            "kernel 'scale' at model.cpp:12, line 2 of its WGSL: error: a.b: bad\n    \té = 1;\n    \t ^~\n"
            "  kernel 'scale' at model.cpp:12, line 1 of its WGSL: note: declared here\n    first\n    ^~~~~\n  help: do c\n");
  EXPECT_EQ(excerptOf(text, Location{"", 7, 1}, 1), "");
  EXPECT_EQ(excerptOf(text, {}, 1), "");
}

TEST(DiagnosticText, places_without_a_file_have_no_excerpt) {
  const Diagnostic nowhere{.code = "a.b", .message = "bad", .where = {}, .notes = {}, .remedy = "do c"};
  EXPECT_EQ(renderWithSource({nowhere}), "error: a.b: bad\n  help: do c\n");
  const Diagnostic gone{
      .code = "a.b", .message = "bad", .where = {.file = "no/such/file", .line = 3, .column = 1}, .notes = {}, .remedy = {}};
  EXPECT_EQ(renderWithSource({gone}), "no/such/file:3:1: error: a.b: bad\n");
}

}  // namespace
}  // namespace lockstep::console
