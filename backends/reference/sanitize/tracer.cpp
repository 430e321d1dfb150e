// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/tracer.h"

#include <algorithm>

namespace lockstep::reference {
namespace {

/// A chain that is longer has no end that anybody reads.
constexpr size_t kMostNodes = size_t{1} << 22;

/// What an atomic computes of the old value and its operand; others store the operand.
struct AtomicOperation {
  Opcode atomic, op;
};
constexpr AtomicOperation kAtomicOperations[] = {
    {Opcode::AtomicAdd, Opcode::AddI},  {Opcode::AtomicSub, Opcode::SubI},  {Opcode::AtomicMaxI, Opcode::MaxI},
    {Opcode::AtomicMaxU, Opcode::MaxU}, {Opcode::AtomicMinI, Opcode::MinI}, {Opcode::AtomicMinU, Opcode::MinU},
    {Opcode::AtomicAnd, Opcode::And},   {Opcode::AtomicOr, Opcode::Or},     {Opcode::AtomicXor, Opcode::Xor},
};

}  // namespace

Tracer::Tracer(const Bytecode& code, const TracedPlace& target, uint64_t group, std::set<uint32_t> lanes)
    : code_(code), target_(target), group_(group), lanes_(std::move(lanes)) {
  file_.assign(code.file_words, TraceNode::kNone);
  running_.resize(code.width);
}

void Tracer::beginGroup(uint64_t group) {
  now_ = group;
  following_ = group == group_ && !lanes_.empty();
}

Tracer::Key Tracer::keyOf(const TracedPlace& place, uint32_t lane) const {
  return {place.variable, place.byte, code_.variables[place.variable].home == Home::Lanes ? lane : 0};
}

uint32_t Tracer::add(const TraceNode& node) {
  if (nodes_.size() >= kMostNodes) return TraceNode::kNone;
  nodes_.push_back(node);
  return static_cast<uint32_t>(nodes_.size() - 1);
}

void Tracer::before(const Instruction& x, const uint32_t* r) {
  if (!following_) return;
  const auto operands = operandsOf(x);
  for (const uint32_t lane : lanes_) {
    TraceNode& node = running_[lane];
    node = {.op = x.op, .site = x.site, .instruction = indexOf(x), .lane = lane};
    for (size_t k = 0; k < operandCount(x.op); ++k) {
      const auto& [first, bit] = operands[k];
      const uint32_t slot = first + ((x.varying & bit) != 0 ? lane : 0);
      node.from[k] = file_[slot];
      node.operands[k] = r[slot];
    }
  }
}

void Tracer::after(const Instruction& x, const uint32_t* r, const uint32_t* active) {
  if (!following_) return;
  const bool varying = (x.varying & kVaryingDst) != 0;
  for (const uint32_t lane : lanes_) {
    if (varying && active[lane] == 0) continue;
    const uint32_t slot = x.dst + (varying ? lane : 0);
    TraceNode& node = running_[lane];
    node.bits = r[slot];
    // What is only moved keeps its node.
    const bool moved = x.op == Opcode::Move && node.from[0] != TraceNode::kNone;
    file_[slot] = moved ? node.from[0] : add(node);
    if (!varying) return;
  }
}

void Tracer::leaf(const Instruction& x, const uint32_t* r, const uint32_t* active) {
  for (const uint32_t lane : lanes_) running_[lane] = {.op = Opcode::ArrayLength, .site = x.site, .instruction = indexOf(x), .lane = lane};
  after(x, r, active);
}

void Tracer::splat(const Instruction& x, const uint32_t* r, const uint32_t* active, uint32_t lanes) {
  for (const uint32_t lane : lanes_) {
    if (!following_ || lane >= lanes || (x.masked && active[lane] == 0)) continue;
    const uint32_t from = file_[x.a];
    file_[x.dst + lane] = from != TraceNode::kNone ? from : add({.site = x.site, .lane = lane, .bits = r[x.a]});
  }
}

void Tracer::load(const Instruction& x, const TracedPlace& place, uint32_t lane, uint32_t slot, uint32_t bits) {
  if (!follows(lane)) return;
  TraceNode node{.kind = TraceNode::Kind::Loaded, .site = x.site, .instruction = indexOf(x), .lane = lane, .bits = bits, .place = place};
  if (const auto stored = stored_.find(keyOf(place, lane)); stored != stored_.end()) {
    node.from[0] = stored->second.node;
    if (!lanes_.contains(stored->second.lane)) wanted_.insert(stored->second.lane);
  }
  file_[slot] = add(node);
}

void Tracer::store(const Instruction& x, const TracedPlace& place, uint32_t lane, uint32_t slot, uint32_t bits) {
  storeNode(x, place, lane, file_[slot], bits);
}

void Tracer::storeNode(const Instruction& x, const TracedPlace& place, uint32_t lane, uint32_t from, uint32_t bits) {
  const bool hits = place.variable == target_.variable && place.byte <= target_.byte && target_.byte < place.byte + place.size;
  if (hits) writer_ = {now_, lane};
  if (!following_) return;
  Stored stored{.lane = lane};
  if (lanes_.contains(lane)) {
    stored.node = add({.kind = TraceNode::Kind::Stored,
                       .site = x.site,
                       .instruction = indexOf(x),
                       .lane = lane,
                       .bits = bits,
                       .place = place,
                       .from = {from, TraceNode::kNone, TraceNode::kNone}});
  }
  stored_[keyOf(place, lane)] = stored;
  if (hits) result_ = stored.node;
}

void Tracer::atomic(const Instruction& x, const TracedPlace& place, uint32_t lane, const Atomic& atomic) {
  uint32_t from = file_[atomic.operand];
  if (x.op != Opcode::AtomicStore) load(x, place, lane, atomic.result, atomic.old_bits);
  if (!atomic.stores) return;
  const auto* operation = std::ranges::find(kAtomicOperations, x.op, &AtomicOperation::atomic);
  if (operation != std::end(kAtomicOperations) && follows(lane)) {
    from = add({.op = operation->op,
                .site = x.site,
                .instruction = indexOf(x),
                .lane = lane,
                .bits = atomic.stored_bits,
                .from = {file_[atomic.result], from, TraceNode::kNone},
                .operands = {atomic.old_bits, atomic.operand_bits, 0}});
  }
  storeNode(x, place, lane, from, atomic.stored_bits);
}

}  // namespace lockstep::reference
