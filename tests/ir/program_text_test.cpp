// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ir/graph/builder.h"
#include "ir/kernel/builder.h"
#include "ir/program/program.h"
#include "tests/ir/text_testing.h"

namespace lockstep::program {
namespace {

Program parsed(const std::string& text) {
  auto program = parse(text, "test");
  if (!program.ok()) {
    ADD_FAILURE() << toString(program.diagnostics()) << text;
    return {};
  }
  return *program;
}

class ProgramFile : public testing::TestWithParam<const char*> {};

TEST_P(ProgramFile, print_parse_isFixpointAndValid) {
  std::string text = readData(GetParam());
  ASSERT_FALSE(text.empty());
  Program program = parsed(text);
  EXPECT_EQ(print(program), text);
  EXPECT_EQ(program, canonical(program));
  Status status = validateStructure(program);
  EXPECT_TRUE(status.ok()) << toString(status.diagnostics());
}

TEST_P(ProgramFile, parse_mutatedText_neverCrashes) {
  std::string text = readData(GetParam());
  std::mt19937 random(11);
  size_t accepted = 0, sound = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string mutated = mutate(text, random);
    SCOPED_TRACE(mutated);
    auto program = parse(mutated, "mutated");
    if (!program.ok()) {
      ASSERT_TRUE(program.diagnostics().front().where.known()) << toString(program.diagnostics());
      continue;
    }
    ++accepted;
    std::string printed = print(*program);
    auto again = parse(printed, "again");
    ASSERT_TRUE(again.ok()) << toString(again.diagnostics()) << printed;
    ASSERT_EQ(print(*again), printed);
    sound += validateStructure(*program).ok() ? 1 : 0;
    (void)validate(*program);
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(sound, 20u);
  EXPECT_LT(sound, accepted);
}

INSTANTIATE_TEST_SUITE_P(Files, ProgramFile, testing::Values("step.program", "ready.program"));

Program untidyProgram() {
  Program program;
  program.profile.name = "a device";
  program.profile.max_binding_bytes = 12345;
  program.arenas = {
      {"work", ArenaRole::Workspace, 512}, {"work", ArenaRole::State, 256}, {"7", ArenaRole::Input, 0}, {"", ArenaRole::Output, 0}};
  program.buffers.resize(3);
  program.buffers[0] = {.name = "a b", .type = {}, .role = ArenaRole::State, .arena = ArenaId(1), .offset = 0, .size = 4, .initial = 0.1};
  program.buffers[1] = {.name = "", .type = {}, .role = ArenaRole::Output, .arena = {}, .offset = 3, .size = 4};
  program.buffers[2] = {.name = "0", .type = {}, .role = ArenaRole::Workspace, .arena = {}, .offset = 0, .size = 8};
  graph::Builder body;
  body.setLocation(body.addLocation({"a.cpp", 1, 2}));
  body.output(graph::OutputKind::Result, "r", body.add(body.constant(1, graph::TensorType{}), 2.0));
  kernel::Builder code;
  kernel::FunctionId main = code.function("main", code.types().voidType());
  code.setWorkgroupSize(main, {1, 1, 1});
  code.enterFunction(main);
  code.setLocation({"b.wgsl", 3, 4});
  code.setOrigin(5);
  code.returnVoid();
  program.kernels = {{"same", SymbolicKernel{body.take(), TemplatePlan{.name = "a \"template\"", .overrides = {{"n", 4}}}}},
                     {"same", code.take()}};
  Range part{BufferId(2), 4, 4, kernel::Access::Read}, odd{BufferId(1), 0, 4, kernel::Access::Write};
  program.commands = {{Dispatch{KernelId(1), {1, 2, 3}, {part, odd}}, 3, "label \"x\""},
                      {Copy{part, odd}, 3, ""},
                      {Copy{.source = odd, .target = part}, 1, ""},
                      {Fill{part, 0xdeadbeef}, 1, "f"}};
  std::get<Fill>(program.commands[3].action).target.step = -8;
  program.loops = {{.first = 1, .last = 1, .iterations = 7}, {.first = 9, .last = 2, .iterations = 0}};
  program.inputs = {{"in", BufferId(0), BatchSource{.below = 10, .ignored = -1}},
                    {"plain", BufferId(0)},
                    {"s", BufferId(0), FormulaSource{{"lr * step", "last"}}},
                    {"k \"y\"", BufferId(1), KeySource{}}};
  program.outputs = {{"out", graph::OutputKind::NextState, BufferId(1)}};
  program.states = {{BufferId(0), {{"a.b", 0}, {"c \"d\"", 64}}}, {BufferId(1), {}}};
  program.steps = Steps{.accumulate = 3, .rate = "0.1 / step"};
  program.checkpoint = {{"a", "1"}, {"b \"c\"", ""}};
  program.constants = {{BufferId(2), {}}, {BufferId(2), std::vector<uint32_t>(33, 0xffffffff)}};
  return program;
}

TEST(ProgramText, parse_print_equalsCanonical) {
  Program program = untidyProgram();
  EXPECT_EQ(parsed(print(program)), canonical(program)) << print(program);
}

TEST(ProgramText, canonical_dropsLocations) {
  Program program = canonical(untidyProgram());
  EXPECT_TRUE(std::get<SymbolicKernel>(program.kernels[0].code).body.locations.empty());
  EXPECT_TRUE(std::get<kernel::Module>(program.kernels[1].code).locations.empty());
  EXPECT_NE(program, untidyProgram());
}

TEST(ProgramText, print_brokenIds_neverCrashes) {
  Program program = untidyProgram();
  program.buffers[0].arena = ArenaId(99);
  program.commands[0].action = Dispatch{.kernel = {}, .bindings = {Range{}}};
  program.outputs[0].buffer = BufferId(99);
  EXPECT_NE(print(program).find("%undefined"), std::string::npos);
  EXPECT_FALSE(validateStructure(program).ok());
}

// A truncated text is not a smaller program.
TEST_P(ProgramFile, parse_truncatedText_isAnError) {
  const std::string text = readData(GetParam());
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    ASSERT_FALSE(parse(text.substr(0, length), "test").ok()) << text.substr(0, length);
  }
  EXPECT_TRUE(parse(text.substr(0, text.size() - 1), "test").ok()) << "without the last line break it is whole";
}

struct SyntaxCase {
  const char* name;
  const char* from;
  const char* to;
  const char* code;
  const char* line;  ///< part of the line (after the change)
};

class ProgramSyntax : public testing::TestWithParam<SyntaxCase> {};

TEST_P(ProgramSyntax, parse_brokenText_pointsAtIt) {
  const SyntaxCase& broken = GetParam();
  std::string text = replaced(readData("step.program"), broken.from, broken.to);
  auto program = parse(text, "test");
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(reports(program.failure(), broken.code, lineOf(text, broken.line))) << toString(program.diagnostics());
  EXPECT_NE(program.diagnostics().front().where.column, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ProgramSyntax,
    testing::Values(SyntaxCase{"version", "program 1", "program 2", "text.version", "program 2"},
                    SyntaxCase{"role", ": state", ": stats", "text.syntax", ": stats"},
                    SyntaxCase{"arenaName", "arena = @input", "arena = @output", "program.name", "@output"},
                    SyntaxCase{"bufferTwice", "buffer %m", "buffer %params", "program.name", "offset = 256"},
                    SyntaxCase{"field", "initial", "first", "program.field", "first"},
                    SyntaxCase{"fieldTwice", "initial = 0.5", "size = 4", "program.field", "size = 4"},
                    SyntaxCase{"negative", "offset = 256", "offset = -256", "program.number", "-256"},
                    SyntaxCase{"word", "0xffffffff", "0x1ffffffff", "program.number", "0x1ffffffff"},
                    SyntaxCase{"nestedOp", "exp %a", "expp %a", "graph.op", "expp %a"},
                    SyntaxCase{"kernelOpen", "    output result \"r\" %1\n  }\n}\n", "", "text.syntax", "kernel @scale"},
                    SyntaxCase{"kernelName", "dispatch @scale", "dispatch @scales", "program.name", "@scales"},
                    SyntaxCase{"access", "(read ", "(peek ", "text.syntax", "peek"},
                    SyntaxCase{"groups", "groups [1, 1, 1]", "groups [1, 1]", "text.syntax", "groups"},
                    SyntaxCase{"commandFirst", "level 0:\n", "", "text.syntax", "dispatch"},
                    SyntaxCase{"afterEnd", "\nend\n", "\nend\nlevel 3:\n", "text.syntax", "level 3"},
                    SyntaxCase{"bufferLast", "level 2:", "level 2:\nbuffer %z: f32[] state {size = 4}", "text.syntax", "%z"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::program
