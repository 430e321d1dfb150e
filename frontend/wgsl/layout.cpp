// SPDX-License-Identifier: Apache-2.0
// WGSL's memory layout on the checker's types (the kernel IR's table has the same rules, but overflows silently at 4 GiB).
#include <algorithm>

#include "frontend/wgsl/types.h"

namespace lockstep::wgsl {
namespace {

constexpr uint64_t kHuge = uint64_t(1) << 40u;  // sizes are clamped here, so that products cannot overflow

uint64_t roundUp(uint64_t align, uint64_t value) { return align == 0 ? value : (value + align - 1) / align * align; }

uint64_t scalarSize(Ty scalar) { return scalar == kF16 ? 2 : 4; }

/// Alignment of a vector: that of a power-of-two width.
uint64_t vectorAlign(Ty scalar, uint32_t width) { return scalarSize(scalar) * (width == 2 ? 2 : 4); }

}  // namespace

uint64_t Types::alignOf(Ty id) const {
  const Type& type = (*this)[id];
  if (type.kind == Kind::Vector || type.kind == Kind::Matrix) return vectorAlign(type.element, type.rows);
  if (type.kind == Kind::Array || type.kind == Kind::Atomic) return alignOf(type.element);
  if (type.kind == Kind::Struct) {
    uint64_t align = 1;
    for (const StructMember& member : structure(id).members) {
      align = std::max(align, member.align != 0 ? member.align : alignOf(member.type));
    }
    return align;
  }
  return isScalar(id) ? scalarSize(id) : 1;
}

uint64_t Types::sizeOf(Ty id) const {
  const Type& type = (*this)[id];
  if (type.kind == Kind::Vector) return scalarSize(type.element) * type.rows;
  if (type.kind == Kind::Matrix) return vectorAlign(type.element, type.rows) * type.columns;
  if (type.kind == Kind::Atomic) return sizeOf(type.element);
  if (type.kind == Kind::Array) return std::min(kHuge, strideOf(id) * std::max<uint64_t>(1, type.count));
  if (type.kind == Kind::Struct) {
    const auto& members = structure(id).members;
    if (members.empty()) return 0;
    const uint64_t last = memberOffsets(id).back();
    const StructMember& member = members.back();
    return std::min(kHuge, roundUp(alignOf(id), last + (member.size != 0 ? member.size : sizeOf(member.type))));
  }
  return isScalar(id) ? scalarSize(id) : 0;
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

uint64_t Types::scalarCount(Ty id) const {
  constexpr uint64_t kCap = uint64_t(1) << 32u;
  const Type& type = (*this)[id];
  if (type.kind == Kind::Vector) return type.rows;
  if (type.kind == Kind::Matrix) return uint64_t(type.rows) * type.columns;
  if (type.kind == Kind::Array)
    return std::min(kCap, std::min(kCap, scalarCount(type.element)) * std::min<uint64_t>(type.count, 1u << 30u));
  if (type.kind == Kind::Struct) {
    uint64_t sum = 0;
    for (const StructMember& member : structure(id).members) sum = std::min(kCap, sum + scalarCount(member.type));
    return sum;
  }
  return 1;
}

}  // namespace lockstep::wgsl
