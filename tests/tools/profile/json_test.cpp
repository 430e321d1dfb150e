// SPDX-License-Identifier: Apache-2.0
// The two JSON texts: the profile's own and the trace.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/tools/profile/sample_profile.h"
#include "tools/profile/profile_text.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::json;

TEST(ProfileJson, has_the_documented_members) {
  const Json json = Json::parse(profileJson(sampleProfile()));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["device"]["name"], "Toy GPU");
  EXPECT_EQ(json["totals"]["commands"], 5);
  EXPECT_TRUE(json["totals"]["operations"].is_null());
  EXPECT_EQ(json["peaks"]["bytes_per_second"], 100e9);
  EXPECT_DOUBLE_EQ(json["step"]["seconds"], 90e-6);
  EXPECT_DOUBLE_EQ(json["timed_step"]["wait_seconds"], 107e-6);
  EXPECT_EQ(json["transfers"]["input_bytes"], 2048);
  ASSERT_EQ(json["kernels"].size(), 4u);
  const Json& first = json["kernels"][0];
  EXPECT_EQ(first["label"], "matmul+add");
  EXPECT_EQ(first["calls"], 2);
  EXPECT_EQ(first["lines"], Json::array({"toy.cpp:12"}));
  EXPECT_EQ(first["bound"], "compute");
  EXPECT_NEAR(first["share"].get<double>(), 0.6, 1e-9);
  ASSERT_EQ(json["commands"].size(), 5u);
  EXPECT_EQ(json["commands"][3]["groups"], Json::array({1, 2, 3}));
  EXPECT_TRUE(json["commands"][3]["operations"].is_null());
}

TEST(ProfileJson, reads_back_for_a_diff) {
  const Result<ProfileSummary> summary = readProfile(profileJson(sampleProfile()), "toy.json");
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->sample, "toy");
  ASSERT_EQ(summary->labels.size(), 4u);
  EXPECT_EQ(summary->labels[0].label, "matmul+add");
  EXPECT_DOUBLE_EQ(summary->labels[0].seconds, 60e-6);
  EXPECT_NEAR(summary->seconds, 100e-6, 1e-12);
  EXPECT_DOUBLE_EQ(summary->step_seconds, 90e-6);
}

TEST(ProfileJson, refuses_what_is_none) {
  for (const char* text : {"", "[1]", "{}", "{\"version\": 1}", "{\"version\": 1, \"sample\": 3}", "{\"version\": 1, \"sample\""}) {
    const Result<ProfileSummary> read = readProfile(text, "x.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.diagnostics().front().code, "profile.file");
  }
  const Result<ProfileSummary> other = readProfile("{\"version\": 2}", "x.json");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.diagnostics().front().code, "profile.version");
}

struct Span {
  double begin, end;
  std::string name;
};

/// Complete events by track, in the order of the file.
std::map<std::pair<int, int>, std::vector<Span>> tracksOf(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Span>> tracks;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], length = event["dur"];
    tracks[{event["pid"], event["tid"]}].push_back({begin, begin + length, event["name"]});
  }
  return tracks;
}

/// Of two events of a track, one is inside of the other or they have nothing in common.
void expectNested(const std::map<std::pair<int, int>, std::vector<Span>>& tracks) {
  for (const auto& [track, spans] : tracks) {
    for (const Span& a : spans) {
      for (const Span& b : spans) {
        const bool apart = a.end <= b.begin || b.end <= a.begin;
        const bool inside = (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
        EXPECT_TRUE(apart || inside) << a.name << " and " << b.name;
      }
    }
  }
}

TEST(ProfileTrace, events_of_a_track_nest) {
  const auto tracks = tracksOf(Json::parse(traceJson(sampleProfile())));
  ASSERT_EQ(tracks.size(), 4u);  // the host, levels, two lanes
  expectNested(tracks);
}

// Chromium leaves out an event that reaches out of the one around it by the last bit of a number.
TEST(ProfileTrace, events_nest_whatever_their_times_are) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> seconds(1e-9, 1e-2);
  Profile profile = sampleProfile();
  for (int i = 0; i < 200; ++i) {
    const double begin = seconds(random), batch = seconds(random) / 1000, submit = seconds(random), wait = seconds(random);
    profile.trace.host = {{"timed step", begin, batch + submit + wait},
                          {"batch", begin, batch},
                          {"submit", begin + batch, submit},
                          {"wait", begin + batch + submit, wait}};
    expectNested(tracksOf(Json::parse(traceJson(profile))));
  }
}

TEST(ProfileTrace, events_are_complete_and_in_the_order_of_time) {
  std::map<std::pair<int, int>, double> last;
  const Json trace = Json::parse(traceJson(sampleProfile()));
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_TRUE(event["pid"].is_number_integer() && event["tid"].is_number_integer()) << event;
    EXPECT_GT(event["tid"], 0) << "0 is the idle thread to some viewers: " << event;
    EXPECT_TRUE(event["name"].is_string() && event["args"].is_object()) << event;
    ASSERT_TRUE(event["ph"] == "X" || event["ph"] == "M") << "spans that are complete need no end and no flow: " << event;
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["dur"].get<double>(), 0) << event;
    const auto [track, first] = last.try_emplace({event["pid"], event["tid"]}, 0.0);
    EXPECT_GE(event["ts"].get<double>(), track->second) << event;
    track->second = event["ts"];
  }
  EXPECT_EQ(last.size(), 4u);
}

TEST(ProfileTrace, the_device_works_while_the_host_waits) {
  const Json trace = Json::parse(traceJson(sampleProfile()));
  const auto tracks = tracksOf(trace);
  const Span wait = tracks.at({1, 1}).back();
  EXPECT_EQ(wait.name, "wait");
  size_t commands = 0;
  for (const auto& [track, spans] : tracks) {
    if (track.first != 2) continue;
    commands += track.second == 1 ? 0 : spans.size();
    for (const Span& span : spans) {
      EXPECT_GE(span.begin, wait.begin) << span.name;
      EXPECT_LE(span.end, wait.end) << span.name;
    }
  }
  EXPECT_EQ(commands, 5u);
}

TEST(ProfileTrace, every_track_has_a_name_and_a_command_its_arguments) {
  const Json trace = Json::parse(traceJson(sampleProfile()));
  std::set<std::pair<int, int>> named;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") named.emplace(event["pid"], event["tid"]);
    if (event["ph"] != "X" || event["name"] != "own kernel") continue;
    EXPECT_EQ(event["args"]["kernel"], "k2_own");
    EXPECT_EQ(event["args"]["groups"], Json::array({1, 2, 3}));
    EXPECT_EQ(event["args"]["bytes"], 2'000'000);
    EXPECT_FALSE(event["args"].contains("operations"));
  }
  for (const auto& [track, spans] : tracksOf(trace)) EXPECT_TRUE(named.contains(track)) << track.first << ", " << track.second;
}

}  // namespace
}  // namespace lockstep::tools
