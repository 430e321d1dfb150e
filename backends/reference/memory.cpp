// SPDX-License-Identifier: Apache-2.0
// Memory instructions. An index row is scanned once: that checks the bounds and finds the patterns (consecutive, all the same) for which a
// copy is enough.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/shadows.h"

namespace lockstep::reference {

void Machine::memory(const Instruction& x) {
  if (options_.watch != nullptr) {
    watch(x);
    if (!taint_.empty()) taintMemory(x);
    if (x.op == Opcode::ClampIndex || (x.op >= Opcode::WatchInteger && x.op <= Opcode::WatchIndex)) return;
  }
  const bool half = (x.op == Opcode::Load || x.op == Opcode::Store) && code_.accesses[x.access].half;
  if (x.op == Opcode::Load) {
    half ? loadHalves(x) : load(x);
  } else if (x.op == Opcode::Store) {
    half ? storeHalves(x) : store(x);
  } else if (x.op == Opcode::Splat) {
    if (x.masked && !full()) {
      routines_.fill(scratch(0), r_[x.a], code_.width);
      routines_.blend(r_ + x.dst, scratch(0), mask_, code_.width);
    } else {
      routines_.fill(r_ + x.dst, r_[x.a], code_.width);
    }
  } else if (x.op == Opcode::LaneLoad) {
    laneLoad(x);
  } else if (x.op == Opcode::LaneStore) {
    laneStore(x);
  } else if (x.op == Opcode::LaneZero) {
    laneZero(x);
  } else if (x.op == Opcode::ArrayLength) {
    r_[x.dst] = limits_[x.access];
  } else if (x.op == Opcode::Address) {
    address(x);
  } else if (x.op == Opcode::CheckIndex) {
    checkIndex(x);
  } else if (x.op == Opcode::Print) {
    print(x);
  } else if (x.op >= Opcode::SubgroupReduce) {
    subgroup(x);
  } else {
    atomic(x);
  }
}

Machine::View Machine::view(const MemoryAccess& access, uint32_t index) const {
  View view{.limit = limits_[index]};
  if (access.home == Home::Buffer) {
    const BufferView& buffer = bindings_[access.binding];
    view.base = buffer.words + access.offset;
    view.written = buffer.written == nullptr ? nullptr : buffer.written + access.offset;
  } else if (access.home == Home::Table) {
    view.base = const_cast<uint32_t*>(code_.table.data()) + access.offset;
  } else {
    view.base = const_cast<uint32_t*>(workgroup_memory_.data()) + access.offset;
    view.by_lane = code_.batch_groups > 1;
  }
  return view;
}

void Machine::outOfBounds(const Instruction& x, uint32_t lane, uint32_t index, uint32_t limit) {
  if (!options_.checks || fault_.kind != Fault::Kind::None) return;
  fault_ = {.kind = Fault::Kind::OutOfBounds, .site = x.site, .access = x.access, .lane = lane, .index = index, .length = limit};
}

void Machine::zero(const MemoryAccess& access) {
  for (const MemoryValue& value : access.values) {
    if (!value.used) continue;
    if (value.varying) {
      routines_.fill(r_ + value.slot, 0, code_.width);
    } else {
      r_[value.slot] = 0;
    }
  }
}

void Machine::checkWritten(const Instruction& x, const View& view, uint32_t lane, uint32_t word) {
  if (options_.watch != nullptr || view.written[word] != 0 || fault_.kind != Fault::Kind::None) return;
  fault_ = {.kind = Fault::Kind::Uninitialised, .site = x.site, .access = x.access, .lane = lane, .index = word};
}

const uint32_t* Machine::indices(const Instruction& x, uint32_t limit, IndexScan& scan) {
  const uint32_t* index = x.a == UINT32_MAX ? nullptr : r_ + x.a;
  uint32_t first = 0;
  while (!isActive(first)) ++first;
  if ((x.varying & kVaryingA) == 0) {
    routines_.fill(scratch(0), index == nullptr ? 0 : *index, code_.width);
    index = scratch(0);
  } else if (!full()) {
    routines_.fill(scratch(0), index[first], code_.width);
    routines_.blend(scratch(0), index, mask_, code_.width);
    index = scratch(0);
  }
  scan = routines_.scan(index, lanes_, limit);
  if (scan.in_range) return index;
  uint32_t lane = first;
  while (!isActive(lane) || index[lane] < limit) ++lane;
  outOfBounds(x, lane, index[lane], limit);
  return nullptr;
}

/// Word addresses (relative to view.base) when every workgroup of the batch has its own base.
const uint32_t* Machine::addresses(const View& view, const MemoryAccess& access, const uint32_t* index) {
  if (!view.by_lane) return index;
  uint32_t* out = scratch(1);
  for (uint32_t lane = 0; lane < lanes_; ++lane) out[lane] = index[lane] * access.stride + lane_base_[lane];
  return out;
}

void Machine::load(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  View where = view(access, x.access);
  if ((x.varying & kVaryingA) != 0 || where.by_lane) {
    loadRows(x, access, where);
    return;
  }
  uint32_t index = indexOf(x, 0);
  if (index >= where.limit) {
    uint32_t lane = 0;
    while (!isActive(lane)) ++lane;
    outOfBounds(x, lane, index, where.limit);
    zero(access);
    return;
  }
  size_t start = size_t(index) * access.stride;
  for (const MemoryValue& value : access.values) {
    if (where.written != nullptr) checkWritten(x, where, 0, static_cast<uint32_t>(start + value.word));
    if (!value.used) continue;
    if (value.varying) {
      routines_.fill(r_ + value.slot, where.base[start + value.word], code_.width);
    } else {
      r_[value.slot] = where.base[start + value.word];
    }
  }
}

void Machine::loadRows(const Instruction& x, const MemoryAccess& access, const View& where) {
  IndexScan scan{};
  const uint32_t* index = indices(x, where.limit, scan);
  if (index == nullptr) {
    // Without checks a lane outside reads zero.
    zero(access);
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      uint32_t element = indexOf(x, lane);
      if (!isActive(lane) || element >= where.limit) continue;
      size_t start = size_t(element) * access.stride + (where.by_lane ? lane_base_[lane] : 0);
      for (const MemoryValue& value : access.values)
        if (value.used) r_[value.slot + lane] = where.base[start + value.word];
    }
    return;
  }
  const uint32_t* address = addresses(where, access, index);
  uint32_t stride = where.by_lane ? 1 : access.stride;
  if (where.written != nullptr) {
    for (uint32_t lane = 0; lane < lanes_; ++lane)
      for (const MemoryValue& value : access.values)
        if (isActive(lane)) checkWritten(x, where, lane, address[lane] * stride + value.word);
  }
  const std::vector<MemoryValue>& values = access.values;
  bool consecutive = scan.contiguous && !where.by_lane;
  bool all_used = std::all_of(values.begin(), values.end(), [](const MemoryValue& value) { return value.used; });
  if (consecutive && values.size() == 4 && stride == 4 && all_used) {
    routines_.loadVec4(r_ + values[0].slot, r_ + values[1].slot, r_ + values[2].slot, r_ + values[3].slot,
                       where.base + size_t(index[0]) * 4, lanes_);
    return;
  }
  for (const MemoryValue& value : values) {
    if (!value.used) continue;
    uint32_t* out = r_ + value.slot;
    const uint32_t* base = where.base + value.word;
    if (consecutive) {
      routines_.loadStrided(out, base + size_t(index[0]) * stride, stride, lanes_);
    } else if (scan.same && !where.by_lane) {
      routines_.fill(out, base[size_t(index[0]) * stride], code_.width);
    } else {
      routines_.gather(out, base, address, stride, lanes_);
    }
  }
}

const uint32_t* Machine::row(const MemoryValue& value, uint32_t k) {
  if (value.varying) return r_ + value.slot;
  routines_.fill(scratch(k), r_[value.slot], code_.width);
  return scratch(k);
}

void Machine::store(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  View where = view(access, x.access);
  if ((x.varying & kVaryingA) != 0 || where.by_lane) {
    storeRows(x, access, where);
    return;
  }
  uint32_t index = indexOf(x, 0), last = lanes_ - 1;
  // All lanes write the same words: the last one stays.
  while (!isActive(last)) --last;
  if (index >= where.limit) {
    uint32_t lane = 0;
    while (!isActive(lane)) ++lane;
    outOfBounds(x, lane, index, where.limit);
    return;
  }
  size_t start = size_t(index) * access.stride;
  for (const MemoryValue& value : access.values) {
    where.base[start + value.word] = r_[value.slot + (value.varying ? last : 0)];
    if (where.written != nullptr) where.written[start + value.word] = 1;
  }
}

void Machine::storeRows(const Instruction& x, const MemoryAccess& access, const View& where) {
  IndexScan scan{};
  const uint32_t* index = indices(x, where.limit, scan);
  if (index == nullptr || !full()) {
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      uint32_t element = indexOf(x, lane);
      if (!isActive(lane) || element >= where.limit) continue;
      size_t start = size_t(element) * access.stride + (where.by_lane ? lane_base_[lane] : 0);
      for (const MemoryValue& value : access.values) {
        where.base[start + value.word] = r_[value.slot + (value.varying ? lane : 0)];
        if (where.written != nullptr) where.written[start + value.word] = 1;
      }
    }
    return;
  }
  const uint32_t* address = addresses(where, access, index);
  uint32_t stride = where.by_lane ? 1 : access.stride;
  const std::vector<MemoryValue>& values = access.values;
  bool consecutive = scan.contiguous && !where.by_lane;
  if (where.written != nullptr) {
    for (uint32_t lane = 0; lane < lanes_; ++lane)
      for (const MemoryValue& value : values) where.written[size_t(address[lane]) * stride + value.word] = 1;
  }
  if (consecutive && values.size() == 4 && stride == 4) {
    const uint32_t* rows[4];
    for (uint32_t k = 0; k < 4; ++k) rows[k] = row(values[k], 4 + k);
    routines_.storeVec4(where.base + size_t(index[0]) * 4, rows[0], rows[1], rows[2], rows[3], lanes_);
    return;
  }
  for (const MemoryValue& value : values) {
    const uint32_t* source = row(value, 4);
    if (consecutive) {
      routines_.storeStrided(where.base + value.word + size_t(index[0]) * stride, source, stride, lanes_);
    } else {
      routines_.scatter(where.base + value.word, source, address, stride, lanes_);
    }
  }
}

void Machine::laneLoad(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const size_t width = code_.width;
  const uint32_t* memory = lane_memory_.data() + access.offset * width;
  if ((x.varying & kVaryingA) == 0 && indexOf(x, 0) < limits_[x.access]) {
    size_t element = size_t(indexOf(x, 0)) * access.stride;
    for (const MemoryValue& value : access.values)
      if (value.used) std::memcpy(r_ + value.slot, memory + (element + value.word) * width, width * sizeof(uint32_t));
    return;
  }
  IndexScan scan{};
  const uint32_t* index = indices(x, limits_[x.access], scan);
  if (index == nullptr) {
    zero(access);
    return;
  }
  for (const MemoryValue& value : access.values) {
    if (!value.used) continue;
    uint32_t* out = r_ + value.slot;
    for (size_t lane = 0; lane < lanes_; ++lane) out[lane] = memory[(size_t(index[lane]) * access.stride + value.word) * width + lane];
  }
}

/// Lanes that are away may be at a barrier in another wave, with values of their own.
void Machine::laneZero(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const size_t words = code_.variables[access.variable].words, width = code_.width, first = size_t{access.offset} * width;
  if (full()) {
    std::memset(lane_memory_.data() + first, 0, words * width * sizeof(uint32_t));
  } else {
    routines_.fill(scratch(0), 0, code_.width);
    for (size_t word = 0; word < words; ++word) routines_.blend(lane_memory_.data() + first + word * width, scratch(0), mask_, code_.width);
  }
  for (size_t k = 0; k < words * width && (any_taint_ || options_.shadows != nullptr); ++k) {
    if (k % width >= lanes_ || !isActive(static_cast<uint32_t>(k % width))) continue;
    if (any_taint_) lane_taint_[first + k] = 0;
    if (options_.shadows != nullptr) options_.shadows->laneMemory()[first + k] = {};
  }
}

void Machine::laneStore(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  const size_t width = code_.width;
  uint32_t* memory = lane_memory_.data() + access.offset * width;
  if ((x.varying & kVaryingA) == 0 && indexOf(x, 0) < limits_[x.access]) {
    size_t element = size_t(indexOf(x, 0)) * access.stride;
    for (const MemoryValue& value : access.values)
      routines_.blend(memory + (element + value.word) * width, row(value, 4), mask_, code_.width);
    return;
  }
  IndexScan scan{};
  const uint32_t* index = indices(x, limits_[x.access], scan);
  if (index == nullptr) return;
  for (const MemoryValue& value : access.values) {
    const uint32_t* source = row(value, 4);
    for (size_t lane = 0; lane < lanes_; ++lane)
      if (mask_[lane] != 0) memory[(size_t(index[lane]) * access.stride + value.word) * width + lane] = source[lane];
  }
}

/// dst = a < count ? b + a * stride : ~0, and ~0 stays ~0: an access at ~0 was reported here.
void Machine::address(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  uint32_t limit = limits_[x.access];
  uint32_t lanes = (x.varying & kVaryingDst) != 0 ? lanes_ : 1;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    uint32_t index = indexOf(x, lane), base = r_[x.b + ((x.varying & kVaryingB) != 0 ? lane : 0)];
    r_[x.dst + lane] = index < limit && base != ~0u ? base + index * access.stride : ~0u;
    if (index >= limit && base != ~0u && (lanes == 1 || isActive(lane))) outOfBounds(x, lane, index, limit);
  }
}

void Machine::checkIndex(const Instruction& x) {
  uint32_t limit = limits_[x.access];
  for (uint32_t lane = 0; lane < ((x.varying & kVaryingA) != 0 ? lanes_ : 1); ++lane)
    if (indexOf(x, lane) >= limit && ((x.varying & kVaryingA) == 0 || isActive(lane))) outOfBounds(x, lane, indexOf(x, lane), limit);
}

namespace {

uint32_t applyAtomic(Opcode op, uint32_t& word, uint32_t value, uint32_t compare) {
  std::atomic_ref<uint32_t> cell(word);
  constexpr auto kRelaxed = std::memory_order_relaxed;
  auto update = [&](auto next) {
    uint32_t old = cell.load(kRelaxed);
    while (!cell.compare_exchange_weak(old, next(old), kRelaxed)) {
    }
    return old;
  };
  auto less = [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b); };
  if (op == Opcode::AtomicLoad) return cell.load(kRelaxed);
  if (op == Opcode::AtomicAdd) return cell.fetch_add(value, kRelaxed);
  if (op == Opcode::AtomicSub) return cell.fetch_sub(value, kRelaxed);
  if (op == Opcode::AtomicMaxI) return update([&](uint32_t old) { return less(old, value) ? value : old; });
  if (op == Opcode::AtomicMaxU) return update([&](uint32_t old) { return old < value ? value : old; });
  if (op == Opcode::AtomicMinI) return update([&](uint32_t old) { return less(value, old) ? value : old; });
  if (op == Opcode::AtomicMinU) return update([&](uint32_t old) { return value < old ? value : old; });
  if (op == Opcode::AtomicAnd) return cell.fetch_and(value, kRelaxed);
  if (op == Opcode::AtomicOr) return cell.fetch_or(value, kRelaxed);
  if (op == Opcode::AtomicXor) return cell.fetch_xor(value, kRelaxed);
  if (op == Opcode::AtomicCompareExchange) {
    cell.compare_exchange_strong(compare, value, kRelaxed);
    return compare;
  }
  return cell.exchange(value, kRelaxed);
}

}  // namespace

void Machine::atomic(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  View where = view(access, x.access);
  for (uint32_t lane : atomic_order_) {
    if (lane >= lanes_ || !isActive(lane)) continue;
    uint32_t index = indexOf(x, lane);
    if (index >= where.limit) {
      outOfBounds(x, lane, index, where.limit);
      r_[x.dst + lane] = 0;
      continue;
    }
    size_t word = size_t(index) * access.stride + (where.by_lane ? lane_base_[lane] : 0);
    if (where.written != nullptr && x.op != Opcode::AtomicStore && x.op != Opcode::AtomicExchange)
      checkWritten(x, where, lane, static_cast<uint32_t>(word));
    uint32_t value = r_[x.b + ((x.varying & kVaryingB) != 0 ? lane : 0)], compare = r_[x.c + ((x.varying & kVaryingC) != 0 ? lane : 0)];
    r_[x.dst + lane] = applyAtomic(x.op, where.base[word], value, compare);
    if (options_.tracer != nullptr) traceAtomic(x, lane, access.offset + word, where.base[word]);
    if (where.written != nullptr) where.written[word] = 1;
  }
}

}  // namespace lockstep::reference
