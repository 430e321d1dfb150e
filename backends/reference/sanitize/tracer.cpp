// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/tracer.h"

namespace lockstep::reference {
namespace {

/// A chain that is longer has no end that anybody reads.
constexpr size_t kMostNodes = size_t{1} << 22;

}  // namespace

Tracer::Tracer(const Bytecode& code, const TracedWord& target, uint64_t group, std::set<uint32_t> lanes)
    : target_(target), group_(group), lanes_(std::move(lanes)) {
  file_.assign(code.file_words, TraceNode::kNone);
  running_.resize(code.width);
}

void Tracer::beginGroup(uint64_t group) {
  now_ = group;
  following_ = group == group_ && !lanes_.empty();
}

Tracer::Place Tracer::placeOf(const MemoryAccess& access, uint64_t word, uint32_t lane) {
  return {access.variable, word, access.home == Home::Lanes ? lane : 0};
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
    node = {.op = x.op, .site = x.site, .lane = lane};
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

void Tracer::splat(const Instruction& x, const uint32_t* r, const uint32_t* active, uint32_t lanes) {
  for (const uint32_t lane : lanes_) {
    if (!following_ || lane >= lanes || (x.masked && active[lane] == 0)) continue;
    const uint32_t from = file_[x.a];
    file_[x.dst + lane] = from != TraceNode::kNone ? from : add({.site = x.site, .lane = lane, .bits = r[x.a]});
  }
}

void Tracer::load(const Instruction& x, const MemoryAccess& access, uint64_t word, uint32_t lane, uint32_t slot, uint32_t bits) {
  if (!follows(lane)) return;
  TraceNode node{.kind = TraceNode::Kind::Loaded, .site = x.site, .lane = lane, .bits = bits, .variable = access.variable, .word = word};
  if (const auto stored = stored_.find(placeOf(access, word, lane)); stored != stored_.end()) {
    node.from[0] = stored->second.node;
    if (!lanes_.contains(stored->second.lane)) wanted_.insert(stored->second.lane);
  }
  file_[slot] = add(node);
}

void Tracer::store(const Instruction& x, const MemoryAccess& access, uint64_t word, uint32_t lane, uint32_t slot, uint32_t bits) {
  const bool hits = access.home == Home::Buffer && access.variable == target_.variable && word == target_.word;
  if (hits) writer_ = {now_, lane};
  if (!following_) return;
  Stored stored{.lane = lane};
  if (lanes_.contains(lane)) {
    stored.node = add({.kind = TraceNode::Kind::Stored,
                       .site = x.site,
                       .lane = lane,
                       .bits = bits,
                       .variable = access.variable,
                       .word = word,
                       .from = {file_[slot], TraceNode::kNone, TraceNode::kNone}});
  }
  stored_[placeOf(access, word, lane)] = stored;
  if (hits) result_ = stored.node;
}

}  // namespace lockstep::reference
