// SPDX-License-Identifier: Apache-2.0
// Places, loads and stores, atomics and barriers. Aggregates in buffers are moved member by member: their types differ from the value
// types, and a store of the whole could write padding bytes that belong to somebody else.
#include <algorithm>

#include "backends/vulkan/spirv_emitter.h"
#include "ir/kernel/hidden_rounds.h"
#include "ir/kernel/queries.h"

namespace lockstep::vulkan {

using kernel::Instruction;
using kernel::kStoredAtOnce;
using kernel::kUnrolledElements;
using kernel::Op;
using kernel::Scalar;
using kernel::Type;
using kernel::TypeId;
using kernel::TypeKind;
using kernel::ValueId;

namespace {

const uint32_t kWorkgroupBarrier = spv::MemorySemanticsAcquireReleaseMask | spv::MemorySemanticsWorkgroupMemoryMask;
const uint32_t kStorageBarrier = spv::MemorySemanticsAcquireReleaseMask | spv::MemorySemanticsUniformMemoryMask;

struct AtomicRow {
  Op op;
  spv::Op of_signed, of_unsigned;
};
constexpr AtomicRow kAtomics[] = {
    {Op::AtomicAdd, spv::OpAtomicIAdd, spv::OpAtomicIAdd}, {Op::AtomicSub, spv::OpAtomicISub, spv::OpAtomicISub},
    {Op::AtomicMax, spv::OpAtomicSMax, spv::OpAtomicUMax}, {Op::AtomicMin, spv::OpAtomicSMin, spv::OpAtomicUMin},
    {Op::AtomicAnd, spv::OpAtomicAnd, spv::OpAtomicAnd},   {Op::AtomicOr, spv::OpAtomicOr, spv::OpAtomicOr},
    {Op::AtomicXor, spv::OpAtomicXor, spv::OpAtomicXor},   {Op::AtomicExchange, spv::OpAtomicExchange, spv::OpAtomicExchange},
};

}  // namespace

spv::Id Emitter::address(const Place& place) {
  if (place.chain.empty()) return place.base;
  spv::Id type = builder_.makePointer(place.storage, makeType(place.pointee, place.laid_out));
  std::vector<spv::Id> operands{place.base};
  operands.insert(operands.end(), place.chain.begin(), place.chain.end());
  return builder_.createOp(spv::OpAccessChain, type, operands);
}

Place Emitter::part(const Place& place, spv::Id index, TypeId element, uint32_t literal) const {
  Place made = place;
  made.chain.push_back(index);
  made.pointee = element;
  made.last_member = literal;
  return made;
}

spv::Id Emitter::load(const Place& place) {
  const Type type = types_[place.pointee];
  if (place.laid_out && type.kind == TypeKind::Array) return loadArray(place);
  if (!place.laid_out || type.kind != TypeKind::Struct) return loadFrom(place);
  std::vector<spv::Id> members;
  for (uint32_t i = 0; i < type.members.size(); ++i) members.push_back(load(part(place, u32(i), type.members[i].type, i)));
  return builder_.createCompositeConstruct(valueType(place.pointee), members);
}

spv::Id Emitter::loadArray(const Place& place) {
  const Type type = types_[place.pointee];
  if (type.count <= kUnrolledElements) {
    std::vector<spv::Id> elements;
    for (uint32_t i = 0; i < type.count; ++i) elements.push_back(load(part(place, u32(i), type.element)));
    return builder_.createCompositeConstruct(valueType(place.pointee), elements);
  }
  Place copy = localVariable(place.pointee, "copy");
  countedLoop(type.count, 1, u32(0),
              [&](spv::Id index) { store(part(copy, index, type.element), load(part(place, index, type.element))); });
  return builder_.createLoad(copy.base, spv::NoPrecision);
}

void Emitter::store(const Place& place, spv::Id value) {
  const Type type = types_[place.pointee];
  if (!place.laid_out || type.isScalarOrVector()) {
    storeTo(place, value);
    return;
  }
  if (type.kind == TypeKind::Array) return storeArray(place, value);
  if (type.kind == TypeKind::Struct) {
    for (uint32_t i = 0; i < type.members.size(); ++i) {
      TypeId member = type.members[i].type;
      store(part(place, u32(i), member, i), builder_.createCompositeExtract(value, valueType(member), i));
    }
    return;
  }
  TypeId column = types_.vector(type.scalar, type.rows);
  for (uint32_t i = 0; i < type.columns; ++i) {
    store(part(place, u32(i), column), builder_.createCompositeExtract(value, valueType(column), i));
  }
}

void Emitter::storeArray(const Place& place, spv::Id value) {
  const Type type = types_[place.pointee];
  if (type.count <= kUnrolledElements) {
    for (uint32_t i = 0; i < type.count; ++i) {
      store(part(place, u32(i), type.element), builder_.createCompositeExtract(value, valueType(type.element), i));
    }
    return;
  }
  Place copy = localVariable(place.pointee, "copy");
  builder_.createStore(value, copy.base);
  countedLoop(type.count, 1, u32(0),
              [&](spv::Id index) { store(part(place, index, type.element), load(part(copy, index, type.element))); });
}

bool Emitter::isLarge(TypeId type) const { return types_.sizeOf(type) > kStoredAtOnce; }

void Emitter::clear(const Place& place) {
  const Type type = types_[place.pointee];
  if (kernel::contains(types_, place.pointee, TypeKind::SubgroupMatrix)) {
    // Element by element, so that drivers can keep each matrix in registers.
    for (uint32_t i = 0; type.kind == TypeKind::Array && i < type.count; ++i) clear(part(place, u32(i), type.element));
    if (type.kind == TypeKind::SubgroupMatrix) builder_.createStore(zeroMatrix(place.pointee), address(place));
  } else if (isLarge(place.pointee) && type.kind == TypeKind::Array) {
    countedLoop(type.count, 1, u32(0), [&](spv::Id index) { clear(part(place, index, type.element)); });
  } else if (isLarge(place.pointee) && type.kind == TypeKind::Struct) {
    for (uint32_t i = 0; i < type.members.size(); ++i) clear(part(place, u32(i), type.members[i].type, i));
  } else {
    storeTo(place, builder_.makeNullConstant(valueType(place.pointee)));
  }
}

spv::Id Emitter::arrayLength(const Place& place) {
  std::vector<spv::IdImmediate> operands{{true, place.base}, {false, place.last_member}};
  return builder_.createOp(spv::OpArrayLength, scalarType(Scalar::U32), operands);
}

Place Emitter::localVariable(TypeId type, const std::string& name) {
  spv::Id variable = builder_.createVariable(spv::NoPrecision, spv::StorageClassFunction, valueType(type));
  addName(variable, name);
  return {.base = variable, .storage = spv::StorageClassFunction, .chain = {}, .pointee = type};
}

bool Emitter::isNull(ValueId id) const {
  const kernel::Value& value = module_[id];
  const bool scalar = types_[value.type].kind == TypeKind::Scalar;
  return value.kind == kernel::ValueKind::Constant && (scalar ? value.bits == 0 : value.elements.empty());
}

std::optional<uint32_t> Emitter::literal(ValueId id) const { return kernel::constantBits(module_, id); }

void Emitter::emitAccess(const Instruction& instruction) {
  Place made = place(instruction.operands[0]);
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    ValueId index = instruction.operands[i];
    const Type type = types_[made.pointee];
    std::optional<uint32_t> known = literal(index);
    if (type.kind == TypeKind::Struct) {
      made = part(made, u32(*known), type.members[*known].type, *known);
      continue;
    }
    // guardAccesses() has seen to it that the index is in range.
    TypeId element = types_.elementOf(made.pointee);
    made = part(made, known ? u32(*known) : value(index), element);
  }
  places_[instruction.result.index()] = std::move(made);
}

void Emitter::emitMemory(const Instruction& in) {
  if (in.op == Op::Access) return emitAccess(in);
  if (in.op == Op::Load) return define(in, load(place(in.operands[0])));
  if (in.op == Op::Store) return store(place(in.operands[0]), value(in.operands[1]));
  if (in.op == Op::ArrayLength) return define(in, arrayLength(place(in.operands[0])));
  if (in.op != Op::Var) internalError("an op of group Memory that the SPIR-V emitter does not know");
  // WGSL initialises at each execution of the declaration; an initializer of OpVariable would run once.
  TypeId type = types_[in.type].element;
  Place made = localVariable(type, plainName(module_[in.result].name));
  const bool is_null = in.operands.empty() || isNull(in.operands[0]);
  if (is_null) clear(made);
  if (!is_null) builder_.createStore(value(in.operands[0]), made.base);
  places_[in.result.index()] = std::move(made);
}

void Emitter::emitAtomic(const Instruction& in) {
  const Place& target = place(in.operands[0]);
  const Type atomic = types_[target.pointee];
  spv::Id type = scalarType(atomic.scalar), pointer = address(target);
  // The Vulkan memory model has the scope of a device as a feature of its own; a queue family is all that runs a program.
  const spv::Scope everywhere = has_matrices_ ? spv::ScopeQueueFamily : spv::ScopeDevice;
  spv::Id scope = u32(target.storage == spv::StorageClassWorkgroup ? spv::ScopeWorkgroup : everywhere);
  spv::Id relaxed = u32(spv::MemorySemanticsMaskNone);
  if (in.op == Op::AtomicLoad) return define(in, builder_.createOp(spv::OpAtomicLoad, type, {pointer, scope, relaxed}));
  if (in.op == Op::AtomicStore) {
    builder_.createNoResultOp(spv::OpAtomicStore, std::vector<spv::Id>{pointer, scope, relaxed, value(in.operands[1])});
    return;
  }
  if (in.op == Op::AtomicCompareExchange) {
    spv::Id compare = value(in.operands[1]), replacement = value(in.operands[2]);
    spv::Id old = builder_.createOp(spv::OpAtomicCompareExchange, type, {pointer, scope, relaxed, relaxed, replacement, compare});
    spv::Id exchanged = builder_.createBinOp(spv::OpIEqual, builder_.makeBoolType(), old, compare);
    return define(in, builder_.createCompositeConstruct(valueType(in.type), {old, exchanged}));
  }
  const auto* row = std::find_if(std::begin(kAtomics), std::end(kAtomics), [&](const AtomicRow& r) { return r.op == in.op; });
  if (row == std::end(kAtomics)) internalError("an atomic op that the SPIR-V emitter does not know");
  spv::Op op = atomic.scalar == Scalar::I32 ? row->of_signed : row->of_unsigned;
  define(in, builder_.createOp(op, type, {pointer, scope, relaxed, value(in.operands[1])}));
}

void Emitter::controlBarrier(bool storage) {
  uint32_t semantics = storage ? kStorageBarrier : kWorkgroupBarrier;
  if (has_matrices_) semantics |= spv::MemorySemanticsMakeAvailableMask | spv::MemorySemanticsMakeVisibleMask;
  builder_.createControlBarrier(spv::ScopeWorkgroup, spv::ScopeWorkgroup, static_cast<spv::MemorySemanticsMask>(semantics));
}

void Emitter::emitBarrier(const Instruction& in) {
  controlBarrier(in.op == Op::StorageBarrier);
  if (in.op != Op::WorkgroupUniformLoad) return;
  const Place& source = place(in.operands[0]);
  if (types_[source.pointee].kind == TypeKind::Atomic) {
    spv::Id scope = u32(spv::ScopeWorkgroup), relaxed = u32(spv::MemorySemanticsMaskNone);
    define(in, builder_.createOp(spv::OpAtomicLoad, scalarType(types_[source.pointee].scalar), {address(source), scope, relaxed}));
  } else {
    define(in, load(source));
  }
  controlBarrier(false);
}

}  // namespace lockstep::vulkan
