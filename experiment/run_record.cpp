// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_record.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <string_view>

#include "experiment/build_version.h"

namespace lockstep::experiment {
namespace {

using Settings = std::map<std::string, std::string, std::less<>>;

std::string utcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

/// A setting of a checkpoint, which is text, as what it stands for. Lists and names stay text.
io::Json valueOf(std::string_view key, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || key == "milestones") return text;
  return number;
}

/// The settings that begin with a prefix, without it. "after.kind" becomes a member of an object "after".
io::Json objectOf(const Settings& settings, const std::string& prefix) {
  constexpr std::string_view kAfter = "after.";
  io::Json object = io::Json::object();
  bool follows = false;
  for (auto at = settings.lower_bound(prefix); at != settings.end() && at->first.starts_with(prefix); ++at) {
    const std::string key = at->first.substr(prefix.size());
    follows = follows || key.starts_with(kAfter);
    if (!key.starts_with(kAfter)) object.add(key, valueOf(key, at->second));
  }
  if (follows) object.add("after", objectOf(settings, prefix + std::string(kAfter)));
  return object;
}

}  // namespace

RunRecord recordOf(const Trainer& trainer) {
  const ProgramFacts facts = trainer.facts();
  const Settings settings = trainer.settings();
  return {.version = std::string(kBuildVersion),
          .commit = std::string(kBuildCommit),
          .date = utcNow(),
          .device = facts.device,
          .device_name = facts.device_name,
          .driver = facts.driver,
          .optimizer = objectOf(settings, "lockstep.optimizer."),
          .learning_rate = objectOf(settings, "lockstep.schedule.")};
}

void addStart(io::Json& object, const RunRecord& record) {
  object.add("version", record.version)
      .add("commit", record.commit.empty() ? io::Json() : io::Json(record.commit))
      .add("date", record.date)
      .add("device", record.device)
      .add("device_name", record.device_name)
      .add("driver", record.driver);
}

}  // namespace lockstep::experiment
