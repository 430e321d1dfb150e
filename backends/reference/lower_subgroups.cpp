// SPDX-License-Identifier: Apache-2.0
// Kernel IR -> scalar code: subgroup and quad operations, component by component. What reads from another lane is a shuffle whose lane is
// computed.
#include <algorithm>

#include "backends/reference/lower.h"

namespace lockstep::reference {

using kernel::Op;
using kernel::Scalar;

namespace {

/// Operations that join lanes by a pure operation.
struct Row {
  Op op;
  Opcode how;
  Op join;
};
constexpr Row kRows[] = {
    {Op::SubgroupAll, Opcode::SubgroupReduce, Op::And},
    {Op::SubgroupAny, Opcode::SubgroupReduce, Op::Or},
    {Op::SubgroupAdd, Opcode::SubgroupReduce, Op::Add},
    {Op::SubgroupExclusiveAdd, Opcode::SubgroupExclusive, Op::Add},
    {Op::SubgroupInclusiveAdd, Opcode::SubgroupInclusive, Op::Add},
    {Op::SubgroupMul, Opcode::SubgroupReduce, Op::Mul},
    {Op::SubgroupExclusiveMul, Opcode::SubgroupExclusive, Op::Mul},
    {Op::SubgroupInclusiveMul, Opcode::SubgroupInclusive, Op::Mul},
    {Op::SubgroupMin, Opcode::SubgroupReduce, Op::Min},
    {Op::SubgroupMax, Opcode::SubgroupReduce, Op::Max},
    {Op::SubgroupAnd, Opcode::SubgroupReduce, Op::And},
    {Op::SubgroupOr, Opcode::SubgroupReduce, Op::Or},
    {Op::SubgroupXor, Opcode::SubgroupReduce, Op::Xor},
};

}  // namespace

void Lowering::subgroup(const KernelInstruction& x) {
  auto step = [&](Opcode op, Operand a, Operand b = {}, Opcode join = Opcode::Move) {
    Register result = newRegister();
    emit({.kind = StepKind::Subgroup, .op = op, .dst = result, .a = a, .b = b, .join = join});
    return reg(result);
  };
  if (x.op == Op::SubgroupElect) return define(x, {step(Opcode::SubgroupElect, {})});
  const Operands& given = value(x.operands[0]);
  Operands out;
  if (x.op == Op::SubgroupBallot) {
    for (uint32_t word = 0; word < 4; ++word) out.push_back(step(Opcode::SubgroupBallot, given[0], constant(word)));
    return define(x, std::move(out));
  }
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == x.op; });
  if (row != std::end(kRows)) {
    Scalar scalar = types[x.type].scalar;
    Operand identity = row->join == Op::Mul ? one(scalar) : constant(0);
    for (Operand a : given) {
      Operand joined = step(row->how, a, identity, opcodeOf(row->join, scalar));
      // Halves are joined as floats and rounded once.
      out.push_back(scalar == Scalar::F16 ? pure(Opcode::QuantizeToF16, joined) : joined);
    }
  } else if (x.op == Op::SubgroupBroadcastFirst) {
    for (Operand a : given) out.push_back(step(Opcode::SubgroupFirst, a));
  } else {
    Operand lane = ofOurs([&] { return sourceLane(x); });
    for (Operand a : given) out.push_back(step(Opcode::SubgroupShuffle, a, lane));
  }
  define(x, std::move(out));
}

/// The lane that an instruction reads from, as a subgroup_invocation_id.
Operand Lowering::sourceLane(const KernelInstruction& x) {
  Operand self = reg(code.subgroup_lane);
  if (x.op == Op::QuadSwapX) return pure(Opcode::Xor, self, constant(1));
  if (x.op == Op::QuadSwapY) return pure(Opcode::Xor, self, constant(2));
  if (x.op == Op::QuadSwapDiagonal) return pure(Opcode::Xor, self, constant(3));
  Operand lane = value(x.operands[1])[0];
  if (x.op == Op::SubgroupShuffleXor) return pure(Opcode::Xor, self, lane);
  if (x.op == Op::SubgroupShuffleUp) return pure(Opcode::SubI, self, lane);
  if (x.op == Op::SubgroupShuffleDown) return pure(Opcode::AddI, self, lane);
  if (x.op == Op::QuadBroadcast) return pure(Opcode::Or, pure(Opcode::And, self, constant(~3u)), lane);
  if (x.op != Op::SubgroupShuffle) return lane;
  // A shuffle from beyond the subgroup is open; some devices take its last lane, of those that a partial subgroup has.
  const Operand before = pure(Opcode::MulI, reg(code.subgroup_id), constant(code.subgroups.size));
  const Operand last = pure(Opcode::SubI, constant(code.invocations() - 1), before);
  return pure(Opcode::MinU, lane, pure(Opcode::MinU, last, constant(code.subgroups.size - 1)));
}

}  // namespace lockstep::reference
