// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what a dump has of the first steps, so that its stages run again and its program trains without the model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/train/session.h"

namespace lockstep::detail {

/// Files of a dump folder: start.safetensors, the checkpoint before the first step; inputs.safetensors, all that the first run reads; and
/// batches.safetensors, the batches of the first runs, each input with a leading axis of runs.
class StepDump {
 public:
  /// No folder: nothing is written. `runs` is how many go into the batches.
  StepDump(std::string folder, int64_t runs) : folder_(std::move(folder)), left_(folder_.empty() ? 0 : runs) {}
  ~StepDump();
  StepDump(const StepDump&) = delete;
  StepDump& operator=(const StepDump&) = delete;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Whether a run of this program belongs in it: those of the first one do.
  [[nodiscard]] bool wants(const std::shared_ptr<Session>& session) const { return left_ > 0 && (!session_ || session_ == session); }
  [[nodiscard]] bool begun() const { return session_ != nullptr; }
  /// Throws Error "file.write".
  void begin(const std::shared_ptr<Session>& session, const io::TensorFile& start, const io::TensorFile& inputs);
  /// Of the next run, its Input arena. The last one writes the batches.
  void add(const std::vector<std::byte>& input);

 private:
  [[nodiscard]] Status write(std::string_view name, const io::TensorFile& file) const;
  [[nodiscard]] Status writeBatches();

  std::string folder_;
  int64_t left_;
  std::shared_ptr<Session> session_;
  io::TensorFile batches_;
};

}  // namespace lockstep::detail
