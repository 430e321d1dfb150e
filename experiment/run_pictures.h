// SPDX-License-Identifier: Apache-2.0
// What a run shows besides its numbers: exhibits, the curve, the page. None of it may end the run: what cannot be made or written is a
// warning on stderr.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "experiment/live_view.h"
#include "experiment/report.h"
#include "experiment/run_folder.h"

namespace lockstep::experiment {

class RunPictures {
 public:
  /// The panel shows the last sample, and is cleared for a warning.
  explicit RunPictures(LiveView& view) : view_(view) {}
  /// Writes from now on into the folder, which has those of the first `done` steps.
  void open(const RunFolder& folder, int64_t done);

  /// Shows and keeps what the model makes after `step`.
  void exhibit(Experiment& experiment, int64_t step);
  /// loss.png and report.html, if there is a folder. `data` has no exhibits.
  void writePages(const std::string& title, const std::function<ReportData()>& data);
  /// The pages of a long run with many pictures take long; they get a twentieth of the time.
  void writePagesSometimes(const std::string& title, const std::function<ReportData()>& data);

 private:
  using Clock = std::chrono::steady_clock;

  void orWarn(const std::function<Status()>& make);
  void warn(const std::vector<Diagnostic>& diagnostics);
  Status keep(int64_t step, const Exhibit& exhibit);
  [[nodiscard]] Status write(const std::string& title, ReportData data) const;

  LiveView& view_;
  const RunFolder* folder_ = nullptr;
  std::vector<StoredExhibit> exhibits_;  ///< all of the run
  std::set<std::string> warned_;         ///< codes
  Clock::time_point last_pages_;
  Clock::duration pages_took_{};  ///< the last time
};

}  // namespace lockstep::experiment
