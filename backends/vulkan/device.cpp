// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/device.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace lockstep::vulkan {

namespace {

/// More bindings than this help no schedule; drivers without a limit report 2^20 and more.
constexpr uint32_t kMostStorageBuffers = 256;
constexpr uint32_t kNvidia = 0x10de;

bool wantsSourceLines() {
  const char* wish = std::getenv("LOCKSTEP_SPIRV_LINES");
  return wish != nullptr && std::string_view(wish) == "1";
}

/// Properties and features of one device, with the optional structures that its extensions allow.
struct Answers {
  std::vector<VkExtensionProperties> extensions;
  VkPhysicalDeviceSubgroupProperties subgroup =
      blank<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT subgroup_sizes =
      blank<VkPhysicalDeviceSubgroupSizeControlPropertiesEXT>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT);
  VkPhysicalDeviceMaintenance3Properties maintenance3 =
      blank<VkPhysicalDeviceMaintenance3Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  VkPhysicalDeviceFloatControlsProperties float_controls =
      blank<VkPhysicalDeviceFloatControlsProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
  VkPhysicalDeviceDriverProperties driver = blank<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors =
      blank<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  VkPhysicalDeviceShaderCorePropertiesAMD compute_units =
      blank<VkPhysicalDeviceShaderCorePropertiesAMD>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zero_initialize = blank<VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES);
  VkPhysicalDeviceShaderFloat16Int8Features float16 =
      blank<VkPhysicalDeviceShaderFloat16Int8Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures subgroup_types =
      blank<VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES);
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR subgroup_flow =
      blank<VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR);
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables = blank<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  VkPhysicalDeviceShaderIntegerDotProductFeatures packed_dot =
      blank<VkPhysicalDeviceShaderIntegerDotProductFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  VkPhysicalDeviceShaderIntegerDotProductProperties packed_dots =
      blank<VkPhysicalDeviceShaderIntegerDotProductProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
  VkPhysicalDevice16BitStorageFeatures storage16 =
      blank<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);

  [[nodiscard]] bool has(const char* name) const {
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
  }
};

template <class Chain, class Part>
void append(Chain& chain, Part& part) {
  part.pNext = chain.pNext;
  chain.pNext = &part;
}

bool isAtLeast(const DeviceFacts& facts, uint32_t version) { return facts.version >= version; }

/// An extension that is core from `version` on: offered, and to be enabled when it is not yet core.
bool offers(DeviceFacts& facts, const Answers& answers, const char* extension, uint32_t version) {
  if (isAtLeast(facts, version)) return true;
  if (!answers.has(extension)) return false;
  facts.extensions.push_back(extension);
  return true;
}

DeviceKind kindOf(VkPhysicalDeviceType type) {
  if (type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return DeviceKind::Discrete;
  if (type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) return DeviceKind::Integrated;
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return DeviceKind::CpuDriver;
  return DeviceKind::Virtual;
}

std::string slug(std::string_view name) {
  std::string made;
  for (char c : name) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) made += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !made.empty() && made.back() != '_') made += '_';
  }
  while (!made.empty() && made.back() == '_') made.pop_back();
  return made;
}

uint32_t parallelUnits(const DeviceFacts& facts, const Answers& answers) {
  if (answers.multiprocessors.shaderSMCount != 0) return answers.multiprocessors.shaderSMCount;
  uint32_t amd = answers.compute_units.shaderEngineCount * answers.compute_units.shaderArraysPerEngineCount *
                 answers.compute_units.computeUnitsPerShaderArray;
  if (amd != 0) return amd;
  if (facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) return std::max(1u, std::thread::hardware_concurrency());
  return facts.properties.vendorID == kNvidia ? 64 : program::DeviceProfile{}.parallel_units;
}

/// llvmpipe ends all loops of an invocation, nested and later ones included, once they have made this many rounds together, and goes on
/// as if each had ended by itself (LP_MAX_TGSI_LOOP_ITERATIONS of Mesa). No other driver that we tried has such a limit: docs/devices.md.
uint32_t maxLoopIterations(const DeviceFacts& facts, const Answers& answers) {
  constexpr uint32_t kLlvmpipe = 65535;
  const bool llvmpipe =
      answers.driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE || std::string_view(facts.properties.deviceName).starts_with("llvmpipe");
  return llvmpipe ? kLlvmpipe : 0;
}

/// Whether there is one size of subgroups. Where a driver can choose among several, it may fill a subgroup in part.
bool hasFixedSubgroups(const DeviceFacts& facts, const Answers& answers) {
  const uint32_t size = answers.subgroup.subgroupSize;
  const bool can_exchange = (facts.subgroup_operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  return can_exchange && size >= 4 && answers.subgroup_sizes.minSubgroupSize == size && answers.subgroup_sizes.maxSubgroupSize == size;
}

program::DeviceProfile profileOf(const DeviceFacts& facts, const Answers& answers) {
  const VkPhysicalDeviceLimits& limits = facts.properties.limits;
  const uint32_t* groups = limits.maxComputeWorkGroupCount;
  uint32_t subgroup_size = std::max(1u, answers.subgroup.subgroupSize);
  // What WGSL's subgroup operations take all together.
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
      VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT | VK_SUBGROUP_FEATURE_QUAD_BIT;
  const bool cpu = facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const program::DeviceProfile profile{
      .name = slug(facts.properties.deviceName),
      .style = cpu ? program::ExecutionStyle::Cpu : program::ExecutionStyle::Gpu,
      .max_storage_buffers = std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers,
                                       limits.maxPerStageResources, kMostStorageBuffers}),
      .max_binding_bytes = std::min<uint64_t>(limits.maxStorageBufferRange, facts.max_allocation_bytes),
      .min_offset_alignment = static_cast<uint32_t>(std::max<VkDeviceSize>(256, limits.minStorageBufferOffsetAlignment)),
      .max_workgroup_invocations = limits.maxComputeWorkGroupInvocations,
      .max_workgroup_bytes = limits.maxComputeSharedMemorySize,
      .max_workgroup_size_x = limits.maxComputeWorkGroupSize[0],
      .max_workgroup_size_y = limits.maxComputeWorkGroupSize[1],
      .max_workgroup_size_z = limits.maxComputeWorkGroupSize[2],
      .max_immediate_bytes = limits.maxPushConstantsSize,
      .max_groups_per_dimension = std::min({groups[0], groups[1], groups[2]}),
      .max_loop_iterations = maxLoopIterations(facts, answers),
      .subgroup_size = subgroup_size,
      .parallel_units = parallelUnits(facts, answers),
      .whole_buffer_access = false,
      .f16 = facts.f16,
      .subgroups = (facts.subgroup_operations & kNeeded) == kNeeded,
      .fixed_subgroups = hasFixedSubgroups(facts, answers),
      .matrix_f16 = plannedShape(facts.matrices, kernel::Scalar::F16),
      .matrix_bf16 = plannedShape(facts.matrices, kernel::Scalar::BF16),
      // Of other drivers it is not known before a kernel asks (learn_layouts.h), and a plan that is wrong here is slow.
      .matrix_rows = !facts.matrices.shapes.empty() && answers.driver.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY,
      .packed_dot = facts.spirv.packed_dot && answers.packed_dots.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE,
  };
  return program::withRates(profile, cpu ? program::kCpuRates : program::kGpuRates);
}

/// What the main heap holds. A driver for the CPU allocates the memory of the host, whatever number it gives: lavapipe says 2 GiB
/// everywhere.
uint64_t heapBytes(const DeviceFacts& facts) {
  const uint64_t told = facts.memory.memoryHeaps[mainHeap(facts.memory)].size;
  if (facts.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) return told;
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? std::max(told, static_cast<uint64_t>(pages) * static_cast<uint64_t>(page)) : told;
}

void chooseQueue(DeviceFacts& facts) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(facts.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(facts.handle, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    facts.queue_family = i;
    facts.timestamp_bits = families[i].timestampValidBits;
    return;
  }
}

/// Features, extensions and what follows from them. Only for devices of Vulkan 1.1 and later.
void examine(DeviceFacts& facts, Answers& answers) {
  auto properties = blank<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  auto features = blank<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  append(properties, answers.subgroup);
  append(properties, answers.maintenance3);
  if (offers(facts, answers, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3)) append(properties, answers.subgroup_sizes);
  append(features, answers.storage16);
  bool float_controls = offers(facts, answers, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, VK_API_VERSION_1_2);
  if (float_controls) append(properties, answers.float_controls);
  bool driver = isAtLeast(facts, VK_API_VERSION_1_2) || answers.has(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
  if (driver) append(properties, answers.driver);
  if (answers.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) append(properties, answers.multiprocessors);
  if (answers.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) append(properties, answers.compute_units);
  bool zero = offers(facts, answers, VK_KHR_ZERO_INITIALIZE_WORKGROUP_MEMORY_EXTENSION_NAME, VK_API_VERSION_1_3);
  if (zero) append(features, answers.zero_initialize);
  bool float16 = offers(facts, answers, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2);
  if (float16) append(features, answers.float16);
  bool subgroup_types = offers(facts, answers, VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME, VK_API_VERSION_1_2);
  if (subgroup_types) append(features, answers.subgroup_types);
  if (offers(facts, answers, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, VK_API_VERSION_1_3)) {
    append(features, answers.packed_dot);
    append(properties, answers.packed_dots);
  }
  if (answers.has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) append(features, answers.executables);
  if (answers.has(VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME)) append(features, answers.subgroup_flow);
  facts.spirv.debug_printf = offers(facts, answers, VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME, VK_API_VERSION_1_3);
  vkGetPhysicalDeviceProperties2(facts.handle, &properties);
  vkGetPhysicalDeviceFeatures2(facts.handle, &features);
  facts.pipeline_statistics =
      answers.has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME) && answers.executables.pipelineExecutableInfo == VK_TRUE;
  if (facts.pipeline_statistics) facts.extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  facts.spirv.source_lines = wantsSourceLines();
  facts.spirv.longest_row = facts.properties.limits.maxComputeWorkGroupSize[0];
  facts.max_allocation_bytes = answers.maintenance3.maxMemoryAllocationSize;
  facts.memory_budget = answers.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (facts.memory_budget) facts.extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  facts.f16 = answers.float16.shaderFloat16 == VK_TRUE && answers.storage16.storageBuffer16BitAccess == VK_TRUE;
  bool in_compute = (answers.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  facts.subgroup_operations = in_compute ? answers.subgroup.supportedOperations : 0;
  facts.spirv.subgroup_uniform_control_flow = answers.subgroup_flow.shaderSubgroupUniformControlFlow == VK_TRUE;
  if (facts.spirv.subgroup_uniform_control_flow) facts.extensions.push_back(VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME);
  facts.immediate_f16 = facts.f16 && answers.storage16.storagePushConstant16 == VK_TRUE;
  facts.subgroup_f16 = answers.subgroup_types.shaderSubgroupExtendedTypes == VK_TRUE;
  facts.spirv.preserve_signed_zero_inf_nan = answers.float_controls.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
  facts.spirv.round_to_nearest_even = answers.float_controls.shaderRoundingModeRTEFloat32 == VK_TRUE;
  facts.spirv.preserve_signed_zero_inf_nan_f16 = answers.float_controls.shaderSignedZeroInfNanPreserveFloat16 == VK_TRUE;
  facts.spirv.round_to_nearest_even_f16 = answers.float_controls.shaderRoundingModeRTEFloat16 == VK_TRUE;
  facts.spirv.packed_dot = answers.packed_dot.shaderIntegerDotProduct == VK_TRUE;
  facts.spirv.zero_initialize_workgroup = answers.zero_initialize.shaderZeroInitializeWorkgroupMemory == VK_TRUE;
}

DeviceFacts factsOf(const Instance& instance, VkPhysicalDevice handle, size_t index) {
  DeviceFacts facts{.handle = handle, .matrices = {}, .spirv = {}, .extensions = {}, .info = {}};
  vkGetPhysicalDeviceProperties(handle, &facts.properties);
  vkGetPhysicalDeviceMemoryProperties(handle, &facts.memory);
  facts.version = std::min(facts.properties.apiVersion, instance.version());
  chooseQueue(facts);
  Answers answers;
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr);
  answers.extensions.resize(count);
  vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, answers.extensions.data());
  bool new_enough = isAtLeast(facts, VK_API_VERSION_1_1);
  if (new_enough) examine(facts, answers);
  if (new_enough) facts.matrices = findMatrixUnits(instance.handle(), handle, answers.extensions, facts.version, facts.extensions);
  const std::string name = answers.driver.driverName, version = answers.driver.driverInfo;
  const uint32_t number = facts.properties.driverVersion;
  std::string driver =
      version.empty() ? fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(number), VK_API_VERSION_MINOR(number), VK_API_VERSION_PATCH(number))
                      : version;
  if (!name.empty()) driver = name + " " + driver;
  facts.info = {.id = fmt::format("vulkan:{}", index),
                .name = facts.properties.deviceName,
                .kind = kindOf(facts.properties.deviceType),
                .driver = driver,
                .memory_bytes = heapBytes(facts),
                .profile = profileOf(facts, answers),
                .usable = true,
                .why_not = {}};
  if (!new_enough) {
    facts.info.why_not = "the driver offers only Vulkan 1.0; update it: Vulkan 1.1 is needed";
  } else if (facts.queue_family == UINT32_MAX) {
    facts.info.why_not = "the device has no queue for compute; use another device";
  }
  facts.info.usable = facts.info.why_not.empty();
  return facts;
}

}  // namespace

uint32_t mainHeap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint32_t best = 0;
  auto rank = [&](uint32_t i) {
    bool local = (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
    return std::pair(local, memory.memoryHeaps[i].size);
  };
  for (uint32_t i = 1; i < memory.memoryHeapCount; ++i) {
    if (rank(i) > rank(best)) best = i;
  }
  return best;
}

uint64_t freeDeviceBytes(const DeviceFacts& facts) {
  uint32_t heap = mainHeap(facts.memory);
  if (!facts.memory_budget) return heapBytes(facts);
  auto budget = blank<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto properties = blank<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  append(properties, budget);
  vkGetPhysicalDeviceMemoryProperties2(facts.handle, &properties);
  return budget.heapBudget[heap] - std::min(budget.heapBudget[heap], budget.heapUsage[heap]);
}

Result<std::vector<DeviceFacts>> findDevices(const Instance& instance) {
  uint32_t count = 0;
  LS_CHECK(check(vkEnumeratePhysicalDevices(instance.handle(), &count, nullptr), "vkEnumeratePhysicalDevices"));
  std::vector<VkPhysicalDevice> handles(count);
  LS_CHECK(check(vkEnumeratePhysicalDevices(instance.handle(), &count, handles.data()), "vkEnumeratePhysicalDevices"));
  std::vector<DeviceFacts> devices;
  for (size_t i = 0; i < handles.size(); ++i) devices.push_back(factsOf(instance, handles[i], i));
  return devices;
}

}  // namespace lockstep::vulkan
