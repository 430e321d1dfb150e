// SPDX-License-Identifier: Apache-2.0
// The arenas that belong to an executable: constants and workspace (one buffer each), inputs and outputs (rings of slots).
#pragma once

#include <memory>
#include <vector>

#include "backends/vulkan/context.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// An Input or Output arena, one slot for each step that may be in flight. Either the kernels use the slots directly (the host sees
/// device memory, or the arena is small), or they use one device-local copy and each step copies between it and its slot.
struct Ring {
  program::ArenaId arena;  ///< invalid: the program has no such arena
  uint64_t size = 0;       ///< bytes of the arena
  uint64_t stride = 0;     ///< bytes between slots
  Allocation host;         ///< the slots
  Allocation device;       ///< staged only
  bool staged = false;

  [[nodiscard]] std::byte* slot(uint32_t index) const { return host.mapped + index * stride; }
};

struct Arenas {
  uint32_t slots = 1;
  Ring input, output;
  std::vector<Allocation> internal;  ///< by arena; empty for the roles State, Input and Output
  uint64_t bytes = 0;                ///< of everything here

  /// What a binding of this arena refers to; null for State.
  [[nodiscard]] VkBuffer buffer(program::ArenaId arena) const;
  /// Bytes to add to an offset in this arena for a slot.
  [[nodiscard]] uint64_t slotOffset(program::ArenaId arena, uint32_t slot) const;
  /// Whether bindings of this arena differ from slot to slot.
  [[nodiscard]] bool perSlot(program::ArenaId arena) const;
};

/// Checks the plan against the device's free memory, allocates, uploads the constants and clears the rest.
Result<Arenas> makeArenas(Context& context, const program::Program& program, uint64_t& counter);

}  // namespace lockstep::vulkan
