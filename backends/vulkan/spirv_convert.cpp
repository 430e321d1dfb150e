// SPDX-License-Identifier: Apache-2.0
// Conversions between types and the parts of composite values.
#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::Instruction;
using kernel::Scalar;
using kernel::Type;
using kernel::TypeKind;

namespace {

bool isFloat(Scalar scalar) { return scalar == Scalar::F32 || scalar == Scalar::F16; }

struct Bounds {
  float low, high;
};
/// The largest values of the source type that the integer type can hold: outside of them SPIR-V's conversion is undefined.
Bounds boundsOf(Scalar from, Scalar to) {
  if (from == Scalar::F16) return {to == Scalar::I32 ? -65504.0f : 0.0f, 65504.0f};
  return to == Scalar::I32 ? Bounds{-2147483648.0f, 2147483520.0f} : Bounds{0.0f, 4294967040.0f};
}

}  // namespace

spv::Id Emitter::convertLanes(spv::Id x, Scalar from, Scalar to, uint32_t width) {
  if (from == to) return x;
  spv::Id type = lanesType(to, width);
  if (from == Scalar::Bool) {
    spv::Id one = isFloat(to) ? floatLanes(to, 1.0f, width) : lanesConstant(to, 1, width);
    spv::Id zero = isFloat(to) ? floatLanes(to, 0.0f, width) : lanesConstant(to, 0, width);
    return builder_.createTriOp(spv::OpSelect, type, x, one, zero);
  }
  if (to == Scalar::Bool) {
    spv::Id zero = isFloat(from) ? floatLanes(from, 0.0f, width) : lanesConstant(from, 0, width);
    return builder_.createBinOp(isFloat(from) ? spv::OpFUnordNotEqual : spv::OpINotEqual, type, x, zero);
  }
  if (isFloat(from) && isFloat(to)) return builder_.createUnaryOp(spv::OpFConvert, type, x);
  if (isFloat(from)) {
    Bounds bounds = boundsOf(from, to);
    spv::Id clamped =
        ext(lanesType(from, width), GLSLstd450NClamp, {x, floatLanes(from, bounds.low, width), floatLanes(from, bounds.high, width)});
    return builder_.createUnaryOp(to == Scalar::I32 ? spv::OpConvertFToS : spv::OpConvertFToU, type, clamped);
  }
  if (isFloat(to)) return builder_.createUnaryOp(from == Scalar::I32 ? spv::OpConvertSToF : spv::OpConvertUToF, type, x);
  return builder_.createUnaryOp(spv::OpBitcast, type, x);
}

spv::Id Emitter::emitConvert(const Instruction& in) {
  const Type from = typeOf(in.operands[0]), to = types_[in.type];
  spv::Id x = value(in.operands[0]);
  if (to.kind != TypeKind::Matrix) return convertLanes(x, from.scalar, to.scalar, to.width());
  std::vector<spv::Id> columns;
  for (uint32_t i = 0; i < to.columns; ++i) {
    spv::Id column = builder_.createCompositeExtract(x, lanesType(from.scalar, from.rows), i);
    columns.push_back(convertLanes(column, from.scalar, to.scalar, to.rows));
  }
  return builder_.createCompositeConstruct(valueType(in.type), columns);
}

spv::Id Emitter::emitBitcast(const Instruction& in) {
  spv::Id x = value(in.operands[0]), type = valueType(in.type);
  return module_[in.operands[0]].type == in.type ? x : builder_.createUnaryOp(spv::OpBitcast, type, x);
}

spv::Id Emitter::emitConstruct(const Instruction& in) {
  const Type type = types_[in.type];
  std::vector<spv::Id> parts = values(in.operands);
  if (type.kind == TypeKind::Vector && parts.size() == 1) parts.assign(type.rows, parts[0]);
  if (type.kind == TypeKind::SubgroupMatrix) return builder_.createOp(spv::OpCompositeConstruct, valueType(in.type), parts);
  if (parts.empty()) return builder_.makeNullConstant(valueType(in.type));
  // A value of one scalar is the scalar.
  if (type.kind == TypeKind::Scalar) return parts[0];
  if (type.kind == TypeKind::Matrix && parts.size() == size_t{type.rows} * type.columns) {
    std::vector<spv::Id> columns;
    for (uint32_t i = 0; i < type.columns; ++i) {
      std::vector<spv::Id> lanes(parts.begin() + i * type.rows, parts.begin() + (i + 1) * type.rows);
      columns.push_back(builder_.createCompositeConstruct(lanesType(type.scalar, type.rows), lanes));
    }
    parts = std::move(columns);
  }
  return builder_.createCompositeConstruct(valueType(in.type), parts);
}

// SPIR-V indexes values by literals only (vectors apart), so other indices go through a variable. One that holds a constant table is
// initialised once.
spv::Id Emitter::emitExtract(const Instruction& in) {
  kernel::ValueId source = in.operands[0];
  const Type type = typeOf(source);
  std::optional<uint32_t> known = literal(in.operands[1]);
  if (known) return builder_.createCompositeExtract(value(source), valueType(in.type), *known);
  spv::Id index = value(in.operands[1]);
  if (type.kind == TypeKind::Vector) return builder_.createVectorExtractDynamic(value(source), valueType(in.type), index);
  kernel::TypeId whole = module_[source].type;
  Place copy;
  if (module_[source].kind == kernel::ValueKind::Constant) {
    auto [entry, is_new] = spilled_constants_.try_emplace(source.value);
    if (is_new) {
      spv::Id variable = builder_.createVariable(spv::NoPrecision, spv::StorageClassFunction, valueType(whole), "table", constant(source));
      entry->second = {.base = variable, .storage = spv::StorageClassFunction, .chain = {}, .pointee = whole};
    }
    copy = entry->second;
  } else {
    copy = localVariable(whole, "indexed");
    builder_.createStore(value(source), copy.base);
  }
  return load(part(copy, index, in.type));
}

spv::Id Emitter::emitSwizzle(const Instruction& in) {
  uint32_t width = types_[in.type].width();
  std::vector<unsigned> components;
  for (uint32_t i = 0; i < width; ++i) components.push_back((in.immediate >> (2 * i)) & 3u);
  if (width == 1) return builder_.createCompositeExtract(value(in.operands[0]), valueType(in.type), components[0]);
  std::vector<spv::IdImmediate> operands{{true, value(in.operands[0])}, {true, value(in.operands[0])}};
  for (unsigned component : components) operands.emplace_back(false, component);
  return builder_.createOp(spv::OpVectorShuffle, valueType(in.type), operands);
}

}  // namespace lockstep::vulkan
