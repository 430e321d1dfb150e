// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vulkan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/vulkan/executable.h"
#include "backends/vulkan/spirv.h"

namespace lockstep {

namespace vulkan {
namespace {

class VulkanBackend final : public Backend {
 public:
  explicit VulkanBackend(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  [[nodiscard]] const DeviceInfo& device() const override { return context_->facts().info; }
  Result<std::shared_ptr<Memory>> allocate(uint64_t bytes) override { return VulkanMemory::allocate(context_, bytes); }
  Result<std::unique_ptr<Executable>> compile(const program::ValidProgram& program) override {
    return VulkanExecutable::compile(context_, program);
  }
  std::vector<Result<std::unique_ptr<Executable>>> compileAll(std::span<const program::ValidProgram> programs) override {
    return VulkanExecutable::compileAll(context_, programs);
  }
  void collectKernelFacts() override { context_->collectKernelFacts(); }
  [[nodiscard]] Result<std::optional<KernelListing>> list(const kernel::ValidModule& module) const override {
    const DeviceFacts& facts = context_->facts();
    LS_TRY(const auto spread, spreadWithoutUnits(module, facts.matrices, facts.info.profile.subgroup_size));
    LS_TRY(const std::vector<uint32_t> words, emitSpirv(spread ? *spread : module, facts.spirv));
    return std::optional(KernelListing{.ending = "spvasm", .text = disassemble(words)});
  }

 private:
  std::shared_ptr<Context> context_;
};

}  // namespace
}  // namespace vulkan

Result<std::vector<DeviceInfo>> listVulkanDevices() {
  LS_TRY(auto instance, vulkan::Instance::acquire());
  LS_TRY(auto devices, vulkan::findDevices(*instance));
  std::vector<DeviceInfo> infos;
  for (vulkan::DeviceFacts& facts : devices) infos.push_back(std::move(facts.info));
  return infos;
}

Result<std::unique_ptr<Backend>> openVulkanDevice(const DeviceInfo& device) {
  LS_TRY(auto instance, vulkan::Instance::acquire());
  LS_TRY(auto devices, vulkan::findDevices(*instance));
  auto found = std::find_if(devices.begin(), devices.end(),
                            [&](const vulkan::DeviceFacts& facts) { return facts.info.id == device.id && facts.info.name == device.name; });
  if (found == devices.end()) {
    Failure failure = fail("vulkan.device_gone", fmt::format("there is no device {} ({})", device.id, device.name), {},
                           "list the devices again with `lockstep devices`");
    failure.exit_code = ExitCode::NoDevice;
    return failure;
  }
  if (!found->info.usable) {
    Failure failure = fail("vulkan.unusable", fmt::format("{} cannot be used: {}", device.name, found->info.why_not));
    failure.exit_code = ExitCode::NoDevice;
    return failure;
  }
  LS_TRY(auto context, vulkan::Context::open(std::move(instance), std::move(*found)));
  return std::unique_ptr<Backend>(std::make_unique<vulkan::VulkanBackend>(std::move(context)));
}

}  // namespace lockstep
