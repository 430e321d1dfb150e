// SPDX-License-Identifier: Apache-2.0
#include "tools/profile/profile_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "passes/cost.h"

namespace lockstep::tools {
namespace {

using Clock = std::chrono::steady_clock;

double between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

template <class T, class Member>
double medianOf(const std::vector<T>& items, Member member) {
  std::vector<double> values;
  for (const T& item : items) values.push_back(item.*member);
  return median(std::move(values));
}

HostTimes medians(const std::vector<HostTimes>& times) {
  return {medianOf(times, &HostTimes::batch), medianOf(times, &HostTimes::submit), medianOf(times, &HostTimes::wait)};
}

/// Two steps, in turns.
class Stopwatch {
 public:
  explicit Stopwatch(const ProfiledStep& step) : step_(step) {}

  HostTimes plain() {
    const Clock::time_point begin = Clock::now();
    step_.prepare();
    const Clock::time_point ready = Clock::now();
    step_.submit();
    const Clock::time_point submitted = Clock::now();
    step_.wait();
    const Clock::time_point end = Clock::now();
    const HostTimes times{between(begin, ready), between(ready, submitted), between(submitted, end)};
    trace_ = {};
    origin_ = begin;
    addSpans("plain step", begin, times);
    return times;
  }

  HostTimes timed(StepProfile& profile) {
    const Clock::time_point begin = Clock::now();
    step_.prepare();
    const Clock::time_point ready = Clock::now();
    profile = step_.timed();
    const double call = between(ready, Clock::now());
    const HostTimes times{between(begin, ready), std::max(0.0, call - profile.run_seconds), profile.run_seconds};
    addSpans("timed step", begin, times);
    trace_.device_start = trace_.host.back().start;
    trace_.commands = profile.commands;
    return times;
  }

  StepTrace trace() { return std::move(trace_); }

 private:
  void addSpans(const std::string& name, Clock::time_point begin, const HostTimes& times) {
    const double start = between(origin_, begin);
    trace_.host.push_back({name, start, times.step()});
    trace_.host.push_back({"batch", start, times.batch});
    trace_.host.push_back({"submit", start + times.batch, times.submit});
    trace_.host.push_back({"wait", start + times.batch + times.submit, times.wait});
  }

  const ProfiledStep& step_;
  Clock::time_point origin_;
  StepTrace trace_;
};

/// Below this part of either peak neither of them explains a kernel's time.
constexpr double kLeastPeakShare = 0.3;
/// An empty dispatch is at least this part of its time.
constexpr double kLeastLaunchShare = 0.5;

void judge(ProfileRow& row, const Peaks& peaks) {
  if (row.seconds <= 0) return;
  const passes::cost::Rates rates{.bytes_per_second = peaks.bytes_per_second,
                                  .operations_per_second = peaks.operations_per_second,
                                  .dispatch_seconds = peaks.dispatch_seconds,
                                  .level_seconds = peaks.dispatch_seconds + peaks.barrier_seconds};
  const passes::cost::Floor least = passes::cost::floorOf(row.bytes, row.operations.value_or(0), rates);
  row.peak_share = least.seconds() / row.seconds;
  if (static_cast<double>(row.calls) * peaks.timed_dispatch_seconds >= kLeastLaunchShare * row.seconds) {
    row.bound = Bound::Launch;
  } else if (*row.peak_share >= kLeastPeakShare) {
    row.bound = least.memory >= least.compute ? Bound::Memory : Bound::Compute;
  } else {
    // Whatever is not counted may be what takes the time.
    row.bound = row.operations ? Bound::Latency : Bound::Unknown;
  }
}

void add(ProfileRow& row, const ProfiledCommand& command) {
  ++row.calls;
  row.seconds += command.seconds;
  row.bytes += command.bytes;
  row.operations = row.operations && command.operations ? std::optional(*row.operations + *command.operations) : std::nullopt;
  for (const Location& line : command.lines) {
    std::string text = fmt::format("{}:{}", std::filesystem::path(line.file).filename().string(), line.line);
    if (std::ranges::find(row.lines, text) == row.lines.end()) row.lines.push_back(std::move(text));
  }
}

}  // namespace

Profile measureProfile(const ProfiledStep& step, int64_t steps) {
  Stopwatch watch(step);
  StepProfile timed;
  (void)watch.plain();
  (void)watch.timed(timed);
  std::vector<HostTimes> plain_times, timed_times;
  std::vector<StepProfile> profiles;
  for (int64_t i = 0; i < steps; ++i) {
    plain_times.push_back(watch.plain());
    timed_times.push_back(watch.timed(timed));
    // With another dynamic extent a step runs another program.
    if (profiles.empty() || profiles.front().commands.size() == timed.commands.size()) profiles.push_back(std::move(timed));
  }
  Profile made;
  made.steps = static_cast<int64_t>(profiles.size());
  made.commands = profiles.front().commands;
  double start = 0;
  for (size_t i = 0; i < made.commands.size(); ++i) {
    std::vector<double> seconds;
    for (const StepProfile& profile : profiles) seconds.push_back(profile.commands[i].seconds);
    made.commands[i].seconds = median(std::move(seconds));
    made.commands[i].start = start;
    start += made.commands[i].seconds;
  }
  made.plain = medians(plain_times);
  made.timed = medians(timed_times);
  made.input_bytes = profiles.front().input_bytes;
  made.output_bytes = profiles.front().output_bytes;
  made.trace = watch.trace();
  return made;
}

Profile measureProfile(Trainer& trainer, const std::function<Batch(uint64_t)>& batch, int64_t steps) {
  Batch next;
  uint64_t ticket = 0;
  const ProfiledStep step{.prepare = [&] { next = batch(trainer.step_count() + 1); },
                          .submit = [&] { ticket = trainer.enqueue(1, [&](size_t) { return next; }); },
                          .wait = [&] { (void)trainer.wait(ticket).front().or_throw(); },
                          .timed = [&] { return trainer.profile(next); }};
  return measureProfile(step, steps);
}

std::string_view toString(Bound bound) {
  switch (bound) {
    case Bound::Unknown:
      return "-";
    case Bound::Memory:
      return "memory";
    case Bound::Compute:
      return "compute";
    case Bound::Launch:
      return "launch";
    case Bound::Latency:
      return "latency";
  }
  return "-";
}

std::vector<ProfileRow> rowsOf(const Profile& profile, bool one_per_command) {
  std::vector<ProfileRow> rows;
  std::map<std::string, size_t> by_kernel;
  for (const ProfiledCommand& command : profile.commands) {
    const std::string key = command.kernel.empty() ? "label " + command.label : command.kernel;
    const auto [found, inserted] = by_kernel.try_emplace(key, rows.size());
    if (one_per_command || inserted) {
      found->second = rows.size();
      rows.push_back(
          {.label = command.label, .kernel = command.kernel, .level = one_per_command ? std::optional(command.level) : std::nullopt});
    }
    add(rows[found->second], command);
  }
  const double all = totalsOf(profile).seconds;
  for (ProfileRow& row : rows) {
    row.share = all > 0 ? row.seconds / all : 0;
    if (profile.peaks) judge(row, *profile.peaks);
    const auto found = one_per_command ? profile.alternatives.end() : profile.alternatives.find(row.kernel);
    if (found != profile.alternatives.end()) row.alternatives = found->second;
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, &ProfileRow::seconds);
  return rows;
}

ProfileTotals totalsOf(const Profile& profile) {
  ProfileTotals totals;
  totals.operations = 0;
  std::map<uint32_t, double> longest;
  for (const ProfiledCommand& command : profile.commands) {
    totals.seconds += command.seconds;
    totals.bytes += command.bytes;
    totals.operations = totals.operations && command.operations ? std::optional(*totals.operations + *command.operations) : std::nullopt;
    double& level = longest[command.level];
    level = std::max(level, command.seconds);
  }
  for (const auto& [level, seconds] : longest) totals.critical_path += seconds;
  totals.levels = static_cast<uint32_t>(longest.size());
  return totals;
}

}  // namespace lockstep::tools
