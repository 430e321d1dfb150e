// SPDX-License-Identifier: Apache-2.0
// `lockstep profile` as a process, on the device that is always there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;
using Json = nlohmann::json;

class ProfileCommand : public ::testing::Test {
 protected:
  ProfileCommand() : scratch_("profile-command") { ::setenv("LOCKSTEP_CACHE_DIR", (scratch_ / "cache").c_str(), 1); }
  ~ProfileCommand() override { ::unsetenv("LOCKSTEP_CACHE_DIR"); }
  Outcome run(const std::string& arguments) { return testing::runTool(scratch_, "profile " + arguments); }
  std::string keep(const std::string& name, const std::string& text) {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / name, std::string_view(text)).ok());
    return scratch_ / name;
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(ProfileCommand, prints_a_table_and_keeps_the_peaks) {
  const Outcome first = run("sine --device reference --steps 2");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("sine on reference, medians of 2 steps\n")) << first.out;
  EXPECT_NE(first.out.find("mlp.cpp:"), std::string::npos) << first.out;
  EXPECT_EQ(first.out.find('\x1b'), std::string::npos);
  EXPECT_NE(first.err.find("measuring"), std::string::npos) << first.err;
  const Outcome second = run("mlp-sin --device reference --steps 1 --all");
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.err, "");
  EXPECT_NE(run("sine --device reference --steps 1 --remeasure").err.find("measuring"), std::string::npos);
}

TEST_F(ProfileCommand, measures_alternatives) {
  const Outcome text = run("kan --device reference --steps 1 --alternatives");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("\n  plan  "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\n  or    "), std::string::npos) << text.out;
  const Outcome json = run("kan --device reference --steps 1 --alternatives --json");
  ASSERT_EQ(json.status, 0) << json.err;
  size_t with_plans = 0;
  const Json profile = Json::parse(json.out);
  for (const Json& kernel : profile["kernels"]) {
    if (kernel["alternatives"].size() < 2) continue;
    ++with_plans;
    // The plan is that of the kernel or of one of its parts: "k3_rows_columns" has one by rows or by columns.
    const std::string plan = kernel["alternatives"][0]["plan"];
    std::string kind = plan.substr(0, plan.find(' '));
    if (kind == "template") kind = plan.substr(10, plan.find('"', 10) - 10);
    EXPECT_NE(std::string(kernel["kernel"]).find(kind), std::string::npos) << kernel["kernel"] << " " << plan;
  }
  EXPECT_GE(with_plans, 1u);
  const Outcome both = run("kan --device reference --steps 1 --alternatives --all");
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("leave out one of them"), std::string::npos) << both.err;
}

TEST_F(ProfileCommand, writes_json_a_trace_and_a_diff) {
  const std::string trace_file = scratch_ / "trace.json";
  const Outcome before = run("sine --device reference --steps 2 --json --trace " + trace_file);
  ASSERT_EQ(before.status, 0) << before.err;
  const Json json = Json::parse(before.out);
  EXPECT_EQ(json["sample"], "sine");
  const Json trace = Json::parse(*io::readTextFile(trace_file));
  size_t on_lanes = 0;
  for (const Json& event : trace["traceEvents"]) on_lanes += event["ph"] == "X" && event["pid"] == 2 && event["tid"] != 1 ? 1 : 0;
  EXPECT_EQ(on_lanes, json["totals"]["commands"].get<size_t>());
  const Outcome after = run("sine --device reference --steps 2 --json --disable-pass fuse");
  ASSERT_EQ(after.status, 0) << after.err;
  const Outcome diff = run("--diff " + keep("a.json", before.out) + " " + keep("b.json", after.out));
  ASSERT_EQ(diff.status, 0) << diff.err;
  EXPECT_NE(diff.out.find("only before"), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find("only after"), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find("\ntotal of the dispatches "), std::string::npos) << diff.out;
}

TEST_F(ProfileCommand, answers_every_mistake) {
  const std::string none = keep("none.json", "{}");
  struct Case {
    std::string arguments;
    int status;
    std::string code;
  };
  for (const Case& wrong : std::vector<Case>{{"", 2, "usage.value"},
                                             {"zine", 2, "usage.sample"},
                                             {"sine --steps 0", 2, "usage.steps"},
                                             {"sine extra", 2, "usage.argument"},
                                             {"sine --device vulkan:no-such-gpu", 3, "device."},
                                             {"sine --device reference --disable-pass nothing", 2, "pipeline.pass"},
                                             {"--diff one.json", 2, "usage.argument"},
                                             {"--diff /none/a.json /none/b.json", 4, "file.read"},
                                             {fmt::format("--diff {0} {0}", none), 4, "profile.file"},
                                             {"sine --device reference --steps 1 --trace /none/t.json", 4, "file.write"}}) {
    const Outcome outcome = run(wrong.arguments);
    EXPECT_EQ(outcome.status, wrong.status) << wrong.arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("error: " + wrong.code), std::string::npos) << wrong.arguments << "\n" << outcome.err;
  }
}

}  // namespace
}  // namespace lockstep
