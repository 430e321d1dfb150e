// SPDX-License-Identifier: Apache-2.0
// A schedule in which the lanes of a workgroup do not advance together: they are dealt into waves, and from barrier to barrier one wave
// runs after the other, in an order of its own each time. What WGSL orders comes out the same.
#include <algorithm>
#include <numeric>
#include <random>

#include "backends/reference/machine.h"

namespace lockstep::reference {
namespace {

/// Waves of a few lanes are slow, so large workgroups have few.
constexpr uint64_t kFewUnits = 32;

}  // namespace

/// The lanes of each wave; whole subgroups where the kernel has such operations.
std::vector<std::vector<uint32_t>> Machine::dealLanes(std::mt19937_64& random) const {
  const bool subgroups = std::ranges::any_of(
      code_.instructions, [](const Instruction& x) { return x.op >= Opcode::SubgroupReduce && x.op <= Opcode::SubgroupShuffle; });
  const uint32_t size = subgroups ? code_.subgroup_size : 1;
  const uint32_t of_group = (code_.group_lanes + size - 1) / size;  // units of a workgroup; none lies in two of them
  std::vector<uint32_t> units(size_t{lanes_ / code_.group_lanes} * of_group);
  std::iota(units.begin(), units.end(), 0u);
  std::ranges::shuffle(units, random);
  const uint64_t most = units.size() <= kFewUnits ? units.size() : 4;
  std::vector<std::vector<uint32_t>> waves(1 + random() % most);
  for (size_t k = 0; k < units.size(); ++k) {
    const uint32_t group = units[k] / of_group * code_.group_lanes, first = units[k] % of_group * size;
    for (uint32_t place = first; place < std::min(code_.group_lanes, first + size); ++place)
      waves[k % waves.size()].push_back(group + code_.subgroup_order[place]);
  }
  return waves;
}

void Machine::runWaves() {
  std::mt19937_64 random(options_.order_seed + first_group_ * 0x9e3779b97f4a7c15u);
  std::vector<Wave> waves;
  for (const std::vector<uint32_t>& lanes : dealLanes(random)) {
    if (lanes.empty()) continue;
    Wave& wave =
        waves.emplace_back(Wave{.file = {r_, r_ + code_.file_words}, .frames = frames_, .active = static_cast<uint32_t>(lanes.size())});
    uint32_t* root = wave.file.data() + code_.mask_row;
    std::fill_n(root, code_.width, 0u);
    for (const uint32_t lane : lanes) root[lane] = ~0u;
    wave.mask = mask_;
    wave.budget = budget_;
  }
  stops_at_barriers_ = true;
  while (!waves.empty()) {
    std::ranges::shuffle(waves, random);
    for (Wave& wave : waves) {
      std::ranges::copy(wave.file, r_);
      frames_ = wave.frames;
      mask_ = wave.mask;
      active_ = wave.active;
      pc_ = wave.pc;
      budget_ = wave.budget;
      execute();
      if (fault_.kind != Fault::Kind::None) return;
      wave = {.file = {r_, r_ + code_.file_words}, .frames = frames_, .mask = mask_, .active = active_, .pc = pc_, .budget = budget_};
    }
    std::erase_if(waves, [](const Wave& wave) { return wave.pc == kEnded; });
  }
}

}  // namespace lockstep::reference
