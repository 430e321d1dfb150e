// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/pipeline_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "ir/support/cache_folder.h"
#include "ir/support/descriptor.h"

namespace lockstep::vulkan {

namespace {

struct Header {
  char magic[8] = {'l', 's', 'p', 'c', 'a', 'c', 'h', '1'};
  uint64_t size = 0;
  uint64_t hash = 0;
};

/// Another user's file, one that others may write, or a second name of a file that was made for something else is not to reach the driver.
bool isOurs(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && status.st_nlink == 1 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::span<std::byte> bytesOf(Header& header) { return std::as_writable_bytes(std::span(&header, 1)); }

/// What others need not see: names of devices, and the kernels in a cache. Whether it worked shows when the file is made.
void makePrivateDirectories(const std::filesystem::path& folder) {
  if (folder.empty() || ::mkdir(folder.c_str(), 0700) == 0 || errno != ENOENT) return;
  makePrivateDirectories(folder.parent_path());
  (void)::mkdir(folder.c_str(), 0700);
}

}  // namespace

uint64_t hashBytes(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

std::filesystem::path pipelineCacheFile(const VkPhysicalDeviceProperties& properties) {
  std::filesystem::path directory = cacheFolder();
  if (directory.empty()) return {};
  uint64_t driver = hashBytes(std::as_bytes(std::span(properties.pipelineCacheUUID))) ^ properties.driverVersion;
  return directory / fmt::format("vulkan-{:04x}-{:04x}-{:016x}.cache", properties.vendorID, properties.deviceID, driver);
}

std::vector<std::byte> readPipelineCache(const std::filesystem::path& file) {
  if (file.empty()) return {};
  // Without waiting for the writer of a pipe.
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0 || !isOurs(status)) return {};
  const auto size = static_cast<uint64_t>(status.st_size);
  Header header, expected;
  if (size < sizeof header || size - sizeof header > kMostCacheBytes || !readAll(opened.get(), bytesOf(header))) return {};
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.size != size - sizeof header) return {};
  std::vector<std::byte> data(header.size);
  if (!readAll(opened.get(), data)) return {};
  return hashBytes(data) == header.hash ? data : std::vector<std::byte>{};
}

bool writePipelineCache(const std::filesystem::path& file, std::span<const std::byte> data) {
  if (data.size() > kMostCacheBytes) return false;
  makePrivateDirectories(file.parent_path());
  // Another process may write the same file: each writes its own, under a name that nobody foresees, and renames it over.
  std::string own = file.string() + ".XXXXXX";
  Descriptor opened(::mkostemp(own.data(), O_CLOEXEC));
  if (opened.get() < 0) return false;
  Header header;
  header.size = data.size();
  header.hash = hashBytes(data);
  const bool written = writeAll(opened.get(), bytesOf(header)) && writeAll(opened.get(), data);
  if (opened.close() && written && std::rename(own.c_str(), file.c_str()) == 0) return true;
  ::unlink(own.c_str());
  return false;
}

}  // namespace lockstep::vulkan
