// SPDX-License-Identifier: Apache-2.0
// What --dump-ir writes: every stage runs again to the same result, and the texts of the kernels mean the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/io/safetensors.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/program/program.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

/// The names of the folder's files with an ending, sorted.
std::set<std::string> filesOf(const std::string& folder, const std::string& ending) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ending) names.insert(entry.path().filename());
  }
  return names;
}

/// The dump of a sample's first step on the reference.
class Dump : public ::testing::Test {
 protected:
  Dump() : scratch_("dump"), folder_(scratch_ / "ir") {}
  void make(const std::string& sample) {
    const Outcome outcome = run("train " + sample + " --no-out --device reference --steps 1 --dump-ir " + folder_);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  Outcome run(const std::string& arguments) { return testing::runTool(scratch_, arguments); }
  /// The bytes of all outputs of a stage.
  std::string replay(const std::string& stage, const std::string& device) {
    const std::string out = scratch_ / "out.safetensors";
    const Outcome outcome = run("run " + stage + " --inputs " + folder_ + "/inputs.safetensors --device " + device + " --out " + out);
    EXPECT_EQ(outcome.status, 0) << stage << "\n" << outcome.err;
    return outcome.status == 0 ? *io::readTextFile(out) : "";
  }
  double lastLoss() { return io::readSafetensors(scratch_ / "out.safetensors")->find("loss.loss")->toDoubles().front(); }
  /// Of the last program: the one that runs.
  std::string lastProgram() { return folder_ + "/" + *filesOf(folder_, ".program").rbegin(); }

  void everyStageReplays();
  void wgslMeansTheSame();

  testing::ScratchDirectory scratch_;
  std::string folder_;
};

void Dump::everyStageReplays() {
  const std::string expected = replay(lastProgram(), "reference");
  ASSERT_FALSE(expected.empty());
  const double loss = lastLoss();
  EXPECT_GT(loss, 0);
  const std::set<std::string> programs = filesOf(folder_, ".program");
  EXPECT_GE(programs.size(), 3u);
  // Comparisons of whole files: no pass from schedule on may change a bit.
  for (const std::string& name : programs) EXPECT_TRUE(replay(folder_ + "/" + name, "reference") == expected) << name;
  const std::set<std::string> stages = filesOf(folder_, ".graph");
  EXPECT_GE(stages.size(), 5u);
  for (const std::string& name : stages) {
    ASSERT_FALSE(replay(folder_ + "/" + name, "evaluate").empty());
    EXPECT_NEAR(lastLoss(), loss, 1e-5 * loss) << name;
  }
}

// Evaluation order of WGSL moves loads, so the kernel texts differ; but the texts are stable, and the program with every kernel read from
// its WGSL gives the same bits.
void Dump::wgslMeansTheSame() {
  const std::string path = lastProgram();
  program::Program program = program::parse(*io::readTextFile(path), path).orThrow();
  ASSERT_EQ(filesOf(folder_, ".wgsl").size(), program.kernels.size());
  ASSERT_EQ(filesOf(folder_, ".kir").size(), program.kernels.size());
  for (program::Kernel& kernel : program.kernels) {
    const std::string text = *io::readTextFile(folder_ + "/" + kernel.name + ".wgsl");
    auto module = wgsl::read(text, {.file_name = kernel.name + ".wgsl", .overrides = {}});
    ASSERT_TRUE(module.ok()) << wgsl::renderDiagnostics(module.diagnostics(), text);
    EXPECT_EQ(wgsl::write(*module), text) << kernel.name;
    kernel.code = std::move(*module);
  }
  const std::string swapped = scratch_ / "swapped.program";
  ASSERT_TRUE(io::writeFileAtomically(swapped, program::print(program)).ok());
  EXPECT_TRUE(replay(swapped, "reference") == replay(path, "reference"));
}

TEST_F(Dump, every_stage_of_sine_replays_to_the_same_result) {
  make("sine");
  everyStageReplays();
  EXPECT_EQ(run("run " + folder_ + "/00-trace.graph").status, 2);
  EXPECT_EQ(run("run " + folder_ + "/00-trace.graph --device reference --inputs " + folder_ + "/inputs.safetensors").status, 4);
}

TEST_F(Dump, every_stage_of_addition_replays_to_the_same_result) {
  make("addition");
  everyStageReplays();
}

TEST_F(Dump, wgsl_of_the_kernels_means_the_same) {
  make("sine");
  wgslMeansTheSame();
}

TEST_F(Dump, wgsl_of_the_kernels_of_addition_means_the_same) {
  make("addition");
  wgslMeansTheSame();
}

// What `lockstep explore` reads beside the stages.
TEST_F(Dump, passes_and_places_stand_beside_the_stages) {
  make("sine");
  const std::string passes = *io::readTextFile(folder_ + "/passes.txt");
  const std::set<std::string> graphs = filesOf(folder_, ".graph"), programs = filesOf(folder_, ".program");
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(passes, '\n')), graphs.size() + programs.size() - 1) << "all but the trace";
  for (const std::string& name : programs) {
    const size_t end = name.find('.');
    EXPECT_NE(passes.find(name.substr(3, end - 3) + "\t"), std::string::npos) << name;
  }
  EXPECT_EQ(filesOf(folder_, ".located").size(), graphs.size());
  for (const std::string& name : filesOf(folder_, ".located")) {
    const std::string path = folder_ + "/" + name;
    const graph::Graph located = graph::parse(*io::readTextFile(path), path).orThrow();
    EXPECT_FALSE(located.locations.empty()) << name;
    EXPECT_EQ(graph::print(located), *io::readTextFile(path.substr(0, path.rfind('.')) + ".graph")) << name;
  }
}

TEST_F(Dump, reference_has_no_listings) {
  make("sine");
  EXPECT_TRUE(filesOf(folder_, ".spvasm").empty());
}

}  // namespace
}  // namespace lockstep
