// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk: one file for each device and driver, with a checksum, replaced atomically. A cache that cannot be read or
// written is no error: pipelines are compiled again.
#pragma once

#include <volk.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep::vulkan {

/// The file for this device; empty when LOCKSTEP_CACHE_DIR is set to nothing or there is no home directory.
std::filesystem::path pipelineCacheFile(const VkPhysicalDeviceProperties& properties);
/// The driver's data; empty when the file is missing, damaged or of another format.
std::vector<std::byte> readPipelineCache(const std::filesystem::path& file);
/// True when the file was written.
bool writePipelineCache(const std::filesystem::path& file, std::span<const std::byte> data);
/// FNV-1a, 64 bits.
uint64_t hashBytes(std::span<const std::byte> bytes);

}  // namespace lockstep::vulkan
