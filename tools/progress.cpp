// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "tools/text_format.h"

namespace lockstep::tools {
namespace {

constexpr int kBarWidth = 24;
constexpr double kRedrawSeconds = 0.1;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int columnsOf(std::FILE* stream) {
  winsize size{};
  return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(double fraction) {
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
  return fmt::format("[{}{}] ", std::string(static_cast<size_t>(filled), '#'), std::string(static_cast<size_t>(kBarWidth - filled), '.'));
}

/// Cuts after `columns` characters, never inside one (continuation bytes of UTF-8 take no column).
std::string cut(const std::string& text, int columns) {
  int used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool continuation = (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    if (!continuation && ++used > columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string progressLine(const ProgressState& state, int width) {
  std::string text;
  if (width >= 100) text += bar(state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0);
  text += fmt::format("step {}/{}  loss {:.4g}", state.step, state.steps, state.loss);
  if (!state.metrics.empty()) text += "  " + state.metrics;
  if (state.steps_per_second > 0) text += fmt::format("  {:.3g} steps/s", state.steps_per_second);
  if (state.eta_seconds >= 0 && state.step < state.steps) text += fmt::format("  {} left", formatDuration(state.eta_seconds));
  text += "  " + state.device;
  if (state.memory_bytes > 0) text += "  " + formatBytes(state.memory_bytes);
  return width > 0 ? cut(text, width) : text;
}

void Progress::update(const ProgressState& state) {
  if (!live_) return;
  const double time = now();
  if (drawn_ && time - last_ < kRedrawSeconds) return;
  last_ = time;
  drawn_ = true;
  // The last column stays free: some terminals wrap when it is written.
  fmt::print(out_, "\r\033[K{}", progressLine(state, std::max(20, columnsOf(out_) - 1)));
  std::fflush(out_);
}

void Progress::report(const ProgressState& state) { note(progressLine(state, 0)); }

void Progress::note(const std::string& text) {
  finish();
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

void Progress::finish() {
  if (!drawn_) return;
  fmt::print(out_, "\r\033[K");
  std::fflush(out_);
  drawn_ = false;
}

bool isTerminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(stream)) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace lockstep::tools
