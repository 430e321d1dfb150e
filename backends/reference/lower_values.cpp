// SPDX-License-Identifier: Apache-2.0
// Kernel IR -> scalar code: constants, composites and arithmetic.
#include <algorithm>

#include "backends/reference/lower.h"

namespace lockstep::reference {

using kernel::Op;
using kernel::Scalar;
using kernel::TypeKind;
using kernel::ValueKind;

namespace {

/// Opcodes of an element-wise op by scalar type. `swapped` exchanges the first two operands (a > b is b < a).
struct Row {
  Op op;
  Opcode f, i, u;
  bool swapped = false;
};

constexpr Row kRows[] = {
    {Op::Neg, Opcode::NegF, Opcode::NegI, Opcode::NegI},
    {Op::Not, Opcode::Not, Opcode::Not, Opcode::Not},
    {Op::Complement, Opcode::Not, Opcode::Not, Opcode::Not},
    {Op::Add, Opcode::AddF, Opcode::AddI, Opcode::AddI},
    {Op::Sub, Opcode::SubF, Opcode::SubI, Opcode::SubI},
    {Op::Mul, Opcode::MulF, Opcode::MulI, Opcode::MulI},
    {Op::Div, Opcode::DivF, Opcode::DivI, Opcode::DivU},
    {Op::Rem, Opcode::RemF, Opcode::RemI, Opcode::RemU},
    {Op::And, Opcode::And, Opcode::And, Opcode::And},
    {Op::Or, Opcode::Or, Opcode::Or, Opcode::Or},
    {Op::Xor, Opcode::Xor, Opcode::Xor, Opcode::Xor},
    {Op::Shl, Opcode::Shl, Opcode::Shl, Opcode::Shl},
    {Op::Shr, Opcode::ShrU, Opcode::ShrI, Opcode::ShrU},
    {Op::Eq, Opcode::EqF, Opcode::EqI, Opcode::EqI},
    {Op::Ne, Opcode::NeF, Opcode::NeI, Opcode::NeI},
    {Op::Lt, Opcode::LtF, Opcode::LtI, Opcode::LtU},
    {Op::Le, Opcode::LeF, Opcode::LeI, Opcode::LeU},
    {Op::Gt, Opcode::LtF, Opcode::LtI, Opcode::LtU, true},
    {Op::Ge, Opcode::LeF, Opcode::LeI, Opcode::LeU, true},
    {Op::Select, Opcode::Select, Opcode::Select, Opcode::Select},
    {Op::Abs, Opcode::AbsF, Opcode::AbsI, Opcode::Move},
    {Op::Sign, Opcode::SignF, Opcode::SignI, Opcode::Move},
    {Op::Min, Opcode::MinF, Opcode::MinI, Opcode::MinU},
    {Op::Max, Opcode::MaxF, Opcode::MaxI, Opcode::MaxU},
    {Op::Floor, Opcode::Floor, Opcode::Move, Opcode::Move},
    {Op::Ceil, Opcode::Ceil, Opcode::Move, Opcode::Move},
    {Op::Round, Opcode::Round, Opcode::Move, Opcode::Move},
    {Op::Trunc, Opcode::Trunc, Opcode::Move, Opcode::Move},
    {Op::Fract, Opcode::Fract, Opcode::Move, Opcode::Move},
    {Op::Sqrt, Opcode::Sqrt, Opcode::Move, Opcode::Move},
    {Op::InverseSqrt, Opcode::InverseSqrt, Opcode::Move, Opcode::Move},
    {Op::Exp, Opcode::Exp, Opcode::Move, Opcode::Move},
    {Op::Exp2, Opcode::Exp2, Opcode::Move, Opcode::Move},
    {Op::Log, Opcode::Log, Opcode::Move, Opcode::Move},
    {Op::Log2, Opcode::Log2, Opcode::Move, Opcode::Move},
    {Op::Pow, Opcode::Pow, Opcode::Move, Opcode::Move},
    {Op::Sin, Opcode::Sin, Opcode::Move, Opcode::Move},
    {Op::Cos, Opcode::Cos, Opcode::Move, Opcode::Move},
    {Op::Tan, Opcode::Tan, Opcode::Move, Opcode::Move},
    {Op::Asin, Opcode::Asin, Opcode::Move, Opcode::Move},
    {Op::Acos, Opcode::Acos, Opcode::Move, Opcode::Move},
    {Op::Atan, Opcode::Atan, Opcode::Move, Opcode::Move},
    {Op::Atan2, Opcode::Atan2, Opcode::Move, Opcode::Move},
    {Op::Sinh, Opcode::Sinh, Opcode::Move, Opcode::Move},
    {Op::Cosh, Opcode::Cosh, Opcode::Move, Opcode::Move},
    {Op::Tanh, Opcode::Tanh, Opcode::Move, Opcode::Move},
    {Op::Asinh, Opcode::Asinh, Opcode::Move, Opcode::Move},
    {Op::Acosh, Opcode::Acosh, Opcode::Move, Opcode::Move},
    {Op::Atanh, Opcode::Atanh, Opcode::Move, Opcode::Move},
    {Op::Fma, Opcode::Fma, Opcode::Move, Opcode::Move},
    {Op::Step, Opcode::Step, Opcode::Move, Opcode::Move},
    {Op::CountLeadingZeros, Opcode::Move, Opcode::CountLeadingZeros, Opcode::CountLeadingZeros},
    {Op::CountTrailingZeros, Opcode::Move, Opcode::CountTrailingZeros, Opcode::CountTrailingZeros},
    {Op::CountOneBits, Opcode::Move, Opcode::CountOneBits, Opcode::CountOneBits},
    {Op::ReverseBits, Opcode::Move, Opcode::ReverseBits, Opcode::ReverseBits},
    {Op::FirstLeadingBit, Opcode::Move, Opcode::FirstLeadingBitI, Opcode::FirstLeadingBitU},
    {Op::FirstTrailingBit, Opcode::Move, Opcode::FirstTrailingBit, Opcode::FirstTrailingBit},
    {Op::ExtractBits, Opcode::Move, Opcode::ExtractBitsI, Opcode::ExtractBitsU},
    {Op::Dot4I8Packed, Opcode::Move, Opcode::Dot4I8, Opcode::Dot4I8},
    {Op::Dot4U8Packed, Opcode::Move, Opcode::Dot4U8, Opcode::Dot4U8},
    {Op::QuantizeToF16, Opcode::QuantizeToF16, Opcode::Move, Opcode::Move},
};

/// Ops that the table does not serve; `special` does.
constexpr Op kSpecial[] = {Op::Clamp, Op::Saturate, Op::InsertBits, Op::Pack2x16Float, Op::Unpack2x16Float, Op::Dot,     Op::All,
                           Op::Any,   Op::MatMul,   Op::Convert,    Op::Bitcast,       Op::Construct,       Op::Extract, Op::Swizzle};

constexpr bool everyPureOpIsServed() {
  for (size_t k = 0; k < kernel::kOpCount; ++k) {
    Op op = static_cast<Op>(k);
    if (op >= Op::Var) continue;
    bool found = false;
    for (const Row& row : kRows) found = found || row.op == op;
    for (Op special : kSpecial) found = found || special == op;
    if (!found) return false;
  }
  return true;
}
static_assert(everyPureOpIsServed(), "an op of ops.def has no row in lower_values.cpp");

const Row* findRow(Op op) {
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op; });
  return row == std::end(kRows) ? nullptr : row;
}

Opcode pickOpcode(const Row& row, Scalar scalar) {
  switch (scalar) {
    case Scalar::F32:
    case Scalar::F16:
    case Scalar::BF16:
      return row.f;
    case Scalar::I32:
      return row.i;
    case Scalar::U32:
    case Scalar::Bool:
      return row.u;
  }
  internalError("scalar type out of range");
}

bool isPowerOfTwo(uint32_t x) { return x != 0 && (x & (x - 1)) == 0; }

}  // namespace

Operands Lowering::constantValue(kernel::ValueId id) {
  const kernel::Value& value = m[id];
  const kernel::Type& type = types[value.type];
  if (type.kind == TypeKind::Scalar) {
    if (type.scalar == Scalar::F16) return {pure(Opcode::UnpackHalf, constant(value.bits))};
    return {constant(type.scalar == Scalar::Bool ? (value.bits != 0 ? ~0u : 0u) : value.bits)};
  }
  if (value.elements.empty()) return Operands(components(value.type).size(), constant(0));
  Operands out;
  for (kernel::ValueId element : value.elements) {
    Operands part = constantValue(element);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

Opcode Lowering::opcodeOf(Op op, Scalar scalar) { return pickOpcode(*findRow(op), scalar); }

Operand Lowering::one(Scalar scalar) { return constant(scalar == Scalar::F32 || scalar == Scalar::F16 ? 0x3f800000u : 1); }

const Operands& Lowering::value(kernel::ValueId id) {
  Operands& known_value = values[id.index()];
  if (known_value.empty() && m[id].kind == ValueKind::Constant) known_value = constantValue(id);
  return known_value;
}

void Lowering::pureInstruction(const KernelInstruction& x) {
  signed_now = !x.operands.empty() && m.typeOf(x.operands[0]).scalar == Scalar::I32;
  define(x, findRow(x.op) != nullptr ? elementwise(x) : special(x));
}

Operands Lowering::elementwise(const KernelInstruction& x) {
  const Row& row = *findRow(x.op);
  Opcode op = pickOpcode(row, m.typeOf(x.operands[0]).scalar);
  const bool shifts = x.op == Op::Shl || x.op == Op::Shr;
  shifts_by_bit_number = shifts && bit_numbers.contains(originOf(m, x.operands[1]).index());
  std::array<const Operands*, 3> in{};
  for (size_t k = 0; k < x.operands.size(); ++k) in[k] = &value(x.operands[k]);
  if (row.swapped) std::swap(in[0], in[1]);
  size_t width = 0;
  for (const Operands* operand : in) width = std::max(width, operand == nullptr ? 0 : operand->size());
  // The bit counts of extract_bits and the condition of select may be scalars beside vectors.
  auto at = [&](size_t operand, size_t k) {
    if (in[operand] == nullptr) return Operand{};
    return in[operand]->size() == 1 ? (*in[operand])[0] : (*in[operand])[k];
  };
  Operands out;
  for (size_t k = 0; k < width; ++k) out.push_back(rounded(types[x.type].scalar, pure(op, at(0, k), at(1, k), at(2, k))));
  return out;
}

Operands Lowering::special(const KernelInstruction& x) {
  const Operands& a = value(x.operands[0]);
  Scalar scalar = m.typeOf(x.operands[0]).scalar;
  Operands out;
  if (x.op == Op::Clamp || x.op == Op::Saturate) {
    Opcode max = pickOpcode(*findRow(Op::Max), scalar), min = pickOpcode(*findRow(Op::Min), scalar);
    Operands zero{constant(0)}, one{constant(0x3f800000u)};
    const Operands& low = x.op == Op::Clamp ? value(x.operands[1]) : zero;
    const Operands& high = x.op == Op::Clamp ? value(x.operands[2]) : one;
    auto at = [](const Operands& from, size_t k) { return from.size() == 1 ? from[0] : from[k]; };
    for (size_t k = 0; k < a.size(); ++k) out.push_back(pure(min, pure(max, a[k], at(low, k)), at(high, k)));
  } else if (x.op == Op::InsertBits) {
    Operand offset = value(x.operands[2])[0], mask = pure(Opcode::BitMask, offset, value(x.operands[3])[0]);
    for (size_t k = 0; k < a.size(); ++k) out.push_back(pure(Opcode::Select, a[k], shifted(value(x.operands[1])[k], offset), mask));
  } else if (x.op == Op::Pack2x16Float) {
    out = {pure(Opcode::Or, pure(Opcode::PackHalf, a[0]), shifted(pure(Opcode::PackHalf, a[1]), constant(16)))};
  } else if (x.op == Op::Unpack2x16Float) {
    out = {pure(Opcode::UnpackHalf, pure(Opcode::And, a[0], constant(0xffff))),
           pure(Opcode::UnpackHalf, pure(Opcode::ShrU, a[0], constant(16)))};
  } else if (x.op == Op::Dot) {
    out = {dot(a, value(x.operands[1]), scalar)};
  } else if (x.op == Op::All || x.op == Op::Any) {
    out = {a[0]};
    for (size_t k = 1; k < a.size(); ++k) out[0] = pure(x.op == Op::All ? Opcode::And : Opcode::Or, out[0], a[k]);
  } else if (x.op == Op::MatMul) {
    out = matrixProduct(x);
  } else if (x.op == Op::Convert) {
    out = convert(x);
  } else if (x.op == Op::Bitcast) {
    out = bitcast(x);
  } else if (x.op == Op::Construct) {
    out = construct(x);
  } else if (x.op == Op::Extract) {
    out = extract(x);
  } else {
    for (uint32_t k = 0; k < types[x.type].width(); ++k) out.push_back(a[(x.immediate >> (2 * k)) & 3u]);
  }
  return out;
}

Operands Lowering::construct(const KernelInstruction& x) {
  size_t wanted = components(x.type).size();
  Operands out;
  for (kernel::ValueId operand : x.operands) {
    const Operands& part = value(operand);
    out.insert(out.end(), part.begin(), part.end());
  }
  if (out.size() == 1 && types[x.type].kind == TypeKind::Vector) out.resize(wanted, out[0]);
  return out;
}

Operands Lowering::convert(const KernelInstruction& x) {
  const kernel::Type& source = m.typeOf(x.operands[0]);
  Scalar from = source.scalar, to = types[x.type].scalar;
  const bool from_float = from == Scalar::F32 || from == Scalar::F16, to_float = to == Scalar::F32 || to == Scalar::F16;
  Operands out;
  for (Operand a : value(x.operands[0])) {
    Opcode op = Opcode::Move;
    if (from == to || (from_float && to_float)) {
      op = Opcode::Move;
    } else if (to == Scalar::Bool) {
      op = from_float ? Opcode::FloatToBool : Opcode::IntToBool;
    } else if (from == Scalar::Bool) {
      op = to_float ? Opcode::BoolToF : Opcode::BoolToInt;
    } else if (from_float) {
      op = to == Scalar::I32 ? Opcode::FloatToI : Opcode::FloatToU;
    } else if (to_float) {
      op = from == Scalar::I32 ? Opcode::IntToF : Opcode::UintToF;
    }
    out.push_back(rounded(to, pure(op, a)));
  }
  return out;
}

Operand Lowering::rounded(Scalar scalar, Operand result) { return scalar == Scalar::F16 ? pure(Opcode::QuantizeToF16, result) : result; }

Operands Lowering::bitcast(const KernelInstruction& x) {
  const bool from_half = m.typeOf(x.operands[0]).scalar == Scalar::F16, to_half = types[x.type].scalar == Scalar::F16;
  const Operands& a = value(x.operands[0]);
  if (from_half == to_half) return a;
  Operands out;
  if (from_half) {
    for (size_t k = 0; k + 1 < a.size(); k += 2) {
      const Operand low = pure(Opcode::PackHalf, a[k]), high = pure(Opcode::PackHalf, a[k + 1]);
      out.push_back(pure(Opcode::Or, low, shifted(high, constant(16))));
    }
    return out;
  }
  for (const Operand word : a) {
    out.push_back(pure(Opcode::UnpackHalf, pure(Opcode::And, word, constant(0xffff))));
    out.push_back(pure(Opcode::UnpackHalf, pure(Opcode::ShrU, word, constant(16))));
  }
  return out;
}

Operands Lowering::extract(const KernelInstruction& x) {
  const Operands& whole = value(x.operands[0]);
  kernel::TypeId type = m[x.operands[0]].type;
  size_t size = components(x.type).size();
  if (types[type].kind == TypeKind::Struct) {
    size_t first = 0;
    for (uint32_t k = 0; k < m[x.operands[1]].bits; ++k) first += components(types[type].members[k].type).size();
    return Operands(whole.begin() + static_cast<ptrdiff_t>(first), whole.begin() + static_cast<ptrdiff_t>(first + size));
  }
  Operand index = value(x.operands[1])[0];
  size_t count = types.elementCount(type);
  if (index.isConstant() && index.value < count) {
    auto first = whole.begin() + static_cast<ptrdiff_t>(index.value * size);
    return Operands(first, first + static_cast<ptrdiff_t>(size));
  }
  return pick(whole, size, index, count);
}

/// Element `index` of a composite value: a chain of selects when short, else a table in memory.
Operands Lowering::pick(const Operands& elements, size_t size, Operand index, size_t count) {
  constexpr size_t kLongestChain = 8;
  if (count <= kLongestChain) {
    const Access whole{.variable = UINT32_MAX, .count = static_cast<uint32_t>(count), .index = index};
    index = clamped(whole);
    code.accesses.push_back({.variable = UINT32_MAX, .count = static_cast<uint32_t>(count), .index = index});
    emit({.kind = StepKind::Check, .op = Opcode::CheckIndex, .a = index, .access = static_cast<uint32_t>(code.accesses.size() - 1)});
    Operands out(elements.begin(), elements.begin() + static_cast<ptrdiff_t>(size));
    for (size_t k = 1; k < count; ++k) {
      Operand here = pure(Opcode::EqI, index, constant(static_cast<uint32_t>(k)));
      for (size_t e = 0; e < size; ++e) out[e] = pure(Opcode::Select, out[e], elements[k * size + e], here);
    }
    return out;
  }
  bool fixed = std::all_of(elements.begin(), elements.end(), [](Operand element) { return element.isConstant(); });
  uint32_t words = static_cast<uint32_t>(elements.size());
  Variable variable{.name = "value", .home = fixed ? Home::Table : Home::Lanes, .words = words};
  variable.offset = fixed ? static_cast<uint32_t>(code.table.size()) : code.lane_words;
  uint32_t name = static_cast<uint32_t>(code.variables.size());
  code.variables.push_back(variable);
  if (fixed) {
    for (Operand element : elements) code.table.push_back(element.value);
  } else {
    code.lane_words += words;
    Access whole{.variable = name, .words = {}, .values = elements};
    for (uint32_t k = 0; k < words; ++k) whole.words.push_back(k);
    code.accesses.push_back(std::move(whole));
    emit({.kind = StepKind::Memory, .op = Opcode::LaneStore, .access = static_cast<uint32_t>(code.accesses.size() - 1)});
  }
  Access part{.variable = name, .stride = static_cast<uint32_t>(size), .count = static_cast<uint32_t>(count), .index = index};
  Operands out;
  for (uint32_t k = 0; k < size; ++k) {
    part.words.push_back(k);
    out.push_back(reg(newRegister()));
  }
  part.values = out;
  part.index = clamped(part);
  code.accesses.push_back(std::move(part));
  emit(
      {.kind = StepKind::Memory, .op = fixed ? Opcode::Load : Opcode::LaneLoad, .access = static_cast<uint32_t>(code.accesses.size() - 1)});
  return out;
}

/// In the order of the components, each product and each sum rounded.
Operand Lowering::dot(std::span<const Operand> a, std::span<const Operand> b, Scalar scalar) {
  const bool is_float = scalar == Scalar::F32 || scalar == Scalar::F16;
  Opcode multiply = is_float ? Opcode::MulF : Opcode::MulI, add = is_float ? Opcode::AddF : Opcode::AddI;
  const auto product = [&](size_t k) { return rounded(scalar, pure(multiply, a[k], b[k])); };
  Operand sum = product(0);
  for (size_t k = 1; k < a.size(); ++k) sum = rounded(scalar, pure(add, sum, product(k)));
  return sum;
}

Operands Lowering::matrixProduct(const KernelInstruction& x) {
  const kernel::Type &left = m.typeOf(x.operands[0]), &right = m.typeOf(x.operands[1]);
  const Operands &a = value(x.operands[0]), &b = value(x.operands[1]);
  // A vector on the left is a matrix of one row, on the right a matrix of one column; storage is column by column.
  size_t rows = left.kind == TypeKind::Matrix ? left.rows : 1;
  size_t inner = right.rows;
  size_t columns = right.kind == TypeKind::Matrix ? right.columns : 1;
  Operands out;
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < rows; ++r) {
      Operands row;
      for (size_t k = 0; k < inner; ++k) row.push_back(a[k * rows + r]);
      out.push_back(dot(row, std::span(b).subspan(c * inner, inner), left.scalar));
    }
  }
  return out;
}

std::optional<Operand> Lowering::simplify(Opcode op, Operand a, Operand b) {
  if (op == Opcode::Move && (a.isConstant() || !code.registers[a.value].variable)) return a;
  if (op == Opcode::AddI && a == constant(0)) return b;
  if ((op == Opcode::AddI || op == Opcode::SubI || op == Opcode::Or || op == Opcode::Shl || op == Opcode::ShrU) && b == constant(0))
    return a;
  if (op == Opcode::Or && a == constant(0)) return b;
  if (op == Opcode::MulI && (a == constant(0) || b == constant(0))) return constant(0);
  if (op == Opcode::MulI && a == constant(1)) return b;
  if ((op == Opcode::MulI || op == Opcode::DivU || op == Opcode::DivI) && b == constant(1)) return a;
  if (op == Opcode::DivU && b.isConstant() && isPowerOfTwo(b.value))
    return pure(Opcode::ShrU, a, constant(static_cast<uint32_t>(__builtin_ctz(b.value))));
  if (op == Opcode::RemU && b.isConstant() && isPowerOfTwo(b.value)) return pure(Opcode::And, a, constant(b.value - 1));
  return std::nullopt;
}

Operand Lowering::pure(Opcode op, Operand a, Operand b, Operand c) {
  auto is_known = [](Operand operand) { return !operand.isRegister(); };
  if (is_known(a) && is_known(b) && is_known(c)) {
    uint32_t words[4] = {0, a.value, b.value, c.value};
    Instruction one{.op = op, .dst = 0, .a = 1, .b = 2, .c = 3};
    kBaselineRoutines.pure[static_cast<size_t>(op)][0](words, 1, one);
    return constant(words[0]);
  }
  if (std::optional<Operand> simple = simplify(op, a, b)) return *simple;
  auto key = std::make_tuple(op, a, b, c);
  if (auto found = known.find(key); found != known.end()) return found->second;
  watchOperands(op, a, b);
  Register result = newRegister();
  emit({.kind = StepKind::Pure, .op = op, .dst = result, .a = a, .b = b, .c = c});
  watchResult(op, reg(result), a, b);
  noteComputed(op, result, a, b);
  known.emplace(key, reg(result));
  return reg(result);
}

}  // namespace lockstep::reference
