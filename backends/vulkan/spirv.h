// SPDX-License-Identifier: Apache-2.0
// Kernel IR -> SPIR-V 1.3 (logical addressing, GLSL450 memory model), with WGSL's semantics where SPIR-V leaves them open: guarded
// division, masked shifts, clamped indices and conversions, zero-initialised variables. All calls are inlined.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/matrix_layout.h"
#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::vulkan {

/// What the device offers beyond Vulkan 1.1; every field off gives a module that runs anywhere.
struct SpirvOptions {
  bool preserve_signed_zero_inf_nan = false;      ///< shaderSignedZeroInfNanPreserveFloat32
  bool round_to_nearest_even = false;             ///< shaderRoundingModeRTEFloat32
  bool preserve_signed_zero_inf_nan_f16 = false;  ///< shaderSignedZeroInfNanPreserveFloat16
  bool round_to_nearest_even_f16 = false;         ///< shaderRoundingModeRTEFloat16
  bool zero_initialize_workgroup = false;         ///< VK_KHR_zero_initialize_workgroup_memory; otherwise a loop and a barrier
  bool subgroup_uniform_control_flow = false;     ///< VK_KHR_shader_subgroup_uniform_control_flow: lanes meet again where control flow does
  bool packed_dot = false;                        ///< VK_KHR_shader_integer_dot_product; without it products of single bytes
  bool debug_printf = false;                      ///< VK_KHR_shader_non_semantic_info; without it `print` does nothing
  bool source_lines = false;  ///< OpSource, and OpLine where an instruction has a place; tools show them, drivers skip them
  std::vector<MatrixLayout> matrix_layouts = {};  ///< those that are known
  uint32_t longest_row = 128;                     ///< maxComputeWorkGroupSize[0], 128 or more everywhere
  friend bool operator==(const SpirvOptions&, const SpirvOptions&) = default;
};

/// Null where it is not known.
const MatrixLayout* findLayout(const SpirvOptions& options, const kernel::Type& type);

/// The parts that Vulkan divides subgroup operations into, in the order of its bits.
enum class SubgroupFeature : uint8_t { Basic, Vote, Arithmetic, Ballot, Shuffle, ShuffleRelative, Clustered, Quad };
/// Only for ops of group Subgroup.
SubgroupFeature featureOf(kernel::Op op);

/// Emits the first entry point of the module (its name: spirvEntryPoint); fails with "vulkan.entry_point" when there is none. Storage and
/// uniform variables become storage buffers at (group, binding). Fails with "vulkan.matrix_layout" where the module asks for the place of
/// an element in a matrix whose layout is not known. In debug builds, or with LOCKSTEP_SPIRV_VAL=1, the words are checked by spirv-val and
/// a failure is an InternalError.
Result<std::vector<uint32_t>> emitSpirv(const kernel::ValidModule& module, const SpirvOptions& options);

/// The name of the entry point in the SPIR-V: its own, with '_' for every character that is not printable ASCII.
std::string spirvEntryPoint(const kernel::Function& entry);

/// spirv-val for Vulkan 1.1: empty when valid, else its messages.
std::string validateSpirv(std::span<const uint32_t> words);

/// The module as text, in the form of spirv-dis.
std::string disassemble(std::span<const uint32_t> words);

}  // namespace lockstep::vulkan
