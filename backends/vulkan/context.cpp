// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>

#include "backends/vulkan/pipeline_cache.h"
#include "backends/vulkan/pipeline_statistics.h"
#include "ir/support/narrate.h"

namespace lockstep::vulkan {

namespace {

constexpr uint64_t kStagingBytes = 8u << 20;
/// Reading uncached mapped memory goes word by word over the bus; beyond this a copy to cached memory is faster.
constexpr uint64_t kDirectReadBytes = 4096;

constexpr auto kPolling = std::chrono::milliseconds(1);
constexpr uint64_t kSecond = 1'000'000'000;
/// A cache can have megabytes, and a program of one kernel takes milliseconds to make.
constexpr std::chrono::duration<double> kSaveAfter{0.5};

/// In nanoseconds. Unlimited unless the variable is set: a step of a large model may take minutes.
Result<uint64_t> deviceTimeout() {
  const char* text = std::getenv("LOCKSTEP_DEVICE_TIMEOUT");
  if (text == nullptr || *text == '\0') return UINT64_MAX;
  const std::string_view digits = text;
  uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), seconds);
  if (error == std::errc() && end == digits.end() && seconds >= 1 && seconds <= 86400) return seconds * kSecond;
  return fail("device.timeout", fmt::format("LOCKSTEP_DEVICE_TIMEOUT is '{}', wanted a number of seconds from 1 to 86400", digits), {},
              "set it to a number, or unset it to wait without a limit");
}

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

}  // namespace

void fullBarrier(const VolkDeviceTable& vk, VkCommandBuffer commands, bool host) {
  constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  auto barrier = blank<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  VkPipelineStageFlags after = kStages;
  if (host) {
    barrier.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
    after |= VK_PIPELINE_STAGE_HOST_BIT;
  }
  vk.vkCmdPipelineBarrier(commands, kStages, after, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Result<std::shared_ptr<Context>> Context::open(std::shared_ptr<Instance> instance, DeviceFacts facts) {
  std::shared_ptr<Context> context(new Context);
  context->instance_ = std::move(instance);
  context->facts_ = std::move(facts);
  context->collects_kernel_facts_ = wantsPipelineStatistics();
  LS_CHECK(context->openDevice());
  return context;
}

Status Context::openDevice() {
  LS_TRY(timeout_, deviceTimeout());
  float priority = 1.0f;
  auto queue = blank<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = facts_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = blank<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(facts_.extensions.size());
  info.ppEnabledExtensionNames = facts_.extensions.data();
  auto features = blank<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  // Every device has it, and no sample was slower with it (bench/results/checks.md). What our guards should miss stays in the buffer.
  features.features.robustBufferAccess = VK_TRUE;
  auto zero = blank<VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES);
  zero.shaderZeroInitializeWorkgroupMemory = VK_TRUE;
  auto storage16 = blank<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  storage16.storageBuffer16BitAccess = VK_TRUE;
  storage16.storagePushConstant16 = facts_.immediate_f16 ? VK_TRUE : VK_FALSE;
  auto float16 = blank<VkPhysicalDeviceShaderFloat16Int8Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  float16.shaderFloat16 = VK_TRUE;
  auto subgroup_types =
      blank<VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES);
  subgroup_types.shaderSubgroupExtendedTypes = VK_TRUE;
  auto subgroup_flow = blank<VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR);
  subgroup_flow.shaderSubgroupUniformControlFlow = VK_TRUE;
  auto packed_dot =
      blank<VkPhysicalDeviceShaderIntegerDotProductFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  packed_dot.shaderIntegerDotProduct = VK_TRUE;
  auto enable = [&](auto& part) {
    part.pNext = features.pNext;
    features.pNext = &part;
  };
  if (facts_.spirv.zero_initialize_workgroup) enable(zero);
  if (facts_.f16) {
    enable(storage16);
    enable(float16);
  }
  if (facts_.subgroup_f16) enable(subgroup_types);
  if (facts_.spirv.subgroup_uniform_control_flow) enable(subgroup_flow);
  if (facts_.spirv.packed_dot) enable(packed_dot);
  auto executables = blank<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  executables.pipelineExecutableInfo = VK_TRUE;
  if (facts_.pipeline_statistics) enable(executables);
  MatrixFeatures matrices(facts_.matrices);
  features.pNext = matrices.chain(features.pNext);
  info.pNext = &features;
  VkDevice made = VK_NULL_HANDLE;
  LS_CHECK(check(vkCreateDevice(facts_.handle, &info, nullptr, &made), "vkCreateDevice", facts_.info.name));
  functions_.device = made;  // after a failure it may hold anything
  volkLoadDeviceTable(&functions_.vk, functions_.device);
  vk().vkGetDeviceQueue(device(), facts_.queue_family, 0, &queue_);

  uint32_t heap = mainHeap(facts_.memory);
  for (uint32_t i = 0; i < facts_.memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = facts_.memory.memoryTypes[i];
    VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kMapped;
    if (type.heapIndex == heap && (type.propertyFlags & wanted) == wanted) host_sees_device_ = true;
  }

  auto pool = blank<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = facts_.queue_family;
  LS_TRY(pool_, CommandPool::create(functions_, counter_, pool, "vkCreateCommandPool"));
  auto buffer = blank<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  buffer.commandPool = pool_.get();
  buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer.commandBufferCount = 1;
  LS_CHECK(check(vk().vkAllocateCommandBuffers(device(), &buffer, &commands_), "vkAllocateCommandBuffers"));

  cache_file_ = pipelineCacheFile(facts_.properties);
  std::vector<std::byte> cached = readPipelineCache(cache_file_);
  if (cached.size() < kLeastCacheBytes) cached.clear();
  narrate([&] {
    return cached.empty() ? std::string("pipeline cache: empty")
                          : fmt::format("pipeline cache: {} bytes of {}", cached.size(), cache_file_.string());
  });
  cache_hash_ = hashBytes(cached);
  auto cache = blank<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  cache.initialDataSize = cached.size();
  cache.pInitialData = cached.data();
  LS_TRY(pipeline_cache_, PipelineCache::create(functions_, counter_, cache, "vkCreatePipelineCache"));
  return Success{};
}

Context::~Context() {
  if (functions_.device == VK_NULL_HANDLE || functions_.abandoned) return;
  vk().vkDeviceWaitIdle(device());
  if (pipeline_cache_) keepPipelines();
  staging_ = {};
  pipeline_cache_ = {};
  idle_fences_.clear();
  pool_ = {};
  vk().vkDestroyDevice(device(), nullptr);
  for (const std::string& error : instance_->takeErrors()) (void)std::fprintf(stderr, "vulkan.validation: %s\n", error.c_str());
}

uint32_t Context::memoryType(uint32_t allowed, Placement placement) const {
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  std::vector<VkMemoryPropertyFlags> wishes;
  if (placement == Placement::Device && host_sees_device_) wishes = {local | kMapped, local, 0};
  if (placement == Placement::Device && !host_sees_device_) wishes = {local, 0};
  if (placement == Placement::Upload && host_sees_device_) wishes = {local | kMapped, kMapped};
  if (placement == Placement::Upload && !host_sees_device_) wishes = {kMapped};
  if (placement == Placement::Readback) wishes = {kMapped | cached, kMapped};
  for (VkMemoryPropertyFlags wish : wishes) {
    for (uint32_t i = 0; i < facts_.memory.memoryTypeCount; ++i) {
      if ((allowed & (1u << i)) == 0 || (facts_.memory.memoryTypes[i].propertyFlags & wish) != wish) continue;
      return i;
    }
  }
  internalError("a Vulkan device without host-visible coherent memory");
}

Result<Allocation> Context::allocate(uint64_t bytes, Placement placement, uint64_t& counter, std::string_view object) {
  Allocation made;
  // A multiple of 16, never empty: fills work on words, and a buffer of no bytes is not allowed.
  made.size = roundUp(std::max<uint64_t>(bytes, 1), 16);
  if (made.size > facts_.max_allocation_bytes) {
    Failure failure = fail("vulkan.allocation_size", fmt::format("{} needs {} bytes, but one allocation on {} holds at most {}", object,
                                                                 made.size, facts_.info.name, facts_.max_allocation_bytes));
    failure.exit_code = ExitCode::OutOfMemory;
    return failure;
  }
  auto info = blank<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = made.size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  LS_TRY(made.buffer, Buffer::create(functions_, counter, info, "vkCreateBuffer", object));
  VkMemoryRequirements needs{};
  vk().vkGetBufferMemoryRequirements(device(), made.buffer.get(), &needs);
  auto allocate = blank<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = memoryType(needs.memoryTypeBits, placement);
  std::string what = fmt::format("{} of {} bytes", object, made.size);
  LS_TRY(made.memory, DeviceMemory::create(functions_, counter, allocate, "vkAllocateMemory", what));
  LS_CHECK(check(vk().vkBindBufferMemory(device(), made.buffer.get(), made.memory.get(), 0), "vkBindBufferMemory", object));
  VkMemoryPropertyFlags flags = facts_.memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags;
  made.device_local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  made.cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  if ((flags & kMapped) == kMapped) {
    void* address = nullptr;
    LS_CHECK(check(vk().vkMapMemory(device(), made.memory.get(), 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory", object));
    made.mapped = static_cast<std::byte*>(address);
  }
  return made;
}

Status Context::waitIdle() {
  if (functions_.abandoned) return notInTime();
  if (timeout_ == UINT64_MAX) return check(vk().vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
  // Waiting for the queue knows no limit; a fence after everything does.
  LS_TRY(Fence fence, takeFence());
  Status done = [&]() -> Status {
    LS_CHECK(check(vk().vkQueueSubmit(queue_, 0, nullptr, fence.get()), "vkQueueSubmit"));
    return waitFence(fence.get());
  }();
  if (!done.ok()) {
    settle();  // before the fence goes
    return done;
  }
  return giveFence(std::move(fence));
}

void Context::settle() noexcept {
  if (!functions_.abandoned) (void)vk().vkQueueWaitIdle(queue_);
}

Failure Context::notInTime() {
  functions_.abandoned = true;
  Failure failure =
      fail("device.timeout",
           fmt::format("{} did not finish within the {} seconds of LOCKSTEP_DEVICE_TIMEOUT", facts_.info.name, timeout_ / kSecond), {},
           "a kernel takes too long or the driver hangs; allow more time, or try --device reference");
  failure.exit_code = ExitCode::DeviceLost;
  return failure;
}

Status Context::waitFence(VkFence fence) {
  if (functions_.abandoned) return notInTime();
  // A CPU driver needs the core for its own threads.
  if (facts_.info.kind != DeviceKind::CpuDriver) {
    auto until = std::chrono::steady_clock::now() + kPolling;
    while (std::chrono::steady_clock::now() < until) {
      VkResult result = vk().vkGetFenceStatus(device(), fence);
      if (result != VK_NOT_READY) return check(result, "vkGetFenceStatus");
    }
  }
  const VkResult result = vk().vkWaitForFences(device(), 1, &fence, VK_TRUE, timeout_);
  if (result == VK_TIMEOUT && timeout_ != UINT64_MAX) return notInTime();
  return check(result, "vkWaitForFences");
}

Result<Fence> Context::takeFence() {
  if (idle_fences_.empty()) {
    auto info = blank<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    return Fence::create(functions_, counter_, info, "vkCreateFence");
  }
  Fence fence = std::move(idle_fences_.back());
  idle_fences_.pop_back();
  return fence;
}

Status Context::giveFence(Fence fence) {
  VkFence handle = fence.get();
  LS_CHECK(check(vk().vkResetFences(device(), 1, &handle), "vkResetFences"));
  idle_fences_.push_back(std::move(fence));
  return Success{};
}

Status Context::run(const std::function<void(VkCommandBuffer)>& record) {
  auto begin = blank<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  LS_CHECK(check(vk().vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer"));
  fullBarrier(vk(), commands_);
  record(commands_);
  fullBarrier(vk(), commands_, true);
  LS_CHECK(check(vk().vkEndCommandBuffer(commands_), "vkEndCommandBuffer"));
  auto submit = blank<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  LS_TRY(Fence fence, takeFence());
  Status done = [&]() -> Status {
    LS_CHECK(check(vk().vkQueueSubmit(queue_, 1, &submit, fence.get()), "vkQueueSubmit"));
    return waitFence(fence.get());
  }();
  if (!done.ok()) {
    // The queue may still run the commands, and what they use goes away with this failure.
    settle();
    return done;
  }
  return giveFence(std::move(fence));
}

Status Context::stage() {
  if (staging_.buffer) return Success{};
  LS_TRY(staging_, allocate(kStagingBytes, Placement::Readback, counter_, "the staging buffer"));
  return Success{};
}

Status Context::upload(const Allocation& target, uint64_t offset, std::span<const std::byte> data) {
  if (data.empty()) return Success{};
  LS_CHECK(waitIdle());
  if (target.mapped != nullptr) {
    std::memcpy(target.mapped + offset, data.data(), data.size());
    return Success{};
  }
  LS_CHECK(stage());
  for (uint64_t done = 0; done < data.size(); done += kStagingBytes) {
    VkBufferCopy copy{.srcOffset = 0, .dstOffset = offset + done, .size = std::min(kStagingBytes, data.size() - done)};
    std::memcpy(staging_.mapped, data.data() + done, copy.size);
    LS_CHECK(run([&](VkCommandBuffer commands) { vk().vkCmdCopyBuffer(commands, staging_.buffer.get(), target.buffer.get(), 1, &copy); }));
  }
  return Success{};
}

Status Context::download(const Allocation& source, uint64_t offset, std::span<std::byte> data) {
  if (data.empty()) return Success{};
  LS_CHECK(waitIdle());
  if (source.mapped != nullptr && (source.cached || data.size() <= kDirectReadBytes)) {
    std::memcpy(data.data(), source.mapped + offset, data.size());
    return Success{};
  }
  LS_CHECK(stage());
  for (uint64_t done = 0; done < data.size(); done += kStagingBytes) {
    VkBufferCopy copy{.srcOffset = offset + done, .dstOffset = 0, .size = std::min(kStagingBytes, data.size() - done)};
    LS_CHECK(run([&](VkCommandBuffer commands) { vk().vkCmdCopyBuffer(commands, source.buffer.get(), staging_.buffer.get(), 1, &copy); }));
    std::memcpy(data.data() + done, staging_.mapped, copy.size);
  }
  return Success{};
}

Status Context::fillZero(const Allocation& target) {
  return run([&](VkCommandBuffer commands) { vk().vkCmdFillBuffer(commands, target.buffer.get(), 0, VK_WHOLE_SIZE, 0); });
}

Status Context::validationStatus() {
  std::vector<std::string> errors = instance_->takeErrors();
  if (errors.empty()) return Success{};
  Failure failure;
  for (std::string& error : errors) failure.diagnostics.push_back(fail("vulkan.validation", std::move(error)).diagnostics[0]);
  failure.exit_code = ExitCode::Internal;
  return failure;
}

void Context::pipelinesWereMade(std::chrono::duration<double> time) {
  if (!pipeline_cache_) return;
  // A driver that saves no kernel may still hold the code of each one in its cache for as long as that lives: SwiftShader, two mappings per
  // kernel, of the 65 530 that Linux allows a process.
  if (!std::exchange(cache_has_kernels_, true) && pipelineCacheBytes() < kLeastCacheBytes) {
    narrate([] { return std::string("pipeline cache: none, since this driver saves nothing in it"); });
    pipeline_cache_ = {};
    return;
  }
  unsaved_ += time;
  if (unsaved_ >= kSaveAfter) savePipelineCache();
}

void Context::keepPipelines() noexcept {
  try {
    savePipelineCache();
  } catch (const std::exception&) {
    return;  // no memory for it: the next process compiles once more
  }
}

size_t Context::pipelineCacheBytes() const {
  size_t size = 0;
  return vk().vkGetPipelineCacheData(device(), pipeline_cache_.get(), &size, nullptr) == VK_SUCCESS ? size : 0;
}

void Context::savePipelineCache() {
  unsaved_ = {};
  if (cache_file_.empty()) return;
  size_t size = pipelineCacheBytes();
  if (size < kLeastCacheBytes) return;
  std::vector<std::byte> data(size);
  if (vk().vkGetPipelineCacheData(device(), pipeline_cache_.get(), &size, data.data()) != VK_SUCCESS) return;
  data.resize(size);
  uint64_t hash = hashBytes(data);
  if (hash == cache_hash_) return;
  cache_hash_ = hash;
  writePipelineCache(cache_file_, data);
}

}  // namespace lockstep::vulkan
