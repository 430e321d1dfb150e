// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/integer_arithmetic.h"

#include <algorithm>

namespace lockstep::passes {
namespace {

using kernel::Op;
using kernel::Scalar;

/// Operands as bits; those that the caller did not give are 0.
struct X {
  uint32_t a = 0, b = 0, c = 0;
  [[nodiscard]] int32_t sa() const { return static_cast<int32_t>(a); }
  [[nodiscard]] int32_t sb() const { return static_cast<int32_t>(b); }
  [[nodiscard]] int32_t sc() const { return static_cast<int32_t>(c); }
  /// The signed quotient that C++ does not define.
  [[nodiscard]] bool guarded() const { return b == 0 || (a == 0x80000000u && b == UINT32_MAX); }
};
using Function = uint32_t (*)(X);

uint32_t bitsOf(int32_t value) { return static_cast<uint32_t>(value); }

/// A null entry is not computed. `of_bool` takes and gives 0 or 1.
struct Row {
  Op op;
  Function of_unsigned, of_signed, of_bool = nullptr;
};

constexpr Function kAdd = [](X x) { return x.a + x.b; };
constexpr Function kSub = [](X x) { return x.a - x.b; };
constexpr Function kMul = [](X x) { return x.a * x.b; };
constexpr Function kAnd = [](X x) { return x.a & x.b; };
constexpr Function kOr = [](X x) { return x.a | x.b; };
constexpr Function kXor = [](X x) { return x.a ^ x.b; };
constexpr Function kNeg = [](X x) { return 0u - x.a; };
constexpr Function kComplement = [](X x) { return ~x.a; };
constexpr Function kSelf = [](X x) { return x.a; };
constexpr Function kShl = [](X x) { return x.a << (x.b % 32); };
constexpr Function kEq = [](X x) { return uint32_t{x.a == x.b}; };
constexpr Function kNe = [](X x) { return uint32_t{x.a != x.b}; };

constexpr Row kRows[] = {
    {Op::Neg, nullptr, kNeg},
    {Op::Not, nullptr, nullptr, [](X x) { return 1 - x.a; }},
    {Op::Complement, kComplement, kComplement},
    {Op::Add, kAdd, kAdd},
    {Op::Sub, kSub, kSub},
    {Op::Mul, kMul, kMul},
    {Op::Div, [](X x) { return x.b == 0 ? x.a : x.a / x.b; }, [](X x) { return x.guarded() ? x.a : bitsOf(x.sa() / x.sb()); }},
    {Op::Rem, [](X x) { return x.b == 0 ? 0 : x.a % x.b; }, [](X x) { return x.guarded() ? 0 : bitsOf(x.sa() % x.sb()); }},
    {Op::And, kAnd, kAnd, kAnd},
    {Op::Or, kOr, kOr, kOr},
    {Op::Xor, kXor, kXor},
    {Op::Shl, kShl, kShl},
    {Op::Shr, [](X x) { return x.a >> (x.b % 32); }, [](X x) { return bitsOf(x.sa() >> (x.b % 32)); }},
    {Op::Eq, kEq, kEq, kEq},
    {Op::Ne, kNe, kNe, kNe},
    {Op::Lt, [](X x) { return uint32_t{x.a < x.b}; }, [](X x) { return uint32_t{x.sa() < x.sb()}; }},
    {Op::Le, [](X x) { return uint32_t{x.a <= x.b}; }, [](X x) { return uint32_t{x.sa() <= x.sb()}; }},
    {Op::Gt, [](X x) { return uint32_t{x.a > x.b}; }, [](X x) { return uint32_t{x.sa() > x.sb()}; }},
    {Op::Ge, [](X x) { return uint32_t{x.a >= x.b}; }, [](X x) { return uint32_t{x.sa() >= x.sb()}; }},
    {Op::Abs, kSelf, [](X x) { return x.sa() < 0 ? 0u - x.a : x.a; }},
    {Op::Sign, nullptr, [](X x) { return bitsOf((x.sa() > 0 ? 1 : 0) - (x.sa() < 0 ? 1 : 0)); }},
    {Op::Min, [](X x) { return std::min(x.a, x.b); }, [](X x) { return bitsOf(std::min(x.sa(), x.sb())); }},
    {Op::Max, [](X x) { return std::max(x.a, x.b); }, [](X x) { return bitsOf(std::max(x.sa(), x.sb())); }},
    {Op::Clamp, [](X x) { return std::min(std::max(x.a, x.b), x.c); },
     [](X x) { return bitsOf(std::min(std::max(x.sa(), x.sb()), x.sc())); }},
    {Op::All, nullptr, nullptr, kSelf},
    {Op::Any, nullptr, nullptr, kSelf},
};

}  // namespace

std::optional<uint32_t> evaluateInteger(Op op, Scalar type, std::span<const uint32_t> operands) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& each) { return each.op == op; });
  if (row == std::end(kRows)) return std::nullopt;
  Function function = type == Scalar::U32    ? row->of_unsigned
                      : type == Scalar::I32  ? row->of_signed
                      : type == Scalar::Bool ? row->of_bool
                                             : nullptr;
  if (function == nullptr) return std::nullopt;
  X x;
  uint32_t* places[] = {&x.a, &x.b, &x.c};
  for (size_t i = 0; i < operands.size(); ++i) *places[i] = operands[i];
  return function(x);
}

}  // namespace lockstep::passes
