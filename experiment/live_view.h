// SPDX-License-Identifier: Apache-2.0
// A training run on a terminal: a panel that is drawn again and again, and plain lines that stay.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::experiment {

/// A metric as it was measured so far.
struct Trend {
  std::string name;
  std::vector<double> values;
  int64_t step = 0;  ///< of the last value
};

struct Progress {
  int64_t step = 0, steps = 0;
  double loss = 0;
  std::optional<double> steps_per_second = {};  ///< absent: not known yet
  std::string device;
  uint64_t memory_bytes = 0;
  std::string metrics = {};  ///< those of this step, already formatted; may be empty
  // In the panel only.
  double lr = 0;
  std::optional<double> grad_norm = {};
  std::vector<Trend> trends = {};
};

/// One line without a line break: "step 120/1000  loss 0.0123  410 steps/s  2.1 s left  llvmpipe  15.2 MiB".
std::string progressLine(const Progress& progress);

class LiveView {
 public:
  /// `live` draws the panel on `out`; otherwise update() prints nothing. The title stands in its first line.
  LiveView(std::FILE* out, bool live, std::string title) : out_(out), live_(live), title_(std::move(title)) {}
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView() { clear(); }
  /// Draws the panel, at most ten times a second: a bar, the curve of the losses, numbers, a line for each metric, the last sample.
  void update(const Progress& progress, std::span<const float> losses);
  /// What the model last made; only its first lines are shown.
  void sample(std::string text) { sample_ = std::move(text); }
  /// Removes the panel, so that a line can be printed.
  void clear();

 private:
  std::FILE* out_;
  bool live_;
  std::string title_, sample_;
  int drawn_ = 0;  ///< lines on the screen
  double last_ = -1;
};

}  // namespace lockstep::experiment
