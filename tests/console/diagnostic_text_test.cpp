// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "console/diagnostic_text.h"
#include "frontend/io/file.h"
#include "ir/graph/graph.h"
#include "ir/support/text.h"
#include "tests/frontend/io/scratch.h"

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

TEST(DiagnosticText, places_that_a_text_names_are_not_opened) {
  const testing::ScratchDirectory scratch("diagnostics");
  const std::string secret = scratch / "secret";
  ASSERT_TRUE(io::writeFileAtomically(secret, std::string_view("password\n")).ok());
  const auto graph = graph::parse("lockstep.graph 1\ngraph {\n  %x: f32[2] = input {dtype = f32, name = \"x\", shape = [2]} @ " +
                                  quote(secret) + ":1:1\n  output loss \"loss\" %x\n}\n");
  ASSERT_TRUE(graph.ok()) << toString(graph.diagnostics());
  ASSERT_FALSE(graph->locations.empty());
  Diagnostic diagnostic{.code = "a.b", .message = "bad", .where = graph->locations.front(), .notes = {}, .remedy = {}};
  EXPECT_EQ(renderWithSource({diagnostic}), secret + ":1:1: error: a.b: bad\n");
  // The same place from anywhere else is shown with its line.
  diagnostic.where = {.file = secret, .line = 1, .column = 1};
  EXPECT_EQ(renderWithSource({diagnostic}), secret + ":1:1: error: a.b: bad\n    password\n    ^\n");
}

TEST(DiagnosticText, only_regular_files_of_a_sensible_size_are_opened) {
  const testing::ScratchDirectory scratch("diagnostics");
  const std::string fifo = scratch / "fifo", large = scratch / "large";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(io::writeFileAtomically(large, std::string_view("first line\n")).ok());
  std::filesystem::resize_file(large, uint64_t{1} << 40u);  // takes no room, and more memory than there is
  for (const std::string& path : {fifo, large, std::string("/dev/zero")}) {
    const Diagnostic diagnostic{
        .code = "a.b", .message = "bad", .where = {.file = path, .line = 1, .column = 1}, .notes = {}, .remedy = {}};
    EXPECT_EQ(renderWithSource({diagnostic}), path + ":1:1: error: a.b: bad\n");
  }
}

TEST(DiagnosticText, control_characters_of_a_file_do_not_reach_the_terminal) {
  const testing::ScratchDirectory scratch("diagnostics");
  const std::string path = scratch / "k.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view("a\x1b]0;title\x07 ?\n")).ok());
  const Diagnostic diagnostic{.code = "wgsl.token",
                              .message = "no '\x1b[31m', '\u009b', '\u202e', '\x9b' or '\xc2'",
                              .where = {.file = path, .line = 1, .column = 14},
                              .notes = {{.message = "\x7f", .where = {.file = "\r"}}},
                              .remedy = "\x08"};
  EXPECT_EQ(renderWithSource({diagnostic}), path + R"(:1:14: error: wgsl.token: no '\x1b[31m', '\x9b', '\u202e', '\x9b' or '\xc2'
  \x0d: note: \x7f
  help: \x08
    a)"
                                                   "\uFFFD]0;title\uFFFD ?\n                 ^\n");
  EXPECT_EQ(withoutControls("a\n\tü 日本 🙂"), "a\n\tü 日本 🙂");
  EXPECT_EQ(excerptOf("\x1b ?", {.file = {}, .line = 1, .column = 3}, 1), "\uFFFD ?\n  ^\n");
}

}  // namespace
}  // namespace lockstep::console
