// SPDX-License-Identifier: Apache-2.0
// One open device: its queue, its functions, its pipeline cache, and blocking transfers. Shared by the backend, its memories and its
// executables. Not safe for concurrent calls.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "backends/vulkan/device.h"

namespace lockstep::vulkan {

/// Where a buffer should live.
enum class Placement : uint8_t {
  Device,    ///< device-local; also mapped when that costs nothing (all device memory is host-visible)
  Upload,    ///< written by the host, read by the device
  Readback,  ///< written by the device, read by the host: cached
};

/// A buffer with its own memory.
struct Allocation {
  DeviceMemory memory;
  Buffer buffer;
  std::byte* mapped = nullptr;  ///< null when the host cannot see it
  uint64_t size = 0;            ///< bytes, rounded up
  bool cached = false;          ///< mapped memory that the host reads at full speed
  bool device_local = false;
};

class Context {
 public:
  static Result<std::shared_ptr<Context>> open(std::shared_ptr<Instance> instance, DeviceFacts facts);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  /// Facts that only a running kernel tells.
  void learn(MatrixLayout layout) { facts_.spirv.matrix_layouts.push_back(std::move(layout)); }
  /// The units do not take kernels with such instructions any more.
  void scatter(const ScatteredWork& work) { facts_.matrices.scattered.push_back(work); }
  /// Whether pipelines are made so that the driver tells of their registers: a tool or LOCKSTEP_PIPELINE_STATISTICS asked for it.
  [[nodiscard]] bool collectsKernelFacts() const { return collects_kernel_facts_ && facts_.pipeline_statistics; }
  void collectKernelFacts() { collects_kernel_facts_ = true; }
  [[nodiscard]] const Functions& functions() const { return functions_; }
  [[nodiscard]] const VolkDeviceTable& vk() const { return functions_.vk; }
  [[nodiscard]] VkDevice device() const { return functions_.device; }
  [[nodiscard]] VkQueue queue() const { return queue_; }
  /// VK_NULL_HANDLE where the driver saves no kernels in it.
  [[nodiscard]] VkPipelineCache pipelineCache() const { return pipeline_cache_.get(); }
  /// Device objects and memory that belong to no executable.
  uint64_t& counter() { return counter_; }

  /// True when the heap of device-local memory is host-visible as a whole, so that the host can write it directly.
  [[nodiscard]] bool hostSeesDeviceMemory() const { return host_sees_device_; }
  /// `object` names the buffer in failures. The contents are undefined.
  Result<Allocation> allocate(uint64_t bytes, Placement placement, uint64_t& counter, std::string_view object);

  /// "device.timeout" after LOCKSTEP_DEVICE_TIMEOUT; from then on nothing waits for the device.
  Status waitIdle();
  /// As waitIdle(), for the way out after a failure: a second one is not told, and nothing is allocated.
  void settle() noexcept;
  /// An unsignalled fence; one that was given back if there is one, since a new one costs some drivers a millisecond.
  Result<Fence> takeFence();
  /// Takes a signalled fence back.
  Status giveFence(Fence fence);
  /// Waits for a submission: first polling, because a sleeping thread wakes up late, then blocking.
  Status waitFence(VkFence fence);
  /// Records, submits and waits.
  Status run(const std::function<void(VkCommandBuffer)>& record);
  Status upload(const Allocation& target, uint64_t offset, std::span<const std::byte> data);
  Status download(const Allocation& source, uint64_t offset, std::span<std::byte> data);
  Status fillZero(const Allocation& target);

  /// Fails with "vulkan.validation" when the validation layer has complained since the last call.
  Status validationStatus();
  /// At least one pipeline was made, all of them in this time. Now and then the pipeline cache is written, so that a crash does not lose
  /// much.
  void pipelinesWereMade(std::chrono::duration<double> time);

 private:
  Context() = default;
  Status openDevice();
  Status stage();
  Failure notInTime();
  /// Of the data that the driver would save; 0 if it does not say.
  [[nodiscard]] size_t pipelineCacheBytes() const;
  /// Writes the pipeline cache when it has grown.
  void savePipelineCache();
  void keepPipelines() noexcept;
  [[nodiscard]] uint32_t memoryType(uint32_t allowed, Placement placement) const;

  std::shared_ptr<Instance> instance_;
  DeviceFacts facts_;
  Functions functions_;
  VkQueue queue_ = VK_NULL_HANDLE;
  bool host_sees_device_ = false, collects_kernel_facts_ = false;
  uint64_t timeout_ = UINT64_MAX;  ///< nanoseconds to wait for a submission
  uint64_t counter_ = 0;
  CommandPool pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<Fence> idle_fences_;
  PipelineCache pipeline_cache_;
  bool cache_has_kernels_ = false;  ///< known once pipelines were made
  std::filesystem::path cache_file_;
  uint64_t cache_hash_ = 0;
  std::chrono::duration<double> unsaved_{};  ///< the making of pipelines that the file of the cache lacks
  Allocation staging_;
};

/// A barrier between everything before and everything after: compute and transfers, and with `host` the host's reads after it.
void fullBarrier(const VolkDeviceTable& vk, VkCommandBuffer commands, bool host = false);

}  // namespace lockstep::vulkan
