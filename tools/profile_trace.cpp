// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/profile_text.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHost = 1, kDevice = 2;  // processes
constexpr int kLevels = 0;             // thread of the device; its commands have those after it

/// The form counts in microseconds.
Json span(int process, int thread, const std::string& name, double start, double seconds, Json arguments = Json::object()) {
  return {{"ph", "X"}, {"pid", process}, {"tid", thread}, {"name", name}, {"ts", start * 1e6}, {"dur", seconds * 1e6}, {"args", arguments}};
}

Json name(const char* what, int process, int thread, const std::string& text) {
  return {{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", what}, {"args", {{"name", text}}}};
}

}  // namespace

std::string traceJson(const Profile& profile) {
  const StepTrace& trace = profile.trace;
  Json events = Json::array();
  events.push_back(name("process_name", kHost, 0, "host"));
  events.push_back(name("thread_name", kHost, 0, "steps"));
  events.push_back(name("process_name", kDevice, 0, fmt::format("{} ({})", profile.device, profile.device_name)));
  events.push_back(name("thread_name", kDevice, kLevels, "levels"));
  for (const StepTrace::Span& host : trace.host) events.push_back(span(kHost, 0, host.name, host.start, host.seconds));

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
  for (int lane = 1; lane <= most; ++lane) events.push_back(name("thread_name", kDevice, kLevels + lane, fmt::format("lane {}", lane)));
  const Json json = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::tools
