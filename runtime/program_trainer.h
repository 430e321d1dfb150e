// SPDX-License-Identifier: Apache-2.0
// Trains with a program that stands alone: what compile() made and a dump holds (X.program), without the model, its trace or a pass.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "ir/program/program.h"
#include "ir/support/finding.h"
#include "ir/support/result.h"

namespace lockstep {

namespace detail {
struct Device;
}

/// What a step of it gave.
struct ProgramStep {
  uint64_t step = 0;  ///< 1-based
  float loss = 0;     ///< before the update, averaged over the runs of the step
  double lr = 0;      ///< the learning rate of this step
  std::optional<float> grad_norm;
  std::optional<float> loss_scale;                         ///< of the gradients of this step, where the program scales the loss
  std::map<std::string, io::Array, std::less<>> captures;  ///< of the last run
};

/// Its parameters, moments and losses are those of the trainer that the program comes from, bit by bit, where the device and the batches
/// are the same. Not safe for concurrent calls.
class ProgramTrainer {
 public:
  /// Opens a device (a selector: "auto", "reference", "vulkan", …) and gets the program ready there. Facts that the program states of its
  /// kernels are proven again, as somebody may have written them. Failures: those of chooseDevice(); program.* for a program that is not
  /// whole or that the device has no room for; program_run.steps for one that does not train.
  static Result<ProgramTrainer> open(program::Program program, const std::string& device = "auto");
  /// The same on a device that is open already.
  static Result<ProgramTrainer> openOn(const detail::Device& device, program::Program program);
  ProgramTrainer(ProgramTrainer&&) noexcept;
  ProgramTrainer& operator=(ProgramTrainer&&) noexcept;
  ~ProgramTrainer();

  /// Goes on from a checkpoint of a trainer or of a program of the same training; a dump has one from before its first step
  /// (start.safetensors). Nothing changes when it fails. Exit code IncompatibleCheckpoint with the codes of Trainer::load(), and
  /// checkpoint.schedule for another learning rate than the program's.
  Status load(const io::TensorFile& checkpoint);
  /// A checkpoint after the last step, which Trainer::load() also takes. It names no place in the data.
  [[nodiscard]] Result<io::TensorFile> checkpoint() const;

  /// One step. `batches` holds each input of the batch: the values of one run, or those of several runs after one another (a leading axis),
  /// of which run i of the training takes number (i - 1) modulo their number. Failures: program_run.start before load() where the program
  /// has parameters; program_run.batch for an input that is missing, unknown or of another type or size; batch.index for an integer outside
  /// of its range; step.index for an index that the step computed; step.non_finite (exit code NumericCheck) for a loss that is not finite;
  /// and those of the device.
  Result<ProgramStep> step(const io::TensorFile& batches);

  [[nodiscard]] uint64_t steps() const;  ///< done so far
  [[nodiscard]] const program::Program& program() const;
  [[nodiscard]] const std::string& device() const;  ///< its name
  /// What the sanitizer found so far, where the device is "sanitizer".
  [[nodiscard]] const std::vector<Finding>& findings() const;

 private:
  struct Impl;
  explicit ProgramTrainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
