// SPDX-License-Identifier: Apache-2.0
// The one contract of all backends. A backend compiles a ValidProgram into an Executable; state arenas are allocated through the backend
// and shared between executables; each step's inputs are bytes of the program's Input arena, its outputs bytes of the Output arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/printed.h"
#include "ir/program/program.h"
#include "ir/support/finding.h"
#include "ir/support/result.h"

namespace lockstep {

/// One allocation on a device. Reads and writes are ordered after everything submitted before, and block.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual uint64_t size() const = 0;
  virtual Status write(uint64_t offset, std::span<const std::byte> data) = 0;
  virtual Status read(uint64_t offset, std::span<std::byte> data) = 0;
  /// Says that nobody has written any of it yet. Only a sanitizer looks at that; the bytes stay.
  virtual Status forget() { return Success{}; }
};

/// How far floats may be from the real numbers that they stand for, word by word of a range of memory.
struct RoundingBounds {
  /// A comparison, or a choice of a whole number, that other floats within their bounds would make differently.
  struct Choice {
    Location where;
    uint64_t count = 0;
    std::string invocation;  ///< the first one
  };
  std::vector<double> values;     ///< in f64; NaN where nothing is known. Words are taken as floats
  std::vector<float> bounds;      ///< the largest distance that WGSL allows a device; infinite where it allows any
  std::vector<uint32_t> origins;  ///< index into `places` of the operation that most of the error comes from; 0: none
  std::vector<Location> places{{}};
};

/// The external arenas of a run, by arena name.
using ArenaSet = std::map<std::string, std::shared_ptr<Memory>, std::less<>>;

/// Identifies a submission; tickets of one executable ascend.
using Ticket = uint64_t;

/// What one command took on the device in the last timed step.
struct CommandTime {
  size_t command = 0;  ///< index into Program::commands
  double seconds = 0;
};

struct ExecutionStatistics {
  uint64_t submissions = 0;  ///< queue submissions so far, one that failed on the way too
  uint64_t steps = 0;
  uint64_t device_allocations = 0;  ///< device objects and memory made so far; constant after the first step
  uint64_t device_bytes = 0;        ///< bytes of all arenas of the executable, rings included
};

/// Not safe for concurrent calls; the trainer serialises.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Enqueues inputs.size() consecutive steps in one submission where the backend can; step i sees inputs[i] (the whole Input arena; empty
  /// when the program has none). Blocks only when the ring is full. `state` must hold every State arena of the program by name.
  virtual Result<Ticket> submit(const ArenaSet& state, std::span<const std::span<const std::byte>> inputs) = 0;
  /// Waits for a submission and returns the Output arena of each of its steps. Each ticket can be waited for once.
  virtual Result<std::vector<std::vector<std::byte>>> wait(Ticket ticket) = 0;
  /// Runs one step with timestamps and returns the time of each command.
  virtual Result<std::vector<CommandTime>> time(const ArenaSet& state, std::span<const std::byte> input) = 0;
  [[nodiscard]] virtual ExecutionStatistics statistics() const = 0;
  /// By kernel of the program, what the driver tells of it: "Register Count 96, Stack Size 0". Empty where nobody asked for it
  /// (Backend::collectKernelFacts) or the driver tells nothing.
  [[nodiscard]] virtual std::vector<std::string> kernelFacts() const { return {}; }
  /// What kernels printed in the last submit() or time(), which may have failed; nothing where the backend does not collect it.
  virtual std::optional<Printed> takePrinted() { return std::nullopt; }
  /// What a sanitizer found in the last submit() or time(), in the order of the program; see ReferenceOptions::sanitize.
  virtual std::vector<Finding> takeFindings() { return {}; }
  /// Of what dispatches wrote to the range; empty where nobody keeps track, see SanitizeChecks::errors.
  [[nodiscard]] virtual RoundingBounds bounds(const program::Range& range) const { return (void)range, RoundingBounds{}; }
  /// Those of the last submit() or time().
  virtual std::vector<RoundingBounds::Choice> takeUnstableChoices() { return {}; }
};

enum class DeviceKind : uint8_t { Discrete, Integrated, Virtual, CpuDriver, Reference };
std::string_view toString(DeviceKind kind);

/// One line of `lockstep devices`.
struct DeviceInfo {
  std::string id;    ///< "reference", "vulkan:0"
  std::string name;  ///< as the driver says
  DeviceKind kind = DeviceKind::Reference;
  std::string driver;  ///< name and version
  uint64_t memory_bytes = 0;
  program::DeviceProfile profile;
  bool usable = true;
  std::string why_not;  ///< when not usable: the missing feature or limit and the remedy
};

/// A kernel in the words of a device.
struct KernelListing {
  std::string ending;  ///< of a file with it: "spvasm"
  std::string text;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const DeviceInfo& device() const = 0;
  virtual Result<std::shared_ptr<Memory>> allocate(uint64_t bytes) = 0;
  virtual Result<std::unique_ptr<Executable>> compile(const program::ValidProgram& program) = 0;
  /// Several programs, each with its executable or its failure: side by side where that takes less time.
  virtual std::vector<Result<std::unique_ptr<Executable>>> compileAll(std::span<const program::ValidProgram> programs) {
    std::vector<Result<std::unique_ptr<Executable>>> executables;
    for (const program::ValidProgram& program : programs) executables.push_back(compile(program));
    return executables;
  }
  /// For every executable that is compiled from now on.
  virtual void collectKernelFacts() {}
  /// What the device gets for a kernel, for people to read; nothing where a backend runs kernels as they are.
  [[nodiscard]] virtual Result<std::optional<KernelListing>> list(const kernel::ValidModule&) const {
    return std::optional<KernelListing>();
  }
};

/// A device that was chosen, and why ("the only discrete GPU").
struct ChosenDevice {
  DeviceInfo info;
  std::string reason;
};

/// Every device of every backend that was built in, best first; unusable ones last.
std::vector<DeviceInfo> listDevices();
/// `selector`: "auto", "reference", "vulkan" (the best Vulkan device), "vulkan:<index>" or "vulkan:<part of the name>". For "reference"
/// no driver is loaded. "sanitizer[:race,memory]" has the checks of sanitize.h, "reference:fault=exp+4ulp" a fault of fault.h.
Result<ChosenDevice> chooseDevice(std::string_view selector);
Result<std::unique_ptr<Backend>> openDevice(const DeviceInfo& device);

}  // namespace lockstep
