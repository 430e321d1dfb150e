// SPDX-License-Identifier: Apache-2.0
// NumPy .npy files of one array: versions 1.0 and 2.0, C order, little-endian f2, f4, f8, i1, i4, i8, u1, u4 and b1. NumPy has no bf16:
// what the packages that add it write is V2, two bytes of anything, which is not read.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "frontend/io/array.h"
#include "ir/support/result.h"

namespace lockstep::io {

/// Codes: npy.magic (not an npy file or another version), npy.header (its dictionary), npy.dtype, npy.order (Fortran order), npy.length.
Result<Array> parseNpy(std::span<const std::byte> bytes, const std::string& name);
Result<Array> readNpy(const std::filesystem::path& path);

/// What formatNpy() cannot write: npy.dtype for bf16, npy.length for data that does not match type and shape.
Status checkNpy(const Array& array);
/// Version 1.0 (2.0 when the header is too long for it); the data starts at a multiple of 64 bytes. Throws the errors of checkNpy().
std::vector<std::byte> formatNpy(const Array& array);
/// Writes atomically, after checkNpy().
Status writeNpy(const std::filesystem::path& path, const Array& array);

}  // namespace lockstep::io
