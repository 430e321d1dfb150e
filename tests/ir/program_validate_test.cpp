// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ir/program/program.h"
#include "tests/ir/text_testing.h"

namespace lockstep::program {
namespace {

struct RuleCase {
  const char* name;
  const char* file;
  const char* from;
  const char* to;
  const char* code;
  const char* line;  ///< part of the line of the printed program that the diagnostic points at
};

class ProgramRule : public testing::TestWithParam<RuleCase> {
 protected:
  // Reads the broken program and expects `check` to report it in the right line.
  template <class Check>
  void expectReported(Check&& check) {
    const RuleCase& broken = GetParam();
    auto program = parse(replaced(readData(broken.file), broken.from, broken.to), "test");
    ASSERT_TRUE(program.ok()) << toString(program.diagnostics());
    uint32_t line = lineOf(print(*program), broken.line);
    ASSERT_NE(line, 0u);
    auto result = check(*program);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.diagnostics().front().code, broken.code) << toString(result.diagnostics());
    EXPECT_EQ(result.diagnostics().front().where.line, line) << toString(result.diagnostics());
    EXPECT_LE(result.diagnostics().size(), 2u) << toString(result.diagnostics());
  }
};

using ProgramStructureRule = ProgramRule;
TEST_P(ProgramStructureRule, validateStructure_brokenRule_pointsIntoText) {
  expectReported([](const Program& p) { return validateStructure(p); });
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ProgramStructureRule,
    testing::Values(
        RuleCase{"arenaSize", "step.program", "state {size = 1024}", "state {size = 1023}", "program.arena", "arena @state"},
        RuleCase{"bufferRole", "step.program", "%x: f32[8,1] input {arena = @input", "%x: f32[8,1] input {arena = @state", "program.buffer",
                 "buffer %x"},
        RuleCase{"bufferBeyondArena", "step.program", "offset = 256", "offset = 1024", "program.buffer", "buffer %m"},
        RuleCase{"bufferAlignment", "step.program", "offset = 256", "offset = 128", "program.buffer", "buffer %m"},
        RuleCase{"bufferTooSmall", "step.program", "f32[64] state {arena = @state, offset", "f32[65] state {arena = @state, offset",
                 "program.buffer", "buffer %m"},
        RuleCase{"constantSize", "step.program", ",\n  0x00000007, 0x00000008", "", "program.constant", "constant %table"},
        RuleCase{"constantRole", "step.program", "constant %table = [", "constant %x = []\nconstant %table = [", "program.constant",
                 "constant %x"},
        RuleCase{"portRole", "step.program", "input \"x\" %x", "input \"x\" %m", "program.port", "input \"x\""},
        RuleCase{"portTwice", "step.program", "input \"x\" %x", "input \"x\" %x\ninput \"x\" %x key", "program.port", "%x key"},
        RuleCase{"symbolicBody", "step.program", "%1: f32[8] = exp", "%1: f32[9] = exp", "graph.type", "= exp"},
        RuleCase{"symbolicBindings", "step.program", "(read %x, ", "(", "program.binding", "dispatch"},
        RuleCase{"symbolicAccess", "step.program", "read_write %4", "read %4", "program.access", "dispatch"},
        RuleCase{"rangeBeyondBuffer", "step.program", "%5[16, 16]", "%5[20, 16]", "program.range", "%5[20, 16]"},
        RuleCase{"rangeEmpty", "step.program", "fill %loss", "fill %loss[4, 0]", "program.range", "fill"},
        RuleCase{"rangeWords", "step.program", "fill %loss", "fill %loss[0, 2]", "program.range", "fill"},
        RuleCase{"rangeWrite", "step.program", "read_write %4", "write %4", "program.access", "dispatch"},
        RuleCase{"copySizes", "step.program", "%5[16, 16]", "%5[16, 8]", "program.copy", "%5[16, 8]"},
        RuleCase{"copyOverlap", "step.program", "-> %5[16, 16]", "-> %4[8, 16]", "program.copy", "%4[8, 16]"},
        RuleCase{"groups", "step.program", "[1, 1, 1]", "[1, 0, 1]", "program.groups", "dispatch"},
        RuleCase{"levelOrder", "step.program", "level 0:", "level 3:", "program.level", "%5[16, 16]"},
        RuleCase{"conflictWrites", "step.program", "fill %loss", "fill %5[12, 8]", "program.conflict", "fill"},
        RuleCase{"conflictReadWrite", "step.program", "fill %loss", "fill %4[12, 4]", "program.conflict", "fill"},
        RuleCase{"aliasPart", "step.program", "(read %x, read_write %4)", "(read %5[0, 16], read_write %5[8, 16])", "program.alias",
                 "dispatch"},
        RuleCase{"aliasWrittenTwice", "step.program", "(read %x, read_write %4)", "(read_write %4, read_write %4)", "program.alias",
                 "dispatch"},
        RuleCase{"loopWithoutIterations", "step.program",
                 "level 0:", "loop {first = 0, last = 0, iterations = 0}\nlevel 0:", "program.loop", "loop {"},
        RuleCase{"loopBeyondLevels", "step.program", "level 0:", "loop {first = 0, last = 3, iterations = 2}\nlevel 0:", "program.loop",
                 "loop {"},
        RuleCase{"loopsOverlap", "step.program", "level 0:",
                 "loop {first = 0, last = 0, iterations = 2}\nloop {first = 0, last = 2, iterations = 2}\nlevel 0:", "program.loop",
                 "last = 2"},
        RuleCase{"loopTooLong", "step.program", "level 0:", "loop {first = 0, last = 2, iterations = 400000}\nlevel 0:", "program.loop",
                 "loop {"},
        RuleCase{"stepOutsideOfALoop", "step.program", "fill %loss", "fill %loss[0, 4] step 4", "program.range", "fill"},
        RuleCase{"stepBeyondBuffer", "step.program", "level 0:\n  dispatch @scale groups [1, 1, 1] (read %x,",
                 "loop {first = 0, last = 0, iterations = 3}\nlevel 0:\n  dispatch @scale groups [1, 1, 1] (read %x[0, 16] step 16,",
                 "program.range", "dispatch"},
        RuleCase{"stepBelowBuffer", "step.program", "level 0:\n  dispatch @scale groups [1, 1, 1] (read %x,",
                 "loop {first = 0, last = 0, iterations = 3}\nlevel 0:\n  dispatch @scale groups [1, 1, 1] (read %x[16, 16] step -16,",
                 "program.range", "dispatch"},
        RuleCase{
            "conflictInALaterIteration", "step.program",
            "level 0:\n  dispatch @scale groups [1, 1, 1] (read %x, read_write %4) \"scale x\"\n  copy %params -> %m\nlevel 2:\n  copy "
            "%4[0, 16] -> %5[16, 16]",
            "loop {first = 2, last = 2, iterations = 2}\nlevel 2:\n  copy %4[16, 16] -> %5[16, 16]\n  fill %4[0, 4] step 16 "
            "0x00000000",
            "program.conflict", "step 16"},
        RuleCase{"conflictThroughArena", "ready.program", "workspace {arena = @work, offset = 256", "workspace {arena = @work, offset = 0",
                 "program.conflict", "fill"}),
    [](const auto& info) { return info.param.name; });

using ProgramReadyRule = ProgramRule;
TEST_P(ProgramReadyRule, validate_brokenRule_pointsIntoText) {
  expectReported([](const Program& p) { return validate(p); });
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ProgramReadyRule,
    testing::Values(
        RuleCase{"structure", "ready.program", "level 1:", "level 0:", "program.conflict", "second"},
        RuleCase{"notPlaced", "ready.program", "workspace {arena = @work, offset = 256, ", "workspace {", "program.buffer", "buffer %u"},
        RuleCase{"kernelInvalid", "ready.program", "store %3, %2", "store %3, %0", "kernel.type", "store %3, %0"},
        RuleCase{"kernelGroup", "ready.program", "binding = 1, group = 0", "binding = 1, group = 1", "program.kernel", "kernel @copy"},
        RuleCase{"kernelBindings", "ready.program", "binding = 1, group = 0", "binding = 2, group = 0", "program.kernel", "kernel @copy"},
        RuleCase{"bindingCount", "ready.program", "(read %t, read_write %u)", "(read %t, read_write %u, read %x)", "program.binding",
                 "second"},
        RuleCase{"immediatesMissing", "ready.program", " immediates [0x40000000]", "", "program.binding", "third"},
        RuleCase{"immediatesTooMany", "ready.program", "[0x40000000]", "[0x40000000, 0x00000000]", "program.binding", "third"},
        RuleCase{"immediatesTwice", "ready.program", "var @factor: f32 {space = immediate}",
                 "var @factor: f32 {space = immediate}\n  var @more: f32 {space = immediate}", "program.kernel", "kernel @scale"},
        RuleCase{"bindingAccess", "ready.program", "(read %t, ", "(read_write %t, ", "program.access", "second"},
        RuleCase{"bindingAccessRead", "ready.program", "read_write %u)", "read %u)", "program.access", "second"},
        RuleCase{"aliasWhole", "ready.program", "(read %t, read_write %u)", "(read %u, read_write %u)", "program.alias", "second"},
        RuleCase{"bindingSize", "ready.program", "var @source: array<f32>", "var @source: array<f32, 65>", "program.binding", "first"},
        RuleCase{"bindingAlignment", "ready.program", "(read %t, ", "(read %t[4, 252], ", "program.alignment", "second"},
        RuleCase{"groupCount", "ready.program", "groups [1, 1, 1] (read %t", "groups [65536, 1, 1] (read %t", "program.groups", "second"},
        RuleCase{"workgroupMemory", "ready.program", "  fn @main", "  var @s: array<f32, 4097> {space = workgroup}\n  fn @main",
                 "program.kernel", "kernel @copy"},
        RuleCase{"invocations", "ready.program", "[64, 1, 1]} {", "[64, 5, 1]} {", "program.kernel", "kernel @copy"}),
    [](const auto& info) { return info.param.name; });

TEST(ProgramValidate, validate_readyProgram_givesItsModules) {
  auto program = parse(readData("ready.program"), "test");
  ASSERT_TRUE(program.ok()) << toString(program.diagnostics());
  auto valid = validate(*program);
  ASSERT_TRUE(valid.ok()) << toString(valid.diagnostics());
  EXPECT_EQ(**valid, *program);
  ASSERT_EQ(valid->modules().size(), 2u);
  EXPECT_EQ(*valid->modules()[0], std::get<kernel::Module>(program->kernels[0].code));
}

TEST(ProgramValidate, validate_symbolicKernel_isRejected) {
  auto program = parse(readData("step.program"), "test");
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(reports(validate(*program).failure(), "program.kernel", lineOf(readData("step.program"), "kernel @scale")));
}

TEST(ProgramValidate, alias_namesBothBindingsAndARemedy) {
  std::string text = replaced(readData("ready.program"), "(read %t, read_write %u)", "(read %u, read_write %u)");
  Diagnostic problem = validate(*parse(text)).diagnostics().front();
  EXPECT_EQ(problem.message, "command 2 \"second\" writes bytes 256..512 of arena \"work\", which are in both binding 0 and binding 1");
  EXPECT_NE(problem.remedy.find("read_write"), std::string::npos);
}

TEST(ProgramValidate, alias_resultInThePlaceOfAnOperand_isLeftToEmit) {
  std::string text = replaced(readData("step.program"), "(read %x, read_write %4)", "(read %4, read_write %4)");
  EXPECT_TRUE(validateStructure(*parse(text)).ok()) << toString(validateStructure(*parse(text)).diagnostics());
}

TEST(ProgramValidate, conflict_hasARemedy) {
  std::string text = replaced(readData("step.program"), "fill %loss", "fill %5[12, 8]");
  EXPECT_EQ(validateStructure(*parse(text)).diagnostics().front().remedy, "put one of them into a later level");
}

TEST(ProgramValidate, validate_bindingAboveProfile_isRejected) {
  std::string text = readData("ready.program");
  for (const char* size : {"input {size = 512}", "output {size = 256}", "workspace {size = 512}"}) {
    text = replaced(text, size, std::string(size).substr(0, std::string(size).find('{')) + "{size = 131072}");
  }
  text = replaced(text, "input {arena = @input, offset = 0, size = 256}", "input {arena = @input, offset = 0, size = 65540}");
  EXPECT_TRUE(validate(*parse(text)).ok()) << toString(validate(*parse(text)).diagnostics());
  text = replaced(text, "profile portable", "profile small_bindings");
  EXPECT_TRUE(reports(validate(*parse(text)).failure(), "program.binding", lineOf(text, "first")));
  // A name that is none of ours has the limits of the portable profile, unless its text says more.
  EXPECT_TRUE(validate(*parse(replaced(text, "profile small_bindings", "profile \"NVIDIA H100\""))).ok());
}

TEST(ProgramValidate, validate_arenaReadAndWritten_isRejectedWhereTheProfileSaysSo) {
  std::string text = readData("ready.program");
  EXPECT_TRUE(validate(*parse(text)).ok());
  text = replaced(text, "profile portable", "profile webgpu_default");
  EXPECT_TRUE(reports(validate(*parse(text)).failure(), "program.usage", lineOf(text, "second")));
  text = replaced(text, "arena @work: workspace {size = 512}", "arena @work: workspace {size = 512}\narena @work1: workspace {size = 512}");
  text = replaced(text, "%u: f32[64] workspace {arena = @work,", "%u: f32[64] workspace {arena = @work1,");
  EXPECT_TRUE(validate(*parse(text)).ok()) << toString(validate(*parse(text)).diagnostics());
}

TEST(ProgramValidate, accesses_copyAndFill_followFromTheirPlace) {
  Range range{BufferId(1), 0, 4, kernel::Access::Read};
  std::vector<Range> copy = accesses({.action = Copy{range, range}, .level = 0, .label = {}});
  ASSERT_EQ(copy.size(), 2u);
  EXPECT_EQ(copy[0].access, kernel::Access::Read);
  EXPECT_EQ(copy[1].access, kernel::Access::ReadWrite);
  EXPECT_EQ(accesses({.action = Fill{range, 0}, .level = 0, .label = {}})[0].access, kernel::Access::ReadWrite);
}

TEST(ProgramValidate, find_byRoleAndName) {
  auto program = parse(readData("step.program"), "test");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->findArena(ArenaRole::Input), ArenaId(1));
  EXPECT_FALSE(program->findArena(ArenaRole::Workspace).valid());
  ASSERT_NE(program->findInput("x"), nullptr);
  EXPECT_EQ(program->findInput("x")->buffer, BufferId(2));
  EXPECT_EQ(program->findInput("loss"), nullptr);
  ASSERT_NE(program->findOutput("loss"), nullptr);
  EXPECT_EQ(program->levelCount(), 3u);
}

}  // namespace
}  // namespace lockstep::program
