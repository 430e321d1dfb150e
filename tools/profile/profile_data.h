// SPDX-License-Identifier: Apache-2.0
// What `lockstep profile` measured, as values; what follows from them; their JSON (docs/profile.md has the schema).
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/trainer.h"
#include "tools/profile/peaks.h"

namespace lockstep::tools {

/// Seconds of the host for one step: making the batch, handing it to the device, waiting for the results.
struct HostTimes {
  double batch = 0, submit = 0, wait = 0;
  [[nodiscard]] double step() const { return batch + submit + wait; }
};

/// One plain and one timed step of the host's clock, for --trace.
struct StepTrace {
  struct Span {
    std::string name;
    double start = 0, seconds = 0;  ///< seconds after the first span began
  };
  std::vector<Span> host;                 ///< "plain step", then what is in it, then "timed step"
  double device_start = 0;                ///< when the host began to wait for the timed step
  std::vector<ProfiledCommand> commands;  ///< of the timed step
};

/// A plan that a kernel can have, and its time when nothing else runs.
struct PlanTime {
  std::string plan;
  double seconds = 0;
  std::string driver = {};  ///< what the driver tells of it, such as registers
};

/// Times are medians over the steps.
struct Profile {
  std::string sample;
  std::string device, device_name, driver;
  int64_t steps = 0;
  uint32_t plans = 0, measured_plans = 0;  ///< chosen for kernels; those that `lockstep tune` has measured
  std::vector<ProfiledCommand> commands = {};
  HostTimes plain = {}, timed = {};  ///< without and with timestamps
  uint64_t input_bytes = 0, output_bytes = 0;
  std::optional<Peaks> peaks = {};
  /// By kernel, for --alternatives: first the plan that it has, then the fastest others. Kernels without a choice have none.
  std::map<std::string, std::vector<PlanTime>> alternatives = {};
  StepTrace trace = {};
};

/// What is measured: a step of something that goes on, in the parts that the host's clock tells apart.
struct ProfiledStep {
  std::function<void()> prepare;       ///< makes the batch of the next step
  std::function<void()> submit;        ///< hands it to the device
  std::function<void()> wait;          ///< for the results
  std::function<StepProfile()> timed;  ///< in place of submit and wait, with timestamps
};
/// Two steps to warm up, then `steps` (at least 1) plain and as many timed ones in turns. Fills everything but sample, device and peaks.
/// Throws Error.
Profile measureProfile(const ProfiledStep& step, int64_t steps);
/// The same of a trainer, which trains on.
Profile measureProfile(Trainer& trainer, const std::function<Batch(uint64_t step)>& batch, int64_t steps);

/// What keeps a kernel from being faster, by the peaks: see boundOf().
enum class Bound : uint8_t { Unknown, Memory, Compute, Launch, Latency };
std::string_view toString(Bound bound);

/// Commands of one kernel, or one command.
struct ProfileRow {
  std::string label, kernel = {};
  std::optional<uint32_t> level = {};      ///< of one command only
  std::vector<std::string> lines = {};     ///< "mlp.cpp:12", without folders
  uint64_t calls = 0;                      ///< a step
  double seconds = 0;                      ///< of all calls
  double share = 0;                        ///< of all commands' seconds
  uint64_t bytes = 0;                      ///< of all calls
  std::optional<uint64_t> operations = 0;  ///< of all calls
  std::optional<double> peak_share = {};   ///< the larger one of bytes/s and operations/s as a part of the device's peak
  Bound bound = Bound::Unknown;
  std::vector<PlanTime> alternatives = {};  ///< as in Profile; none of one command
};
/// One for each kernel, and for each label of commands without one; or one for each command. The longest first.
std::vector<ProfileRow> rowsOf(const Profile& profile, bool one_per_command);

struct ProfileTotals {
  double seconds = 0;        ///< all commands one after the other
  double critical_path = 0;  ///< the longest command of each level, summed
  uint32_t levels = 0;
  uint64_t bytes = 0;
  std::optional<uint64_t> operations;  ///< absent when those of any command are
};
ProfileTotals totalsOf(const Profile& profile);

/// One JSON object.
std::string profileJson(const Profile& profile);

/// What --diff needs of a profile's JSON.
struct ProfileSummary {
  struct Label {
    std::string label;
    double seconds = 0;
  };
  std::string sample, device_name;
  std::vector<Label> labels;  ///< one for each label
  double seconds = 0;         ///< all commands
  double step_seconds = 0;    ///< a plain step
};
/// A label of either profile.
struct LabelChange {
  std::string label;
  std::optional<double> before = {}, after = {};  ///< seconds; absent where the profile lacks the label
  [[nodiscard]] double size() const { return std::abs(after.value_or(0) - before.value_or(0)); }
};
/// The largest change first.
std::vector<LabelChange> changesOf(const ProfileSummary& before, const ProfileSummary& after);
/// One JSON object.
std::string diffJson(const ProfileSummary& before, const ProfileSummary& after);

/// Errors "profile.file" for what is no profile and "profile.version" for one of another version.
Result<ProfileSummary> readProfile(std::string_view text, const std::string& file_name);

}  // namespace lockstep::tools
