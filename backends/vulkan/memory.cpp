// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/memory.h"

#include <fmt/format.h>

#include <atomic>

namespace lockstep::vulkan {

VulkanMemory::VulkanMemory(std::shared_ptr<Context> context, Allocation allocation, uint64_t bytes, uint64_t id)
    : context_(std::move(context)), allocation_(std::move(allocation)), size_(bytes), id_(id) {}

Result<std::shared_ptr<Memory>> VulkanMemory::allocate(std::shared_ptr<Context> context, uint64_t bytes) {
  static std::atomic<uint64_t> next_id{1};
  uint64_t available = freeDeviceBytes(context->facts());
  if (bytes > available) {
    Failure failure = fail("vulkan.out_of_memory",
                           fmt::format("{} bytes are asked for, but {} has {} bytes free", bytes, context->facts().info.name, available));
    failure.exit_code = ExitCode::OutOfMemory;
    return failure;
  }
  LS_TRY(Allocation allocation, context->allocate(bytes, Placement::Device, context->counter(), "a state arena"));
  LS_CHECK(context->fillZero(allocation));
  return std::shared_ptr<Memory>(std::make_shared<VulkanMemory>(std::move(context), std::move(allocation), bytes, next_id++));
}

Status VulkanMemory::checkRange(std::string_view what, uint64_t offset, uint64_t bytes) const {
  if (offset <= size_ && bytes <= size_ - offset) return Success{};
  return fail("vulkan.memory_range", fmt::format("{} of {} bytes at offset {} leaves a memory of {} bytes", what, bytes, offset, size_));
}

Status VulkanMemory::write(uint64_t offset, std::span<const std::byte> data) {
  LS_CHECK(checkRange("a write", offset, data.size()));
  return context_->upload(allocation_, offset, data);
}

Status VulkanMemory::read(uint64_t offset, std::span<std::byte> data) {
  LS_CHECK(checkRange("a read", offset, data.size()));
  return context_->download(allocation_, offset, data);
}

}  // namespace lockstep::vulkan
