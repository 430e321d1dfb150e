// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "frontend/wgsl/wgsl.h"
#include "tools/profile/peaks.h"

namespace lockstep::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kSlot = 256;          // bytes: the alignment of buffers and of ranges
constexpr uint32_t kMostGroups = 65535;  // of one dimension, on every device
constexpr double kLongEnough = 5e-3;     // seconds: far above a timestamp's grain
constexpr int kRounds = 8;
constexpr double kWarmUp = 0.1;  // seconds
constexpr int kAttempts = 4;

/// One kernel, dispatched again and again on the same buffers: binding i is buffer i.
struct Micro {
  std::string wgsl;
  uint32_t groups = 1;
  std::vector<uint64_t> buffers;  ///< bytes of each; the last is written, the others are read
  uint32_t dispatches = 1;
  uint64_t slot = 0;          ///< bytes of the buffers that each dispatch has to itself; 0: it has all of them
  bool side_by_side = false;  ///< all in one level
};

class Bench {
 public:
  static Result<Bench> make(Backend& backend, const Micro& micro) {
    LS_TRY(kernel::Module module, wgsl::read(micro.wgsl));
    program::Program program;
    Bench bench;
    for (size_t i = 0; i < micro.buffers.size(); ++i) {
      const std::string name = fmt::format("b{}", i);
      const uint64_t bytes = micro.buffers[i];
      program.arenas.push_back({.name = name, .role = program::ArenaRole::State, .size = bytes});
      program.buffers.push_back({.name = name,
                                 .type = {.dtype = graph::DType::F32, .shape = graph::Shape{static_cast<int64_t>(bytes / 4)}},
                                 .role = program::ArenaRole::State,
                                 .arena = program::ArenaId(i),
                                 .offset = 0,
                                 .size = bytes});
      LS_TRY(std::shared_ptr<Memory> memory, backend.allocate(bytes));
      LS_CHECK(memory->write(0, std::vector<std::byte>(bytes)));
      bench.arenas_.emplace(name, std::move(memory));
    }
    program.kernels.push_back({.name = "micro", .code = kernel::canonical(module)});
    for (uint32_t d = 0; d < micro.dispatches; ++d) {
      program::Dispatch dispatch{.kernel = program::KernelId(size_t{0}), .groups = {micro.groups, 1, 1}, .bindings = {}};
      for (size_t i = 0; i < micro.buffers.size(); ++i) {
        const auto access = i + 1 == micro.buffers.size() ? kernel::Access::ReadWrite : kernel::Access::Read;
        const uint64_t size = micro.slot == 0 ? micro.buffers[i] : micro.slot;
        const uint64_t offset = d * micro.slot;
        dispatch.bindings.push_back({.buffer = program::BufferId(i), .offset = offset, .size = size, .access = access});
      }
      program.commands.push_back({.action = std::move(dispatch), .level = micro.side_by_side ? 0 : d, .label = "micro"});
    }
    LS_TRY(const program::ValidProgram valid, program::validate(std::move(program)));
    LS_TRY(bench.executable_, backend.compile(valid));
    LS_CHECK(bench.plain());  // compiles and records
    return bench;
  }

  /// Seconds of the fastest dispatch, by timestamps.
  Result<double> fastestDispatch() {
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      LS_TRY(const std::vector<CommandTime> times, executable_->time(arenas_, {}));
      for (const CommandTime& time : times) best = std::min(best, time.seconds);
    }
    return best;
  }
  /// Seconds of the middle dispatch in the fastest timed step.
  Result<double> middleDispatch() {
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      LS_TRY(std::vector<CommandTime> times, executable_->time(arenas_, {}));
      std::ranges::sort(times, {}, &CommandTime::seconds);
      best = std::min(best, times[times.size() / 2].seconds);
    }
    return best;
  }
  /// Plain steps, one after the other, for so many seconds.
  Status repeat(double seconds) {
    for (const Clock::time_point start = Clock::now(); std::chrono::duration<double>(Clock::now() - start).count() < seconds;)
      LS_CHECK(plain());
    return Success{};
  }
  /// Seconds of the fastest plain step, by the host's clock.
  Result<double> fastestStep() {
    double best = 1e9;
    for (int round = 0; round < 4 * kRounds; ++round) {
      const Clock::time_point start = Clock::now();
      LS_CHECK(plain());
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
  }

 private:
  Status plain() {
    const std::span<const std::byte> no_input;
    LS_TRY(const Ticket ticket, executable_->submit(arenas_, std::span(&no_input, 1)));
    LS_CHECK(executable_->wait(ticket));
    return Success{};
  }

  ArenaSet arenas_;
  std::unique_ptr<Executable> executable_;
};

/// Lanes of a workgroup that every device has and that fill one.
uint32_t lanesOf(const DeviceInfo& device) { return std::min(256u, device.profile.max_workgroup_invocations); }

/// Doubles the work until it takes long enough; `measure` gives the seconds for a number of workgroups.
template <class Measure>
Result<double> bestRate(uint32_t most_groups, double work_per_group, const Measure& measure) {
  double best = 0;
  for (uint64_t groups = 1; groups <= most_groups; groups *= 2) {
    LS_TRY(const double seconds, measure(static_cast<uint32_t>(groups)));
    // A device with caches is fastest where all fits into them, which is not what is asked for: the last one counts.
    if (seconds > 0) best = static_cast<double>(groups) * work_per_group / seconds;
    if (seconds >= kLongEnough) break;
  }
  if (best <= 0)
    return fail("profile.peaks", "the device's timestamps do not move", {}, "use another driver; 'lockstep doctor' lists them");
  return best;
}

Result<double> copyRate(Backend& backend) {
  const uint32_t lanes = lanesOf(backend.device());
  const std::string text = fmt::format(R"(
@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;
@compute @workgroup_size({}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  output[id.x] = input[id.x] * 2.0;
}})",
                                       lanes);
  const uint64_t bytes_per_group = uint64_t{lanes} * 16;
  const DeviceInfo& device = backend.device();
  uint64_t most = std::min<uint64_t>(device.profile.max_binding_bytes, uint64_t{128} << 20);
  if (device.memory_bytes != 0) most = std::min(most, device.memory_bytes / 8);
  const auto most_groups = static_cast<uint32_t>(std::min<uint64_t>(most / bytes_per_group, kMostGroups));
  return bestRate(most_groups, 2.0 * static_cast<double>(bytes_per_group), [&](uint32_t groups) -> Result<double> {
    const uint64_t bytes = groups * bytes_per_group;
    LS_TRY(Bench bench, Bench::make(backend, {.wgsl = text, .groups = groups, .buffers = {bytes, bytes}}));
    return bench.fastestDispatch();
  });
}

constexpr int kChains = 8, kUnrolled = 8, kLoops = 32;

/// Multiply-adds in registers: kChains chains of kUnrolled * kLoops of them per invocation.
Micro arithmetic(const DeviceInfo& device, uint32_t groups) {
  const uint32_t lanes = lanesOf(device);
  // The chains do not wait for each other; factors that are read keep a compiler from knowing the result.
  std::string declarations, body, sum;
  for (int chain = 0; chain < kChains; ++chain) {
    declarations += fmt::format("  var a{0} = x + {0}.0;\n", chain);
    sum += fmt::format("{}a{}", chain == 0 ? "" : " + ", chain);
  }
  for (int i = 0; i < kUnrolled; ++i) {
    for (int chain = 0; chain < kChains; ++chain) body += fmt::format("    a{0} = fma(a{0}, x, y);\n", chain);
  }
  const std::string text = fmt::format(R"(
@group(0) @binding(0) var<storage, read> factors: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@compute @workgroup_size({}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let x = factors[id.x % 64u];
  let y = x + 0.5;
{}  for (var i = 0; i < {}; i++) {{
{}  }}
  output[id.x] = {};
}})",
                                       lanes, declarations, kLoops, body, sum);
  return {.wgsl = text, .groups = groups, .buffers = {kSlot, uint64_t{groups} * lanes * 4}};
}

double operationsPerGroup(const DeviceInfo& device) { return 2.0 * lanesOf(device) * kChains * kUnrolled * kLoops; }

Result<double> operationRate(Backend& backend) {
  return bestRate(kMostGroups, operationsPerGroup(backend.device()), [&](uint32_t groups) -> Result<double> {
    LS_TRY(Bench bench, Bench::make(backend, arithmetic(backend.device(), groups)));
    return bench.fastestDispatch();
  });
}

Status measureLaunches(Backend& backend, Peaks& peaks) {
  constexpr uint32_t kMany = 256;
  // A workgroup for each unit, as in the levels of a program.
  const uint32_t units = std::clamp(backend.device().profile.parallel_units, 1u, kMostGroups);
  const uint64_t slot = (uint64_t{units} * 4 + kSlot - 1) / kSlot * kSlot;
  const Micro empty{.wgsl = R"(
@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) { output[id.x] = 1.0; })",
                    .groups = units,
                    .buffers = {kMany * slot},
                    .slot = slot};
  Micro in_a_row = empty, side_by_side = empty;
  in_a_row.dispatches = side_by_side.dispatches = kMany;
  side_by_side.side_by_side = true;
  LS_TRY(Bench one, Bench::make(backend, empty));
  LS_TRY(Bench row, Bench::make(backend, in_a_row));
  LS_TRY(Bench level, Bench::make(backend, side_by_side));
  // Empty kernels let the clocks of a GPU drop. Before each measurement others bring them up, as the levels of a program find them.
  const double groups = peaks.operations_per_second * kLongEnough / operationsPerGroup(backend.device());
  LS_TRY(Bench load, Bench::make(backend, arithmetic(backend.device(), static_cast<uint32_t>(std::clamp<double>(groups, 1, kMostGroups)))));
  // On an H200 the same program takes 0.65 ms at one time and 0.85 at another, for as long as nobody looks; the least of several counts.
  double one_seconds = 1e9, row_seconds = 1e9, level_seconds = 1e9;
  const auto warmed = [&](Bench& bench, double& least) -> Status {
    LS_CHECK(load.repeat(kWarmUp));
    LS_TRY(const double seconds, bench.fastestStep());
    least = std::min(least, seconds);
    return Success{};
  };
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    LS_CHECK(warmed(one, one_seconds));
    LS_CHECK(warmed(row, row_seconds));
    LS_CHECK(warmed(level, level_seconds));
  }
  peaks.dispatch_seconds = std::max(0.0, level_seconds - one_seconds) / (kMany - 1);
  peaks.barrier_seconds = std::max(0.0, row_seconds - level_seconds) / (kMany - 1);
  LS_TRY(peaks.timed_dispatch_seconds, row.middleDispatch());
  return Success{};
}

}  // namespace

Result<Peaks> measurePeaks(Backend& backend) {
  Peaks peaks;
  LS_TRY(peaks.bytes_per_second, copyRate(backend));
  LS_TRY(peaks.operations_per_second, operationRate(backend));
  LS_CHECK(measureLaunches(backend, peaks));
  return peaks;
}

}  // namespace lockstep::tools
