// SPDX-License-Identifier: Apache-2.0
// DeviceProfile: what schedule, planBuffers and emit need to know of a device, as a text value. Goldens use `portable`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lockstep {
class TokenCursor;
}

namespace lockstep::program {

/// How kernels are best shaped: lanes of one workgroup run side by side in hardware (Gpu), or a workgroup is a loop on one core and
/// barriers are expensive (Cpu).
enum class ExecutionStyle : uint8_t { Gpu, Cpu };

/// What a device does at best, in numbers that a text can give.
struct DeviceRates {
  uint32_t memory_mb_per_second;  ///< megabytes of 10^6 bytes, read and written
  uint32_t f32_mflops;            ///< 10^6 operations per second; a fused multiply-add is two
  uint32_t dispatch_ns;           ///< of an empty dispatch beside others
  uint32_t level_ns;              ///< of a level with one empty dispatch, and its barrier
};
/// Measured on an H100 (driver 580.159): memory by a copy, operations by products of 4096 x 4096 with plain f32.
inline constexpr DeviceRates kGpuRates{2'600'000, 42'000'000, 210, 2'500};
/// Measured on lavapipe (Mesa 22.3) on two cores.
inline constexpr DeviceRates kCpuRates{3'700, 36'000, 9'500, 13'600};

/// left (m x k) * right (k x n) by the matrix units of a subgroup, summed in f32; all 0: the device has none for this type.
struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

struct DeviceProfile {
  std::string name = "portable";
  ExecutionStyle style = ExecutionStyle::Gpu;
  uint32_t max_storage_buffers = 8;         ///< per shader stage
  uint64_t max_binding_bytes = 128u << 20;  ///< of one storage binding
  uint32_t min_offset_alignment = 256;      ///< bytes, of a storage binding
  uint32_t max_workgroup_invocations = 256;
  uint32_t max_workgroup_bytes = 16384;  ///< workgroup memory
  uint32_t max_workgroup_size_x = 256, max_workgroup_size_y = 256, max_workgroup_size_z = 64;
  uint32_t max_immediate_bytes = 64;
  uint32_t max_groups_per_dimension = 65535;
  /// How many rounds all loops of one invocation may make together; 0 = any number. Some drivers end every loop after that, without a word.
  uint32_t max_loop_iterations = 65535;
  uint32_t subgroup_size = 1;        ///< 1 = unknown
  uint32_t parallel_units = 16;      ///< multiprocessors or cores: how many workgroups run at a time
  bool whole_buffer_access = false;  ///< a dispatch uses an allocation for reading or for writing, never both (WebGPU)
  bool f16 = false;
  bool subgroups = false;
  bool fixed_subgroups = false;  ///< subgroups of a workgroup of one dimension are full and have `subgroup_size` neighbouring invocations
  MatrixShape matrix_f16 = {}, matrix_bf16 = {};  ///< of operands in f16 and bf16
  /// Few invocations hold a row of a result, and a result lies as a left operand does: rows are reduced and results multiplied in
  /// registers.
  bool matrix_rows = false;
  bool packed_dot = false;  ///< dot4I8Packed takes one instruction
  /// DeviceRates. They say what work costs, and never what is right.
  uint32_t memory_mb_per_second = kGpuRates.memory_mb_per_second;
  uint32_t f32_mflops = kGpuRates.f32_mflops;
  uint32_t dispatch_ns = kGpuRates.dispatch_ns;
  uint32_t level_ns = kGpuRates.level_ns;
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

/// `profile` with `rates`.
DeviceProfile withRates(DeviceProfile profile, const DeviceRates& rates);

std::string print(const DeviceProfile& profile);
Result<DeviceProfile> parseProfile(std::string_view text, const std::string& file_name = "profile");
/// The profile as the head of a program names it: the name alone for a named profile, else with the fields that differ from it (from
/// `portable` when no named profile has this name): "cpu { max_binding_bytes = 2147483648 }". May span lines.
std::string printReference(const DeviceProfile& profile);
Result<DeviceProfile> parseReference(TokenCursor& cursor);
/// A profile without limits, for programs whose device checks them itself.
DeviceProfile unlimitedProfile(std::string name);
/// The named profiles: portable, webgpu_default, small_bindings (64 KiB), cpu.
std::span<const DeviceProfile> namedProfiles();
Result<DeviceProfile> findProfile(std::string_view name);

}  // namespace lockstep::program
