// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/pipeline_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>

namespace lockstep::vulkan {

namespace {

struct Header {
  char magic[8] = {'l', 's', 'p', 'c', 'a', 'c', 'h', '1'};
  uint64_t size = 0;
  uint64_t hash = 0;
};

std::filesystem::path cacheDirectory() {
  if (const char* chosen = std::getenv("LOCKSTEP_CACHE_DIR")) return chosen;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::filesystem::path(cache) / "lockstep";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "lockstep";
  return {};
}

}  // namespace

uint64_t hashBytes(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

std::filesystem::path pipelineCacheFile(const VkPhysicalDeviceProperties& properties) {
  std::filesystem::path directory = cacheDirectory();
  if (directory.empty()) return {};
  uint64_t driver = hashBytes(std::as_bytes(std::span(properties.pipelineCacheUUID))) ^ properties.driverVersion;
  return directory / fmt::format("vulkan-{:04x}-{:04x}-{:016x}.cache", properties.vendorID, properties.deviceID, driver);
}

std::vector<std::byte> readPipelineCache(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::ifstream stream(file, std::ios::binary);
  Header header, expected;
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  std::error_code error;
  uint64_t size = std::filesystem::file_size(file, error);
  if (error || std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.size != size - sizeof header) return {};
  std::vector<std::byte> data(header.size);
  if (!stream.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()))) return {};
  return hashBytes(data) == header.hash ? data : std::vector<std::byte>{};
}

bool writePipelineCache(const std::filesystem::path& file, std::span<const std::byte> data) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  // Another process may write the same file: each writes its own and renames it over.
  std::filesystem::path own = file;
  own += fmt::format(".{}", getpid());
  Header header;
  header.size = data.size();
  header.hash = hashBytes(data);
  bool written = false;
  {
    std::ofstream stream(own, std::ios::binary | std::ios::trunc);
    stream.write(reinterpret_cast<const char*>(&header), sizeof header);
    stream.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    written = stream.good();
  }
  if (written) std::filesystem::rename(own, file, error);
  if (!written || error) std::filesystem::remove(own, error);
  return written && !error;
}

}  // namespace lockstep::vulkan
