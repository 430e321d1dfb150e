// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/profile/profile_text.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHost = 1, kDevice = 2;  // processes
constexpr int kSteps = 1;              // thread of the host; 0 is the idle thread to some viewers
constexpr int kLevels = 1;             // thread of the device; its commands have those after it

/// The form counts in microseconds. In 1024ths of them, so that a start and a duration have an exact sum: viewers leave out an event that
/// reaches out of the one around it, if only by the last bit of a number.
double microseconds(double seconds) { return std::round(seconds * 1e6 * 1024) / 1024; }

Json span(int process, int thread, const std::string& name, double start, double seconds, Json arguments = Json::object()) {
  const double begin = microseconds(start), length = microseconds(start + seconds) - begin;
  return {{"ph", "X"}, {"pid", process}, {"tid", thread}, {"name", name}, {"ts", begin}, {"dur", length}, {"args", std::move(arguments)}};
}

/// A track is called `text`, and stands in the order of the numbers.
void nameTrack(Json& events, const std::string& what, int process, int thread, const std::string& text) {
  const auto add = [&](const std::string& name, Json arguments) {
    events.push_back({{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", name}, {"args", std::move(arguments)}});
  };
  add(what + "_name", {{"name", text}});
  add(what + "_sort_index", {{"sort_index", what == "process" ? process : thread}});
}

}  // namespace

std::string traceJson(const Profile& profile) {
  const StepTrace& trace = profile.trace;
  Json events = Json::array();
  nameTrack(events, "process", kHost, kSteps, "host");
  nameTrack(events, "thread", kHost, kSteps, "steps");
  nameTrack(events, "process", kDevice, kLevels, fmt::format("{} ({})", profile.device, profile.device_name));
  nameTrack(events, "thread", kDevice, kLevels, "levels");
  for (const StepTrace::Span& host : trace.host) events.push_back(span(kHost, kSteps, host.name, host.start, host.seconds));

  struct Level {
    double begin = 0, end = 0;
    int commands = 0;
  };
  std::map<uint32_t, Level> levels;
  int most = 0;
  for (const ProfiledCommand& command : trace.commands) {
    const double start = trace.device_start + command.start;
    const auto [found, first] = levels.try_emplace(command.level, Level{.begin = start});
    Level& level = found->second;
    level.end = start + command.seconds;
    most = std::max(most, ++level.commands);
    Json arguments = {{"kernel", command.kernel}, {"groups", command.groups}, {"bytes", command.bytes}, {"level", command.level}};
    if (command.operations) arguments["operations"] = *command.operations;
    events.push_back(span(kDevice, kLevels + level.commands, command.label, start, command.seconds, std::move(arguments)));
  }
  for (const auto& [number, level] : levels)
    events.push_back(span(kDevice, kLevels, fmt::format("level {}", number), level.begin, level.end - level.begin));
  for (int lane = 1; lane <= most; ++lane) nameTrack(events, "thread", kDevice, kLevels + lane, fmt::format("lane {}", lane));
  const Json json = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::tools
