// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/hidden_rounds.h"

#include "ir/kernel/inline_calls.h"

namespace lockstep::kernel {
namespace {

/// 32 bits times 32 bits at each of kMaxTypeNesting levels could overflow; no device has memory for what is beyond this.
constexpr uint64_t kMost = uint64_t{1} << 40;

uint64_t loopOf(uint64_t count, uint64_t body) { return std::min(kMost, std::min(kMost, count) * std::min(kMost, 1 + body) + 1); }

/// Of an array or struct in a buffer that is moved member by member.
uint64_t moved(const TypeTable& types, TypeId id) {
  const Type& type = types[id];
  uint64_t rounds = 0;
  if (type.kind == TypeKind::Array) {
    const uint64_t element = moved(types, type.element);
    return type.count > kUnrolledElements ? loopOf(type.count, element) : type.count * element;
  }
  if (type.kind == TypeKind::Struct) {
    for (const Member& member : type.members) rounds = std::min(kMost, rounds + moved(types, member.type));
  }
  return rounds;
}

uint64_t cleared(const TypeTable& types, TypeId id) {
  const Type& type = types[id];
  if (types.sizeOf(id) <= kStoredAtOnce) return 0;
  if (type.kind == TypeKind::Array) return loopOf(type.count, cleared(types, type.element));
  uint64_t rounds = 0;
  if (type.kind == TypeKind::Struct) {
    for (const Member& member : type.members) rounds = std::min(kMost, rounds + cleared(types, member.type));
  }
  return rounds;
}

bool isNull(const Module& module, ValueId id) {
  const Value& value = module[id];
  const bool scalar = module.types[value.type].kind == TypeKind::Scalar;
  return value.kind == ValueKind::Constant && (scalar ? value.bits == 0 : value.elements.empty());
}

bool hasLayout(AddressSpace space) { return isBound(space) || space == AddressSpace::Immediate; }

}  // namespace

uint64_t hiddenRounds(const Module& module, const Instruction& instruction) {
  const Instruction& x = instruction;
  if (x.op == Op::Call && returnsFromInside(module, module.functions[x.immediate])) {
    // Inlined it has a variable for its result.
    return cleared(module.types, module.functions[x.immediate].return_type);
  }
  if (x.op == Op::Var) return x.operands.empty() || isNull(module, x.operands[0]) ? cleared(module.types, module.types[x.type].element) : 0;
  if (x.op != Op::Load && x.op != Op::Store) return 0;
  const Type& pointer = module.types[module[x.operands[0]].type];
  return hasLayout(pointer.space) ? moved(module.types, pointer.element) : 0;
}

uint64_t hiddenRounds(const Module& module, const Function& entry) {
  const std::array<uint32_t, 3> size = *entry.workgroup_size;
  const uint64_t invocations = uint64_t{size[0]} * size[1] * size[2];
  uint64_t rounds = 0;
  for (const GlobalVariable& global : module.globals) {
    const Type& type = module.types[global.type];
    if (global.space == AddressSpace::Workgroup && global.zero_initialized && type.kind == TypeKind::Array)
      rounds += loopOf((type.count + invocations - 1) / invocations, 0);
    if (global.space == AddressSpace::Private && !global.initializer.valid()) rounds += cleared(module.types, global.type);
  }
  return rounds;
}

}  // namespace lockstep::kernel
