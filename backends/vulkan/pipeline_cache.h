// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk: one file for each device and driver, with a checksum, replaced atomically. A cache that cannot be read or
// written is no error: pipelines are compiled again. The driver gets the bytes of the file, and the checksum finds damage, not intent: so
// a file counts only if it is the user's own, and whoever can write the user's files is trusted.
#pragma once

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep::vulkan {

/// The file for this device; empty when LOCKSTEP_CACHE_DIR is set to nothing or there is no home directory.
std::filesystem::path pipelineCacheFile(const VkPhysicalDeviceProperties& properties);
/// A larger cache is neither read nor written.
constexpr uint64_t kMostCacheBytes = uint64_t{256} << 20;

/// The driver's data; empty when the file is missing, damaged or of another format, and when it is no regular file (a link is none) that
/// belongs to this user and that nobody else may write.
std::vector<std::byte> readPipelineCache(const std::filesystem::path& file);
/// True when the file was written. Folders that are missing are made, for this user alone; whatever had the name is replaced.
bool writePipelineCache(const std::filesystem::path& file, std::span<const std::byte> data);
/// FNV-1a, 64 bits.
uint64_t hashBytes(std::span<const std::byte> bytes);

}  // namespace lockstep::vulkan
