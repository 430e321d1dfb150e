// SPDX-License-Identifier: Apache-2.0
// What `lockstep train` needs of a sample: the model, its data and what it measures. One file a sample; the table is samples.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/io/safetensors.h"

namespace lockstep::tools {

/// The user's choices that a sample must respect.
struct SampleOptions {
  int64_t steps = 0;            ///< how many there will be (schedules may depend on it)
  uint64_t seed = 42;           ///< of parameters and data
  std::string device = "auto";  ///< selector of chooseDevice()
  std::vector<std::string> disabled_passes = {};
  std::string dump_directory = {};  ///< empty: no dump
  int64_t memory_limit = 0;         ///< bytes of the step's temporaries; 0: none
};

/// What the compiler made, for the final report.
struct SampleFacts {
  std::string device;  ///< id, "vulkan:0"
  std::string device_name;
  std::string device_reason;  ///< why it was chosen
  int64_t dispatches_per_step = 0, levels_per_step = 0, distinct_kernels = 0;
  uint64_t planned_bytes = 0;  ///< of device memory
  int64_t parameters = 0;      ///< trainable numbers
};

using Metrics = std::vector<std::pair<std::string, double>>;

/// A compiled sample. Everything may throw lockstep::Error.
class SampleRun {
 public:
  virtual ~SampleRun() = default;
  [[nodiscard]] virtual const SampleFacts& facts() const = 0;
  /// Trains `count` more steps on fresh data and returns the loss of each.
  virtual std::vector<float> advance(int64_t count) = 0;
  /// Quality now, on data that was not trained on; may take a while. {"heldout_exact", 0.97}
  virtual Metrics measure() = 0;
  /// Parameters and optimizer state by name.
  virtual io::TensorFile checkpoint() = 0;
};

struct Sample {
  std::string_view name;
  std::string_view summary;
  int64_t default_steps = 1000;
  uint64_t default_seed = 42;
  int64_t report_every = 100;  ///< steps between lines
  int64_t measure_every = 0;   ///< steps between measurements, a multiple of report_every; 0: only at the end
  int64_t chunk = 10;          ///< steps in one submission, at most report_every
  std::unique_ptr<SampleRun> (*make)(const SampleOptions& options) = nullptr;
};

/// In the order in which they are listed; the first is the default of ./dev train.
std::span<const Sample> allSamples();

}  // namespace lockstep::tools
