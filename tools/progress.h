// SPDX-License-Identifier: Apache-2.0
// The progress of a training run on a terminal: one line that is drawn again and again, or plain lines when the output is a file or pipe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace lockstep::tools {

struct ProgressState {
  int64_t step = 0, steps = 0;
  double loss = 0;
  double steps_per_second = 0;
  double eta_seconds = -1;  ///< negative: unknown
  std::string device;
  uint64_t memory_bytes = 0;
  std::string metrics = {};  ///< already formatted; may be empty
};

/// One line without a line break: "step 120/1000  loss 0.0123  410 steps/s  2.1 s left  llvmpipe  15.2 MiB". `width` > 0 puts a bar in
/// front and shortens the line to so many columns.
std::string progressLine(const ProgressState& state, int width);

class Progress {
 public:
  /// `live` draws on one line of `out`; otherwise update() prints nothing and report() a plain line.
  Progress(std::FILE* out, bool live) : out_(out), live_(live) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }
  /// Draws the live line, at most ten times a second.
  void update(const ProgressState& state);
  /// A line that stays.
  void report(const ProgressState& state);
  void note(const std::string& text);
  /// Clears the live line.
  void finish();

 private:
  std::FILE* out_;
  bool live_;
  bool drawn_ = false;
  double last_ = -1;
};

/// Whether a live line makes sense on this stream.
bool isTerminal(std::FILE* stream);

}  // namespace lockstep::tools
