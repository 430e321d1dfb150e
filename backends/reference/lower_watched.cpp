// SPDX-License-Identifier: Apache-2.0
// What watched code has besides: steps that look at operands, results and indices for the sanitizer.
#include <array>
#include <string_view>
#include <utility>

#include "backends/reference/lower.h"
#include "backends/reference/wraps.h"
#include "ir/kernel/queries.h"

namespace lockstep::reference {
namespace {

/// By opcode: whether the result is a float that is computed, and not only moved.
constexpr std::array kGivesFloat{
#define LS_VM_OP1(name, r, a) std::string_view(#r) == "f",
#define LS_VM_OP2(name, r, a, b) std::string_view(#r) == "f",
#define LS_VM_OP3(name, r, a, b, c) std::string_view(#r) == "f",
#define LS_VM_CONTROL(name)
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
};

bool givesFloat(Opcode op) { return kGivesFloat[static_cast<size_t>(op)] || op == Opcode::QuantizeToF16; }

bool isShift(Opcode op) { return op == Opcode::Shl || op == Opcode::ShrI || op == Opcode::ShrU; }

/// Whether an operation is defined for some operands only, and which constant makes it safe.
bool isPartial(Opcode op, Operand b) {
  const bool divides = op == Opcode::DivI || op == Opcode::DivU || op == Opcode::RemI || op == Opcode::RemU;
  if (divides) return !b.isConstant() || b.value == 0;
  if (isShift(op)) return !b.isConstant() || b.value >= 32;
  return op == Opcode::FloatToI || op == Opcode::FloatToU;
}

}  // namespace

kernel::ValueId originOf(const kernel::Module& module, kernel::ValueId value) {
  const kernel::Instruction* made = kernel::definition(module, value);
  return made != nullptr && made->op == kernel::Op::Load ? made->operands[0] : value;
}

/// Bit n of a set is bit n % 32 of word n / 32. Where a number is divided by 32, a shift by it means its remainder.
void Lowering::findBitNumbers() {
  if (!watched.integers) return;
  for (const KernelInstruction& x : m.instructions) {
    const bool divides = x.op == kernel::Op::Div, shifts = x.op == kernel::Op::Shr;
    if ((divides || shifts) && kernel::constantBits(m, x.operands[1]) == (divides ? 32u : 5u))
      bit_numbers.insert(originOf(m, x.operands[0]).index());
  }
}

void Lowering::watchOperands(Opcode op, Operand a, Operand b) {
  if (watched.wraps && mayWrap(op))
    emit({.kind = StepKind::Watch,
          .op = Opcode::WatchInteger,
          .a = a,
          .b = b,
          .c = constant(signed_now ? kSignedWrap : kUnsignedWrap),
          .join = op});
  if (isShift(op) && shifts_by_bit_number) return;
  if (watched.integers && isPartial(op, b))
    emit({.kind = StepKind::Watch, .op = Opcode::WatchInteger, .a = a, .b = b, .c = constant(kPartial), .join = op});
}

void Lowering::watchResult(Opcode op, Operand result, Operand a, Operand b) {
  if (watched.floats && givesFloat(op)) emit({.kind = StepKind::Watch, .op = Opcode::WatchFloat, .a = result, .b = a, .c = b, .join = op});
}

void Lowering::watchStored(const Variable& variable, kernel::Scalar scalar, Operand stored) {
  const bool is_float = scalar == kernel::Scalar::F32 || scalar == kernel::Scalar::F16;
  if (watched.floats && is_float && variable.home == Home::Buffer && stored.isRegister())
    emit({.kind = StepKind::Watch, .op = Opcode::WatchStored, .a = stored, .join = Opcode::Move});
}

/// The index of an access, no larger than the last one. By value: one of Code::accesses would move when others are added.
Operand Lowering::clamped(Access access) {
  if (!watched.indices) return access.index;
  const bool fits = access.index.isConstant() && access.count != 0 && access.index.value < access.count;
  if (fits || access.index.kind == Operand::Kind::None) return access.index;
  watchIndex(access);
  access.words.clear();
  access.values.clear();
  const Operand index = access.index;
  const Register inside = newRegister();
  emit({.kind = StepKind::Clamp, .op = Opcode::ClampIndex, .dst = inside, .a = index, .access = addAccess(std::move(access))});
  return reg(inside);
}

}  // namespace lockstep::reference
