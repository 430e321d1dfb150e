// SPDX-License-Identifier: Apache-2.0
// Private to the library: arrays of files, and the same values as memory of a device has them. Elements lie alike in both, so bytes are
// copied as they are; but memory ends with a whole word, of which packed elements (f16, bf16, i8, u8, u16) may leave a part unused. It is
// zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "frontend/io/array.h"
#include "ir/graph/type.h"

namespace lockstep::detail {

/// What an array of such elements holds; a bool is a u32, as in memory.
io::ElementType elementType(graph::DType dtype);
/// Bytes of the elements without the unused part of the last word; TensorType::byteSize() counts it.
uint64_t elementBytes(const graph::TensorType& type);

io::Array zeroArray(const graph::TensorType& type);
/// The elements at the start of `memory`, which has type.byteSize() bytes or elementBytes(type).
io::Array arrayIn(const graph::TensorType& type, std::span<const std::byte> memory);

/// Values as an array of the type: floats rounded to nearest even, integers modulo 2^32 or 2^8. As many as the type has elements.
io::Array encodeArray(const graph::TensorType& type, std::span<const double> values);
io::Array encodeArray(const graph::TensorType& type, std::span<const float> values);
/// The values at the start of `memory`.
std::vector<double> decodeMemory(const graph::TensorType& type, std::span<const std::byte> memory);

}  // namespace lockstep::detail
