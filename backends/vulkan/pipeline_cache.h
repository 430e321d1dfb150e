// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk: one file per device and driver, with a checksum, replaced atomically. If it cannot be read or written,
// pipelines are compiled again. The driver parses the bytes, and a checksum detects damage, not malice: so the file is used only if it
// belongs to the user, and whoever can write the user's files is trusted.
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
/// A smaller cache holds no kernel, only the driver's header of 32 bytes, or several of them: SwiftShader adds one per process.
constexpr uint64_t kLeastCacheBytes = 1024;

/// The driver's data. Empty when the file is missing, damaged, too small or in another format, and unless it is a regular file (not a link)
/// that belongs to this user and that nobody else may write.
std::vector<std::byte> readPipelineCache(const std::filesystem::path& file);
/// True when the file was written. Folders that are missing are made, for this user alone; whatever had the name is replaced.
bool writePipelineCache(const std::filesystem::path& file, std::span<const std::byte> data);
/// FNV-1a, 64 bits.
uint64_t hashBytes(std::span<const std::byte> bytes);

}  // namespace lockstep::vulkan
