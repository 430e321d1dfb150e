// SPDX-License-Identifier: Apache-2.0
// Which elements of a subgroup matrix an invocation holds. Vulkan does not say; a kernel that loads a matrix of numbers finds out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::vulkan {

/// Whether an instruction depends on which invocation holds which element.
constexpr bool needsLayout(kernel::Op op) {
  return op == kernel::Op::SubgroupMatrixRow || op == kernel::Op::SubgroupMatrixColumn || op == kernel::Op::SubgroupMatrixRowMax ||
         op == kernel::Op::SubgroupMatrixRowSum || op == kernel::Op::SubgroupMatrixConvert;
}

/// Where something is in a matrix.
struct MatrixPlace {
  uint32_t row = 0, column = 0;
  friend bool operator==(const MatrixPlace&, const MatrixPlace&) = default;
};

/// Element e of lane l is where the places of the bits of both numbers add up to.
struct MatrixLayout {
  kernel::Type type;
  uint32_t lanes = 0;                         ///< of the subgroup
  std::array<MatrixPlace, 7> lane_bits = {};  ///< from the lowest bit
  std::array<MatrixPlace, 12> element_bits = {};
  [[nodiscard]] MatrixPlace at(uint32_t lane, uint32_t element) const;
  friend bool operator==(const MatrixLayout&, const MatrixLayout&) = default;
};

/// The layout in which element e of lane l is number `numbers[l * held + e]` of the matrix, counted row by row; nothing where the places do
/// not add up, or where some element has no holder.
std::optional<MatrixLayout> fitLayout(const kernel::Type& type, uint32_t lanes, std::span<const uint32_t> numbers);

/// Rows in few invocations: a row's elements are with those whose numbers differ in some of these bits, and with each of them they are the
/// elements of one row place. Nothing where rows lie otherwise.
std::optional<std::vector<uint32_t>> lanesOfRow(const MatrixLayout& layout);

/// Whether the same invocations hold the same places of both as the same elements.
bool holdAlike(const MatrixLayout& a, const MatrixLayout& b);

/// A kernel of one subgroup that loads the matrix from binding 0, an array of f32 or of two f16 per u32, and stores what each invocation
/// holds to binding 1, an array of f32, lane by lane.
kernel::Module layoutProbe(const kernel::Type& type, uint32_t lanes);

}  // namespace lockstep::vulkan
