// SPDX-License-Identifier: Apache-2.0
// Memory of the backend contract: one allocation on the device.
#pragma once

#include <memory>

#include "backends/vulkan/context.h"

namespace lockstep::vulkan {

class VulkanMemory final : public Memory {
 public:
  /// Zero-filled.
  static Result<std::shared_ptr<Memory>> allocate(std::shared_ptr<Context> context, uint64_t bytes);
  VulkanMemory(std::shared_ptr<Context> context, Allocation allocation, uint64_t bytes, uint64_t id);

  [[nodiscard]] uint64_t size() const override { return size_; }
  Status write(uint64_t offset, std::span<const std::byte> data) override;
  Status read(uint64_t offset, std::span<std::byte> data) override;

  [[nodiscard]] VkBuffer buffer() const { return allocation_.buffer.get(); }
  [[nodiscard]] const Context* context() const { return context_.get(); }
  /// Never used twice, unlike an address: recordings are kept by it.
  [[nodiscard]] uint64_t id() const { return id_; }

 private:
  [[nodiscard]] Status checkRange(std::string_view what, uint64_t offset, uint64_t bytes) const;
  std::shared_ptr<Context> context_;
  Allocation allocation_;
  uint64_t size_;
  uint64_t id_;
};

}  // namespace lockstep::vulkan
