// SPDX-License-Identifier: Apache-2.0
// A compiled program on one device: its arenas, pipelines and recordings, and the steps in flight.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>

#include "backends/vulkan/recorder.h"

namespace lockstep::vulkan {

class VulkanExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(const std::shared_ptr<Context>& context, const program::ValidProgram& program) {
    return std::move(compileAll(context, {&program, 1}).front());
  }
  /// The same of several programs, whose kernels are compiled side by side.
  static std::vector<Result<std::unique_ptr<Executable>>> compileAll(const std::shared_ptr<Context>& context,
                                                                     std::span<const program::ValidProgram> programs);
  VulkanExecutable(std::shared_ptr<Context> context, program::Program program);
  ~VulkanExecutable() override;

  Result<Ticket> submit(const ArenaSet& state, std::span<const std::span<const std::byte>> inputs) override;
  Result<std::vector<std::vector<std::byte>>> wait(Ticket ticket) override;
  Result<std::vector<CommandTime>> time(const ArenaSet& state, std::span<const std::byte> input) override;
  [[nodiscard]] ExecutionStatistics statistics() const override;
  [[nodiscard]] std::vector<std::string> kernelFacts() const override;

 private:
  /// One queue submission whose fence has not been waited for.
  struct InFlight {
    Ticket ticket = 0;
    uint32_t slot = 0, steps = 0;
    Fence fence;
  };
  /// A ticket that nobody has waited for.
  struct Open {
    size_t pending = 0;  ///< submissions in flight
    std::vector<std::vector<std::byte>> outputs;
  };

  Status take(ProgramPipelines made);
  Result<Recorder*> recorderFor(const ArenaSet& state);
  Result<StateMemories> resolve(const ArenaSet& state) const;
  Status checkInput(std::span<const std::byte> input) const;
  /// Slots for `steps` steps, free for the host to write. Waits for the submissions that hold them.
  Result<uint32_t> claimSlots(uint32_t steps);
  /// Room for the words of kernels that count the rounds of their loops.
  Status makeFlags();
  /// Fails with "device.loop_limit" when one of them has reached the driver's limit since the last call.
  Status checkFlags();
  void writeInput(uint32_t slot, std::span<const std::byte> input);
  Status submitChunk(Recorder& recorder, std::span<const std::span<const std::byte>> inputs, Ticket ticket);
  Status submitBuffer(VkCommandBuffer commands, VkFence fence);
  /// Waits for the oldest submission and takes its outputs out of the ring.
  Status retireOldest();

  // In the order of their making: the context outlives the rest, the recordings go before what they refer to.
  std::shared_ptr<Context> context_;
  program::Program program_;
  uint64_t counter_ = 0;
  Arenas arenas_;
  std::vector<KernelPipeline> pipelines_;
  Allocation flags_;               ///< empty when no kernel counts
  QueryPool queries_;              ///< made at the first use
  std::list<Recorder> recorders_;  ///< most recently used first
  std::deque<InFlight> in_flight_;
  std::map<Ticket, Open> open_;
  Ticket next_ticket_ = 1;
  uint32_t cursor_ = 0;  ///< the next slot
  uint64_t submissions_ = 0, steps_ = 0;
};

}  // namespace lockstep::vulkan
