// SPDX-License-Identifier: Apache-2.0
// The numbers in the bytes of a WGSL type: of each member, element and component. Padding is none.
#pragma once

#include <cstdint>
#include <string>

#include "backends/dispatch.h"
#include "ir/kernel/module.h"

namespace lockstep::tools {

struct ScalarPlace {
  kernel::Scalar scalar = kernel::Scalar::U32;
  uint64_t offset = 0;
  uint32_t member = 0;  ///< which one of the type's members; all elements of an array have the same
};

/// Calls visit(ScalarPlace) for each number of a type at `offset`, in order, as far as `end`, where the bytes end. A runtime-sized array
/// reaches to there. Returns how many members the type has; they are counted from `member`.
template <class Visit>
uint32_t forEachScalar(const kernel::TypeTable& types, kernel::TypeId id, uint64_t offset, uint64_t end, const Visit& visit,
                       uint32_t member = 0) {
  const kernel::Type& type = types[id];
  if (type.kind == kernel::TypeKind::Struct) {
    uint32_t members = 0;
    for (const kernel::Member& one : type.members)
      members += forEachScalar(types, one.type, offset + one.offset, end, visit, member + members);
    return members;
  }
  if (type.kind == kernel::TypeKind::Array) {
    const uint64_t stride = types.strideOf(id), count = type.count != 0 ? type.count : offset < end ? (end - offset) / stride : 0;
    uint32_t members = 0;
    for (uint64_t i = 0; i < count; ++i) members = forEachScalar(types, type.element, offset + i * stride, end, visit, member);
    return members;
  }
  const bool matrix = type.kind == kernel::TypeKind::Matrix;
  const uint64_t size = kernel::byteSize(type.scalar), columns = matrix ? type.columns : 1, rows = matrix ? type.rows : type.width();
  for (uint64_t column = 0; column < columns; ++column) {
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t at = offset + (matrix ? column * types.columnStride(id) : 0) + row * size;
      if (at + size <= end) visit(ScalarPlace{.scalar = type.scalar, .offset = at, .member = member});
    }
  }
  return 1;
}

/// The bits of a number that lies within the bytes, those of an f16 in the low half.
uint32_t bitsAt(const Bytes& bytes, const ScalarPlace& place);
/// The number that these bits are.
double numberOf(kernel::Scalar scalar, uint32_t bits);

/// How WGSL names the number at `offset` of a variable of this type, without the variable: "[3].velocity.y". Empty for a scalar.
std::string scalarName(const kernel::TypeTable& types, kernel::TypeId type, uint64_t offset);

}  // namespace lockstep::tools
