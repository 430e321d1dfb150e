// SPDX-License-Identifier: Apache-2.0
#include "tools/profile/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "console/terminal.h"
#include "console/text_format.h"

namespace lockstep::tools {
namespace {

constexpr int kColumns = 100;
constexpr int kLabelColumns = 33, kDiffLabelColumns = 54;
constexpr size_t kMostRows = 15;
constexpr double kLeastShare = 0.005;  ///< of a row that is not folded

/// "12.3M": three digits with a unit of 1000.
std::string shortNumber(double value) {
  constexpr std::string_view kUnits = " KMGTP";
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : 1;
  return unit == 0 ? fmt::format("{:.0f}", value) : fmt::format("{:.{}f}{}", value, decimals, kUnits[unit]);
}

/// Three digits or more: "0.123", "12.3", "1234".
std::string threeDigits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  return value >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string micros(double seconds) { return threeDigits(seconds * 1e6); }
std::string percent(double part) { return fmt::format("{:.{}f}%", part * 100, part < 0.0995 ? 1 : 0); }

/// Cut in the middle of nothing: the end of a long label says the least.
std::string fitted(const std::string& text, int columns) {
  if (static_cast<int>(text.size()) <= columns) return text;
  return console::cutToColumns(text, columns - 2) + "..";
}

struct Painter {
  bool colour;
  [[nodiscard]] std::string bold(const std::string& text) const { return colour ? "\x1b[1m" + text + "\x1b[0m" : text; }
  [[nodiscard]] std::string dim(const std::string& text) const { return colour ? "\x1b[2m" + text + "\x1b[0m" : text; }
};

std::string line(const std::array<std::string, 10>& cells) {
  return fmt::format("{:<{}} {:>5} {:>8} {:>6} {:>6} {:>6} {:>6} {:>7} {:>5} {:>7}", cells[0], kLabelColumns, cells[1], cells[2], cells[3],
                     cells[4], cells[5], cells[6], cells[7], cells[8], cells[9]);
}

std::string rowText(const ProfileRow& row) {
  const double giga = row.seconds > 0 ? 1e-9 / row.seconds : 0;
  const auto rate = [&](double amount) { return giga > 0 ? threeDigits(amount * giga) : "-"; };
  return line({fitted(row.label, kLabelColumns), std::to_string(row.calls), micros(row.seconds), percent(row.share),
               shortNumber(static_cast<double>(row.bytes)), rate(static_cast<double>(row.bytes)),
               row.operations ? shortNumber(static_cast<double>(*row.operations)) : "-",
               row.operations ? rate(static_cast<double>(*row.operations)) : "-", row.peak_share ? percent(*row.peak_share) : "-",
               std::string(toString(row.bound))});
}

/// "  level 3  k3_shared_tiled  mlp.cpp:12 mlp.cpp:14 and 3 more"; empty when there is nothing to say.
std::string placesText(const ProfileRow& row) {
  constexpr size_t kMost = 4;
  std::string text;
  if (row.level) text += fmt::format("  level {}", *row.level);
  if (!row.kernel.empty()) text += "  " + row.kernel;
  for (size_t i = 0; i < std::min(row.lines.size(), kMost); ++i) text += (i == 0 ? "  " : " ") + row.lines[i];
  if (row.lines.size() > kMost) text += fmt::format(" and {} more", row.lines.size() - kMost);
  return console::cutToColumns(text, kColumns);
}

/// "  plan   rows {lanes = 4, rows_per_group = 16}  12.3 µs alone", then the others beside it.
std::string alternativesText(const ProfileRow& row) {
  std::string text;
  for (const PlanTime& one : row.alternatives) {
    const bool is_own = text.empty();
    const double own = row.alternatives.front().seconds;
    const std::string time = is_own ? fmt::format("{} µs alone", micros(one.seconds)) : fmt::format("{:.2f} of that", one.seconds / own);
    text += fmt::format("  {:<5} {}  {}\n", is_own ? "plan" : "or", one.plan, time);
    if (!one.driver.empty()) text += fmt::format("        {}\n", one.driver);
  }
  return text;
}

/// Rows that are too small or too many become one.
std::vector<ProfileRow> folded(std::vector<ProfileRow> rows) {
  size_t shown = 0;
  while (shown < std::min(rows.size(), kMostRows) && rows[shown].share >= kLeastShare) ++shown;
  if (rows.size() - shown < 2) return rows;
  ProfileRow other{.label = fmt::format("other ({})", rows.size() - shown)};
  for (size_t i = shown; i < rows.size(); ++i) {
    other.calls += rows[i].calls;
    other.seconds += rows[i].seconds;
    other.share += rows[i].share;
    other.bytes += rows[i].bytes;
    other.operations = other.operations && rows[i].operations ? std::optional(*other.operations + *rows[i].operations) : std::nullopt;
  }
  rows.resize(shown);
  rows.push_back(std::move(other));
  return rows;
}

std::string hostText(const HostTimes& times) {
  return fmt::format("{:>9} µs   batch {}, submit {}, wait {}", micros(times.step()), micros(times.batch), micros(times.submit),
                     micros(times.wait));
}

}  // namespace

std::string profileText(const Profile& profile, const ProfileTextOptions& options) {
  const Painter paint{options.colour};
  const ProfileTotals totals = totalsOf(profile);
  std::string text =
      fmt::format("{}\n", paint.bold(fmt::format("{} on {}, medians of {} steps", profile.sample, profile.device, profile.steps)));
  text += fmt::format("{}, {}\n", profile.device_name, profile.driver);
  if (profile.peaks) {
    const Peaks& peaks = *profile.peaks;
    text += fmt::format("peaks: {} GB/s, {} GFLOP/s; an empty dispatch {} µs, a barrier {} µs, a timed dispatch {} µs\n",
                        threeDigits(peaks.bytes_per_second * 1e-9), threeDigits(peaks.operations_per_second * 1e-9),
                        micros(peaks.dispatch_seconds), micros(peaks.barrier_seconds), micros(peaks.timed_dispatch_seconds));
  }
  if (profile.plans > 0)
    text += fmt::format("plans: {} of {} measured by 'lockstep tune', the others estimated\n", profile.measured_plans, profile.plans);
  text +=
      "\n" +
      paint.bold(line({options.all ? "dispatch" : "kernel", "calls", "µs", "share", "bytes", "GB/s", "FLOP", "GFLOP/s", "peak", "bound"})) +
      "\n";
  std::vector<ProfileRow> rows = rowsOf(profile, options.all);
  if (!options.all) rows = folded(std::move(rows));
  for (const ProfileRow& row : rows) {
    text += rowText(row) + "\n";
    if (const std::string places = placesText(row); !places.empty()) text += paint.dim(places) + "\n";
    text += alternativesText(row);
  }
  ProfileRow sum{.label = "total", .operations = totals.operations};
  sum.calls = profile.commands.size();
  sum.seconds = totals.seconds;
  sum.share = totals.seconds > 0 ? 1 : 0;
  sum.bytes = totals.bytes;
  text += paint.bold(rowText(sum)) + "\n\n";
  text += fmt::format("critical path {:>9} µs   the longest dispatch of each of {} levels\n", micros(totals.critical_path), totals.levels);
  text += fmt::format("plain step    {}\n", hostText(profile.plain));
  const double more = profile.plain.step() > 0 ? profile.timed.step() / profile.plain.step() - 1 : 0;
  text += fmt::format("timed step    {} ({:+.0f} %)\n", hostText(profile.timed), more * 100);
  text +=
      fmt::format("transfers     {} in, {} out\n", console::formatBytes(profile.input_bytes), console::formatBytes(profile.output_bytes));
  return text;
}

std::string diffText(const ProfileSummary& before, const ProfileSummary& after) {
  const auto row = [](const std::string& label, std::optional<double> from, std::optional<double> to) {
    std::string ratio = from && to && *from > 0 ? fmt::format("x{:.2f}", *to / *from) : "-";
    if (!from) ratio = "only after";
    if (!to) ratio = "only before";
    const auto cell = [](std::optional<double> seconds) { return seconds ? micros(*seconds) : "-"; };
    const double change = (to.value_or(0) - from.value_or(0)) * 1e6;
    return fmt::format("{:<{}} {:>9} {:>9} {:>11} {:>11}\n", fitted(label, kDiffLabelColumns), kDiffLabelColumns, cell(from), cell(to),
                       ratio, fmt::format("{}{}", change < 0 ? "-" : "+", threeDigits(std::abs(change))));
  };
  const auto titleOf = [](const ProfileSummary& profile) { return fmt::format("{} on {}", profile.sample, profile.device_name); };
  std::string text = fmt::format("before: {}\nafter:  {}\n\n", titleOf(before), titleOf(after));
  text += fmt::format("{:<{}} {:>9} {:>9} {:>11} {:>11}\n", "label", kDiffLabelColumns, "before µs", "after µs", "ratio", "change µs");
  for (const LabelChange& change : changesOf(before, after)) text += row(change.label, change.before, change.after);
  text += row("total of the dispatches", before.seconds, after.seconds);
  text += row("plain step", before.step_seconds, after.step_seconds);
  return text;
}

}  // namespace lockstep::tools
