// SPDX-License-Identifier: Apache-2.0
// Loops that may not end. Drivers assume that every loop does and may delete checks after one that does not, and a kernel that never
// ends takes the device down, so all loops that are not known to end share a countdown: nested ones together end as soon as one would. It
// costs little but keeps drivers from unrolling.
#include "backends/vulkan/spirv_emitter.h"
#include "ir/kernel/loop_ends.h"

namespace lockstep::vulkan {

using kernel::Instruction;

std::optional<Place> Emitter::startCountdown(const Instruction& loop) {
  if (kernel::surelyEnds(module_, loop)) return std::nullopt;
  if (!rounds_) {
    spv::Id variable =
        builder_.createVariable(spv::NoPrecision, spv::StorageClassFunction, scalarType(kernel::Scalar::U32), "rounds", u32(UINT32_MAX));
    rounds_ = Place{.base = variable, .storage = spv::StorageClassFunction, .chain = {}, .pointee = types_.u32()};
  }
  return rounds_;
}

void Emitter::countDown(const Place& rounds, spv::Block& merge) {
  spv::Id type = scalarType(kernel::Scalar::U32), left = builder_.createLoad(rounds.base, spv::NoPrecision);
  spv::Id spent = builder_.createBinOp(spv::OpIEqual, builder_.makeBoolType(), left, u32(0));
  spv::Block &leave = builder_.makeNewBlock(), &stay = builder_.makeNewBlock();
  selectionMerge(stay);
  builder_.createConditionalBranch(spent, &leave, &stay);
  builder_.setBuildPoint(&leave);
  builder_.createBranch(&merge);
  builder_.setBuildPoint(&stay);
  builder_.createStore(builder_.createBinOp(spv::OpISub, type, left, u32(1)), rounds.base);
}

}  // namespace lockstep::vulkan
