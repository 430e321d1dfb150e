// SPDX-License-Identifier: Apache-2.0
// Row by row work on subgroup matrices, and results that become operands: in registers, by the device's own layout.
#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::Instruction;
using kernel::Op;

/// What each row comes to, in place of all of its elements: first of those that an invocation holds, then across the invocations that hold
/// the others.
spv::Id Emitter::reduceRows(const Instruction& in) {
  const MatrixLayout& layout = *findLayout(options_, typeOf(in.operands[0]));
  const std::vector<uint32_t> masks = *lanesOfRow(layout);
  const spv::Id scalar = scalarType(layout.type.scalar);
  const auto both = [&](spv::Id a, spv::Id b) {
    return in.op == Op::SubgroupMatrixRowMax ? ext(scalar, GLSLstd450FMax, {a, b}) : builder_.createBinOp(spv::OpFAdd, scalar, a, b);
  };
  builder_.addCapability(spv::CapabilityGroupNonUniform);
  builder_.addCapability(spv::CapabilityGroupNonUniformShuffle);
  const uint32_t held = uint32_t{layout.type.rows} * layout.type.columns / layout.lanes;
  std::map<uint32_t, spv::Id> of_row;  // by the row of lane 0
  for (uint32_t e = 0; e < held; ++e) {
    const spv::Id element = builder_.createCompositeExtract(value(in.operands[0]), scalar, e);
    const auto [found, is_first] = of_row.try_emplace(layout.at(0, e).row, element);
    if (!is_first) found->second = both(found->second, element);
  }
  for (auto& [row, reduced] : of_row) {
    for (const uint32_t mask : masks) {
      const std::vector<spv::IdImmediate> operands{{true, u32(spv::ScopeSubgroup)}, {true, reduced}, {true, u32(mask)}};
      reduced = both(reduced, builder_.createOp(spv::OpGroupNonUniformShuffleXor, scalar, operands));
    }
  }
  const Place made = localVariable(in.type, "rows");
  const kernel::TypeId element = types_.elementOf(in.type);
  for (uint32_t e = 0; e < held; ++e) builder_.createStore(of_row.at(layout.at(0, e).row), address(part(made, u32(e), element)));
  return builder_.createLoad(made.base, spv::NoPrecision);
}

/// Element by element: both matrices have one layout. NVIDIA's driver cuts off where the result is bf16.
spv::Id Emitter::convertMatrix(const Instruction& in) {
  const MatrixLayout& layout = *findLayout(options_, typeOf(in.operands[0]));
  const spv::Id from = scalarType(layout.type.scalar), to = matrixComponent(types_[in.type].scalar);
  const spv::Id pointer = builder_.makePointer(spv::StorageClassFunction, to);
  const Place made = localVariable(in.type, "converted");
  for (uint32_t e = 0; e < uint32_t{layout.type.rows} * layout.type.columns / layout.lanes; ++e) {
    const spv::Id element = builder_.createCompositeExtract(value(in.operands[0]), from, e);
    const spv::Id rounded = builder_.createUnaryOp(spv::OpFConvert, to, element);
    const spv::Id place = builder_.createOp(spv::OpAccessChain, pointer, std::vector<spv::Id>{made.base, u32(e)});
    builder_.createStore(rounded, place);
  }
  return builder_.createLoad(made.base, spv::NoPrecision);
}

}  // namespace lockstep::vulkan
