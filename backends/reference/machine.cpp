// SPDX-License-Identifier: Apache-2.0
// The interpreter's loop: pure instructions go to their vector routine, control instructions manage masks.
#include "backends/reference/machine.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "backends/reference/sanitize/perturber.h"
#include "backends/reference/sanitize/shadows.h"
#include "backends/reference/sanitize/tracer.h"
#include "backends/reference/sanitize/watch.h"

namespace lockstep::reference {
namespace {

/// A round of a loop costs the time of its instructions, however few lanes there are: it counts as so many.
constexpr uint32_t kLeastLanes = 64;

}  // namespace

Machine::Machine(const Bytecode& code, std::span<const BufferView> bindings, std::array<uint32_t, 3> groups, const MachineOptions& options)
    : code_(code), routines_(vectorRoutines()), bindings_(bindings), groups_(groups), options_(options) {
  storage_.resize(code.file_words + 16);
  r_ = storage_.data() + (16 - reinterpret_cast<uintptr_t>(storage_.data()) / 4 % 16) % 16;
  std::copy(code.scalars.begin(), code.scalars.end(), r_);
  lane_memory_.resize(size_t(code.lane_words) * code.width);
  workgroup_memory_.resize(size_t(code.workgroup_words) * code.batch_groups);
  frames_.resize(code.frames);
  lane_base_.resize(code.width);
  atomic_order_.resize(code.width);
  std::iota(atomic_order_.begin(), atomic_order_.end(), 0u);
  if (options_.order_seed != 0) std::shuffle(atomic_order_.begin(), atomic_order_.end(), std::mt19937_64(options_.order_seed));
  for (uint32_t lane = 0; lane < code.width; ++lane) {
    uint32_t group = std::min(lane / code.group_lanes, code.batch_groups - 1), local = lane % code.group_lanes;
    lane_base_[lane] = group * code.workgroup_words;
    const std::array<uint32_t, 3>& size = code.workgroup_size;
    const std::array<uint32_t, 3> id{local % size[0], local / size[0] % size[1], local / (size[0] * size[1])};
    for (size_t k = 0; k < 3; ++k)
      if (code.local_id[k] != Bytecode::kUnused) r_[code.local_id[k] + lane] = id[k];
  }
  for (uint32_t lane = 0; lane < code.group_lanes * code.batch_groups; ++lane) {
    const uint32_t place = lane % code.group_lanes, target = lane - place + code.subgroup_order[place];
    if (code.subgroup_lane != Bytecode::kUnused) r_[code.subgroup_lane + target] = place % code.subgroup_size;
    if (code.subgroup_id != Bytecode::kUnused) r_[code.subgroup_id + target] = place / code.subgroup_size;
  }
  for (size_t k = 0; k < 3; ++k)
    if (code.group_count[k] != Bytecode::kUnused) r_[code.group_count[k]] = groups[k];
  const bool shuffles =
      std::any_of(code.instructions.begin(), code.instructions.end(), [](const Instruction& x) { return x.op == Opcode::SubgroupShuffle; });
  if (shuffles) initial_ = storage_;
  for (const MemoryAccess& access : code.accesses) {
    uint32_t limit = access.count;
    if (limit == 0) {
      const uint64_t words = uint64_t(bindings[access.binding].count) * (access.half ? 2 : 1);
      limit = words > access.array ? static_cast<uint32_t>((words - access.array) / access.stride) : 0;
    }
    limits_.push_back(limit);
  }
  startTaint();
  if (options.perturbation) perturber_ = std::make_unique<Perturber>(code, *options.perturbation);
}

Machine::~Machine() = default;

void Machine::prepare(uint64_t first, uint32_t count) {
  uint32_t* root = r_ + code_.mask_row;
  if (lanes_ != count * code_.group_lanes) {
    lanes_ = count * code_.group_lanes;
    std::fill(std::fill_n(root, lanes_, ~0u), root + code_.width, 0u);
  }
  mask_ = root;
  active_ = lanes_;
  budget_ = options_.loop_budget;
  std::fill(workgroup_memory_.begin(), workgroup_memory_.end(), 0u);
  for (const Variable& variable : code_.variables) {
    if (variable.zeroed) continue;
    for (uint32_t group = 0; group < count; ++group)
      std::fill_n(workgroup_memory_.begin() + group * code_.workgroup_words + variable.offset, variable.words, kUnwritten);
  }
  for (uint32_t group = 0; group < count; ++group) {
    uint64_t linear = first + group;
    const std::array<uint64_t, 3> id{linear % groups_[0], linear / groups_[0] % groups_[1], linear / groups_[0] / groups_[1]};
    for (size_t k = 0; k < 3; ++k) {
      if (code_.group_id[k] == Bytecode::kUnused) continue;
      uint32_t* slot = r_ + code_.group_id[k];
      if (code_.batch_groups == 1) {
        *slot = static_cast<uint32_t>(id[k]);
      } else {
        std::fill_n(slot + group * code_.group_lanes, code_.group_lanes, static_cast<uint32_t>(id[k]));
      }
    }
  }
}

template <bool tracks>
void Machine::executeLoop() {
  const Instruction* instructions = code_.instructions.data();
  const uint32_t width = code_.width;
  for (uint32_t pc = pc_;;) {
    const Instruction& x = instructions[pc];
    if (x.handler != nullptr) {
      if (tracks && any_taint_) taintPure(x);
      if (tracks && options_.shadows != nullptr) options_.shadows->before(x, r_);
      if (tracks && options_.tracer != nullptr) options_.tracer->before(x, r_);
      if (tracks && perturber_ != nullptr) perturber_->before(x, r_);
      if (!x.masked || full()) {
        x.handler(r_, width, x);
      } else {
        runMasked(x);
      }
      if (tracks && perturber_ != nullptr) perturber_->after(x, r_, mask_, lanes_);
      if (tracks && options_.shadows != nullptr) options_.shadows->after(x, r_, mask_, lanes_);
      if (tracks && options_.tracer != nullptr) options_.tracer->after(x, r_, mask_);
      ++pc;
    } else if (x.op < Opcode::Barrier) {
      memory(x);
      if (fault_.kind != Fault::Kind::None) return;
      if (tracks && options_.shadows != nullptr) shadowMemory(x);
      if (tracks && options_.tracer != nullptr) traceMemory(x);
      ++pc;
    } else if (x.op == Opcode::End) {
      pc_ = kEnded;
      return;
    } else if (x.op == Opcode::Barrier && stops_at_barriers_) {
      pc_ = pc + 1;
      return;
    } else {
      if (tracks && any_taint_) taintControl(x);
      pc = control(x, pc);
      if (fault_.kind != Fault::Kind::None) return;
    }
  }
}

void Machine::execute() {
  const bool tracks = !taint_.empty() || options_.shadows != nullptr || options_.tracer != nullptr || perturber_ != nullptr;
  tracks ? executeLoop<true>() : executeLoop<false>();
}

void Machine::run(uint64_t first, uint32_t count) {
  fault_ = {};
  first_group_ = first;
  if (!initial_.empty()) {
    storage_ = initial_;
    lanes_ = 0;
  }
  prepare(first, count);
  if (options_.watch != nullptr) options_.watch->beginGroup(first);
  if (!taint_.empty()) clearTaint();
  if (options_.shadows != nullptr) options_.shadows->beginGroup(first * code_.group_lanes);
  if (options_.tracer != nullptr) options_.tracer->beginGroup(first);
  if (perturber_ != nullptr) perturber_->beginGroup(first);
  pc_ = 0;
  options_.order_seed == 0 ? execute() : runWaves();
  fault_.first_group = first;
}

/// Computes all lanes aside, then takes the active ones over.
void Machine::runMasked(const Instruction& x) {
  Instruction aside = x;
  aside.dst = code_.scratch_row;
  x.handler(r_, code_.width, aside);
  routines_.blend(r_ + x.dst, scratch(0), mask_, code_.width);
}

uint32_t Machine::control(const Instruction& x, uint32_t pc) {
  const uint32_t width = code_.width;
  switch (x.op) {
    case Opcode::Barrier:
      barrier(x);
      return pc + 1;
    case Opcode::Jump:
      return x.target;
    case Opcode::JumpIfFalse:
      return r_[x.a] != 0 ? pc + 1 : x.target;
    case Opcode::IfBegin: {
      MaskFrame& frame = frames_[x.frame];
      frame = {mask_, active_};
      uint32_t count = routines_.maskAnd(frameRow(x.frame, 0), mask_, r_ + x.a, width);
      if (count == 0) return x.target;
      mask_ = frameRow(x.frame, 0);
      active_ = count;
      return pc + 1;
    }
    case Opcode::IfElse: {
      const MaskFrame& frame = frames_[x.frame];
      uint32_t count = routines_.maskAndNot(frameRow(x.frame, 0), frame.saved, r_ + x.a, width);
      if (count == 0) return x.target;
      mask_ = frameRow(x.frame, 0);
      active_ = count;
      return pc + 1;
    }
    case Opcode::IfEnd:
    case Opcode::ScopeEnd: {
      const MaskFrame& frame = frames_[x.frame];
      mask_ = frame.saved;
      active_ = frame.active;
      if (!x.left) return pc + 1;
      active_ = routines_.maskAnd(frameRow(x.frame, 1), frame.saved, frameRow(x.alive, 0), width);
      mask_ = frameRow(x.frame, 1);
      return active_ == 0 ? x.target : pc + 1;
    }
    case Opcode::ScopeBegin:
      frames_[x.frame] = {mask_, active_};
      std::memcpy(frameRow(x.frame, 0), mask_, width * sizeof(uint32_t));
      return pc + 1;
    case Opcode::Clear:
      routines_.maskAndNot(frameRow(x.frame, 0), frameRow(x.frame, 0), mask_, width);
      return pc + 1;
    case Opcode::LoopBack:
      if (budget_ < std::max(lanes_, kLeastLanes)) {
        fault_ = {.kind = Fault::Kind::EndlessLoop, .site = x.site};
        while (fault_.lane < lanes_ && !isActive(fault_.lane)) ++fault_.lane;
        if (options_.watch != nullptr) endlessLoop(x, pc);
        return pc;
      }
      budget_ -= std::max(lanes_, kLeastLanes);
      return x.target;
#define LS_VM_OP1(name, r, a) case Opcode::name:
#define LS_VM_OP2(name, r, a, b) case Opcode::name:
#define LS_VM_OP3(name, r, a, b, c) case Opcode::name:
#define LS_VM_CONTROL(name)
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
    case Opcode::Splat:
    case Opcode::Address:
    case Opcode::CheckIndex:
    case Opcode::ClampIndex:
    case Opcode::Load:
    case Opcode::Store:
    case Opcode::LaneLoad:
    case Opcode::LaneStore:
    case Opcode::LaneZero:
    case Opcode::ArrayLength:
    case Opcode::AtomicLoad:
    case Opcode::AtomicStore:
    case Opcode::AtomicAdd:
    case Opcode::AtomicSub:
    case Opcode::AtomicMaxI:
    case Opcode::AtomicMaxU:
    case Opcode::AtomicMinI:
    case Opcode::AtomicMinU:
    case Opcode::AtomicAnd:
    case Opcode::AtomicOr:
    case Opcode::AtomicXor:
    case Opcode::AtomicExchange:
    case Opcode::AtomicCompareExchange:
    case Opcode::SubgroupReduce:
    case Opcode::SubgroupInclusive:
    case Opcode::SubgroupExclusive:
    case Opcode::SubgroupElect:
    case Opcode::SubgroupBallot:
    case Opcode::SubgroupFirst:
    case Opcode::SubgroupShuffle:
    case Opcode::Print:
    case Opcode::WatchInteger:
    case Opcode::WatchFloat:
    case Opcode::WatchStored:
    case Opcode::WatchIndex:
    case Opcode::End:
      break;
  }
  internalError("the interpreter met an instruction that it does not know");
}

/// All lanes advance together, so a barrier has nothing to wait for; it only has to be reached by a workgroup as a whole.
void Machine::barrier(const Instruction& x) {
  if (options_.watch != nullptr) {
    uint32_t absent = 0;
    while (absent < lanes_ && isActive(absent)) ++absent;
    if (absent < lanes_) divergentBarrier(x, absent);
    options_.watch->barrier(x.frame);
    return;
  }
  if (full() || !options_.checks) return;
  for (uint32_t first = 0; first < lanes_; first += code_.group_lanes) {
    for (uint32_t lane = first; lane < first + code_.group_lanes; ++lane) {
      if (isActive(lane) == isActive(first)) continue;
      fault_ = {.kind = Fault::Kind::DivergentBarrier, .site = x.site, .lane = isActive(lane) ? first : lane};
      return;
    }
  }
}

}  // namespace lockstep::reference
