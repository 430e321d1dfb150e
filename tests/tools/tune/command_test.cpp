// SPDX-License-Identifier: Apache-2.0
// `lockstep tune` as a process, and what later commands make of its table. On the reference, with the sample that has the smallest
// products. Which plans win depends on the machine, so tables that a test counts on are made of the estimates.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ir/program/tuning.h"
#include "tests/tools/cli/process.h"
#include "tests/tools/cli/schema.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using program::TuningTable;
using testing::Outcome;
using Json = nlohmann::json;

class TuneCommand : public ::testing::Test {
 protected:
  TuneCommand() : scratch_("tune-command") {
    ::setenv("LOCKSTEP_CACHE_DIR", (scratch_ / "cache").c_str(), 1);
    ::unsetenv("LOCKSTEP_TUNING");
  }
  ~TuneCommand() override {
    ::unsetenv("LOCKSTEP_CACHE_DIR");
    ::unsetenv("LOCKSTEP_TUNING");
  }
  Outcome run(const std::string& arguments) { return testing::runTool(scratch_, "tune " + arguments); }
  std::string keep(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(io::writeFileAtomically(file, std::string_view(text)).ok());
    return file.string();
  }
  Outcome profile() { return testing::runTool(scratch_, "profile kan --device reference --steps 1 --json"); }
  /// How many plans of a step a table gave.
  size_t measuredPlans() {
    const Outcome outcome = profile();
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    return Json::parse(outcome.out)["plans"]["measured"].get<size_t>();
  }

  testing::ScratchDirectory scratch_;
};

TuningTable readTable(const std::string& file) { return program::parseTuning(*io::readTextFile(file), file).orThrow(); }

TEST_F(TuneCommand, without_names_is_no_mistake) {
  const Outcome outcome = run("--device nowhere");  // to measure common work would take minutes
  EXPECT_NE(outcome.err.find("device.selector"), std::string::npos) << outcome.err;
}

TEST_F(TuneCommand, only_measures_what_has_the_text_in_its_name) {
  const std::string file = (scratch_ / "only.tuning").string();
  const Outcome one = run("kan --device reference --only contract --output " + file);
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_FALSE(readTable(file).plans.empty());
  for (const auto& [work, plan] : readTable(file).plans) EXPECT_EQ(work.find("contract"), 0u) << work;
  const Outcome none = run("kan --device reference --dry-run --only contrakt");
  EXPECT_EQ(none.status, 2) << none.err;
  EXPECT_NE(none.err.find("usage.value: no kernel has 'contrakt' in its name"), std::string::npos) << none.err;
}

TEST_F(TuneCommand, kernels_of_a_sample_are_measured_into_a_table) {
  const std::string other = "contract f32>f32 1x4096x4096x4096";
  TuningTable before{.device = "CPU reference", .plans = {}};
  before.plans.emplace(other, program::NaiveContractPlan{.lanes = 64});
  const std::string file = keep(scratch_ / "kan.tuning", program::print(before));
  const Outcome outcome = run("kan --device reference --json --output " + file);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(testing::violation(outcome.out, testing::readSchema("tune")), "") << outcome.out;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["device"], "reference");
  EXPECT_EQ(json["device_name"], "CPU reference");
  EXPECT_EQ(json["file"].get<std::string>(), file);
  ASSERT_FALSE(json["work"].empty());
  const TuningTable table = readTable(file);
  EXPECT_EQ(table.device, "CPU reference");
  EXPECT_TRUE(table.plans.contains(other)) << "what was not measured stays";
  size_t kept = 0;
  for (const Json& work : json["work"]) {
    EXPECT_GE(work["measured"].get<int>(), 1) << work;
    EXPECT_EQ(work["wrong"].get<int>(), 0) << work;
    const auto found = table.plans.find(work["work"].get<std::string>());
    if (found == table.plans.end()) continue;
    ++kept;
    EXPECT_EQ(program::print(found->second), work["plan"].get<std::string>());
  }
  EXPECT_EQ(table.plans.size(), kept + 1);
}

TEST_F(TuneCommand, table_is_found_by_itself_and_profiles_count_its_plans) {
  const Outcome dry = run("kan --device reference --dry-run --json");
  ASSERT_EQ(dry.status, 0) << dry.err;
  const Json json = Json::parse(dry.out);
  const fs::path own = json["file"].get<std::string>();
  EXPECT_EQ(own.parent_path().string(), (scratch_ / "cache").string());
  EXPECT_FALSE(fs::exists(own)) << "--dry-run writes nothing";
  EXPECT_EQ(measuredPlans(), 0u);
  std::string text = "lockstep.tuning 1\ndevice \"CPU reference\"\n";
  for (const Json& work : json["work"])
    text += "\"" + work["work"].get<std::string>() + "\" = " + work["estimate"].get<std::string>() + "\n";
  keep(own, text + "end\n");
  EXPECT_GE(measuredPlans(), 1u);
  ::setenv("LOCKSTEP_TUNING", "off", 1);
  EXPECT_EQ(measuredPlans(), 0u);
  const std::string empty = keep(scratch_ / "empty.tuning", "lockstep.tuning 1\ndevice \"CPU reference\"\nend\n");
  ::setenv("LOCKSTEP_TUNING", empty.c_str(), 1);
  EXPECT_EQ(measuredPlans(), 0u) << "a file that is named takes the place of the one in the cache folder";
  ::setenv("LOCKSTEP_TUNING", own.c_str(), 1);
  EXPECT_GE(measuredPlans(), 1u);
}

TEST_F(TuneCommand, table_of_another_device_is_refused) {
  const std::string text = "lockstep.tuning 1\ndevice \"Toy GPU\"\nend\n";
  const std::string file = keep(scratch_ / "toy.tuning", text);
  const Outcome written = run("kan --device reference --output " + file);
  EXPECT_EQ(written.status, 4);
  EXPECT_NE(written.err.find("error: tuning.device"), std::string::npos) << written.err;
  EXPECT_EQ(*io::readTextFile(file), text);
  ::setenv("LOCKSTEP_TUNING", file.c_str(), 1);
  const Outcome read = profile();
  EXPECT_EQ(read.status, 4);
  EXPECT_NE(read.out.find("tuning.device"), std::string::npos) << read.out << read.err;
}

TEST_F(TuneCommand, answers_every_mistake) {
  const std::string broken = keep(scratch_ / "broken.tuning", "lockstep.tuning 1\n");
  const std::string twice = keep(scratch_ / "twice.tuning",
                                 "lockstep.tuning 1\ndevice \"CPU reference\"\n\"w\" = map {lanes = 64}\n\"w\" = map {lanes = 64}\nend\n");
  struct Case {
    std::string arguments;
    int status;
    std::string code;
  };
  for (const Case& wrong : std::vector<Case>{{"kann --device reference --dry-run", 2, "usage.sample"},
                                             {"kan --device vulkan:no-such-gpu", 3, "device."},
                                             {"kan --device reference --steps 3", 2, "usage."},
                                             {"kan --device reference --output " + broken, 4, "text.syntax"},
                                             {"kan --device reference --output " + twice, 4, "tuning.twice"}}) {
    const Outcome outcome = run(wrong.arguments);
    EXPECT_EQ(outcome.status, wrong.status) << wrong.arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("error: " + wrong.code), std::string::npos) << wrong.arguments << "\n" << outcome.err;
  }
}

TEST_F(TuneCommand, without_a_cache_folder_a_file_has_to_be_named) {
  ::setenv("LOCKSTEP_CACHE_DIR", "", 1);
  const Outcome outcome = run("kan --device reference");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("error: file.write"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--output"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace lockstep
