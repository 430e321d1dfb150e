// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/profile/profile_data.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

template <class T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rate(double amount, double seconds) { return seconds > 0 ? Json(amount / seconds) : Json(nullptr); }

Json hostJson(const HostTimes& times) {
  return {{"seconds", times.step()}, {"batch_seconds", times.batch}, {"submit_seconds", times.submit}, {"wait_seconds", times.wait}};
}

Json rowJson(const ProfileRow& row) {
  Json alternatives = Json::array();
  for (const PlanTime& one : row.alternatives)
    alternatives.push_back({{"plan", one.plan}, {"seconds", one.seconds}, {"driver", one.driver}});
  return {{"label", row.label},
          {"kernel", row.kernel},
          {"lines", row.lines},
          {"calls", row.calls},
          {"seconds", row.seconds},
          {"share", row.share},
          {"bytes", row.bytes},
          {"bytes_per_second", rate(static_cast<double>(row.bytes), row.seconds)},
          {"operations", orNull(row.operations)},
          {"operations_per_second", row.operations ? rate(static_cast<double>(*row.operations), row.seconds) : Json(nullptr)},
          {"peak_share", orNull(row.peak_share)},
          {"bound", row.bound == Bound::Unknown ? Json(nullptr) : Json(toString(row.bound))},
          {"alternatives", alternatives}};
}

Json commandJson(size_t index, const ProfiledCommand& command) {
  return {{"index", index},
          {"label", command.label},
          {"kernel", command.kernel},
          {"groups", command.groups},
          {"level", command.level},
          {"start_seconds", command.start},
          {"seconds", command.seconds},
          {"bytes", command.bytes},
          {"operations", orNull(command.operations)}};
}

}  // namespace

std::string profileJson(const Profile& profile) {
  const ProfileTotals totals = totalsOf(profile);
  Json json = {{"version", kVersion},
               {"sample", profile.sample},
               {"device", {{"id", profile.device}, {"name", profile.device_name}, {"driver", profile.driver}}},
               {"steps", profile.steps},
               {"plans", {{"chosen", profile.plans}, {"measured", profile.measured_plans}}},
               {"peaks", nullptr},
               {"totals",
                {{"commands", profile.commands.size()},
                 {"levels", totals.levels},
                 {"seconds", totals.seconds},
                 {"critical_path_seconds", totals.critical_path},
                 {"bytes", totals.bytes},
                 {"operations", orNull(totals.operations)}}},
               {"step", hostJson(profile.plain)},
               {"timed_step", hostJson(profile.timed)},
               {"transfers", {{"input_bytes", profile.input_bytes}, {"output_bytes", profile.output_bytes}}},
               {"kernels", Json::array()},
               {"commands", Json::array()}};
  if (profile.peaks) json["peaks"] = Json::parse(peaksJson(*profile.peaks));
  for (const ProfileRow& row : rowsOf(profile, false)) json["kernels"].push_back(rowJson(row));
  for (size_t i = 0; i < profile.commands.size(); ++i) json["commands"].push_back(commandJson(i, profile.commands[i]));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::vector<LabelChange> changesOf(const ProfileSummary& before, const ProfileSummary& after) {
  std::map<std::string, LabelChange> by_label;
  for (const auto& [label, seconds] : before.labels) by_label[label].before = seconds;
  for (const auto& [label, seconds] : after.labels) by_label[label].after = seconds;
  std::vector<LabelChange> changes;
  for (auto& [label, change] : by_label) {
    change.label = label;
    changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(changes, std::ranges::greater{}, &LabelChange::size);
  return changes;
}

std::string diffJson(const ProfileSummary& before, const ProfileSummary& after) {
  const auto sideOf = [](const ProfileSummary& side) {
    return Json{{"sample", side.sample}, {"device_name", side.device_name}, {"seconds", side.seconds}, {"step_seconds", side.step_seconds}};
  };
  Json json = {{"before", sideOf(before)}, {"after", sideOf(after)}, {"labels", Json::array()}};
  for (const LabelChange& change : changesOf(before, after)) {
    json["labels"].push_back({{"label", change.label}, {"before_seconds", orNull(change.before)}, {"after_seconds", orNull(change.after)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<ProfileSummary> readProfile(std::string_view text, const std::string& file_name) {
  const std::string remedy = "use what 'lockstep profile NAME --json' printed";
  const auto refuse = [&] { return fail("profile.file", fmt::format("'{}' is no profile", file_name), {}, remedy); };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("version")) return refuse();
  if (json["version"] != kVersion) {
    return fail("profile.version", fmt::format("'{}' has version {}, but only {} can be read", file_name, json["version"].dump(), kVersion),
                {}, "measure it again with this version");
  }
  try {
    ProfileSummary summary;
    summary.sample = json.at("sample").get<std::string>();
    summary.device_name = json.at("device").at("name").get<std::string>();
    summary.seconds = json.at("totals").at("seconds").get<double>();
    summary.step_seconds = json.at("step").at("seconds").get<double>();
    for (const Json& command : json.at("commands")) {
      const auto label = command.at("label").get<std::string>();
      const auto found = std::ranges::find(summary.labels, label, &ProfileSummary::Label::label);
      ProfileSummary::Label& into = found == summary.labels.end() ? summary.labels.emplace_back(label) : *found;
      into.seconds += command.at("seconds").get<double>();
    }
    return summary;
  } catch (const Json::exception&) {
    return refuse();
  }
}

}  // namespace lockstep::tools
