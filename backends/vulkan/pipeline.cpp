// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <variant>

#include "backends/vulkan/pipeline_statistics.h"
#include "backends/vulkan/spirv.h"
#include "ir/kernel/count_rounds.h"
#include "ir/kernel/loop_rounds.h"
#include "ir/support/narrate.h"

namespace lockstep::vulkan {

namespace {

constexpr size_t kMostThreads = 8;

/// Where the driver ends loops silently, a kernel that is not proven to stay below its limit counts them. LOCKSTEP_COUNT_LOOPS=0 leaves
/// that out.
bool mustCountRounds(const DeviceFacts& facts, const kernel::Module& module) {
  const uint32_t most = facts.info.profile.max_loop_iterations;
  if (most == 0 || kernel::loopRounds(module, *module.entryPoint()).most <= most) return false;
  const char* wish = std::getenv("LOCKSTEP_COUNT_LOOPS");
  return wish == nullptr || std::string_view(wish) != "0";
}

Result<KernelPipeline> makePipeline(Context& context, const std::string& name, const kernel::ValidModule& planned, size_t bindings,
                                    uint64_t& counter) {
  const Functions& functions = context.functions();
  KernelPipeline made;
  made.bindings = bindings;
  std::optional<kernel::ValidModule> counting;
  const uint32_t lanes = context.facts().info.profile.subgroup_size;
  LS_TRY(const std::optional<kernel::ValidModule> spread, spreadWithoutUnits(planned, context.facts().matrices, lanes));
  if (spread) narrate([&] { return fmt::format("kernel {} spreads its matrices over subgroups of {}: no units take them", name, lanes); });
  const kernel::ValidModule& given = spread ? *spread : planned;
  if (mustCountRounds(context.facts(), *given)) {
    const program::DeviceProfile& profile = context.facts().info.profile;
    kernel::CountedRounds counted = kernel::countRounds(*given, {.most = profile.max_loop_iterations, .lanes = profile.subgroup_size});
    auto valid = kernel::validate(std::move(counted.module));
    if (!valid.ok()) internalError("countRounds made an invalid kernel\n" + toString(valid.diagnostics()));
    counting = std::move(*valid);
    made.loops = std::move(counted.loops);
    made.counts_rounds = true;
    made.bindings = bindings = counted.binding + 1;
    narrate([&] { return fmt::format("kernel {} counts the rounds of its loops: nothing bounds them, and the driver does", name); });
  }
  const kernel::ValidModule& module = counting ? *counting : given;
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
  const VkPushConstantRange immediates{.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = kernel::immediateBytes(*module)};
  layout_info.pushConstantRangeCount = immediates.size == 0 ? 0 : 1;
  layout_info.pPushConstantRanges = &immediates;
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
  const bool counts = context.collectsKernelFacts();
  if (counts) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkPipeline pipeline = VK_NULL_HANDLE;
  ++counter;
  VkResult result = context.vk().vkCreateComputePipelines(context.device(), context.pipelineCache(), 1, &info, nullptr, &pipeline);
  LS_CHECK(check(result, "vkCreateComputePipelines", fmt::format("kernel \"{}\"", name)));
  made.pipeline = Pipeline(functions, pipeline);
  if (counts) made.facts = pipelineStatistics(context, pipeline);
  if (counts && wantsPipelineStatistics()) (void)std::fprintf(stderr, "pipeline %s: %s\n", name.c_str(), made.facts.c_str());
  return made;
}

}  // namespace

std::vector<Result<ProgramPipelines>> makePipelines(Context& context, std::span<const program::ValidProgram* const> programs) {
  struct Job {
    size_t program = 0, kernel = 0, bindings = 0;
    uint64_t created = 0;
    std::optional<Result<KernelPipeline>> made;
    std::exception_ptr bug;
  };
  std::vector<Job> jobs;
  for (size_t i = 0; i < programs.size(); ++i) {
    const program::Program& program = **programs[i];
    std::vector<bool> wanted(program.kernels.size());
    for (const program::Command& command : program.commands) {
      const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
      if (dispatch == nullptr || wanted[dispatch->kernel.index()]) continue;
      wanted[dispatch->kernel.index()] = true;
      jobs.push_back({.program = i, .kernel = dispatch->kernel.index(), .bindings = dispatch->bindings.size(), .made = {}, .bug = {}});
    }
  }
  const auto start = std::chrono::steady_clock::now();
  // Drivers take 10 to 200 ms for a kernel, and compile on as many threads as call them.
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      Job& job = jobs[i];
      const program::ValidProgram& program = *programs[job.program];
      try {
        job.made.emplace(
            makePipeline(context, program->kernels[job.kernel].name, program.modules()[job.kernel], job.bindings, job.created));
      } catch (...) {
        job.bug = std::current_exception();
      }
    }
  };
  {
    size_t threads = std::min<size_t>({jobs.size(), std::max(1u, std::thread::hardware_concurrency()), kMostThreads});
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  std::vector<Result<ProgramPipelines>> all;
  for (const program::ValidProgram* program : programs)
    all.emplace_back(ProgramPipelines{.pipelines = std::vector<KernelPipeline>((*program)->kernels.size())});
  for (Job& job : jobs) {
    if (job.bug) std::rethrow_exception(job.bug);
    Result<ProgramPipelines>& made = all[job.program];
    if (!made.ok()) continue;
    made->created += job.created;
    if (job.made->ok()) {
      made->pipelines[job.kernel] = std::move(**job.made);
    } else {
      made = job.made->failure();
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (std::ranges::any_of(jobs, [](const Job& job) { return job.made->ok(); })) context.pipelinesWereMade(took);
  narrate([&] { return fmt::format("{} pipelines made in {:.1f} ms", jobs.size(), took.count() * 1e3); });
  return all;
}

}  // namespace lockstep::vulkan
