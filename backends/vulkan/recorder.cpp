// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace lockstep::vulkan {

using program::ArenaId;
using program::Copy;
using program::Dispatch;
using program::Fill;
using program::Range;

uint32_t stampCount(const program::Program& program) { return static_cast<uint32_t>(program.commands.size() + program.loops.size() + 1); }

Recorder::Recorder(Context& context, const program::Program& program, const Arenas& arenas, const std::vector<KernelPipeline>& pipelines,
                   VkBuffer flags, uint64_t& counter)
    : context_(context), program_(program), arenas_(arenas), pipelines_(pipelines), flags_(flags), counter_(counter) {}

Status Recorder::bind(StateMemories state) {
  state_ = std::move(state);
  auto info = blank<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = context_.facts().queue_family;
  LS_TRY(pool_, CommandPool::create(context_.functions(), counter_, info, "vkCreateCommandPool"));
  LS_TRY(std::vector<VkCommandBuffer> timed, allocateBuffers(1));
  timed_.commands = timed[0];
  LS_CHECK(allocateSets());
  writeSets();
  return Success{};
}

uint32_t Recorder::setsPerSlot(size_t command) const {
  const auto& dispatch = std::get<Dispatch>(program_.commands[command].action);
  const bool moves = std::ranges::any_of(dispatch.bindings, [](const Range& range) { return range.step != 0; });
  return moves ? program_.iterationsOf(program_.commands[command].level) : 1;
}

Status Recorder::allocateSets() {
  sets_.resize(program_.commands.size());
  std::vector<VkDescriptorSetLayout> layouts;
  uint32_t buffers = 0;
  for (size_t i = 0; i < program_.commands.size(); ++i) {
    const auto* dispatch = std::get_if<Dispatch>(&program_.commands[i].action);
    if (dispatch == nullptr || pipelines_[dispatch->kernel.index()].bindings == 0) continue;
    bool per_slot = std::any_of(dispatch->bindings.begin(), dispatch->bindings.end(),
                                [&](const Range& range) { return arenas_.perSlot(program_[range.buffer].arena); });
    sets_[i].resize(size_t{per_slot ? arenas_.slots : 1} * setsPerSlot(i));
    layouts.insert(layouts.end(), sets_[i].size(), pipelines_[dispatch->kernel.index()].set_layout.get());
    buffers += static_cast<uint32_t>(sets_[i].size() * pipelines_[dispatch->kernel.index()].bindings);
  }
  if (layouts.empty()) return Success{};
  VkDescriptorPoolSize size{.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = buffers};
  auto info = blank<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  info.maxSets = static_cast<uint32_t>(layouts.size());
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  LS_TRY(descriptors_, DescriptorPool::create(context_.functions(), counter_, info, "vkCreateDescriptorPool"));
  auto allocate = blank<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  allocate.descriptorPool = descriptors_.get();
  allocate.descriptorSetCount = static_cast<uint32_t>(layouts.size());
  allocate.pSetLayouts = layouts.data();
  std::vector<VkDescriptorSet> all(layouts.size());
  ++counter_;
  LS_CHECK(check(context_.vk().vkAllocateDescriptorSets(context_.device(), &allocate, all.data()), "vkAllocateDescriptorSets"));
  auto next = all.begin();
  for (std::vector<VkDescriptorSet>& sets : sets_) {
    std::copy_n(next, sets.size(), sets.begin());
    next += static_cast<std::ptrdiff_t>(sets.size());
  }
  return Success{};
}

void Recorder::writeSets() {
  std::vector<VkDescriptorBufferInfo> infos;
  for (size_t i = 0; i < sets_.size(); ++i) {
    const uint32_t iterations = sets_[i].empty() ? 1 : setsPerSlot(i);
    for (uint32_t set = 0; set < sets_[i].size(); ++set) {
      const auto& dispatch = std::get<Dispatch>(program_.commands[i].action);
      const uint32_t slot = set / iterations, iteration = set % iterations;
      infos.clear();
      for (const Range& range : dispatch.bindings) infos.push_back(describe(program::inIteration(range, iteration), slot));
      const size_t kernel = dispatch.kernel.index();
      if (pipelines_[kernel].counts_rounds) infos.push_back({.buffer = flags_, .offset = kernel * kFlagStride, .range = sizeof(uint32_t)});
      auto write = blank<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
      write.dstSet = sets_[i][set];
      write.descriptorCount = static_cast<uint32_t>(infos.size());
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = infos.data();
      context_.vk().vkUpdateDescriptorSets(context_.device(), 1, &write, 0, nullptr);
    }
  }
}

VkBuffer Recorder::bufferOf(ArenaId arena) const { return state_[arena.index()] ? state_[arena.index()]->buffer() : arenas_.buffer(arena); }

std::pair<VkBuffer, uint64_t> Recorder::locate(const Range& range, uint32_t slot) const {
  const program::Buffer& buffer = program_[range.buffer];
  return {bufferOf(buffer.arena), buffer.offset + range.offset + arenas_.slotOffset(buffer.arena, slot)};
}

VkDescriptorBufferInfo Recorder::describe(const Range& range, uint32_t slot) const {
  auto [buffer, offset] = locate(range, slot);
  return {.buffer = buffer, .offset = offset, .range = range.size};
}

Result<std::vector<VkCommandBuffer>> Recorder::allocateBuffers(uint32_t count) {
  auto info = blank<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_.get();
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = count;
  std::vector<VkCommandBuffer> made(count);
  ++counter_;
  LS_CHECK(check(context_.vk().vkAllocateCommandBuffers(context_.device(), &info, made.data()), "vkAllocateCommandBuffers"));
  return made;
}

Status Recorder::begin(VkCommandBuffer commands) {
  auto info = blank<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  return check(context_.vk().vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
}

void Recorder::recordCommand(VkCommandBuffer commands, size_t index, uint32_t slot, uint32_t iteration) {
  const VolkDeviceTable& vk = context_.vk();
  const program::Action& action = program_.commands[index].action;
  if (const auto* copy = std::get_if<Copy>(&action)) {
    auto [source, source_offset] = locate(program::inIteration(copy->source, iteration), slot);
    auto [target, target_offset] = locate(program::inIteration(copy->target, iteration), slot);
    VkBufferCopy region{.srcOffset = source_offset, .dstOffset = target_offset, .size = copy->source.size};
    vk.vkCmdCopyBuffer(commands, source, target, 1, &region);
    return;
  }
  if (const auto* fill = std::get_if<Fill>(&action)) {
    auto [target, offset] = locate(program::inIteration(fill->target, iteration), slot);
    vk.vkCmdFillBuffer(commands, target, offset, fill->target.size, fill->pattern);
    return;
  }
  const auto& dispatch = std::get<Dispatch>(action);
  const KernelPipeline& kernel = pipelines_[dispatch.kernel.index()];
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline.get());
  const std::vector<VkDescriptorSet>& sets = sets_[index];
  if (!sets.empty()) {
    const uint32_t iterations = setsPerSlot(index);
    VkDescriptorSet set = sets[(sets.size() == iterations ? 0 : slot * iterations) + (iterations == 1 ? 0 : iteration)];
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout.get(), 0, 1, &set, 0, nullptr);
  }
  if (!dispatch.immediates.empty()) {
    const auto bytes = static_cast<uint32_t>(dispatch.immediates.size() * sizeof(uint32_t));
    vk.vkCmdPushConstants(commands, kernel.layout.get(), VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, dispatch.immediates.data());
  }
  vk.vkCmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
}

void Recorder::copyInput(VkCommandBuffer commands, uint32_t slot) {
  const Ring& ring = arenas_.input;
  if (!ring.staged) return;
  VkBufferCopy region{.srcOffset = slot * ring.stride, .dstOffset = 0, .size = ring.size};
  context_.vk().vkCmdCopyBuffer(commands, ring.host.buffer.get(), ring.device.buffer.get(), 1, &region);
  fullBarrier(context_.vk(), commands);
}

void Recorder::copyOutput(VkCommandBuffer commands, uint32_t slot) {
  const Ring& ring = arenas_.output;
  if (!ring.staged) return;
  fullBarrier(context_.vk(), commands);
  VkBufferCopy region{.srcOffset = 0, .dstOffset = slot * ring.stride, .size = ring.size};
  context_.vk().vkCmdCopyBuffer(commands, ring.device.buffer.get(), ring.host.buffer.get(), 1, &region);
}

void Recorder::recordStep(VkCommandBuffer commands, uint32_t slot, VkQueryPool queries) {
  const VolkDeviceTable& vk = context_.vk();
  auto stamp = [&](size_t query) {
    if (queries == VK_NULL_HANDLE) return;
    if (query != 0) fullBarrier(vk, commands);
    vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, static_cast<uint32_t>(query));
  };
  // Orders this step after everything that was submitted before it, whoever submitted it.
  fullBarrier(vk, commands);
  copyInput(commands, slot);
  stamp(0);
  const size_t count = program_.commands.size();
  size_t previous = count, loops = 0;
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    const program::Loop* loop = program_.loopOf(program_.commands[begin].level);
    for (end = begin + 1; loop != nullptr && end < count && loop->holds(program_.commands[end].level);) ++end;
    for (uint32_t iteration = 0; iteration < (loop == nullptr ? 1 : loop->iterations); ++iteration) {
      const bool timed = queries != VK_NULL_HANDLE && iteration == 0;
      for (size_t i = begin; i < end; ++i) {
        // A command of an iteration may need what any of the one before it made.
        const bool follows = previous < count && (program_.commands[i].level != program_.commands[previous].level || previous >= i);
        if (follows && !timed) fullBarrier(vk, commands);
        previous = i;
        recordCommand(commands, i, slot, iteration);
        if (timed) stamp(i + 1);
      }
    }
    if (loop != nullptr) stamp(count + 1 + loops++);
  }
  copyOutput(commands, slot);
}

Result<VkCommandBuffer> Recorder::steps(uint32_t steps, uint32_t slot) {
  std::vector<Recording>& recordings = recordings_[steps];
  if (recordings.empty()) {
    LS_TRY(std::vector<VkCommandBuffer> buffers, allocateBuffers(arenas_.slots / steps));
    recordings.reserve(buffers.size());  // all of them or none
    for (VkCommandBuffer commands : buffers) recordings.push_back({.commands = commands});
  }
  Recording& recording = recordings[slot / steps];
  if (recording.recorded) return recording.commands;
  LS_CHECK(begin(recording.commands));
  for (uint32_t i = 0; i < steps; ++i) recordStep(recording.commands, slot + i, VK_NULL_HANDLE);
  fullBarrier(context_.vk(), recording.commands, true);
  LS_CHECK(check(context_.vk().vkEndCommandBuffer(recording.commands), "vkEndCommandBuffer"));
  recording.recorded = true;
  return recording.commands;
}

Result<VkCommandBuffer> Recorder::timedStep(uint32_t slot, VkQueryPool queries) {
  LS_CHECK(begin(timed_.commands));
  context_.vk().vkCmdResetQueryPool(timed_.commands, queries, 0, stampCount(program_));
  recordStep(timed_.commands, slot, queries);
  fullBarrier(context_.vk(), timed_.commands, true);
  LS_CHECK(check(context_.vk().vkEndCommandBuffer(timed_.commands), "vkEndCommandBuffer"));
  return timed_.commands;
}

}  // namespace lockstep::vulkan
