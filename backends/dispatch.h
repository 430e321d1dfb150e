// SPDX-License-Identifier: Apache-2.0
// Runs one entry point of a kernel once: a Program of one dispatch in which every buffer is an arena of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/kernel/module.h"

namespace lockstep {

using Bytes = std::vector<std::byte>;

/// A variable's memory: `size` bytes from `offset` (a multiple of 256) of buffer number `buffer`.
struct BufferBinding {
  uint32_t group = 0, binding = 0;
  size_t buffer = 0;
  uint64_t offset = 0, size = 0;
};

struct KernelDispatch {
  kernel::Module module;
  std::string entry;  ///< empty: the only entry point
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<BufferBinding> bindings;  ///< at least those of the storage and uniform variables that the entry point uses
  std::vector<uint64_t> buffer_sizes;   ///< bytes
  Bytes immediates = {};                ///< of the immediate variable, if the entry point uses one; a multiple of 4
};

/// The program of one dispatch; its arenas are "buffer0", "buffer1", ... Codes run.entry, run.bind and those of validation.
Result<program::ValidProgram> makeProgram(const KernelDispatch& dispatch);

/// A program of makeProgram() compiled for a device, to be run several times. The backend must outlive it.
class PreparedDispatch {
 public:
  static Result<PreparedDispatch> make(Backend& backend, const program::ValidProgram& program);
  /// Runs it on the buffers, which then hold what the kernel left there. buffers[i] has buffer_sizes[i] bytes.
  /// Those in `unwritten` count as memory that nobody has written, for a sanitizer.
  Status run(std::vector<Bytes>& buffers, const std::set<size_t>& unwritten = {});
  /// Runs it once more on what the last run left on the device; seconds of device time.
  Result<double> time();
  /// What the last run printed, also when it failed; nothing where the backend does not collect it.
  std::optional<Printed> takePrinted() { return executable_->takePrinted(); }
  /// Of a buffer after the last run.
  [[nodiscard]] RoundingBounds bounds(size_t buffer) const;
  std::vector<RoundingBounds::Choice> takeUnstableChoices() { return executable_->takeUnstableChoices(); }
  /// What a sanitizer found in the last run.
  std::vector<Finding> takeFindings() { return executable_->takeFindings(); }

 private:
  std::unique_ptr<Executable> executable_;
  ArenaSet arenas_;
  std::vector<std::shared_ptr<Memory>> memories_;  // of the arenas, by buffer
};

/// Runs it once on the buffers, which then hold what the kernel left there. buffers[i] has buffer_sizes[i] bytes.
Status runDispatch(Backend& backend, const program::ValidProgram& program, std::vector<Bytes>& buffers);

}  // namespace lockstep
