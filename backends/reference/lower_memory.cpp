// SPDX-License-Identifier: Apache-2.0
// Kernel IR -> scalar code: variables, pointers, loads, stores and atomics.
#include <algorithm>

#include "backends/reference/lower.h"

namespace lockstep::reference {

using kernel::Op;
using kernel::TypeKind;
using kernel::ValueKind;

uint32_t Lowering::addVariable(std::string name, kernel::TypeId type, Home home) {
  const bool of_lanes = home == Home::Lanes || home == Home::Registers;
  const uint32_t word = of_lanes ? unit : 4;
  const kernel::TypeKind kind = types[type].kind;
  Variable variable{.name = std::move(name),
                    .home = home,
                    .words = (types.sizeOf(type) + word - 1) / word,
                    .unit = word,
                    .is_scalar = kind == kernel::TypeKind::Scalar || kind == kernel::TypeKind::Atomic,
                    .has_halves = hasHalves(types, type)};
  if (home == Home::Lanes) {
    variable.offset = code.lane_words;
    code.lane_words += variable.words;
  } else if (home == Home::Workgroup) {
    variable.offset = code.workgroup_words;
    code.workgroup_words += (variable.words + 3) / 4 * 4;
  } else if (home == Home::Registers) {
    variable.registers.assign(variable.words, UINT32_MAX);
    for (const Component& component : components(type)) variable.registers[component.word] = newRegister(true);
  }
  code.variables.push_back(std::move(variable));
  return static_cast<uint32_t>(code.variables.size() - 1);
}

/// A declaration need not look at the mask: lanes that are away declare the variable again before they use it.
void Lowering::initialise(uint32_t index, kernel::TypeId type, const Operands* initial) {
  const Variable& variable = code.variables[index];
  const std::vector<Component>& layout = components(type);
  if (variable.home == Home::Registers) {
    for (size_t k = 0; k < layout.size(); ++k)
      emit({.kind = StepKind::Declare, .dst = variable.registers[layout[k].word], .a = initial == nullptr ? constant(0) : (*initial)[k]});
    return;
  }
  if (initial != nullptr) {
    store({index, 0, {}, type}, *initial);
    return;
  }
  emit({.kind = StepKind::Memory, .op = Opcode::LaneZero, .access = addAccess({.variable = index})});
}

void Lowering::access(const KernelInstruction& x) {
  Pointer result = pointer(x.operands[0]);
  for (size_t k = 1; k < x.operands.size(); ++k) {
    const kernel::Type whole = types[result.pointee];
    bool is_constant = m[x.operands[k]].kind == ValueKind::Constant;
    Operand index = value(x.operands[k])[0];
    if (whole.kind == TypeKind::Struct) {
      const kernel::Member& member = whole.members[index.value];
      result.offset += member.offset / unit;
      result.pointee = member.type;
      continue;
    }
    const uint32_t scalar_size = whole.scalar == kernel::Scalar::F16 ? 2 : 4;
    uint32_t stride = (whole.kind == TypeKind::Array    ? types.strideOf(result.pointee)
                       : whole.kind == TypeKind::Matrix ? types.columnStride(result.pointee)
                                                        : scalar_size) /
                      unit;
    uint32_t count = types.elementCount(result.pointee);
    // Inside a fixed-size composite a constant index is a plain offset; it is in range, the validator saw to it.
    if (is_constant && count != 0 && index.value < count) {
      result.offset += index.value * stride;
    } else {
      result.indices.push_back({index, stride, count, result.offset});
    }
    result.pointee = types.elementOf(result.pointee);
  }
  pointers[x.result.index()] = std::move(result);
}

uint32_t Lowering::addAccess(Access access) {
  code.accesses.push_back(std::move(access));
  return static_cast<uint32_t>(code.accesses.size() - 1);
}

/// The access record of a pointer. Several run-time indices are folded into one address by Address steps.
uint32_t Lowering::makeAccess(const Pointer& pointer, Part part) {
  const bool half = part == Part::Halves;
  const uint32_t scale = part == Part::Words ? 4 / unit : 1;  // units in one "word" of the access
  Access access{.variable = pointer.variable, .half = half, .offset = pointer.offset / scale};
  if (pointer.indices.size() == 1) {
    const PointerIndex& only = pointer.indices[0];
    access.stride = only.stride / scale;
    access.count = only.count;
    access.index = only.index;
    access.array = only.array / scale;
    access.index = clamped(access);
  } else if (pointer.indices.size() > 1) {
    Operand address = constant(0);
    for (const PointerIndex& index : pointer.indices) {
      const uint32_t step = addAccess({.variable = pointer.variable,
                                       .half = half,
                                       .offset = pointer.offset / scale,
                                       .stride = index.stride / scale,
                                       .count = index.count,
                                       .array = index.array / scale,
                                       .index = index.index});
      Register next = newRegister();
      const Operand inside = clamped(code.accesses[step]);
      emit({.kind = StepKind::Address, .op = Opcode::Address, .dst = next, .a = inside, .b = address, .access = step});
      address = reg(next);
    }
    access.stride = 1;
    access.count = UINT32_MAX;
    access.index = address;
  }
  for (const Component& component : components(pointer.pointee)) {
    const bool is_half = component.scalar == kernel::Scalar::F16;
    if (part == Part::All || is_half == half) access.words.push_back(component.word / scale);
  }
  return addAccess(std::move(access));
}

Operands Lowering::load(const Pointer& pointer) {
  Home home = code.variables[pointer.variable].home;
  const std::vector<Component>& layout = components(pointer.pointee);
  Operands results;
  for (size_t k = 0; k < layout.size(); ++k) results.push_back(reg(newRegister()));
  if (home == Home::Registers) {
    for (size_t k = 0; k < layout.size(); ++k) {
      Register source = code.variables[pointer.variable].registers[pointer.offset + layout[k].word];
      emit({.kind = StepKind::Pure, .op = Opcode::Move, .dst = results[k].value, .a = reg(source)});
    }
    return results;
  }
  if (home == Home::Lanes) {
    uint32_t access = makeAccess(pointer, Part::All);
    code.accesses[access].values = results;
    emit({.kind = StepKind::Memory, .op = Opcode::LaneLoad, .access = access});
    return results;
  }
  for (const Part part : {Part::Words, Part::Halves}) {
    Operands loaded;
    for (size_t k = 0; k < layout.size(); ++k) {
      if ((layout[k].scalar == kernel::Scalar::F16) == (part == Part::Halves)) loaded.push_back(results[k]);
    }
    if (loaded.empty()) continue;
    uint32_t access = makeAccess(pointer, part);
    code.accesses[access].values = std::move(loaded);
    emit({.kind = StepKind::Memory, .op = Opcode::Load, .access = access});
  }
  for (size_t k = 0; k < layout.size(); ++k) {
    if (layout[k].scalar == kernel::Scalar::F16) results[k] = pure(Opcode::UnpackHalf, results[k]);
  }
  return results;
}

void Lowering::store(const Pointer& pointer, const Operands& stored) {
  Home home = code.variables[pointer.variable].home;
  const std::vector<Component>& layout = components(pointer.pointee);
  for (size_t k = 0; k < layout.size(); ++k) watchStored(code.variables[pointer.variable], layout[k].scalar, stored[k]);
  if (home == Home::Registers) {
    for (size_t k = 0; k < layout.size(); ++k) {
      Register target = code.variables[pointer.variable].registers[pointer.offset + layout[k].word];
      emit({.kind = StepKind::Assign, .dst = target, .a = stored[k]});
    }
    return;
  }
  if (home == Home::Lanes) {
    Operands copy = stored;
    uint32_t access = makeAccess(pointer, Part::All);
    code.accesses[access].values = std::move(copy);
    emit({.kind = StepKind::Memory, .op = Opcode::LaneStore, .access = access});
    return;
  }
  for (const Part part : {Part::Words, Part::Halves}) {
    Operands sources;
    for (size_t k = 0; k < layout.size(); ++k) {
      const bool is_half = layout[k].scalar == kernel::Scalar::F16;
      if (is_half == (part == Part::Halves)) sources.push_back(is_half ? pure(Opcode::PackHalf, stored[k]) : stored[k]);
    }
    if (sources.empty()) continue;
    uint32_t access = makeAccess(pointer, part);
    code.accesses[access].values = std::move(sources);
    emit({.kind = StepKind::Memory, .op = Opcode::Store, .access = access});
  }
}

void Lowering::atomic(const KernelInstruction& x) {
  const Pointer& target = pointer(x.operands[0]);
  bool is_signed = types[target.pointee].scalar == kernel::Scalar::I32;
  struct Row {
    Op op;
    Opcode of_signed, of_unsigned;
  };
  constexpr Row kRows[] = {
      {Op::AtomicLoad, Opcode::AtomicLoad, Opcode::AtomicLoad},
      {Op::AtomicStore, Opcode::AtomicStore, Opcode::AtomicStore},
      {Op::AtomicAdd, Opcode::AtomicAdd, Opcode::AtomicAdd},
      {Op::AtomicSub, Opcode::AtomicSub, Opcode::AtomicSub},
      {Op::AtomicMax, Opcode::AtomicMaxI, Opcode::AtomicMaxU},
      {Op::AtomicMin, Opcode::AtomicMinI, Opcode::AtomicMinU},
      {Op::AtomicAnd, Opcode::AtomicAnd, Opcode::AtomicAnd},
      {Op::AtomicOr, Opcode::AtomicOr, Opcode::AtomicOr},
      {Op::AtomicXor, Opcode::AtomicXor, Opcode::AtomicXor},
      {Op::AtomicExchange, Opcode::AtomicExchange, Opcode::AtomicExchange},
      {Op::AtomicCompareExchange, Opcode::AtomicCompareExchange, Opcode::AtomicCompareExchange},
  };
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == x.op; });
  Step step{.kind = StepKind::Memory, .op = is_signed ? row->of_signed : row->of_unsigned, .access = makeAccess(target, Part::Words)};
  if (x.operands.size() > 1) step.b = value(x.operands.back())[0];
  if (x.operands.size() > 2) step.c = value(x.operands[1])[0];
  step.dst = newRegister();
  Operand old = reg(step.dst);
  emit(std::move(step));
  if (!x.result.valid()) return;
  Operands results{old};
  if (x.op == Op::AtomicCompareExchange) results.push_back(pure(Opcode::EqI, old, value(x.operands[1])[0]));
  define(x, std::move(results));
}

void Lowering::arrayLength(const KernelInstruction& x) {
  const Pointer& array = pointer(x.operands[0]);
  const uint32_t access = addAccess({.variable = array.variable,
                                     .half = unit == 2,
                                     .offset = array.offset,
                                     .stride = types.strideOf(array.pointee) / unit,
                                     .count = 0,
                                     .array = array.offset});
  Register length = newRegister();
  emit({.kind = StepKind::Length, .op = Opcode::ArrayLength, .dst = length, .access = access});
  define(x, {reg(length)});
}

}  // namespace lockstep::reference
