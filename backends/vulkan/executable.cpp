// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "backends/vulkan/learn_layouts.h"
#include "backends/vulkan/limits.h"

namespace lockstep::vulkan {

namespace {

/// Sets of state arenas whose recordings are kept: a trainer, its forward, and a few more.
constexpr size_t kMostRecorders = 8;

}  // namespace

std::vector<Result<std::unique_ptr<Executable>>> VulkanExecutable::compileAll(const std::shared_ptr<Context>& context,
                                                                              std::span<const program::ValidProgram> programs) {
  using Made = Result<std::unique_ptr<VulkanExecutable>>;
  const auto begin = [&](const program::ValidProgram& program) -> Made {
    LS_CHECK(checkLimits(program, context->facts()));
    LS_CHECK(learnLayouts(context, program));
    auto executable = std::make_unique<VulkanExecutable>(context, *program);
    LS_TRY(executable->arenas_, makeArenas(*context, executable->program_, executable->counter_));
    return executable;
  };
  std::vector<Made> begun;
  std::vector<const program::ValidProgram*> wanted;
  for (const program::ValidProgram& program : programs) {
    begun.push_back(begin(program));
    if (begun.back().ok()) wanted.push_back(&program);
  }
  std::vector<Result<ProgramPipelines>> pipelines = makePipelines(*context, wanted);
  auto next = pipelines.begin();
  const auto finish = [&](Made& made) -> Result<std::unique_ptr<Executable>> {
    if (!made.ok()) return made.failure();
    LS_TRY(ProgramPipelines own, std::move(*next++));
    LS_CHECK((*made)->take(std::move(own)));
    return std::unique_ptr<Executable>(std::move(*made));
  };
  std::vector<Result<std::unique_ptr<Executable>>> executables;
  for (Made& made : begun) executables.push_back(finish(made));
  return executables;
}

VulkanExecutable::VulkanExecutable(std::shared_ptr<Context> context, program::Program program)
    : context_(std::move(context)), program_(std::move(program)) {}

VulkanExecutable::~VulkanExecutable() {
  // After a call that failed nobody knows what the queue still runs. A failure here means a lost device; there is nothing left to wait for
  // then.
  if (submissions_ != 0) context_->settle();
}

Status VulkanExecutable::take(ProgramPipelines made) {
  pipelines_ = std::move(made.pipelines);
  counter_ += made.created;
  LS_CHECK(makeFlags());
  return context_->validationStatus();
}

Status VulkanExecutable::makeFlags() {
  if (std::ranges::none_of(pipelines_, &KernelPipeline::counts_rounds)) return Success{};
  LS_TRY(flags_, context_->allocate(pipelines_.size() * Recorder::kFlagStride, Placement::Readback, counter_, "flags of loops"));
  std::memset(flags_.mapped, 0, flags_.size);
  return Success{};
}

Status VulkanExecutable::checkFlags() {
  if (flags_.mapped == nullptr) return Success{};
  for (size_t kernel = 0; kernel < pipelines_.size(); ++kernel) {
    uint32_t loop = 0;
    std::memcpy(&loop, flags_.mapped + kernel * Recorder::kFlagStride, sizeof(loop));
    if (loop == 0) continue;
    std::memset(flags_.mapped, 0, flags_.size);
    const DeviceFacts& facts = context_->facts();
    return fail(
        "device.loop_limit",
        fmt::format("kernel \"{}\" makes {} rounds of its loops in one invocation, after which {} ends every loop silently: what it "
                    "computed is wrong",
                    program_.kernels[kernel].name, facts.info.profile.max_loop_iterations, facts.info.name),
        pipelines_[kernel].loops[loop - 1],
        "share the rounds among more invocations or dispatches, or use another device, for example the reference");
  }
  return Success{};
}

Result<StateMemories> VulkanExecutable::resolve(const ArenaSet& state) const {
  StateMemories memories(program_.arenas.size());
  for (size_t i = 0; i < program_.arenas.size(); ++i) {
    const program::Arena& arena = program_.arenas[i];
    if (arena.role != program::ArenaRole::State) continue;
    auto found = state.find(arena.name);
    if (found == state.end()) return fail("vulkan.state", fmt::format("state arena \"{}\" is missing", arena.name));
    memories[i] = std::dynamic_pointer_cast<VulkanMemory>(found->second);
    if (!memories[i] || memories[i]->context() != context_.get()) {
      return fail("vulkan.state", fmt::format("state arena \"{}\" was not allocated by this backend", arena.name));
    }
    if (memories[i]->size() < arena.size) {
      return fail("vulkan.state",
                  fmt::format("state arena \"{}\" has {} bytes, but the program needs {}", arena.name, memories[i]->size(), arena.size));
    }
  }
  return memories;
}

Result<Recorder*> VulkanExecutable::recorderFor(const ArenaSet& state) {
  LS_TRY(StateMemories memories, resolve(state));
  auto known = std::find_if(recorders_.begin(), recorders_.end(), [&](const Recorder& recorder) { return recorder.state() == memories; });
  if (known != recorders_.end()) {
    recorders_.splice(recorders_.begin(), recorders_, known);
    return &recorders_.front();
  }
  // Recordings keep their arenas alive, so those of arenas that everybody else has let go are dropped.
  auto abandoned = [](const Recorder& recorder) {
    return std::any_of(recorder.state().begin(), recorder.state().end(),
                       [](const auto& memory) { return memory && memory.use_count() == 1; });
  };
  if (recorders_.size() == kMostRecorders || std::any_of(recorders_.begin(), recorders_.end(), abandoned)) {
    while (!in_flight_.empty()) LS_CHECK(retireOldest());
    recorders_.remove_if(abandoned);
    if (recorders_.size() == kMostRecorders) recorders_.pop_back();
  }
  // It joins the others once it is complete, whatever fails or throws before.
  std::list<Recorder> made;
  made.emplace_back(*context_, program_, arenas_, pipelines_, flags_.buffer.get(), counter_);
  LS_CHECK(made.front().bind(std::move(memories)));
  recorders_.splice(recorders_.begin(), made);
  return &recorders_.front();
}

Status VulkanExecutable::checkInput(std::span<const std::byte> input) const {
  if (input.size() == arenas_.input.size) return Success{};
  return fail("vulkan.input_size",
              fmt::format("an input of {} bytes was given, but the program's input arena has {}", input.size(), arenas_.input.size));
}

Result<uint32_t> VulkanExecutable::claimSlots(uint32_t steps) {
  // Recordings begin at multiples of K, so that there are few of them.
  uint32_t slot = (cursor_ + steps - 1) / steps * steps;
  if (slot + steps > arenas_.slots) slot = 0;
  auto overlaps = [&](const InFlight& other) { return slot < other.slot + other.steps && other.slot < slot + steps; };
  while (std::any_of(in_flight_.begin(), in_flight_.end(), overlaps)) LS_CHECK(retireOldest());
  cursor_ = slot + steps;
  return slot;
}

void VulkanExecutable::writeInput(uint32_t slot, std::span<const std::byte> input) {
  if (!input.empty()) std::memcpy(arenas_.input.slot(slot), input.data(), input.size());
}

Status VulkanExecutable::submitBuffer(VkCommandBuffer commands, VkFence fence) {
  auto info = blank<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  ++submissions_;
  return check(context_->vk().vkQueueSubmit(context_->queue(), 1, &info, fence), "vkQueueSubmit");
}

Status VulkanExecutable::submitChunk(Recorder& recorder, std::span<const std::span<const std::byte>> inputs, Ticket ticket) {
  auto steps = static_cast<uint32_t>(inputs.size());
  LS_TRY(uint32_t slot, claimSlots(steps));
  for (uint32_t i = 0; i < steps; ++i) writeInput(slot + i, inputs[i]);
  LS_TRY(VkCommandBuffer commands, recorder.steps(steps, slot));
  LS_TRY(Fence fence, context_->takeFence());
  Open& open = open_[ticket];
  // Recorded before it is submitted: where memory runs out here, the device has not begun.
  in_flight_.push_back({.ticket = ticket, .slot = slot, .steps = steps, .fence = std::move(fence)});
  if (Status submitted = submitBuffer(commands, in_flight_.back().fence.get()); !submitted.ok()) {
    context_->settle();  // before the fence goes: a driver may have begun before it failed
    in_flight_.pop_back();
    return submitted;
  }
  ++open.pending;
  steps_ += steps;
  return Success{};
}

Result<Ticket> VulkanExecutable::submit(const ArenaSet& state, std::span<const std::span<const std::byte>> inputs) {
  if (inputs.empty()) return fail("vulkan.no_steps", "a submission needs at least one step");
  for (std::span<const std::byte> input : inputs) LS_CHECK(checkInput(input));
  LS_TRY(Recorder * recorder, recorderFor(state));
  Ticket ticket = next_ticket_++;
  open_[ticket];
  for (size_t done = 0; done < inputs.size(); done += arenas_.slots) {
    LS_CHECK(submitChunk(*recorder, inputs.subspan(done, std::min<size_t>(arenas_.slots, inputs.size() - done)), ticket));
  }
  return ticket;
}

Status VulkanExecutable::retireOldest() {
  // The submission stays in the list while its fence is not known to be signalled.
  LS_CHECK(context_->waitFence(in_flight_.front().fence.get()));
  Open& open = open_[in_flight_.front().ticket];
  // It also stays until its outputs have found memory.
  std::vector<std::vector<std::byte>> outputs;
  for (uint32_t i = 0; i < in_flight_.front().steps; ++i) {
    if (arenas_.output.size == 0) {
      outputs.emplace_back();
      continue;
    }
    const std::byte* begin = arenas_.output.slot(in_flight_.front().slot + i);
    outputs.emplace_back(begin, begin + arenas_.output.size);
  }
  open.outputs.reserve(open.outputs.size() + outputs.size());
  std::ranges::move(outputs, std::back_inserter(open.outputs));
  InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  --open.pending;
  // What may fail comes after the outputs, since this submission may belong to another ticket than the one that is waited for.
  LS_CHECK(context_->giveFence(std::move(oldest.fence)));
  LS_CHECK(checkFlags());
  return context_->validationStatus();
}

Result<std::vector<std::vector<std::byte>>> VulkanExecutable::wait(Ticket ticket) {
  auto found = open_.find(ticket);
  if (found == open_.end()) {
    return fail("vulkan.ticket", fmt::format("ticket {} is unknown; each ticket can be waited for once", ticket));
  }
  while (found->second.pending != 0) LS_CHECK(retireOldest());
  std::vector<std::vector<std::byte>> outputs = std::move(found->second.outputs);
  open_.erase(found);
  return outputs;
}

Result<std::vector<CommandTime>> VulkanExecutable::time(const ArenaSet& state, std::span<const std::byte> input) {
  if (context_->facts().timestamp_bits == 0) {
    return fail("vulkan.timestamps", fmt::format("{} has no timestamps on its compute queue", context_->facts().info.name));
  }
  LS_CHECK(checkInput(input));
  if (!queries_) {
    auto info = blank<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = stampCount(program_);
    LS_TRY(queries_, QueryPool::create(context_->functions(), counter_, info, "vkCreateQueryPool"));
  }
  LS_TRY(Recorder * recorder, recorderFor(state));
  while (!in_flight_.empty()) LS_CHECK(retireOldest());
  writeInput(0, input);
  LS_TRY(VkCommandBuffer commands, recorder->timedStep(0, queries_.get()));
  LS_CHECK(submitBuffer(commands, VK_NULL_HANDLE));
  LS_CHECK(context_->waitIdle());
  ++steps_;
  LS_CHECK(checkFlags());
  LS_CHECK(context_->validationStatus());
  std::vector<uint64_t> ticks(stampCount(program_));
  VkResult result = context_->vk().vkGetQueryPoolResults(context_->device(), queries_.get(), 0, static_cast<uint32_t>(ticks.size()),
                                                         ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t),
                                                         VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  LS_CHECK(check(result, "vkGetQueryPoolResults"));
  const DeviceFacts& facts = context_->facts();
  uint64_t mask = facts.timestamp_bits >= 64 ? UINT64_MAX : (uint64_t{1} << facts.timestamp_bits) - 1;
  const auto between = [&](size_t from, size_t to) {
    return static_cast<double>((ticks[to] - ticks[from]) & mask) * double{facts.properties.limits.timestampPeriod} * 1e-9;
  };
  std::vector<CommandTime> times;
  const size_t count = program_.commands.size();
  size_t last = 0, loops = 0;  // the stamp in front
  for (size_t i = 0; i < count; ++i) {
    times.push_back({.command = i, .seconds = between(last, i + 1)});
    last = i + 1;
    const program::Loop* loop = program_.loopOf(program_.commands[i].level);
    if (loop == nullptr || (i + 1 < count && loop->holds(program_.commands[i + 1].level))) continue;
    // All iterations, in the shares of the first one.
    size_t first = i;
    while (first > 0 && loop->holds(program_.commands[first - 1].level)) --first;
    const size_t after = count + 1 + loops++;
    double one = 0;
    for (size_t k = first; k <= i; ++k) one += times[k].seconds;
    const double all = one + between(last, after);
    for (size_t k = first; k <= i; ++k) times[k].seconds *= one > 0 ? all / one : 1;
    last = after;
  }
  return times;
}

std::vector<std::string> VulkanExecutable::kernelFacts() const {
  std::vector<std::string> facts;
  if (!context_->collectsKernelFacts()) return facts;
  for (const KernelPipeline& kernel : pipelines_) facts.push_back(kernel.facts);
  return facts;
}

ExecutionStatistics VulkanExecutable::statistics() const {
  return {.submissions = submissions_, .steps = steps_, .device_allocations = counter_, .device_bytes = arenas_.bytes};
}

}  // namespace lockstep::vulkan
