// SPDX-License-Identifier: Apache-2.0
// IDX files, the format of MNIST: bytes with a shape, plain or compressed with gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::io {

/// Unsigned bytes, row-major.
struct ByteArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
};

/// Codes "file.read", and "idx.format" for another element type, a damaged file, or one with more or fewer bytes than its shape says.
Result<ByteArray> readIdx(const std::filesystem::path& path);

}  // namespace lockstep::io
