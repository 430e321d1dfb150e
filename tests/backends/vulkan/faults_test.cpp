// SPDX-License-Identifier: Apache-2.0
// Calls of the driver that fail: nothing may go away that the queue still uses, and no output may get lost. And what devices are opened
// with.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "backends/vulkan/executable.h"
#include "tests/backends/vulkan/harness.h"
#include "tests/backends/vulkan/variable.h"

namespace lockstep::vulkan::testing {
namespace {

using program::ArenaRole;

/// What stands between the backend and the driver.
struct Driver {
  VolkDeviceTable real{};
  int failing_waits = 0, failing_idles = 0, failing_resets = 0, failing_submits = 0;  ///< the next calls
  std::set<VkFence> running;                                                          ///< submissions that nobody has waited for
  std::vector<std::string> early;                                                     ///< objects that went while something ran
};
Driver g_driver;

bool isNext(int& count) {
  if (count == 0) return false;
  --count;
  return true;
}
void noteEnd(const char* object, bool used = !g_driver.running.empty()) {
  if (used) g_driver.early.emplace_back(object);
}

/// A driver that fails may have begun.
VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* info, VkFence fence) {
  const VkResult result = g_driver.real.vkQueueSubmit(queue, count, info, fence);
  if (result == VK_SUCCESS) g_driver.running.insert(fence);
  return isNext(g_driver.failing_submits) ? VK_ERROR_OUT_OF_HOST_MEMORY : result;
}
VkResult VKAPI_CALL wait(VkDevice device, uint32_t count, const VkFence* fences, VkBool32 all, uint64_t timeout) {
  if (isNext(g_driver.failing_waits)) return VK_ERROR_OUT_OF_HOST_MEMORY;
  const VkResult result = g_driver.real.vkWaitForFences(device, count, fences, all, timeout);
  if (result == VK_SUCCESS) g_driver.running.erase(*fences);
  return result;
}
VkResult VKAPI_CALL poll(VkDevice, VkFence) { return VK_NOT_READY; }
VkResult VKAPI_CALL queueIdle(VkQueue queue) {
  if (isNext(g_driver.failing_idles)) return VK_ERROR_OUT_OF_HOST_MEMORY;
  g_driver.running.clear();
  return g_driver.real.vkQueueWaitIdle(queue);
}
VkResult VKAPI_CALL deviceIdle(VkDevice device) {
  g_driver.running.clear();
  return g_driver.real.vkDeviceWaitIdle(device);
}
VkResult VKAPI_CALL reset(VkDevice device, uint32_t count, const VkFence* fences) {
  return isNext(g_driver.failing_resets) ? VK_ERROR_OUT_OF_DEVICE_MEMORY : g_driver.real.vkResetFences(device, count, fences);
}
void VKAPI_CALL destroyFence(VkDevice device, VkFence fence, const VkAllocationCallbacks* callbacks) {
  noteEnd("fence", g_driver.running.contains(fence));
  g_driver.real.vkDestroyFence(device, fence, callbacks);
}
void VKAPI_CALL destroyBuffer(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks* callbacks) {
  noteEnd("buffer");
  g_driver.real.vkDestroyBuffer(device, buffer, callbacks);
}
void VKAPI_CALL freeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  noteEnd("memory");
  g_driver.real.vkFreeMemory(device, memory, callbacks);
}
void VKAPI_CALL destroyPool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* callbacks) {
  noteEnd("command pool");
  g_driver.real.vkDestroyCommandPool(device, pool, callbacks);
}
void VKAPI_CALL destroyPipeline(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* callbacks) {
  noteEnd("pipeline");
  g_driver.real.vkDestroyPipeline(device, pipeline, callbacks);
}

/// Each step adds its input to the state and puts it out.
program::ValidProgram sums() {
  ProgramBuilder builder;
  const auto state = builder.buffer(ArenaRole::State, 64, "state"), input = builder.buffer(ArenaRole::Input, 64, "input"),
             output = builder.buffer(ArenaRole::Output, 64, "output");
  const auto add = builder.kernel(R"(lockstep.kernel 1
var @x: array<u32> {access = read, binding = 0, group = 0, space = storage}
var @y: array<u32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %px: ptr<storage, u32> = access @x, %i
  %x0: u32 = load %px
  %py: ptr<storage, u32, read_write> = access @y, %i
  %y0: u32 = load %py
  %r: u32 = add %x0, %y0
  store %py, %r
}
)");
  builder.dispatch(0, add, {input, state});
  builder.copy(1, state, output);
  return builder.take();
}

class Faults : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    g_driver = {};
    auto instance = Instance::acquire().orThrow();
    for (DeviceFacts& facts : findDevices(*instance).orThrow()) {
      if (context_ || !facts.info.usable) continue;
      context_ = Context::open(instance, std::move(facts)).orThrow();
    }
    ASSERT_TRUE(context_);
    auto& table = const_cast<VolkDeviceTable&>(context_->vk());
    g_driver.real = table;
    table.vkQueueSubmit = submit;
    table.vkWaitForFences = wait;
    table.vkGetFenceStatus = poll;
    table.vkQueueWaitIdle = queueIdle;
    table.vkDeviceWaitIdle = deviceIdle;
    table.vkResetFences = reset;
    table.vkDestroyFence = destroyFence;
    table.vkDestroyBuffer = destroyBuffer;
    table.vkFreeMemory = freeMemory;
    table.vkDestroyCommandPool = destroyPool;
    table.vkDestroyPipeline = destroyPipeline;
  }
  void TearDown() override {
    context_.reset();
    EXPECT_TRUE(g_driver.early.empty()) << g_driver.early.size() << " objects went while they were used, first a "
                                        << g_driver.early.front();
  }
  [[nodiscard]] ArenaSet allocate() const { return {{"state", VulkanMemory::allocate(context_, 256).orThrow()}}; }
  [[nodiscard]] std::unique_ptr<Executable> compile() const { return VulkanExecutable::compile(context_, sums()).orThrow(); }
  static Result<Ticket> submitOne(Executable& executable, const ArenaSet& state, uint32_t value) {
    const Words input(64, value);
    const std::vector<std::span<const std::byte>> inputs{bytes(input)};
    return executable.submit(state, inputs);
  }
  /// The first word that the step of a ticket put out.
  static uint32_t outputOf(Executable& executable, Ticket ticket) {
    const auto outputs = executable.wait(ticket).orThrow();
    EXPECT_EQ(outputs.size(), 1u);
    return outputs.empty() ? 0 : toWords(outputs[0])[0];
  }

  std::shared_ptr<Context> context_;
};

TEST_F(Faults, memory_whose_filling_failed_is_freed_after_it) {
  g_driver.failing_waits = 1;
  const auto memory = VulkanMemory::allocate(context_, 1u << 20);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.diagnostics()[0].code, "vulkan.vkWaitForFences");
  EXPECT_EQ(memory.failure().exit_code, ExitCode::OutOfMemory);
}

TEST_F(Faults, arenas_whose_filling_failed_are_freed_after_it) {
  g_driver.failing_waits = 1;
  EXPECT_FALSE(VulkanExecutable::compile(context_, sums()).ok());
  EXPECT_TRUE(VulkanExecutable::compile(context_, sums()).ok());
}

TEST_F(Faults, step_whose_waiting_failed_is_over_before_its_program_goes) {
  const ArenaSet state = allocate();
  auto executable = compile();
  const Ticket ticket = submitOne(*executable, state, 3).orThrow();
  g_driver.failing_waits = 1;
  EXPECT_FALSE(executable->wait(ticket).ok());
  executable.reset();
}

TEST_F(Faults, step_whose_waiting_failed_can_be_waited_for_again) {
  const ArenaSet state = allocate();
  auto executable = compile();
  const Ticket ticket = submitOne(*executable, state, 3).orThrow();
  g_driver.failing_waits = 1;
  EXPECT_FALSE(executable->wait(ticket).ok());
  EXPECT_EQ(outputOf(*executable, ticket), 3u);
}

TEST_F(Faults, timed_step_whose_waiting_failed_is_over_before_its_program_goes) {
  if (context_->facts().timestamp_bits == 0) GTEST_SKIP() << "no timestamps";
  const ArenaSet state = allocate();
  auto executable = compile();
  const Words input(64, 1);
  g_driver.failing_idles = 1;
  EXPECT_FALSE(executable->time(state, bytes(input)).ok());
  executable.reset();
}

TEST_F(Faults, fence_of_a_failed_submission_goes_after_what_had_begun) {
  const ArenaSet state = allocate();
  auto executable = compile();
  g_driver.failing_submits = 1;
  EXPECT_FALSE(submitOne(*executable, state, 1).ok());
  EXPECT_TRUE(g_driver.early.empty());
  EXPECT_TRUE(executable->wait(submitOne(*executable, state, 1).orThrow()).ok());
}

TEST_F(Faults, fence_that_cannot_be_reset_takes_no_output_along) {
  const ArenaSet state = allocate();
  auto executable = compile();
  const Ticket first = submitOne(*executable, state, 3).orThrow(), second = submitOne(*executable, state, 4).orThrow();
  g_driver.failing_resets = 1;
  EXPECT_FALSE(executable->wait(second).ok());
  EXPECT_EQ(outputOf(*executable, first), 3u);
  EXPECT_EQ(outputOf(*executable, second), 7u);
}

/// What a driver says that it would save.
size_t g_cache_bytes = 0;
VkResult VKAPI_CALL cacheData(VkDevice, VkPipelineCache, size_t* size, void* data) {
  if (data == nullptr) {
    *size = g_cache_bytes;
  } else {
    std::fill_n(static_cast<char*>(data), *size, 'k');
  }
  return VK_SUCCESS;
}

TEST_F(Faults, cache_in_which_the_driver_saves_nothing_is_given_up) {
  const_cast<VolkDeviceTable&>(context_->vk()).vkGetPipelineCacheData = cacheData;
  g_cache_bytes = 5000;
  EXPECT_TRUE(compile());
  EXPECT_NE(context_->pipelineCache(), VkPipelineCache{});
  // Known by now: what the driver says later changes nothing.
  g_cache_bytes = 32;
  EXPECT_TRUE(compile());
  EXPECT_NE(context_->pipelineCache(), VkPipelineCache{});

  auto instance = Instance::acquire().orThrow();
  auto other = Context::open(instance, context_->facts()).orThrow();
  const_cast<VolkDeviceTable&>(other->vk()).vkGetPipelineCacheData = cacheData;
  EXPECT_NE(other->pipelineCache(), VkPipelineCache{});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(VulkanExecutable::compile(other, sums()).ok());
    EXPECT_EQ(other->pipelineCache(), VkPipelineCache{});
  }
}

TEST_F(Faults, only_caches_with_kernels_are_written) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "lockstep_cache_open";
  const Variable variable("LOCKSTEP_CACHE_DIR", folder.string());
  for (size_t bytes : {224u, 5000u}) {
    SCOPED_TRACE(bytes);
    std::filesystem::remove_all(folder);
    auto open = [&] { return Context::open(Instance::acquire().orThrow(), context_->facts()); };
    auto context = open().orThrow();
    const_cast<VolkDeviceTable&>(context->vk()).vkGetPipelineCacheData = cacheData;
    g_cache_bytes = bytes;
    EXPECT_TRUE(VulkanExecutable::compile(context, sums()).ok());
    context.reset();
    EXPECT_EQ(std::filesystem::exists(folder) && !std::filesystem::is_empty(folder), bytes == 5000u);
    // The driver takes data that is not its own, and a damaged file is ignored.
    EXPECT_TRUE(open().ok());
    if (bytes == 5000u) {
      for (const auto& entry : std::filesystem::directory_iterator(folder)) std::ofstream(entry.path()) << "damaged";
    }
    EXPECT_TRUE(open().ok());
  }
  std::filesystem::remove_all(folder);
}

PFN_vkCreateDevice g_create_device = nullptr;
bool g_robust = false;
VkResult VKAPI_CALL noteFeatures(VkPhysicalDevice physical, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* callbacks,
                                 VkDevice* device) {
  for (const auto* part = static_cast<const VkBaseInStructure*>(info->pNext); part != nullptr; part = part->pNext) {
    if (part->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) continue;
    g_robust = reinterpret_cast<const VkPhysicalDeviceFeatures2*>(part)->features.robustBufferAccess == VK_TRUE;
  }
  return g_create_device(physical, info, callbacks, device);
}

class Devices : public VulkanTest {};
TEST_F(Devices, are_opened_with_robust_buffer_access) {
  auto instance = Instance::acquire().orThrow();
  g_create_device = std::exchange(vkCreateDevice, noteFeatures);
  for (DeviceFacts& facts : findDevices(*instance).orThrow()) {
    if (!facts.info.usable) continue;
    g_robust = false;
    EXPECT_TRUE(Context::open(instance, std::move(facts)).ok());
    EXPECT_TRUE(g_robust);
  }
  vkCreateDevice = g_create_device;
}

}  // namespace
}  // namespace lockstep::vulkan::testing
