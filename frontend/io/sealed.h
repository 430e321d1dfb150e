// SPDX-License-Identifier: Apache-2.0
// safetensors files that notice when they were damaged: a checksum of everything in them is one more entry of their metadata.
#pragma once

#include <filesystem>

#include "frontend/io/safetensors.h"

namespace lockstep::io {

/// The metadata entry: CRC-32 (of zlib) over the other metadata and all tensors, 8 hexadecimal digits.
inline constexpr std::string_view kChecksumEntry = "lockstep.checksum";

/// Writes atomically, with the entry.
Status writeSealed(const std::filesystem::path& path, TensorFile file);
/// Without the entry. Errors of readSafetensors(), and "safetensors.checksum" where the contents are not those that were written. A file
/// without an entry is taken as it is.
Result<TensorFile> readSealed(const std::filesystem::path& path);

}  // namespace lockstep::io
