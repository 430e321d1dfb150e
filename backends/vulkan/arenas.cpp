// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/arenas.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::vulkan {

namespace {

using program::Arena;
using program::ArenaId;
using program::ArenaRole;
using program::Program;

constexpr uint32_t kMostSlots = 64, kFewestSlots = 2;
/// Of one ring.
constexpr uint64_t kRingBytes = 64u << 20;
/// Every slot has its own recordings, so long programs get fewer slots: about this many commands are recorded for each K.
constexpr size_t kRecordedCommands = 16384;
constexpr uint32_t kSlotsOfLongPrograms = 16;
/// Up to here kernels may read and write an arena across the bus; a copy and its barrier would cost more.
constexpr uint64_t kDirectBytes = 64u << 10;
constexpr uint64_t kSlotAlignment = 256;

uint64_t strideOf(uint64_t size) { return std::max(kSlotAlignment, (size + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment); }

uint32_t chooseSlots(const Program& program) {
  size_t runs = 1;
  for (const program::Command& command : program.commands) runs += program.iterationsOf(command.level);
  size_t slots = std::max<size_t>(program.loops.empty() ? kSlotsOfLongPrograms : 1, kRecordedCommands / runs);
  for (const Arena& arena : program.arenas) {
    if (arena.role != ArenaRole::Input && arena.role != ArenaRole::Output) continue;
    slots = std::min<size_t>(slots, kRingBytes / strideOf(arena.size));
  }
  return static_cast<uint32_t>(std::clamp<size_t>(slots, kFewestSlots, kMostSlots));
}

Result<Ring> makeRing(Context& context, const Program& program, ArenaRole role, uint32_t slots, uint64_t& counter) {
  Ring ring;
  ring.arena = program.findArena(role);
  if (!ring.arena.valid()) return ring;
  const Arena& arena = program[ring.arena];
  bool input = role == ArenaRole::Input;
  ring.size = arena.size;
  ring.stride = strideOf(arena.size);
  ring.staged = arena.size > kDirectBytes && !(input && context.hostSeesDeviceMemory());
  std::string name = fmt::format("the ring of arena \"{}\"", arena.name);
  LS_TRY(ring.host, context.allocate(ring.stride * slots, input ? Placement::Upload : Placement::Readback, counter, name));
  // Memory that is both (a CPU driver, an integrated GPU) needs no copy.
  if (ring.host.device_local) ring.staged = false;
  if (ring.staged) {
    LS_TRY(ring.device, context.allocate(arena.size, Placement::Device, counter, fmt::format("arena \"{}\"", arena.name)));
    LS_CHECK(context.fillZero(ring.device));
  }
  LS_CHECK(context.fillZero(ring.host));
  return ring;
}

Status checkPlan(const Context& context, const Program& program, uint32_t slots) {
  uint64_t bytes = 0;
  for (const Arena& arena : program.arenas) {
    if (arena.role == ArenaRole::State) continue;
    bool ring = arena.role == ArenaRole::Input || arena.role == ArenaRole::Output;
    bytes += ring ? strideOf(arena.size) * slots : arena.size;
  }
  uint64_t available = freeDeviceBytes(context.facts());
  if (bytes <= available) return Success{};
  Failure failure = fail("vulkan.out_of_memory",
                         fmt::format("the program needs {} bytes of device memory beside its state, but {} has {} free", bytes,
                                     context.facts().info.name, available),
                         {}, "use a smaller batch or a memory limit");
  failure.exit_code = ExitCode::OutOfMemory;
  return failure;
}

Status uploadConstants(Context& context, const Program& program, const std::vector<Allocation>& internal) {
  for (const program::ConstantData& constant : program.constants) {
    const program::Buffer& buffer = program[constant.buffer];
    LS_CHECK(context.upload(internal[buffer.arena.index()], buffer.offset, std::as_bytes(std::span(constant.words))));
  }
  return Success{};
}

}  // namespace

VkBuffer Arenas::buffer(ArenaId arena) const {
  for (const Ring* ring : {&input, &output}) {
    if (ring->arena == arena) return ring->staged ? ring->device.buffer.get() : ring->host.buffer.get();
  }
  return internal[arena.index()].buffer.get();
}

bool Arenas::perSlot(ArenaId arena) const { return (arena == input.arena && !input.staged) || (arena == output.arena && !output.staged); }

uint64_t Arenas::slotOffset(ArenaId arena, uint32_t slot) const {
  if (!perSlot(arena)) return 0;
  return slot * (arena == input.arena ? input.stride : output.stride);
}

Result<Arenas> makeArenas(Context& context, const Program& program, uint64_t& counter) {
  Arenas made;
  made.slots = chooseSlots(program);
  LS_CHECK(checkPlan(context, program, made.slots));
  LS_TRY(made.input, makeRing(context, program, ArenaRole::Input, made.slots, counter));
  LS_TRY(made.output, makeRing(context, program, ArenaRole::Output, made.slots, counter));
  made.internal.resize(program.arenas.size());
  for (size_t i = 0; i < program.arenas.size(); ++i) {
    const Arena& arena = program.arenas[i];
    if (arena.role != ArenaRole::Constant && arena.role != ArenaRole::Workspace) continue;
    LS_TRY(made.internal[i], context.allocate(arena.size, Placement::Device, counter, fmt::format("arena \"{}\"", arena.name)));
    LS_CHECK(context.fillZero(made.internal[i]));
    made.bytes += made.internal[i].size;
  }
  for (const Ring* ring : {&made.input, &made.output}) made.bytes += ring->host.size + ring->device.size;
  LS_CHECK(uploadConstants(context, program, made.internal));
  return made;
}

}  // namespace lockstep::vulkan
