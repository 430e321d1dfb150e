// SPDX-License-Identifier: Apache-2.0
// Subgroup matrices: SPV_KHR_cooperative_matrix, and SPV_KHR_bfloat16 where a matrix has such components. The headers that we build with
// are older than both, so the numbers stand here. A module with matrices has the Vulkan memory model, as the extension asks.
#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::Instruction;
using kernel::Op;
using kernel::Scalar;
using kernel::Type;
using kernel::TypeId;
using kernel::ValueId;

namespace {

constexpr auto kCooperativeMatrix = static_cast<spv::Capability>(6022);
constexpr auto kBFloat16Type = static_cast<spv::Capability>(5116);
constexpr auto kBFloat16Matrix = static_cast<spv::Capability>(5118);
constexpr auto kTypeMatrix = static_cast<spv::Op>(4456);
constexpr auto kLoadMatrix = static_cast<spv::Op>(4457);
constexpr auto kStoreMatrix = static_cast<spv::Op>(4458);
constexpr auto kMulAddMatrix = static_cast<spv::Op>(4459);

/// Of the memory access: barriers, which make everything available and visible, order it too.
const uint32_t kShared = spv::MemoryAccessNonPrivatePointerMask;

}  // namespace

void Emitter::enableMatrices() {
  builder_.addCapability(kCooperativeMatrix);
  builder_.addExtension("SPV_KHR_cooperative_matrix");
  builder_.addCapability(spv::CapabilityVulkanMemoryModel);
  builder_.addExtension("SPV_KHR_vulkan_memory_model");
  builder_.setMemoryModel(spv::AddressingModelLogical, spv::MemoryModelVulkan);
}

spv::Id Emitter::matrixComponent(Scalar scalar) {
  if (scalar != Scalar::BF16) return scalarType(scalar);
  if (bfloat16_ != spv::NoType) return bfloat16_;
  builder_.addCapability(kBFloat16Type);
  builder_.addCapability(kBFloat16Matrix);
  builder_.addExtension("SPV_KHR_bfloat16");
  constexpr uint32_t kEncoding = 0;  // BFloat16KHR
  auto type = std::make_unique<spv::Instruction>(builder_.getUniqueId(), spv::NoType, spv::OpTypeFloat);
  type->addImmediateOperand(16);
  type->addImmediateOperand(kEncoding);
  return bfloat16_ = addConstant(std::move(type));
}

spv::Id Emitter::makeMatrixType(const Type& type) {
  const spv::Id component = matrixComponent(type.scalar);
  const std::array<spv::Id, 5> operands{component, u32(spv::ScopeSubgroup), u32(type.rows), u32(type.columns),
                                        u32(static_cast<uint32_t>(type.use))};
  auto made = std::make_unique<spv::Instruction>(builder_.getUniqueId(), spv::NoType, kTypeMatrix);
  for (const spv::Id operand : operands) made->addIdOperand(operand);
  return addConstant(std::move(made));
}

spv::Id Emitter::zeroMatrix(TypeId id) {
  const Type type = types_[id];
  if (type.scalar != Scalar::BF16) return compositeConstant(valueType(id), {scalarConstant(type.scalar, 0)});
  if (bfloat16_zero_ == spv::NoResult) {
    auto zero = std::make_unique<spv::Instruction>(builder_.getUniqueId(), matrixComponent(Scalar::BF16), spv::OpConstant);
    zero->addImmediateOperand(0);
    bfloat16_zero_ = addConstant(std::move(zero));
  }
  return compositeConstant(valueType(id), {bfloat16_zero_});
}

/// The element where a matrix starts.
spv::Id Emitter::matrixPlace(const Instruction& in) {
  const Place array = place(in.operands[0]);
  const TypeId element = types_.elementOf(array.pointee);
  return address(part(array, value(in.operands[1]), element));
}

/// The operands that say how memory is accessed: those of a workgroup, and of storage where a barrier orders it.
void Emitter::addMatrixAccess(const Place& place, std::vector<spv::IdImmediate>& operands) {
  if (isShared(place)) operands.emplace_back(false, kShared);
}

/// The sum of the places of the number's bits. Neighbouring bits whose places double become one shift.
template <size_t N>
spv::Id Emitter::sumOfBits(spv::Id number, const std::array<uint32_t, N>& places) {
  const spv::Id type = scalarType(Scalar::U32);
  spv::Id sum = spv::NoResult;
  for (size_t i = 0; i < N;) {
    size_t end = i + 1;
    while (end < N && places[i] != 0 && places[end] == places[end - 1] * 2) ++end;
    if (places[i] != 0) {
      const spv::Id shifted = builder_.createBinOp(spv::OpShiftRightLogical, type, number, u32(static_cast<uint32_t>(i)));
      const spv::Id bits = builder_.createBinOp(spv::OpBitwiseAnd, type, shifted, u32((1u << (end - i)) - 1));
      const spv::Id place = builder_.createBinOp(spv::OpIMul, type, bits, u32(places[i]));
      sum = sum == spv::NoResult ? place : builder_.createBinOp(spv::OpIAdd, type, sum, place);
    }
    i = end;
  }
  return sum == spv::NoResult ? u32(0) : sum;
}

spv::Id Emitter::matrixPlaceOf(const Instruction& in) {
  const MatrixLayout& layout = *findLayout(options_, typeOf(in.operands[0]));
  const auto places = [&](const auto& bits) {
    std::array<uint32_t, std::tuple_size_v<std::remove_cvref_t<decltype(bits)>>> made{};
    for (size_t i = 0; i < bits.size(); ++i) made[i] = in.op == Op::SubgroupMatrixRow ? bits[i].row : bits[i].column;
    return made;
  };
  const spv::Id of_lane = sumOfBits(input(kernel::Builtin::SubgroupInvocationId), places(layout.lane_bits));
  spv::Id of_element = spv::NoResult;
  if (const std::optional<uint32_t> element = literal(in.operands[1])) {
    const MatrixPlace place = layout.at(0, *element);
    of_element = u32(in.op == Op::SubgroupMatrixRow ? place.row : place.column);
  } else {
    of_element = sumOfBits(value(in.operands[1]), places(layout.element_bits));
  }
  return builder_.createBinOp(spv::OpIAdd, scalarType(Scalar::U32), of_lane, of_element);
}

void Emitter::emitMatrix(const Instruction& in) {
  if (in.op == Op::SubgroupMatrixLoad) {
    const spv::Id from = matrixPlace(in);
    std::vector<spv::IdImmediate> operands{{true, from}, {true, u32(in.immediate)}, {true, value(in.operands[2])}};
    addMatrixAccess(place(in.operands[0]), operands);
    return define(in, builder_.createOp(kLoadMatrix, valueType(in.type), operands));
  }
  if (in.op == Op::SubgroupMatrixStore) {
    const spv::Id to = matrixPlace(in);
    std::vector<spv::IdImmediate> operands{
        {true, to}, {true, value(in.operands[2])}, {true, u32(in.immediate)}, {true, value(in.operands[3])}};
    addMatrixAccess(place(in.operands[0]), operands);
    builder_.createNoResultOp(kStoreMatrix, operands);
    return;
  }
  if (in.op == Op::SubgroupMatrixRow || in.op == Op::SubgroupMatrixColumn) return define(in, matrixPlaceOf(in));
  if (in.op == Op::SubgroupMatrixRowMax || in.op == Op::SubgroupMatrixRowSum) return define(in, reduceRows(in));
  if (in.op == Op::SubgroupMatrixConvert) return define(in, convertMatrix(in));
  const spv::Id type = valueType(in.type);
  if (in.op == Op::SubgroupMatrixMultiplyAccumulate) return define(in, builder_.createOp(kMulAddMatrix, type, values(in.operands)));
  const spv::Op op = in.op == Op::SubgroupMatrixAdd ? spv::OpFAdd : spv::OpMatrixTimesScalar;
  define(in, builder_.createOp(op, type, values(in.operands)));
}

/// Whether other invocations may see an access before the dispatch ends. Only the Vulkan memory model wants to be told.
bool Emitter::isShared(const Place& place) const {
  return place.storage == spv::StorageClassWorkgroup || (place.storage == spv::StorageClassStorageBuffer && has_storage_barrier_);
}

spv::Id Emitter::loadFrom(const Place& place) {
  const spv::Id pointer = address(place);
  if (!has_matrices_ || !isShared(place)) return builder_.createLoad(pointer, spv::NoPrecision);
  return builder_.createOp(spv::OpLoad, makeType(place.pointee, place.laid_out),
                           std::vector<spv::IdImmediate>{{true, pointer}, {false, kShared}});
}

void Emitter::storeTo(const Place& place, spv::Id value) {
  const spv::Id pointer = address(place);
  if (!has_matrices_ || !isShared(place)) return builder_.createStore(value, pointer);
  builder_.createNoResultOp(spv::OpStore, std::vector<spv::IdImmediate>{{true, pointer}, {true, value}, {false, kShared}});
}

}  // namespace lockstep::vulkan
