// SPDX-License-Identifier: Apache-2.0
// NumPy .npz files: a zip archive of npy files, one per array.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/array.h"
#include "ir/support/result.h"

namespace lockstep::io {

/// Arrays by name, without the ending ".npy".
using Arrays = std::map<std::string, Array, std::less<>>;

enum class NpzCompression : uint8_t { Stored, Deflated };  ///< numpy.savez, numpy.savez_compressed

/// Codes: zip.archive, zip.method, zip.size, zip.checksum, those of npy.h, and npz.member (a member that is no npy file).
Result<Arrays> parseNpz(std::span<const std::byte> bytes, const std::string& name);
Result<Arrays> readNpz(const std::filesystem::path& path);

/// Codes zip.size, and those of checkNpy().
Result<std::vector<std::byte>> formatNpz(const Arrays& arrays, NpzCompression compression = NpzCompression::Stored);
/// Writes atomically.
Status writeNpz(const std::filesystem::path& path, const Arrays& arrays, NpzCompression compression = NpzCompression::Stored);

}  // namespace lockstep::io
