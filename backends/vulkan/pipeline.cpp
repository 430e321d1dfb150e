// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/pipeline.h"

#include <fmt/format.h>

#include <variant>

#include "backends/vulkan/spirv.h"

namespace lockstep::vulkan {

namespace {

Result<KernelPipeline> makePipeline(Context& context, const std::string& name, const kernel::ValidModule& module, size_t bindings,
                                    uint64_t& counter) {
  const Functions& functions = context.functions();
  KernelPipeline made;
  made.bindings = bindings;
  std::vector<VkDescriptorSetLayoutBinding> slots(bindings);
  for (uint32_t i = 0; i < bindings; ++i) {
    slots[i] = {.binding = i,
                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                .descriptorCount = 1,
                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                .pImmutableSamplers = nullptr};
  }
  auto set_info = blank<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set_info.bindingCount = static_cast<uint32_t>(slots.size());
  set_info.pBindings = slots.data();
  LS_TRY(made.set_layout, SetLayout::create(functions, counter, set_info, "vkCreateDescriptorSetLayout", name));
  VkDescriptorSetLayout set_layout = made.set_layout.get();
  auto layout_info = blank<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &set_layout;
  LS_TRY(made.layout, PipelineLayout::create(functions, counter, layout_info, "vkCreatePipelineLayout", name));

  LS_TRY(std::vector<uint32_t> words, emitSpirv(module, context.facts().spirv));
  auto module_info = blank<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module_info.codeSize = words.size() * sizeof(uint32_t);
  module_info.pCode = words.data();
  LS_TRY(ShaderModule shader, ShaderModule::create(functions, counter, module_info, "vkCreateShaderModule", name));
  auto info = blank<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader.get();
  std::string entry = spirvEntryPoint(*module->entryPoint());
  info.stage.pName = entry.c_str();
  info.layout = made.layout.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  ++counter;
  VkResult result = context.vk().vkCreateComputePipelines(context.device(), context.pipelineCache(), 1, &info, nullptr, &pipeline);
  LS_CHECK(check(result, "vkCreateComputePipelines", fmt::format("kernel \"{}\"", name)));
  made.pipeline = Pipeline(functions, pipeline);
  return made;
}

}  // namespace

Result<std::vector<KernelPipeline>> makePipelines(Context& context, const program::ValidProgram& program, uint64_t& counter) {
  std::vector<KernelPipeline> pipelines(program->kernels.size());
  bool compiled = false;
  for (const program::Command& command : program->commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    size_t kernel = dispatch->kernel.index();
    if (pipelines[kernel].pipeline) {
      if (pipelines[kernel].bindings != dispatch->bindings.size()) internalError("two dispatches of one kernel with different bindings");
      continue;
    }
    LS_TRY(pipelines[kernel],
           makePipeline(context, program->kernels[kernel].name, program.modules()[kernel], dispatch->bindings.size(), counter));
    compiled = true;
  }
  if (compiled) context.savePipelineCache();
  return pipelines;
}

}  // namespace lockstep::vulkan
