// SPDX-License-Identifier: Apache-2.0
// Types, constants and module-scope variables. A type exists twice: as a value (no layout) and inside a buffer (WGSL's offsets and
// strides), because Vulkan allows explicit layouts in buffers only.
#include <algorithm>
#include <bit>
#include <set>

#include "backends/vulkan/spirv_emitter.h"
#include "ir/support/narrow_float.h"

namespace lockstep::vulkan {

using kernel::AddressSpace;
using kernel::Scalar;
using kernel::Type;
using kernel::TypeId;
using kernel::TypeKind;
using kernel::ValueId;

namespace {

/// What an entry point uses.
class Reach {
 public:
  explicit Reach(const kernel::Module& module) : module_(module) {}
  void visit(kernel::BlockId block) {
    for (kernel::InstructionId id : module_[block].instructions) visit(module_[id]);
  }
  std::set<uint32_t> globals;
  bool storage_barrier = false;

 private:
  void visit(const kernel::Instruction& in) {
    for (ValueId operand : in.operands) {
      if (module_[operand].kind == kernel::ValueKind::Variable) globals.insert(module_[operand].index);
    }
    if (in.op == kernel::Op::StorageBarrier) storage_barrier = true;
    for (kernel::BlockId block : in.blocks) visit(block);
  }
  const kernel::Module& module_;
};

/// Where the builder keeps its constants. Its own functions look for an equal one among all of the type, in time that is quadratic.
struct BuilderParts : spv::Builder {
  static auto constants() { return &BuilderParts::constantsTypesGlobals; }
  static auto instructions() { return &BuilderParts::module; }
};

spv::BuiltIn builtInOf(kernel::Builtin builtin) {
  switch (builtin) {
    case kernel::Builtin::None:
      break;
    case kernel::Builtin::LocalInvocationId:
      return spv::BuiltInLocalInvocationId;
    case kernel::Builtin::LocalInvocationIndex:
      return spv::BuiltInLocalInvocationIndex;
    case kernel::Builtin::GlobalInvocationId:
      return spv::BuiltInGlobalInvocationId;
    case kernel::Builtin::WorkgroupId:
      return spv::BuiltInWorkgroupId;
    case kernel::Builtin::NumWorkgroups:
      return spv::BuiltInNumWorkgroups;
    case kernel::Builtin::SubgroupSize:
      return spv::BuiltInSubgroupSize;
    case kernel::Builtin::SubgroupInvocationId:
      return spv::BuiltInSubgroupLocalInvocationId;
    case kernel::Builtin::SubgroupId:
      return spv::BuiltInSubgroupId;
    case kernel::Builtin::NumSubgroups:
      return spv::BuiltInNumSubgroups;
    case kernel::Builtin::WorkgroupIndex:
    case kernel::Builtin::GlobalInvocationIndex:
      internalError("a builtin that SPIR-V does not have is computed from others");
  }
  internalError("an entry point parameter without a builtin");
}

}  // namespace

spv::Id Emitter::scalarType(Scalar scalar) {
  switch (scalar) {
    case Scalar::Bool:
      return builder_.makeBoolType();
    case Scalar::I32:
      return builder_.makeIntType(32);
    case Scalar::U32:
      return builder_.makeUintType(32);
    case Scalar::F32:
      return builder_.makeFloatType(32);
    case Scalar::F16:
      builder_.addCapability(spv::CapabilityFloat16);
      return builder_.makeFloatType(16);
    case Scalar::BF16:
      break;
  }
  internalError("scalar out of range");
}

spv::Id Emitter::lanesType(Scalar scalar, uint32_t width) {
  spv::Id element = scalarType(scalar);
  return width == 1 ? element : builder_.makeVectorType(element, static_cast<int>(width));
}

spv::Id Emitter::makeType(TypeId id, bool laid_out) {
  auto known = made_types_.find({id.value, laid_out});
  if (known != made_types_.end()) return known->second;
  const Type type = types_[id];
  spv::Id made = spv::NoType;
  switch (type.kind) {
    case TypeKind::Void:
      made = builder_.makeVoidType();
      break;
    case TypeKind::Scalar:
    case TypeKind::Atomic:
      made = scalarType(type.scalar);
      break;
    case TypeKind::Vector:
      made = lanesType(type.scalar, type.rows);
      break;
    case TypeKind::Matrix:
      made = builder_.makeMatrixType(scalarType(type.scalar), type.columns, type.rows);
      break;
    case TypeKind::Array: {
      spv::Id element = makeType(type.element, laid_out);
      // A stride keeps spv::Builder from giving back an array of the other layout; it writes no decoration itself.
      made = type.count == 0 ? builder_.makeRuntimeArray(element)
                             : builder_.makeArrayType(element, u32(type.count), static_cast<int>(types_.strideOf(id)));
      if (laid_out) builder_.addDecoration(made, spv::DecorationArrayStride, static_cast<int>(types_.strideOf(id)));
      break;
    }
    case TypeKind::Struct:
      made = makeStruct(type, laid_out);
      break;
    case TypeKind::SubgroupMatrix:
      made = makeMatrixType(type);
      break;
    case TypeKind::Pointer:
      internalError("a pointer used as a value");
  }
  made_types_[{id.value, laid_out}] = made;
  return made;
}

spv::Id Emitter::makeStruct(const Type& type, bool laid_out) {
  std::vector<spv::Id> members;
  for (const kernel::Member& member : type.members) members.push_back(makeType(member.type, laid_out));
  spv::Id made = builder_.makeStructType(members, plainName(type.name).c_str());
  for (uint32_t i = 0; i < type.members.size(); ++i) {
    builder_.addMemberName(made, static_cast<int>(i), plainName(type.members[i].name).c_str());
    if (!laid_out) continue;
    builder_.addMemberDecoration(made, i, spv::DecorationOffset, static_cast<int>(type.members[i].offset));
    decorateMatrixMember(made, i, type.members[i].type);
  }
  return made;
}

void Emitter::decorateMatrixMember(spv::Id structure, uint32_t member, TypeId type) {
  while (types_[type].kind == TypeKind::Array) type = types_[type].element;
  if (types_[type].kind != TypeKind::Matrix) return;
  builder_.addMemberDecoration(structure, member, spv::DecorationColMajor);
  builder_.addMemberDecoration(structure, member, spv::DecorationMatrixStride, static_cast<int>(types_.columnStride(type)));
}

spv::Id Emitter::makeScalarConstant(Scalar scalar, uint32_t bits) {
  switch (scalar) {
    case Scalar::Bool:
      return builder_.makeBoolConstant(bits != 0);
    case Scalar::I32:
    case Scalar::U32:
    case Scalar::F32:
    case Scalar::BF16:
      break;
    case Scalar::F16:
      builder_.addCapability(spv::CapabilityFloat16);
      return builder_.makeFloat16Constant(halfToFloat(static_cast<uint16_t>(bits)));
  }
  const spv::Id type = scalarType(scalar);
  auto made = std::make_unique<spv::Instruction>(builder_.getUniqueId(), type, spv::OpConstant);
  made->addImmediateOperand(bits);
  return addConstant(std::move(made));
}

spv::Id Emitter::constant(ValueId id) {
  spv::Id& known = ids_[id.index()];
  if (known != spv::NoResult) return known;
  const kernel::Value& value = module_[id];
  const Type& type = types_[value.type];
  spv::Id made = spv::NoResult;
  if (type.kind == TypeKind::Scalar) {
    made = scalarConstant(type.scalar, value.bits);
  } else if (type.kind == TypeKind::SubgroupMatrix) {
    made = zeroMatrix(value.type);
  } else if (value.elements.empty()) {
    made = builder_.makeNullConstant(valueType(value.type));
  } else {
    std::vector<spv::Id> elements;
    for (ValueId element : value.elements) elements.push_back(constant(element));
    made = compositeConstant(valueType(value.type), elements);
  }
  return ids_[id.index()] = made;
}

spv::Id Emitter::compositeConstant(spv::Id type, const std::vector<spv::Id>& parts) {
  spv::Id& known = composites_[{type, parts}];
  if (known != spv::NoResult) return known;
  auto made = std::make_unique<spv::Instruction>(builder_.getUniqueId(), type, spv::OpConstantComposite);
  for (spv::Id part : parts) made->addIdOperand(part);
  return known = addConstant(std::move(made));
}

spv::Id Emitter::addConstant(std::unique_ptr<spv::Instruction> constant) {
  auto& all = builder_.*BuilderParts::constants();
  all.push_back(std::move(constant));
  (builder_.*BuilderParts::instructions()).mapInstruction(all.back().get());
  return all.back()->getResultId();
}

spv::Id Emitter::lanesConstant(Scalar scalar, uint32_t bits, uint32_t width) {
  const auto known = lanes_.find({scalar, width, bits});
  if (known != lanes_.end()) return known->second;
  const spv::Id made = width == 1 ? makeScalarConstant(scalar, bits)
                                  : compositeConstant(lanesType(scalar, width), std::vector<spv::Id>(width, scalarConstant(scalar, bits)));
  lanes_[{scalar, width, bits}] = made;
  return made;
}

spv::Id Emitter::floatLanes(Scalar scalar, float value, uint32_t width) {
  if (scalar != Scalar::F16) return lanesConstant(scalar, std::bit_cast<uint32_t>(value), width);
  spv::Id lane = builder_.makeFloat16Constant(value);
  return width == 1 ? lane : compositeConstant(lanesType(scalar, width), std::vector<spv::Id>(width, lane));
}

void Emitter::declareBuffer(const kernel::GlobalVariable& global) {
  const bool immediate = global.space == AddressSpace::Immediate;
  const spv::StorageClass storage = immediate ? spv::StorageClassPushConstant : spv::StorageClassStorageBuffer;
  bool own_block = types_[global.type].kind == TypeKind::Struct && types_.isRuntimeSized(global.type);
  if (immediate && kernel::contains(types_, global.type, Scalar::F16)) builder_.addCapability(spv::CapabilityStoragePushConstant16);
  spv::Id block = bufferType(global.type);
  // A struct with a runtime-sized array may not be nested, so it is the block itself; anything else is wrapped.
  if (!own_block) {
    block = builder_.makeStructType({block}, plainName(global.name + "_block").c_str());
    builder_.addMemberDecoration(block, 0, spv::DecorationOffset, 0);
    decorateMatrixMember(block, 0, global.type);
  }
  if (!own_block || own_blocks_.insert(global.type.value).second) builder_.addDecoration(block, spv::DecorationBlock);
  spv::Id variable = builder_.createVariable(spv::NoPrecision, storage, block, plainName(global.name).c_str());
  if (!immediate) {
    builder_.addDecoration(variable, spv::DecorationDescriptorSet, static_cast<int>(global.group));
    builder_.addDecoration(variable, spv::DecorationBinding, static_cast<int>(global.binding));
  }
  bool written = global.space == AddressSpace::Storage && global.access != kernel::Access::Read;
  if (!written && !immediate) builder_.addDecoration(variable, spv::DecorationNonWritable);
  // Without Coherent a storageBarrier does not cover plain accesses in the GLSL450 model; it costs bandwidth, so only where needed.
  if (written && has_storage_barrier_ && !has_matrices_) builder_.addDecoration(variable, spv::DecorationCoherent);
  Place place{.base = variable, .storage = storage, .chain = {}, .pointee = global.type, .laid_out = true};
  if (!own_block) place.chain.push_back(u32(0));
  places_[global.value.index()] = std::move(place);
}

void Emitter::declareGlobals() {
  Reach reach(module_);
  reach.visit(entry_.body);
  has_storage_barrier_ = reach.storage_barrier;
  for (uint32_t index : reach.globals) {
    const kernel::GlobalVariable& global = module_.globals[index];
    if (kernel::isBound(global.space) || global.space == AddressSpace::Immediate) {
      declareBuffer(global);
      continue;
    }
    bool workgroup = global.space == AddressSpace::Workgroup;
    spv::StorageClass storage = workgroup ? spv::StorageClassWorkgroup : spv::StorageClassPrivate;
    spv::Id type = valueType(global.type);
    spv::Id initial = spv::NoResult;
    if (!workgroup && global.initializer.valid()) initial = constant(global.initializer);
    if (!workgroup && !global.initializer.valid() && !isLarge(global.type)) initial = builder_.makeNullConstant(type);
    if (workgroup && global.zero_initialized && options_.zero_initialize_workgroup) initial = builder_.makeNullConstant(type);
    spv::Id variable = builder_.createVariable(spv::NoPrecision, storage, type, plainName(global.name).c_str(), initial);
    places_[global.value.index()] = Place{.base = variable, .storage = storage, .chain = {}, .pointee = global.type};
  }
}

spv::Id Emitter::inputVariable(kernel::Builtin builtin) {
  spv::Id& variable = inputs_[builtin];
  if (variable != spv::NoResult) return variable;
  spv::Id type = lanesType(Scalar::U32, kernel::isVector(builtin) ? 3 : 1);
  variable = builder_.createVariable(spv::NoPrecision, spv::StorageClassInput, type, std::string(kernel::toString(builtin)).c_str());
  builder_.addDecoration(variable, spv::DecorationBuiltIn, static_cast<int>(builtInOf(builtin)));
  if (kernel::needsSubgroups(builtin)) builder_.addCapability(spv::CapabilityGroupNonUniform);
  entry_point_->addIdOperand(variable);
  return variable;
}

spv::Id Emitter::input(kernel::Builtin builtin) {
  if (is_row_ && builtin == kernel::Builtin::LocalInvocationId) return placeInRow();
  if (is_row_ && builtin == kernel::Builtin::GlobalInvocationId) {
    const std::array<uint32_t, 3> size = *entry_.workgroup_size;
    const spv::Id type = lanesType(Scalar::U32, 3);
    const spv::Id extent = builder_.makeCompositeConstant(type, {u32(size[0]), u32(size[1]), u32(size[2])});
    const spv::Id corner = builder_.createBinOp(spv::OpIMul, type, input(kernel::Builtin::WorkgroupId), extent);
    return builder_.createBinOp(spv::OpIAdd, type, corner, placeInRow());
  }
  return builder_.createLoad(inputVariable(builtin), spv::NoPrecision);
}

spv::Id Emitter::placeInRow() {
  const std::array<uint32_t, 3> size = *entry_.workgroup_size;
  const spv::Id type = scalarType(Scalar::U32), index = input(kernel::Builtin::LocalInvocationIndex);
  const spv::Id rows = builder_.createBinOp(spv::OpUDiv, type, index, u32(size[0]));
  const spv::Id x = builder_.createBinOp(spv::OpUMod, type, index, u32(size[0]));
  const spv::Id y = builder_.createBinOp(spv::OpUMod, type, rows, u32(size[1]));
  const spv::Id z = builder_.createBinOp(spv::OpUDiv, type, rows, u32(size[1]));
  return builder_.createCompositeConstruct(lanesType(Scalar::U32, 3), {x, y, z});
}

/// The place of `id` in a grid of num_workgroups cells of this size, x first.
spv::Id Emitter::gridIndex(spv::Id id, const std::array<uint32_t, 3>& cell) {
  spv::Id type = scalarType(Scalar::U32), groups = input(kernel::Builtin::NumWorkgroups);
  spv::Id index = builder_.createCompositeExtract(id, type, 2);
  for (uint32_t k = 2; k-- > 0;) {
    spv::Id extent = builder_.createBinOp(spv::OpIMul, type, builder_.createCompositeExtract(groups, type, k), u32(cell[k]));
    index = builder_.createBinOp(spv::OpIMul, type, index, extent);
    index = builder_.createBinOp(spv::OpIAdd, type, index, builder_.createCompositeExtract(id, type, k));
  }
  return index;
}

void Emitter::declareInputs() {
  using kernel::Builtin;
  for (const kernel::Parameter& parameter : entry_.parameters) {
    spv::Id& made = ids_[parameter.value.index()];
    if (parameter.builtin == Builtin::WorkgroupIndex) {
      made = gridIndex(input(Builtin::WorkgroupId), {1, 1, 1});
    } else if (parameter.builtin == Builtin::GlobalInvocationIndex) {
      made = gridIndex(input(Builtin::GlobalInvocationId), *entry_.workgroup_size);
    } else {
      made = input(parameter.builtin);
    }
  }
}

void Emitter::zeroPlace(const Place& place, spv::Id local_index) {
  const Type type = types_[place.pointee];
  const std::array<uint32_t, 3> size = *entry_.workgroup_size;
  uint32_t invocations = size[0] * size[1] * size[2];
  if (type.kind == TypeKind::Array) {
    countedLoop(type.count, invocations, local_index, [&](spv::Id index) {
      Place element = part(place, index, type.element);
      storeTo(element, builder_.makeNullConstant(valueType(type.element)));
    });
    return;
  }
  spv::Id first = builder_.createBinOp(spv::OpIEqual, builder_.makeBoolType(), local_index, u32(0));
  spv::Block &store_block = builder_.makeNewBlock(), &merge = builder_.makeNewBlock();
  selectionMerge(merge);
  builder_.createConditionalBranch(first, &store_block, &merge);
  builder_.setBuildPoint(&store_block);
  storeTo(place, builder_.makeNullConstant(valueType(place.pointee)));
  builder_.createBranch(&merge);
  builder_.setBuildPoint(&merge);
}

void Emitter::zeroPrivateMemory() {
  for (const kernel::GlobalVariable& global : module_.globals) {
    const std::optional<Place>& place = places_[global.value.index()];
    const bool is_null = !global.initializer.valid() && isLarge(global.type);
    if (global.space == AddressSpace::Private && place && is_null) clear(*place);
  }
}

void Emitter::zeroWorkgroupMemory() {
  if (options_.zero_initialize_workgroup) return;
  spv::Id local_index = spv::NoResult;
  for (const kernel::GlobalVariable& global : module_.globals) {
    const std::optional<Place>& place = places_[global.value.index()];
    if (global.space != AddressSpace::Workgroup || !global.zero_initialized || !place) continue;
    if (local_index == spv::NoResult) {
      local_index = input(kernel::Builtin::LocalInvocationIndex);
    }
    zeroPlace(*place, local_index);
  }
  if (local_index != spv::NoResult) controlBarrier(false);
}

}  // namespace lockstep::vulkan
