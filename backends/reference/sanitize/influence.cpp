// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/influence.h"

#include <algorithm>

namespace lockstep::reference {
namespace {

constexpr uint32_t kSign = 0x8000'0000u;

/// When a doubtful operand has no say.
enum class Rule : uint8_t {
  Decides,    ///< always: the result is a bool
  Factor,     ///< the other operand is 0
  Unchanged,  ///< the result is the other operand: it is larger, or what was added is lost in it
  Product,    ///< of a * b + c: the result is c
  Vanishes,   ///< the result is 0
};

struct Row {
  Opcode op;
  Rule rule;
  uint32_t ignored = 0;  ///< bits that a 0 may have
};
constexpr Row kRows[] = {
    {Opcode::EqF, Rule::Decides},         {Opcode::NeF, Rule::Decides},          {Opcode::LtF, Rule::Decides},
    {Opcode::LeF, Rule::Decides},         {Opcode::EqI, Rule::Decides},          {Opcode::NeI, Rule::Decides},
    {Opcode::LtI, Rule::Decides},         {Opcode::LeI, Rule::Decides},          {Opcode::LtU, Rule::Decides},
    {Opcode::LeU, Rule::Decides},         {Opcode::FloatToBool, Rule::Decides},  {Opcode::IntToBool, Rule::Decides},
    {Opcode::MulF, Rule::Factor, kSign},  {Opcode::MulI, Rule::Factor},          {Opcode::And, Rule::Factor},
    {Opcode::AddF, Rule::Unchanged},      {Opcode::AddI, Rule::Unchanged},       {Opcode::MinF, Rule::Unchanged},
    {Opcode::MaxF, Rule::Unchanged},      {Opcode::MinI, Rule::Unchanged},       {Opcode::MaxI, Rule::Unchanged},
    {Opcode::MinU, Rule::Unchanged},      {Opcode::MaxU, Rule::Unchanged},       {Opcode::MulAddF, Rule::Product},
    {Opcode::NegMulAddF, Rule::Product},  {Opcode::Fma, Rule::Product},          {Opcode::MulAddI, Rule::Product},
    {Opcode::Exp, Rule::Vanishes, kSign}, {Opcode::Exp2, Rule::Vanishes, kSign},
};

}  // namespace

uint8_t doubtOf(Opcode op, const DoubtfulOperands& operands, uint32_t result) {
  const auto& [bits, doubt] = operands;
  // That of a sum goes on before that of what is added.
  const uint8_t any = doubt[2] != 0 ? doubt[2] : doubt[0] != 0 ? doubt[0] : doubt[1];
  const auto* row = std::ranges::find(kRows, op, &Row::op);
  if (any == 0 || row == std::end(kRows)) return any;
  const auto isZero = [&](size_t k) { return doubt[k] == 0 && (bits[k] & ~row->ignored) == 0; };
  const auto isResult = [&](size_t k) { return doubt[k] == 0 && bits[k] == result; };
  switch (row->rule) {
    case Rule::Decides:
      return 0;
    case Rule::Factor:
      return isZero(0) || isZero(1) ? 0 : any;
    case Rule::Unchanged:
      return isResult(0) || isResult(1) ? 0 : any;
    case Rule::Product:
      return isResult(2) ? 0 : any;
    case Rule::Vanishes:
      return (result & ~row->ignored) == 0 ? 0 : any;
  }
  return any;
}

}  // namespace lockstep::reference
