// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace lockstep::reference {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;

using Exact = double (*)(double a, double b, double c);
/// The distance that the result moves by when operands move within their bounds.
using Propagated = double (*)(Exact exact, const BoundedOperands& x, double value);
/// The error of the operation itself. `ulp` is that of `value`.
using Rounding = double (*)(const BoundedOperands& x, double value, double ulp);

bool straddles(const Bounded& x, double at) { return x.value - x.bound <= at && at <= x.value + x.bound; }

// How bounds go through an operation.

double none(Exact, const BoundedOperands&, double) { return 0; }
double same(Exact, const BoundedOperands& x, double) { return x[0].bound; }
double sum(Exact, const BoundedOperands& x, double) { return x[0].bound + x[1].bound; }
double larger(Exact, const BoundedOperands& x, double) { return std::max(x[0].bound, x[1].bound); }
double wave(Exact, const BoundedOperands& x, double) { return std::min(x[0].bound, 2.0); }
double product(Exact, const BoundedOperands& x, double) {
  return std::abs(x[0].value) * x[1].bound + std::abs(x[1].value) * x[0].bound + x[0].bound * x[1].bound;
}
double productAndSum(Exact exact, const BoundedOperands& x, double value) { return product(exact, x, value) + x[2].bound; }

/// The largest distance of f from f(value) on the corners of the operands' ranges; for functions that are monotone in each operand.
double atCorners(Exact exact, const BoundedOperands& x, double value) {
  double most = 0;
  for (uint32_t corner = 0; corner < 4; ++corner) {
    const double a = x[0].value + ((corner & 1) != 0 ? x[0].bound : -x[0].bound);
    const double b = x[1].value + ((corner & 2) != 0 ? x[1].bound : -x[1].bound);
    const double distance = std::abs(exact(a, b, 0) - value);
    if (std::isnan(distance)) return kUnbounded;
    most = std::max(most, distance);
  }
  return most;
}

double monotone(Exact exact, const BoundedOperands& x, double value) {
  return x[0].bound == 0 && x[1].bound == 0 ? 0 : atCorners(exact, x, value);
}

/// A logarithm, or something with a pole at 0.
double ofPositive(Exact exact, const BoundedOperands& x, double value) {
  return x[0].bound != 0 && x[0].value <= x[0].bound ? kUnbounded : monotone(exact, x, value);
}

double root(Exact exact, const BoundedOperands& x, double value) {
  const double high = std::sqrt(x[0].value + x[0].bound);
  return x[0].value < x[0].bound ? std::max(value, high - value) : monotone(exact, x, value);
}

double quotient(Exact exact, const BoundedOperands& x, double value) {
  if (x[1].bound == 0) return x[0].bound / std::abs(x[1].value);
  return straddles(x[1], 0) ? kUnbounded : atCorners(exact, x, value);
}

/// The quotient that the run took.
double remainderOf(Exact, const BoundedOperands& x, double) {
  return x[0].bound + std::abs(std::trunc(x[0].value / x[1].value)) * x[1].bound;
}

double tangent(Exact exact, const BoundedOperands& x, double value) {
  const double turns = (x[0].value - kPi / 2) / kPi;
  const bool has_pole = x[0].bound >= kPi * std::abs(turns - std::round(turns));
  return has_pole ? kUnbounded : monotone(exact, x, value);
}

/// A range that reaches beyond 1 is one of floats that were rounded there.
double ofArc(Exact exact, const BoundedOperands& x, double value) {
  const auto at = [&](double v) { return std::abs(exact(std::clamp(v, -1.0, 1.0), 0, 0) - value); };
  return std::max(at(x[0].value - x[0].bound), at(x[0].value + x[0].bound));
}

// WGSL's accuracy.

double exactResult(const BoundedOperands&, double, double) { return 0; }
double correctlyRounded(const BoundedOperands&, double, double ulp) { return ulp; }  // either neighbour
double bothRounded(const BoundedOperands& x, double, double ulp) { return ulpOf(x[0].value * x[1].value) + ulp; }
double divided(const BoundedOperands& x, double, double ulp) {
  const double divisor = std::abs(x[1].value);
  return divisor >= kSmallestNormal && divisor <= 0x1p126 ? 2.5 * ulp : kUnbounded;
}
double remainder(const BoundedOperands& x, double, double ulp) {
  const double whole = std::trunc(x[0].value / x[1].value);
  return std::abs(whole) > 0x1p23 ? kUnbounded : ulpOf(x[1].value * whole) + ulp;
}
double inverseRoot(const BoundedOperands&, double, double ulp) { return 2 * ulp; }
/// 1 / inverseSqrt(x)
double rootRounded(const BoundedOperands&, double, double ulp) { return (2 * 2 + 2.5) * ulp; }
/// Of an infinity, as a mask has it, the result is 0 or infinite wherever infinities are kept; elsewhere nothing is known of anything.
double exponential(const BoundedOperands& x, double, double ulp) {
  return std::isinf(x[0].value) ? 0 : (3 + 2 * std::abs(x[0].value)) * ulp;
}
double logarithm(const BoundedOperands& x, double, double ulp) { return x[0].value >= 0.5 && x[0].value <= 2 ? 0x1p-21 : 3 * ulp; }
double waveRounded(const BoundedOperands& x, double, double) { return std::abs(x[0].value) <= kPi ? 0x1p-11 : kUnbounded; }
/// sin(x) / cos(x)
double tangentRounded(const BoundedOperands& x, double value, double ulp) {
  const double cosine = std::abs(std::cos(x[0].value));
  if (std::abs(x[0].value) > kPi || cosine <= 0x1p-11) return kUnbounded;
  return 0x1p-11 * (1 + std::abs(value)) / (cosine - 0x1p-11) + 2.5 * ulp;
}
double arc(const BoundedOperands&, double, double ulp) { return std::max(6.81e-5, 4096 * ulp); }
double arcTangent(const BoundedOperands&, double, double ulp) { return 4096 * ulp; }
/// (exp(x) -+ exp(-x)) * 0.5
double hyperbolic(const BoundedOperands& x, double, double ulp) {
  const double a = std::abs(x[0].value), big = std::exp(a);
  return ((3 + 2 * a) * (ulpOf(big) + ulpOf(1 / big)) + ulpOf(big)) / 2 + ulp;
}
/// The worse one of 1e-5 and sinh / cosh, which is within it where both exist.
double hyperbolicTangent(const BoundedOperands&, double, double) { return 1e-5; }
/// exp2(y * log2(x))
double power(const BoundedOperands& x, double value, double ulp) {
  const double log = std::log2(x[0].value), exponent = x[1].value * log;
  const double moved = std::abs(x[1].value) * logarithm(x, log, ulpOf(log)) + ulpOf(exponent);
  return std::abs(value) * std::expm1(moved * std::numbers::ln2) + (3 + 2 * std::abs(exponent)) * ulp;
}
/// log of an argument that has an error of its own
double logarithmOf(double argument, double error, double ulp) {
  const BoundedOperands x{Bounded{argument, error}};
  return error / std::max(argument - error, std::numeric_limits<double>::min()) + logarithm(x, 0, ulp);
}
/// log(x + sqrt(x * x -+ 1))
double areaRounded(double x, double one, double ulp) {
  const double square = std::sqrt(x * x + one);
  return logarithmOf(x + square, 8 * ulpOf(std::max(std::abs(x), square)), ulp);
}
double areaSine(const BoundedOperands& x, double, double ulp) { return areaRounded(x[0].value, 1, ulp); }
double areaCosine(const BoundedOperands& x, double, double ulp) { return areaRounded(x[0].value, -1, ulp); }
/// log((1 + x) / (1 - x)) * 0.5
double areaTangent(const BoundedOperands& x, double, double ulp) {
  const double argument = (1 + x[0].value) / (1 - x[0].value);
  return logarithmOf(argument, 5 * ulpOf(argument), ulp) / 2 + ulp;
}
double half(const BoundedOperands&, double value, double) { return std::max(std::ldexp(std::abs(value), -10), 0x1p-24); }

/// An operation with a real result of real operands.
struct Row {
  Opcode op;
  Exact exact;
  Propagated propagated;
  Rounding rounding;
  bool arithmetic = false;  ///< exact where the result is a float, and may flush
};

#define LS_EXACT(expression) [](double a, double b, double c) -> double { return (void)a, (void)b, (void)c, (expression); }
constexpr Row kRows[] = {
    {Opcode::NegF, LS_EXACT(-a), same, exactResult},
    {Opcode::AbsF, LS_EXACT(std::abs(a)), same, exactResult},
    {Opcode::MinF, LS_EXACT(std::fmin(a, b)), larger, exactResult},
    {Opcode::MaxF, LS_EXACT(std::fmax(a, b)), larger, exactResult},
    {Opcode::BoolToF, LS_EXACT(a), none, exactResult},
    {Opcode::IntToF, LS_EXACT(a), none, correctlyRounded, true},
    {Opcode::UintToF, LS_EXACT(a), none, correctlyRounded, true},
    {Opcode::QuantizeToF16, LS_EXACT(a), same, half},
    {Opcode::AddF, LS_EXACT(a + b), sum, correctlyRounded, true},
    {Opcode::SubF, LS_EXACT(a - b), sum, correctlyRounded, true},
    {Opcode::MulF, LS_EXACT(a* b), product, correctlyRounded, true},
    {Opcode::Fma, LS_EXACT(a* b + c), productAndSum, bothRounded, true},
    {Opcode::MulAddF, LS_EXACT(a* b + c), productAndSum, bothRounded, true},
    {Opcode::MulSubF, LS_EXACT(a* b - c), productAndSum, bothRounded, true},
    {Opcode::NegMulAddF, LS_EXACT(c - a * b), productAndSum, bothRounded, true},
    {Opcode::DivF, LS_EXACT(a / b), quotient, divided, true},
    {Opcode::RemF, LS_EXACT(a - b * std::trunc(a / b)), remainderOf, remainder, true},
    {Opcode::Fract, LS_EXACT(a - std::floor(a)), same, correctlyRounded, true},
    {Opcode::Sqrt, LS_EXACT(std::sqrt(a)), root, rootRounded},
    {Opcode::InverseSqrt, LS_EXACT(1 / std::sqrt(a)), ofPositive, inverseRoot},
    {Opcode::Exp, LS_EXACT(std::exp(a)), monotone, exponential},
    {Opcode::Exp2, LS_EXACT(std::exp2(a)), monotone, exponential},
    {Opcode::Log, LS_EXACT(std::log(a)), ofPositive, logarithm},
    {Opcode::Log2, LS_EXACT(std::log2(a)), ofPositive, logarithm},
    {Opcode::Sin, LS_EXACT(std::sin(a)), wave, waveRounded},
    {Opcode::Cos, LS_EXACT(std::cos(a)), wave, waveRounded},
    {Opcode::Tan, LS_EXACT(std::tan(a)), tangent, tangentRounded},
    {Opcode::Asin, LS_EXACT(std::asin(a)), ofArc, arc},
    {Opcode::Acos, LS_EXACT(std::acos(a)), ofArc, arc},
    {Opcode::Atan, LS_EXACT(std::atan(a)), monotone, arcTangent},
    {Opcode::Atan2, LS_EXACT(std::atan2(a, b)), monotone, arcTangent},
    {Opcode::Sinh, LS_EXACT(std::sinh(a)), monotone, hyperbolic},
    {Opcode::Cosh, LS_EXACT(std::cosh(a)), monotone, hyperbolic},
    {Opcode::Tanh, LS_EXACT(std::tanh(a)), monotone, hyperbolicTangent},
    {Opcode::Asinh, LS_EXACT(std::asinh(a)), monotone, areaSine},
    {Opcode::Acosh, LS_EXACT(std::acosh(a)), monotone, areaCosine},
    {Opcode::Atanh, LS_EXACT(std::atanh(a)), monotone, areaTangent},
    {Opcode::Pow, LS_EXACT(std::pow(a, b)), monotone, power},
};

/// A choice of a whole number or a sign, or a comparison.
struct Choice {
  Opcode op;
  Exact exact;
  bool compares = false;  ///< a with b, which is 0 where the operation has one operand
};
constexpr Choice kChoices[] = {
    {Opcode::Floor, LS_EXACT(std::floor(a))},       {Opcode::Ceil, LS_EXACT(std::ceil(a))},
    {Opcode::Round, LS_EXACT(std::nearbyint(a))},   {Opcode::Trunc, LS_EXACT(std::trunc(a))},
    {Opcode::SignF, LS_EXACT((a > 0) - (a < 0))},   {Opcode::FloatToI, LS_EXACT(std::trunc(a))},
    {Opcode::FloatToU, LS_EXACT(std::trunc(a))},    {Opcode::FloatToBool, LS_EXACT(a != 0 ? 1 : 0), true},
    {Opcode::EqF, LS_EXACT(a == b ? 1 : 0), true},  {Opcode::NeF, LS_EXACT(a != b ? 1 : 0), true},
    {Opcode::LtF, LS_EXACT(a < b ? 1 : 0), true},   {Opcode::LeF, LS_EXACT(a <= b ? 1 : 0), true},
    {Opcode::Step, LS_EXACT(a <= b ? 1 : 0), true},
};
#undef LS_EXACT

template <class Entry, size_t N>
constexpr std::array<const Entry*, kPureOps> indexOf(const Entry (&rows)[N]) {
  std::array<const Entry*, kPureOps> index{};
  for (const Entry& row : rows) index[static_cast<size_t>(row.op)] = &row;
  return index;
}
constexpr std::array kRowOf = indexOf(kRows);
constexpr std::array kChoiceOf = indexOf(kChoices);

const Row* rowOf(Opcode op) { return op < Opcode::Splat ? kRowOf[static_cast<size_t>(op)] : nullptr; }
const Choice* choiceOf(Opcode op) { return op < Opcode::Splat ? kChoiceOf[static_cast<size_t>(op)] : nullptr; }

bool isSubnormal(double x) { return x != 0 && std::abs(x) < kSmallestNormal; }

/// Exact operands whose result is a float have no rounding.
bool isExact(const Row& row, double value, const BoundedOperands& x) {
  if (!row.arithmetic || row.rounding == divided || row.rounding == remainder) return false;
  if (x[0].bound != 0 || x[1].bound != 0 || x[2].bound != 0) return false;
  const auto is_float = [](double v) { return static_cast<double>(static_cast<float>(v)) == v; };
  const bool product_too = row.rounding != bothRounded || is_float(x[0].value * x[1].value);
  return is_float(value) && product_too && !isSubnormal(value);
}

}  // namespace

bool isContinuous(Opcode op) { return rowOf(op) != nullptr; }
bool isRounded(Opcode op) {
  const Row* row = rowOf(op);
  return row != nullptr && row->rounding != exactResult && op != Opcode::QuantizeToF16;
}
bool isChoice(Opcode op) { return choiceOf(op) != nullptr; }

double exactly(Opcode op, double a, double b, double c) {
  if (const Row* row = rowOf(op)) return row->exact(a, b, c);
  const Choice* choice = choiceOf(op);
  return choice != nullptr ? choice->exact(a, b, c) : std::numeric_limits<double>::quiet_NaN();
}

ErrorParts errorParts(Opcode op, const BoundedOperands& operands, double value) {
  ErrorParts parts;
  const Row* row = rowOf(op);
  const bool subnormal_operand = std::ranges::any_of(operands, isSubnormal, &Bounded::value);
  if (row == nullptr || (isExact(*row, value, operands) && !subnormal_operand)) return parts;
  const auto measure = [&](const BoundedOperands& x) { return row->propagated(row->exact, x, value); };
  parts.together = measure(operands);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].bound == 0) continue;
    BoundedOperands alone = operands;
    for (size_t other = 0; other < operands.size(); ++other) {
      if (other != k) alone[other].bound = 0;
    }
    parts.operands[k] = measure(alone);
  }
  const double most = std::abs(value) + parts.together;
  if (!isExact(*row, value, operands)) parts.rounding = row->rounding(operands, value, ulpOf(std::isfinite(most) ? most : value));
  if (row->rounding == exactResult) return parts;
  if (subnormal_operand) {
    BoundedOperands flushed = operands;
    for (Bounded& operand : flushed) {
      if (isSubnormal(operand.value)) operand.bound = std::max(operand.bound, std::abs(operand.value));
    }
    parts.flushed = std::max(0.0, measure(flushed) - parts.together);
  }
  if (isSubnormal(value)) parts.flushed += std::abs(value);
  return parts;
}

bool isUnstable(Opcode op, const BoundedOperands& operands) {
  const auto& [a, b, c] = operands;
  const Choice* choice = choiceOf(op);
  if (choice == nullptr || a.bound + b.bound == 0) return false;
  // Of two operands any difference may be the one.
  if (choice->compares) return std::abs(a.value - b.value) <= a.bound + b.bound;
  return choice->exact(a.value - a.bound, 0, 0) != choice->exact(a.value + a.bound, 0, 0);
}

}  // namespace lockstep::reference
