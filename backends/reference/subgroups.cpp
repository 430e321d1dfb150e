// SPDX-License-Identifier: Apache-2.0
// Subgroup instructions: each workgroup of the batch, subgroup by subgroup, over the active lanes. Lanes are joined as a tree and scanned
// by doubling steps, as devices do, so that sums of floats round alike.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "backends/reference/machine.h"
#include "ir/support/splitmix.h"

namespace lockstep::reference {
namespace {

constexpr uint32_t kMost = 128;  ///< lanes of a subgroup

/// The active lanes of one subgroup by their id in it.
struct Lanes {
  uint32_t count = 0;                  ///< the subgroup's size
  std::array<uint32_t, kMost> lane{};  ///< in the batch
  std::array<bool, kMost> active{};
};

/// One value per lane; lanes that take no part have none.
struct Values {
  std::array<uint32_t, kMost> value{};
  std::array<bool, kMost> present{};
};

struct Joiner {
  Handler handler;
  Opcode op;
  uint32_t operator()(uint32_t a, uint32_t b) const {
    uint32_t words[3] = {0, a, b};
    handler(words, 1, {.op = op, .dst = 0, .a = 1, .b = 2});
    return words[0];
  }
  /// values[to] = values[a] joined with values[b], where present.
  void join(Values& values, uint32_t a, uint32_t b, uint32_t to) const {
    if (values.present[a] && values.present[b]) {
      values.value[to] = (*this)(values.value[a], values.value[b]);
    } else {
      values.value[to] = values.present[a] ? values.value[a] : values.value[b];
      values.present[to] = values.present[a] || values.present[b];
    }
  }
};

/// Leaves the join of all in values[0].
void reduce(Values& values, uint32_t count, const Joiner& joiner) {
  for (uint32_t step = 1; step < count; step *= 2)
    for (uint32_t k = 0; k + step < count; k += 2 * step) joiner.join(values, k, k + step, k);
}

void scan(Values& values, uint32_t count, const Joiner& joiner) {
  for (uint32_t step = 1; step < count; step *= 2)
    for (uint32_t k = count; k-- > step;) joiner.join(values, k - step, k, k);
}

}  // namespace

void Machine::subgroup(const Instruction& x) {
  const std::vector<uint32_t>& order = code_.subgroup_order;
  const Joiner joiner{routines_.pure[static_cast<size_t>(x.join)][0], x.join};
  auto operand = [&](uint32_t slot, uint32_t bit, uint32_t lane) { return r_[slot + ((x.varying & bit) != 0 ? lane : 0)]; };
  for (uint32_t group = 0; group < lanes_; group += code_.group_lanes) {
    for (uint32_t first = 0; first < code_.group_lanes; first += code_.subgroup_size) {
      Lanes lanes{.count = code_.subgroup_size};
      Values values;
      uint32_t lowest = kMost;
      std::array<uint32_t, 4> ballot{};
      const uint32_t present = std::min(lanes.count, code_.group_lanes - first);
      for (uint32_t id = 0; id < present; ++id) {
        const uint32_t lane = group + order[first + id];
        if (!isActive(lane)) continue;
        lowest = std::min(lowest, id);
        lanes.lane[id] = lane;
        lanes.active[id] = values.present[id] = true;
        if (x.op == Opcode::SubgroupElect) continue;
        values.value[id] = operand(x.a, kVaryingA, lane);
        if (values.value[id] != 0) ballot[id / 32] |= 1u << id % 32;
      }
      if (lowest == kMost) continue;
      if (x.op == Opcode::SubgroupReduce) reduce(values, lanes.count, joiner);
      if (x.op == Opcode::SubgroupInclusive || x.op == Opcode::SubgroupExclusive) scan(values, lanes.count, joiner);
      for (uint32_t id = lowest; id < lanes.count; ++id) {
        if (!lanes.active[id]) continue;
        const uint32_t lane = lanes.lane[id];
        uint32_t& out = r_[x.dst + lane];
        if (x.op == Opcode::SubgroupReduce) {
          out = values.value[0];
        } else if (x.op == Opcode::SubgroupInclusive) {
          out = values.value[id];
        } else if (x.op == Opcode::SubgroupExclusive) {
          out = id > 0 && values.present[id - 1] ? values.value[id - 1] : r_[x.b];
        } else if (x.op == Opcode::SubgroupElect) {
          out = id == lowest ? ~0u : 0u;
        } else if (x.op == Opcode::SubgroupBallot) {
          out = ballot[r_[x.b]];
        } else if (x.op == Opcode::SubgroupFirst) {
          out = values.value[lowest];
        } else {
          // A lane that is away gives what it has; one that does not exist gives zero.
          const uint32_t source = operand(x.b, kVaryingB, lane);
          out = source < present ? operand(x.a, kVaryingA, group + order[first + source]) : 0;
        }
      }
    }
  }
}

std::vector<uint32_t> subgroupOrder(uint32_t lanes, uint64_t seed) {
  std::vector<uint32_t> order(lanes);
  std::iota(order.begin(), order.end(), 0u);
  if (seed == 0) return order;
  for (uint32_t k = lanes; k > 1; --k) std::swap(order[k - 1], order[splitmix64(seed) % k]);
  return order;
}

}  // namespace lockstep::reference
