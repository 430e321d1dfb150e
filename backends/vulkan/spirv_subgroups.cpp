// SPDX-License-Identifier: Apache-2.0
// Subgroup and quad operations.
#include <algorithm>
#include <array>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {
namespace {

using kernel::Op;

/// Numbers that a row has no use for.
constexpr uint32_t kNoGroup = UINT32_MAX;

struct SubgroupRow {
  Op op;
  SubgroupFeature feature;
  spv::Op of_float, of_signed, of_unsigned;
  uint32_t group = kNoGroup;      ///< the group operation, for arithmetic
  uint32_t direction = kNoGroup;  ///< of a swap
};

constexpr SubgroupRow one(Op op, SubgroupFeature feature, spv::Op spirv) { return {op, feature, spirv, spirv, spirv}; }
constexpr SubgroupRow arithmetic(Op op, spv::Op of_float, spv::Op of_signed, spv::Op of_unsigned, uint32_t group) {
  return {op, SubgroupFeature::Arithmetic, of_float, of_signed, of_unsigned, group};
}
constexpr SubgroupRow bits(Op op, spv::Op spirv) { return arithmetic(op, spv::OpNop, spirv, spirv, spv::GroupOperationReduce); }
constexpr SubgroupRow sum(Op op, uint32_t group) {
  return arithmetic(op, spv::OpGroupNonUniformFAdd, spv::OpGroupNonUniformIAdd, spv::OpGroupNonUniformIAdd, group);
}
constexpr SubgroupRow product(Op op, uint32_t group) {
  return arithmetic(op, spv::OpGroupNonUniformFMul, spv::OpGroupNonUniformIMul, spv::OpGroupNonUniformIMul, group);
}
constexpr SubgroupRow swap(Op op, uint32_t direction) {
  constexpr spv::Op kSwap = spv::OpGroupNonUniformQuadSwap;
  return {op, SubgroupFeature::Quad, kSwap, kSwap, kSwap, kNoGroup, direction};
}

constexpr std::array kRows = {
    one(Op::SubgroupElect, SubgroupFeature::Basic, spv::OpGroupNonUniformElect),
    one(Op::SubgroupAll, SubgroupFeature::Vote, spv::OpGroupNonUniformAll),
    one(Op::SubgroupAny, SubgroupFeature::Vote, spv::OpGroupNonUniformAny),
    one(Op::SubgroupBallot, SubgroupFeature::Ballot, spv::OpGroupNonUniformBallot),
    sum(Op::SubgroupAdd, spv::GroupOperationReduce),
    sum(Op::SubgroupExclusiveAdd, spv::GroupOperationExclusiveScan),
    sum(Op::SubgroupInclusiveAdd, spv::GroupOperationInclusiveScan),
    product(Op::SubgroupMul, spv::GroupOperationReduce),
    product(Op::SubgroupExclusiveMul, spv::GroupOperationExclusiveScan),
    product(Op::SubgroupInclusiveMul, spv::GroupOperationInclusiveScan),
    arithmetic(Op::SubgroupMin, spv::OpGroupNonUniformFMin, spv::OpGroupNonUniformSMin, spv::OpGroupNonUniformUMin,
               spv::GroupOperationReduce),
    arithmetic(Op::SubgroupMax, spv::OpGroupNonUniformFMax, spv::OpGroupNonUniformSMax, spv::OpGroupNonUniformUMax,
               spv::GroupOperationReduce),
    bits(Op::SubgroupAnd, spv::OpGroupNonUniformBitwiseAnd),
    bits(Op::SubgroupOr, spv::OpGroupNonUniformBitwiseOr),
    bits(Op::SubgroupXor, spv::OpGroupNonUniformBitwiseXor),
    one(Op::SubgroupBroadcast, SubgroupFeature::Ballot, spv::OpGroupNonUniformBroadcast),
    one(Op::SubgroupBroadcastFirst, SubgroupFeature::Ballot, spv::OpGroupNonUniformBroadcastFirst),
    one(Op::SubgroupShuffle, SubgroupFeature::Shuffle, spv::OpGroupNonUniformShuffle),
    one(Op::SubgroupShuffleXor, SubgroupFeature::Shuffle, spv::OpGroupNonUniformShuffleXor),
    one(Op::SubgroupShuffleUp, SubgroupFeature::ShuffleRelative, spv::OpGroupNonUniformShuffleUp),
    one(Op::SubgroupShuffleDown, SubgroupFeature::ShuffleRelative, spv::OpGroupNonUniformShuffleDown),
    one(Op::QuadBroadcast, SubgroupFeature::Quad, spv::OpGroupNonUniformQuadBroadcast),
    swap(Op::QuadSwapX, 0),
    swap(Op::QuadSwapY, 1),
    swap(Op::QuadSwapDiagonal, 2),
};

const SubgroupRow& rowOf(Op op) {
  const auto* row = std::find_if(kRows.begin(), kRows.end(), [&](const SubgroupRow& r) { return r.op == op; });
  if (row == kRows.end()) internalError("op " + std::string(kernel::info(op).text) + " is no subgroup operation");
  return *row;
}

// The capabilities stand in the order of the features.
static_assert(spv::CapabilityGroupNonUniform + static_cast<int>(SubgroupFeature::Quad) == spv::CapabilityGroupNonUniformQuad);

}  // namespace

SubgroupFeature featureOf(Op op) { return rowOf(op).feature; }

spv::Id Emitter::emitSubgroup(const kernel::Instruction& in) {
  const SubgroupRow& row = rowOf(in.op);
  builder_.addCapability(spv::CapabilityGroupNonUniform);
  builder_.addCapability(static_cast<spv::Capability>(spv::CapabilityGroupNonUniform + static_cast<int>(row.feature)));
  LaneKind kind = laneKind(types_[in.type]);
  spv::Op op = kind == LaneKind::Float ? row.of_float : kind == LaneKind::Signed ? row.of_signed : row.of_unsigned;
  std::vector<spv::IdImmediate> operands{{true, u32(spv::ScopeSubgroup)}};
  if (row.group != kNoGroup) operands.emplace_back(false, row.group);
  for (kernel::ValueId operand : in.operands) operands.emplace_back(true, value(operand));
  if (row.direction != kNoGroup) operands.emplace_back(true, u32(row.direction));
  if (in.op == Op::SubgroupShuffle) operands.back().word = lastLaneAtMost(operands.back().word);
  const spv::Id made = builder_.createOp(op, valueType(in.type), operands);
  if (in.op != Op::SubgroupShuffleUp && in.op != Op::SubgroupShuffleDown && in.op != Op::SubgroupShuffleXor) return made;
  if (in.op == Op::SubgroupShuffleXor && staysInside(in.operands[1])) return made;
  const kernel::Type type = types_[in.type];
  const spv::Id inside = splat(hasSource(in), kernel::Scalar::Bool, type.width());
  return builder_.createTriOp(spv::OpSelect, valueType(in.type), inside, made, builder_.makeNullConstant(valueType(in.type)));
}

// What lies beyond the subgroup is undefined in SPIR-V, and drivers differ. As on the reference, a shuffle from there takes the last lane,
// and one by a distance or a mask gives 0.
spv::Id Emitter::lastLaneAtMost(spv::Id lane) {
  const spv::Id type = scalarType(kernel::Scalar::U32);
  const spv::Id last = builder_.createBinOp(spv::OpISub, type, input(kernel::Builtin::SubgroupSize), u32(1));
  return ext(type, GLSLstd450UMin, {lane, last});
}

// A mask of full subgroups of a known size, which is a power of two.
bool Emitter::staysInside(kernel::ValueId mask) const {
  const kernel::Value& value = module_[mask];
  return value.kind == kernel::ValueKind::Constant && value.bits < module_.entryPoint()->subgroup_size;
}

spv::Id Emitter::hasSource(const kernel::Instruction& in) {
  const spv::Id type = scalarType(kernel::Scalar::U32), condition = scalarType(kernel::Scalar::Bool);
  const spv::Id delta = value(in.operands[1]), lane = input(kernel::Builtin::SubgroupInvocationId);
  if (in.op == Op::SubgroupShuffleUp) return builder_.createBinOp(spv::OpULessThanEqual, condition, delta, lane);
  const spv::Id size = input(kernel::Builtin::SubgroupSize);
  if (in.op == Op::SubgroupShuffleXor) {
    return builder_.createBinOp(spv::OpULessThan, condition, builder_.createBinOp(spv::OpBitwiseXor, type, lane, delta), size);
  }
  return builder_.createBinOp(spv::OpULessThan, condition, delta, builder_.createBinOp(spv::OpISub, type, size, lane));
}

}  // namespace lockstep::vulkan
