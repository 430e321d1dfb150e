// SPDX-License-Identifier: Apache-2.0
// Recordings of a program for one set of state arenas: descriptor sets, and command buffers for K steps from a slot on.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/vulkan/arenas.h"
#include "backends/vulkan/memory.h"
#include "backends/vulkan/pipeline.h"

namespace lockstep::vulkan {

/// The State arenas of a run, by arena; null for the other roles.
using StateMemories = std::vector<std::shared_ptr<VulkanMemory>>;

/// Of a timed step.
uint32_t stampCount(const program::Program& program);

class Recorder {
 public:
  /// The references must outlive the recorder. `counter` counts what it creates.
  /// `flags`: the words of kernels that count the rounds of their loops, kFlagStride apart by kernel; null when none does.
  Recorder(Context& context, const program::Program& program, const Arenas& arenas, const std::vector<KernelPipeline>& pipelines,
           VkBuffer flags, uint64_t& counter);
  static constexpr uint64_t kFlagStride = 256;

  /// Makes the descriptor sets. To be called once, before the others.
  Status bind(StateMemories state);
  [[nodiscard]] const StateMemories& state() const { return state_; }

  /// The command buffer of `steps` consecutive steps in the slots from `slot` on, a multiple of `steps`. Recorded at its first use; the
  /// command buffers of all slots are allocated at the first use of `steps`.
  Result<VkCommandBuffer> steps(uint32_t steps, uint32_t slot);
  /// One step with a barrier after each command and timestamps 0..commands.size() around them, and one more after each loop, of which the
  /// commands are timed in the first iteration.
  Result<VkCommandBuffer> timedStep(uint32_t slot, VkQueryPool queries);

 private:
  Status allocateSets();
  void writeSets();
  [[nodiscard]] VkBuffer bufferOf(program::ArenaId arena) const;
  [[nodiscard]] VkDescriptorBufferInfo describe(const program::Range& range, uint32_t slot) const;
  /// How many sets a command has per slot: one for each place that its ranges move to.
  [[nodiscard]] uint32_t setsPerSlot(size_t command) const;
  /// A range as (buffer, offset) for transfers.
  [[nodiscard]] std::pair<VkBuffer, uint64_t> locate(const program::Range& range, uint32_t slot) const;
  Result<std::vector<VkCommandBuffer>> allocateBuffers(uint32_t count);
  Status begin(VkCommandBuffer commands);
  void recordStep(VkCommandBuffer commands, uint32_t slot, VkQueryPool queries);
  void recordCommand(VkCommandBuffer commands, size_t index, uint32_t slot, uint32_t iteration);
  void copyInput(VkCommandBuffer commands, uint32_t slot);
  void copyOutput(VkCommandBuffer commands, uint32_t slot);

  Context& context_;
  const program::Program& program_;
  const Arenas& arenas_;
  const std::vector<KernelPipeline>& pipelines_;
  VkBuffer flags_;
  uint64_t& counter_;
  StateMemories state_;
  CommandPool pool_;
  DescriptorPool descriptors_;
  /// By command: one set, or one for each slot, and so for each iteration of a loop where its ranges move; empty for transfers and
  /// kernels without bindings.
  std::vector<std::vector<VkDescriptorSet>> sets_;
  struct Recording {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    bool recorded = false;
  };
  std::map<uint32_t, std::vector<Recording>> recordings_;  ///< by K, then slot / K
  Recording timed_;
};

}  // namespace lockstep::vulkan
