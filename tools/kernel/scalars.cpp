// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/scalars.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "ir/support/narrow_float.h"

namespace lockstep::tools {

using kernel::Scalar;
using kernel::TypeKind;

uint32_t bitsAt(const Bytes& bytes, const ScalarPlace& place) {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes.data() + place.offset, kernel::byteSize(place.scalar));
  return bits;
}

double numberOf(Scalar scalar, uint32_t bits) {
  if (scalar == Scalar::F16) return static_cast<double>(halfToFloat(static_cast<uint16_t>(bits)));
  if (scalar == Scalar::F32) return static_cast<double>(std::bit_cast<float>(bits));
  return scalar == Scalar::I32 ? static_cast<double>(std::bit_cast<int32_t>(bits)) : static_cast<double>(bits);
}

std::string scalarName(const kernel::TypeTable& types, kernel::TypeId type, uint64_t offset) {
  const kernel::Type& info = types[type];
  const auto component = [&](uint64_t at) { return fmt::format(".{}", "xyzw"[at / kernel::byteSize(info.scalar)]); };
  if (info.kind == TypeKind::Struct) {
    const kernel::Member* holder = &info.members.front();
    for (const kernel::Member& member : info.members) {
      if (member.offset <= offset) holder = &member;
    }
    return fmt::format(".{}{}", holder->name, scalarName(types, holder->type, offset - holder->offset));
  }
  if (info.kind == TypeKind::Array) {
    const uint64_t stride = types.strideOf(type);
    return fmt::format("[{}]{}", offset / stride, scalarName(types, info.element, offset % stride));
  }
  if (info.kind == TypeKind::Matrix) {
    const uint64_t stride = types.columnStride(type);
    return fmt::format("[{}]{}", offset / stride, component(offset % stride));
  }
  return info.kind == TypeKind::Vector ? component(offset) : "";
}

}  // namespace lockstep::tools
