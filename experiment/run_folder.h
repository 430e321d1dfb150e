// SPDX-License-Identifier: Apache-2.0
// The folder of one run: what was asked for, the losses, metrics and exhibits so far, checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/run_lock.h"
#include "experiment/run_record.h"
#include "frontend/train/checkpoint_folder.h"
#include "ir/support/result.h"

namespace lockstep::experiment {

/// What a run needs to be resumed.
struct RunConfig {
  std::string recipe;
  uint64_t seed = 0;
  int64_t steps = 0;
  std::string data;
  std::string from = {};
  std::string device;  ///< as it was asked for
  std::string precision = "f32";
};

/// A loss of each step from 1 on, and what was reported.
struct History {
  struct Report {
    int64_t step = 0;
    Metrics metrics = {};                  ///< none where nothing was measured
    double lr = 0;                         ///< of this step
    std::optional<double> grad_norm = {};  ///< where the program computes it
    double seconds = 0;                    ///< of training so far, those before a resumption included
  };
  std::vector<float> losses;
  std::vector<Report> reports;
};

/// An exhibit as its file has it.
struct StoredExhibit {
  int64_t step = 0;
  std::string name;
  std::string text = {};
  std::vector<std::byte> png = {};  ///< of a picture, which has no text
};

/// Files: config.json · losses.jsonl {"step", "loss"} · metrics.jsonl {"step", "lr", "grad_norm", "seconds", "metrics"}, a line for each
/// report · loss.png · report.html · exhibits/000100-digits.png · checkpoints/ (the last three) · checkpoint.safetensors, the last one of
/// all · lock, while a process trains into it. A killed run loses nothing but the lines since its last report.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Keeps other processes from training into the folder; `make` makes it first. Errors "folder.busy", "folder.missing", "file.directory".
  [[nodiscard]] Result<RunLock> lock(bool make) const;
  /// Makes the folder. Error "folder.exists" when it has a config.json: a run is resumed, or begun elsewhere.
  Status begin(const RunConfig& config, const RunRecord& record) const;
  /// Notes in config.json that the run goes on after `step`.
  Status noteResumption(const RunConfig& config, const RunRecord& record, int64_t step) const;
  /// Of an earlier run. Errors "folder.missing", "folder.config" (also for numbers that no run has) and those of files.
  [[nodiscard]] Result<RunConfig> readConfig() const;
  /// Up to `step`, after which the run goes on; later lines are dropped, from the files too. Error "folder.history" when the losses of so
  /// many steps are missing that the checkpoint cannot be one of this run.
  Result<History> readHistory(int64_t step) const;
  /// Likewise, by step and name; files that are not readable are passed over.
  [[nodiscard]] std::vector<StoredExhibit> readExhibits(int64_t step) const;

  /// Adds the losses of the steps after `step`.
  Status addLosses(int64_t step, std::span<const float> losses) const;
  Status addReport(const History::Report& report) const;
  /// Gives it as it was written.
  Result<StoredExhibit> addExhibit(int64_t step, const Exhibit& exhibit) const;
  Status writeCurve(const std::string& title, const std::vector<float>& losses) const;
  /// Into checkpoints/; with `last` also as checkpoint.safetensors. Throws Error.
  void saveCheckpoint(const Trainer& trainer, const RunConfig& config, bool last);
  /// Loads the last checkpoint that can be read, of checkpoints/ or else checkpoint.safetensors. Error "folder.checkpoint" when there is
  /// none, with the files that are damaged; errors of Trainer::load() are thrown.
  Status loadCheckpoint(Trainer& trainer) const;

 private:
  std::filesystem::path path_;
  std::optional<CheckpointFolder> checkpoints_;  ///< since the first save; it knows which files it has read
};

/// runs/NAME-1, runs/NAME-2, ...: the first that does not exist.
std::filesystem::path freshRunFolder(const std::string& recipe);
/// The one of these with the highest number, if any.
std::optional<std::filesystem::path> latestRunFolder(const std::string& recipe);

}  // namespace lockstep::experiment
