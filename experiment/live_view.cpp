// SPDX-License-Identifier: Apache-2.0
#include "experiment/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <vector>

#include "console/curve.h"
#include "console/terminal.h"
#include "console/text_format.h"

namespace lockstep::experiment {
namespace {

using console::formatBytes;
using console::formatDuration;

constexpr int kBarWidth = 24, kCurveRows = 6, kSampleLines = 5, kWidest = 100;
constexpr size_t kTrends = 6, kTrendWidth = 40;
constexpr double kRedrawSeconds = 0.1;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A terminal that was closed takes nothing any more, which is no reason to stop: fmt::print would throw.
void put(std::FILE* out, const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), out);
  (void)std::fflush(out);
}

std::string bar(const Progress& progress) {
  const double share = progress.steps > 0 ? static_cast<double>(progress.step) / static_cast<double>(progress.steps) : 0;
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  std::string text;
  for (size_t i = 0; i < kBarWidth; ++i) text += i < filled ? "█" : "░";
  return fmt::format("{} {:3.0f} %  step {}/{}", text, 100 * share, progress.step, progress.steps);
}

/// In the panel metrics have lines of their own.
std::string rates(const Progress& progress, bool panel) {
  std::string text = fmt::format("loss {:.4g}", progress.loss);
  if (!panel && !progress.metrics.empty()) text += "  " + progress.metrics;
  if (progress.steps_per_second) {
    text += fmt::format("  {:.3g} steps/s", *progress.steps_per_second);
    const double left = static_cast<double>(progress.steps - progress.step) / *progress.steps_per_second;
    if (progress.step < progress.steps) text += fmt::format("  {} left", formatDuration(left));
  }
  text += "  " + progress.device;
  if (progress.memory_bytes > 0) text += "  " + formatBytes(progress.memory_bytes);
  return text;
}

std::string optimizerLine(const Progress& progress) {
  std::string text = fmt::format("learning rate {:.3g}", progress.lr);
  if (progress.grad_norm) text += fmt::format("  gradient norm {:.3g}", *progress.grad_norm);
  return text;
}

/// "test_accuracy  0.931  ▁▄▆▇█  step 400", the names in one column.
std::vector<std::string> trendLines(const std::vector<Trend>& trends) {
  const size_t count = std::min(trends.size(), kTrends);
  size_t width = 0;
  for (size_t i = 0; i < count; ++i) width = std::max(width, trends[i].name.size());
  std::vector<std::string> lines;
  for (size_t i = 0; i < count; ++i) {
    const Trend& trend = trends[i];
    lines.push_back(fmt::format("{:<{}}  {:<9.4g}  {}  step {}", trend.name, width, trend.values.back(),
                                console::sparkline(trend.values, kTrendWidth), trend.step));
  }
  return lines;
}

}  // namespace

std::string progressLine(const Progress& progress) {
  return fmt::format("step {}/{}  {}", progress.step, progress.steps, rates(progress, false));
}

void LiveView::update(const Progress& progress, std::span<const float> losses) {
  if (!live_) return;
  const double time = now();
  if (drawn_ > 0 && time - last_ < kRedrawSeconds) return;
  last_ = time;
  // The last column stays free: some terminals wrap when it is written.
  const int columns = std::max(20, console::columnsOf(out_) - 1);
  std::vector<std::string> lines{title_, bar(progress)};
  for (std::string& line : console::drawCurve(losses, std::min(columns, kWidest), kCurveRows)) lines.push_back(std::move(line));
  lines.push_back(rates(progress, true));
  lines.push_back(optimizerLine(progress));
  for (std::string& line : trendLines(progress.trends)) lines.push_back(std::move(line));
  std::istringstream sample(sample_);
  std::string line;
  for (int i = 0; i < kSampleLines && std::getline(sample, line); ++i) lines.push_back("  " + line);

  std::string text = drawn_ > 0 ? fmt::format("\033[{}A\r\033[J", drawn_) : "";
  for (const std::string& each : lines) text += console::cutToColumns(each, columns) + "\n";
  put(out_, text);
  drawn_ = static_cast<int>(lines.size());
}

void LiveView::clear() {
  if (drawn_ == 0) return;
  put(out_, fmt::format("\033[{}A\r\033[J", drawn_));
  drawn_ = 0;
}

}  // namespace lockstep::experiment
