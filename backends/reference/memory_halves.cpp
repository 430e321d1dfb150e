// SPDX-License-Identifier: Apache-2.0
// Loads and stores of 16-bit words, as their bits in the low half of a register.
#include <cstring>

#include "backends/reference/machine.h"

namespace lockstep::reference {

Machine::HalfView Machine::halfView(const MemoryAccess& access) const {
  if (access.home == Home::Buffer) {
    const BufferView& buffer = bindings_[access.binding];
    return {.base = reinterpret_cast<std::byte*>(buffer.words), .written = buffer.written};
  }
  auto* words = const_cast<uint32_t*>(workgroup_memory_.data());
  return {.base = reinterpret_cast<std::byte*>(words), .by_lane = code_.batch_groups > 1};
}

void Machine::loadHalves(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const HalfView view = halfView(access);
  const uint32_t limit = limits_[x.access];
  const bool each_lane = (x.varying & kVaryingA) != 0 || view.by_lane;
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    if (!isActive(lane)) continue;
    const uint32_t index = indexOf(x, lane);
    const bool inside = index < limit;
    if (!inside) outOfBounds(x, lane, index, limit);
    const uint64_t start = access.offset + uint64_t(index) * access.stride + (view.by_lane ? uint64_t(lane_base_[lane]) * 2 : 0);
    for (const MemoryValue& value : access.values) {
      const uint64_t half = start + value.word;
      uint16_t bits = 0;
      if (inside) std::memcpy(&bits, view.base + half * 2, sizeof(bits));
      if (inside && options_.watch == nullptr && view.written != nullptr && view.written[half / 2] == 0 &&
          fault_.kind == Fault::Kind::None) {
        fault_ = {
            .kind = Fault::Kind::Uninitialised, .site = x.site, .access = x.access, .lane = lane, .index = static_cast<uint32_t>(half / 2)};
      }
      if (!value.used) continue;
      if (each_lane && value.varying) {
        r_[value.slot + lane] = bits;
      } else if (value.varying) {
        routines_.fill(r_ + value.slot, bits, code_.width);
      } else {
        r_[value.slot] = bits;
      }
    }
    if (!each_lane) return;
  }
}

void Machine::storeHalves(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const HalfView view = halfView(access);
  const uint32_t limit = limits_[x.access];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    if (!isActive(lane)) continue;
    const uint32_t index = indexOf(x, lane);
    if (index >= limit) {
      outOfBounds(x, lane, index, limit);
      continue;
    }
    const uint64_t start = access.offset + uint64_t(index) * access.stride + (view.by_lane ? uint64_t(lane_base_[lane]) * 2 : 0);
    for (const MemoryValue& value : access.values) {
      const uint64_t half = start + value.word;
      const auto bits = static_cast<uint16_t>(r_[value.slot + (value.varying ? lane : 0)]);
      std::memcpy(view.base + half * 2, &bits, sizeof(bits));
      if (view.written != nullptr) view.written[half / 2] = 1;
    }
  }
}

}  // namespace lockstep::reference
