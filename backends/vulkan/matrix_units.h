// SPDX-License-Identifier: Apache-2.0
// Units that multiply matrices: what VK_KHR_cooperative_matrix and VK_KHR_shader_bfloat16 offer. Our headers are older than both
// extensions, so their structures are declared here.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "backends/vulkan/api.h"
#include "ir/kernel/module.h"
#include "ir/program/profile.h"

namespace lockstep::vulkan {

/// The form of both extensions' feature structures; the shorter one ends before the last flag.
struct FeatureFlags {
  VkStructureType type;
  void* next;
  VkBool32 values[3];
};

/// left (m x k) * right (k x n) + result (m x n), by one subgroup.
struct MatrixShape {
  kernel::Scalar operand = kernel::Scalar::F16, result = kernel::Scalar::F32;
  uint32_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// An instruction that the units cannot carry out in registers: the layout of its operand does not allow it.
struct ScatteredWork {
  kernel::Op op = kernel::Op::SubgroupMatrixRow;
  kernel::Type operand;
  friend bool operator==(const ScatteredWork&, const ScatteredWork&) = default;
};

struct MatrixUnits {
  std::vector<MatrixShape> shapes;  ///< empty: no units
  bool bfloat16 = false;
  std::vector<ScatteredWork> scattered = {};
};

/// What the device has. `extensions` gets the names of those to enable.
MatrixUnits findMatrixUnits(VkInstance instance, VkPhysicalDevice device, std::span<const VkExtensionProperties> offered, uint32_t version,
                            std::vector<const char*>& extensions);

/// Whether the units take every matrix of the module as it is.
bool suits(const kernel::Module& module, const MatrixUnits& units);

/// The module with matrices spread over invocations (ir/kernel/spread_matrices.h), where the units do not take them; nothing where they
/// do, or where it has none. Fails with "kernel.subgroup_matrix".
Result<std::optional<kernel::ValidModule>> spreadWithoutUnits(const kernel::ValidModule& module, const MatrixUnits& units,
                                                              uint32_t subgroup_size);

/// The shape that plans use for products of this operand with sums in f32: the largest cube-like one; none when there is none.
program::MatrixShape plannedShape(const MatrixUnits& units, kernel::Scalar operand);

/// The features to enable, as one chain; they live in the value.
class MatrixFeatures {
 public:
  explicit MatrixFeatures(const MatrixUnits& units);
  MatrixFeatures(const MatrixFeatures&) = delete;
  MatrixFeatures& operator=(const MatrixFeatures&) = delete;
  /// Puts the features in front of `next`; `next` itself without units.
  void* chain(void* next);

 private:
  FeatureFlags cooperative_{}, memory_model_{}, bfloat16_{};
  bool wanted_ = false, wants_bfloat16_ = false;
};

}  // namespace lockstep::vulkan
