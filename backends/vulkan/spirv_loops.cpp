// SPDX-License-Identifier: Apache-2.0
// Loops that may not end. Drivers assume that every loop does and may delete checks after one that does not, and a kernel that never
// ends takes the device down, so all loops that are not known to end share a countdown: nested ones together end as soon as one would. It
// costs little but keeps drivers from unrolling.
//
// Drivers also count the rounds of a loop while they compile it: they divide what is left to the bound by the step of the counter. Mesa
// 22.3 dies of -2147483648 / -1, and NVIDIA 580 lost the device in loops whose steps cross the wrap. So drivers see constant steps only
// where these are ordinary and the loop surely ends; to all others something is added that is 0 and that no driver knows to be 0.
#include <algorithm>
#include <cstdlib>

#include "backends/vulkan/spirv_emitter.h"
#include "ir/kernel/loop_ends.h"
#include "ir/kernel/queries.h"

namespace lockstep::vulkan {

using kernel::definition;
using kernel::Instruction;
using kernel::Op;
using kernel::rootOf;

namespace {

/// Larger ones reach the wrap within few rounds.
constexpr int64_t kLargestStep = int64_t{1} << 24;

/// Whether a driver may know what the variable holds: nobody else can write it.
bool isLocal(const kernel::Module& module, kernel::ValueId root) {
  if (module[root].kind != kernel::ValueKind::Variable) return true;
  return module.globals[module[root].index].space == kernel::AddressSpace::Private;
}

}  // namespace

void Emitter::findSteps() {
  // Which values a driver may evaluate: operands stand before their uses in the text. A local variable may hold any of them.
  std::vector<bool> fixed(module_.instructions.size(), true);
  const auto isFixed = [&](kernel::ValueId id) { return module_[id].kind != kernel::ValueKind::Instruction || fixed[module_[id].index]; };
  kernel::forEachInstruction(module_, entry_.body, [&](kernel::InstructionId id, const Instruction& in) {
    fixed[id.index()] = in.op == Op::Load ? isLocal(module_, rootOf(module_, in.operands[0])) : std::ranges::all_of(in.operands, isFixed);
  });
  kernel::forEachInstruction(module_, entry_.body, [&](kernel::InstructionId, const Instruction& store) {
    if (store.op != Op::Store) return;
    const kernel::ValueId counter = rootOf(module_, store.operands[0]);
    const Instruction* sum = definition(module_, store.operands[1]);
    if (sum == nullptr || (sum->op != Op::Add && sum->op != Op::Sub) || !isLocal(module_, counter)) return;
    for (size_t side : {0, 1}) {
      const Instruction* load = definition(module_, sum->operands[side]);
      if (load == nullptr || load->op != Op::Load || rootOf(module_, load->operands[0]) != counter) continue;
      const kernel::ValueId by = sum->operands[1 - side];
      if (isFixed(by)) steps_[store.operands[1]] = isOrdinaryStep(sum->op, by);
    }
  });
}

bool Emitter::hasProducts(const Instruction& loop) const {
  bool found = false;
  for (const kernel::BlockId block : loop.blocks) {
    kernel::forEachInstruction(module_, block, [&](kernel::InstructionId, const Instruction& in) {
      found = found || in.op == Op::SubgroupMatrixMultiplyAccumulate;
    });
  }
  return found;
}

bool Emitter::hidesStep(kernel::ValueId sum) const {
  const auto loop = std::find_if(breakables_.rbegin(), breakables_.rend(), [](const Breakable& b) { return b.next != nullptr; });
  const auto step = steps_.find(sum);
  return loop != breakables_.rend() && step != steps_.end() && (loop->hides_steps || !step->second);
}

bool Emitter::isOrdinaryStep(Op op, kernel::ValueId by) const {
  const std::optional<uint32_t> known = literal(by);
  if (!known) return false;
  const int64_t constant = static_cast<int32_t>(*known), step = op == Op::Sub ? -constant : constant;
  return step != -1 && std::abs(step) <= kLargestStep;
}

spv::Id Emitter::hiddenZero(uint32_t width) {
  const spv::Id type = scalarType(kernel::Scalar::U32);
  if (has_matrices_) {
    // NVIDIA's driver knows that the id is below the number; that no grid has 2^31 workgroups it does not use.
    const spv::Id many = builder_.createCompositeExtract(input(kernel::Builtin::NumWorkgroups), type, 0);
    return splat(builder_.createBinOp(spv::OpShiftRightLogical, type, many, u32(31)), kernel::Scalar::U32, width);
  }
  const spv::Id group = builder_.createCompositeExtract(input(kernel::Builtin::WorkgroupId), type, 0);
  const spv::Id groups = builder_.createCompositeExtract(input(kernel::Builtin::NumWorkgroups), type, 0);
  const spv::Id inside = builder_.createBinOp(spv::OpULessThan, builder_.makeBoolType(), group, groups);
  return splat(builder_.createTriOp(spv::OpSelect, type, inside, u32(0), u32(1)), kernel::Scalar::U32, width);
}

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
  continueIn(leave);
  builder_.createBranch(&merge);
  continueIn(stay);
  builder_.createStore(builder_.createBinOp(spv::OpISub, type, left, u32(1)), rounds.base);
}

}  // namespace lockstep::vulkan
