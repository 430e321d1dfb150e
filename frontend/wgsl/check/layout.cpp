// SPDX-License-Identifier: Apache-2.0
// WGSL's memory layout on the checker's types (the kernel IR's table has the same rules, but overflows silently at 4 GiB).
#include <algorithm>

#include "frontend/wgsl/check/types.h"

namespace lockstep::wgsl {
namespace {

constexpr uint64_t kHuge = uint64_t(1) << 40u;  // sizes are clamped here, so that products cannot overflow

uint64_t roundUp(uint64_t align, uint64_t value) { return align == 0 ? value : (value + align - 1) / align * align; }

uint64_t scalarSize(Ty scalar) { return scalar == kF16 ? 2 : 4; }

/// Alignment of a vector: that of a power-of-two width.
uint64_t vectorAlign(Ty scalar, uint32_t width) { return scalarSize(scalar) * (width == 2 ? 2 : 4); }

}  // namespace

Types::Facts Types::factsOf(Ty id) const {
  constexpr uint64_t kManyScalars = uint64_t(1) << 32u;
  const Type& type = (*this)[id];
  Facts facts;
  if (isScalar(id)) {
    facts.align = facts.size = scalarSize(id);
    facts.constructible = true;
    facts.host_shareable = id != kBool;
  } else if (id == kError) {
    facts.constructible = facts.host_shareable = true;
  } else if (type.kind == Kind::Vector || type.kind == Kind::Matrix) {
    const bool matrix = type.kind == Kind::Matrix;
    facts.align = vectorAlign(type.element, type.rows);
    facts.size = matrix ? facts.align * type.columns : scalarSize(type.element) * type.rows;
    facts.scalars = uint64_t(type.rows) * (matrix ? type.columns : 1);
    facts.depth = matrix ? 3 : 2;
    facts.constructible = true;
    facts.host_shareable = type.element != kBool;
  } else if (type.kind == Kind::SubgroupMatrix) {
    facts.align = facts.size = kernel::kSubgroupMatrixBytes;
    facts.depth = 2;
    facts.constructible = facts.subgroup_matrix = true;
  } else if (type.kind == Kind::Array) {
    const Facts& element = facts_[type.element.index()];
    const uint64_t stride = std::min(kMaximumTypeSize, roundUp(element.align, element.size));
    const uint64_t count = std::max<uint64_t>(1, type.count);
    facts = {.align = element.align, .size = std::min(kHuge, stride * count), .scalars = std::min(kManyScalars, element.scalars * count)};
    facts.depth = element.depth + 1;
    facts.constructible = type.count > 0 && type.override_count == 0 && element.constructible;
    facts.host_shareable = type.override_count == 0 && element.host_shareable;
    facts.atomic = element.atomic;
    facts.subgroup_matrix = element.subgroup_matrix;
    facts.array = true;
  } else if (type.kind == Kind::Atomic) {
    facts = facts_[type.element.index()];
    facts.depth = 2;
    facts.constructible = false;
    facts.atomic = true;
  } else if (type.kind == Kind::Struct) {
    facts.scalars = 0;
    facts.constructible = facts.host_shareable = true;
    uint64_t end = 0;
    for (const StructMember& member : structure(id).members) {
      const Facts& part = facts_[member.type.index()];
      const uint64_t align = member.align != 0 ? member.align : part.align;
      facts.align = std::max(facts.align, align);
      end = std::min(kHuge, roundUp(align, end) + (member.size != 0 ? member.size : part.size));
      facts.scalars = std::min(kManyScalars, facts.scalars + part.scalars);
      facts.depth = std::max(facts.depth, part.depth + 1);
      facts.constructible = facts.constructible && part.constructible;
      facts.host_shareable = facts.host_shareable && part.host_shareable;
      facts.atomic = facts.atomic || part.atomic;
      facts.array = facts.array || part.array;
    }
    facts.size = roundUp(facts.align, end);
  }
  return facts;
}

uint64_t Types::strideOf(Ty array) const {
  const Ty element = (*this)[array].element;
  return std::min(kMaximumTypeSize, roundUp(alignOf(element), sizeOf(element)));
}

std::vector<uint64_t> Types::memberOffsets(Ty id) const {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const StructMember& member : structure(id).members) {
    offsets.push_back(roundUp(member.align != 0 ? member.align : alignOf(member.type), end));
    end = std::min(kHuge, offsets.back() + (member.size != 0 ? member.size : sizeOf(member.type)));
  }
  return offsets;
}

}  // namespace lockstep::wgsl
