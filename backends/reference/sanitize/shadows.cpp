// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/shadows.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep::reference {
namespace {

/// An error that an addition makes larger by as much, relative to the result, is one of cancellation.
constexpr double kCancels = 16, kLeastCancellation = 0x1p-18;
/// A fused multiply-add that differs by so much, relative to the result, is noted.
constexpr double kContracts = 0x1p-10;
/// Units in the last place that a sum must have lost before that counts.
constexpr double kAbsorbs = 4;

bool copies(Opcode op) { return op == Opcode::Move || op == Opcode::Select || op == Opcode::UnpackHalf; }
bool adds(Opcode op) { return op == Opcode::AddF || op == Opcode::SubF || op == Opcode::Fma || multipliesAndAdds(op); }

double asDouble(Opcode op, uint32_t bits) {
  if (op == Opcode::IntToF) return static_cast<int32_t>(bits);
  if (op == Opcode::UintToF) return bits;
  if (op == Opcode::BoolToF) return bits == 0 ? 0 : 1;
  return std::bit_cast<float>(bits);
}

float roundedUp(double x) {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) < x ? std::nextafter(rounded, HUGE_VALF) : rounded;
}

/// What an addition leaves out of its result when the smaller addend does not change the larger one.
double absorbedBy(Opcode op, const std::array<double, 3>& v, double result) {
  const bool product = op != Opcode::AddF && op != Opcode::SubF;
  const double left = product ? v[0] * v[1] : v[0], right = product ? v[2] : v[1];
  const double first = op == Opcode::NegMulAddF ? -left : left;
  const double second = op == Opcode::SubF || op == Opcode::MulSubF ? -right : right;
  if (first == 0 || second == 0) return 0;
  if (result == second) return first;
  return result == first ? second : 0;
}

}  // namespace

Shadows::Shadows(const Bytecode& code, uint32_t dispatch, uint32_t kernel) : code_(code), dispatch_(dispatch), kernel_(kernel) {
  file_.resize(code.file_words);
  lane_memory_.resize(size_t{code.lane_words} * code.width);
  workgroup_memory_.resize(size_t{code.workgroup_words} * code.batch_groups);
  for (Saved& saved : saved_) {
    saved.bits.resize(code.width);
    saved.shadows.resize(code.width);
  }
}

void Shadows::beginGroup(uint64_t first_invocation) {
  first_invocation_ = first_invocation;
  std::ranges::fill(workgroup_memory_, Shadow{});
}

Shadow Shadows::exact(uint32_t bits) {
  Shadow shadow;
  shadow.value = static_cast<double>(std::bit_cast<float>(bits));
  shadow.bits = bits;
  return shadow;
}

Shadow Shadows::checked(const Shadow& shadow, uint32_t bits) { return shadow.dispatch != 0 && shadow.bits == bits ? shadow : exact(bits); }

void Shadows::setLoaded(uint32_t slot, Shadow shadow, uint32_t site) {
  if (shadow.dispatch != dispatch_) {
    if (shadow.origin.packed != 0) shadow.origin = {site, ErrorKind::Rounding};
    if (shadow.bound_origin.packed != 0) shadow.bound_origin = {site, ErrorKind::Rounding};
    shadow.absorbed = 0;
    shadow.dispatch = dispatch_;
    shadow.kernel = kernel_;
  }
  shadow.product_error = 0;  // nothing is fused across memory
  file_[slot] = shadow;
}

void Shadows::before(const Instruction& x, const uint32_t* r) {
  if (!copies(x.op) && !isChoice(x.op) && !isContinuous(x.op)) return;
  const auto operands = operandsOf(x);
  for (size_t k = 0; k < operandCount(x.op); ++k) {
    const auto& [slot, bit] = operands[k];
    const uint32_t step = (x.varying & bit) != 0 ? 1 : 0;
    for (uint32_t lane = 0; lane < ((x.varying & kVaryingDst) != 0 ? code_.width : 1); ++lane) {
      saved_[k].bits[lane] = r[slot + lane * step];
      saved_[k].shadows[lane] = file_[slot + lane * step];
    }
  }
}

void Shadows::after(const Instruction& x, const uint32_t* r, const uint32_t* active, uint32_t lanes) {
  const bool varying = (x.varying & kVaryingDst) != 0;
  if (copies(x.op)) {
    for (uint32_t lane = 0; lane < (varying ? lanes : 1); ++lane) {
      if (!varying || active[lane] != 0) copy(x, r, lane);
    }
  } else {
    const bool floats = isChoice(x.op) || isContinuous(x.op);
    for (uint32_t lane = 0; lane < (varying ? lanes : 1); ++lane) {
      if (varying && active[lane] == 0) continue;
      if (floats) {
        compute(x, r[x.dst + lane], lane);
      } else {
        file_[x.dst + lane].dispatch = 0;
      }
    }
  }
}

void Shadows::copy(const Instruction& x, const uint32_t* r, uint32_t lane) {
  // A half holds few digits of what it was rounded from, which its shadow has not kept.
  if (x.op == Opcode::UnpackHalf) {
    file_[x.dst + lane] = {};
    return;
  }
  const size_t from = x.op == Opcode::Select && saved_[2].bits[lane] != 0 ? 1 : 0;
  const Shadow& shadow = saved_[from].shadows[lane];
  file_[x.dst + lane] = shadow.bits == r[x.dst + lane] ? shadow : Shadow{};
}

void Shadows::compute(const Instruction& x, uint32_t bits, uint32_t lane) {
  const size_t count = operandCount(x.op);
  const bool is_integer = x.op == Opcode::IntToF || x.op == Opcode::UintToF || x.op == Opcode::BoolToF;
  std::array<Shadow, 3> in;
  std::array<double, 3> actual{};
  BoundedOperands operands;
  bool any = false;
  for (size_t k = 0; k < count; ++k) {
    // Bits of an integer are no float.
    in[k] = is_integer ? Shadow{} : checked(saved_[k].shadows[lane], saved_[k].bits[lane]);
    actual[k] = asDouble(x.op, saved_[k].bits[lane]);
    if (in[k].dispatch == 0) in[k].value = actual[k];
    operands[k] = {in[k].value, static_cast<double>(in[k].bound)};
    any = any || in[k].bound != 0;
  }
  if (isChoice(x.op)) {
    if (any && isUnstable(x.op, operands)) {
      UnstableChoice& choice = unstable_[x.site];
      if (choice.count++ == 0) choice.invocation = first_invocation_ + lane;
    }
    file_[x.dst + lane] = {};
    return;
  }
  Shadow& out = file_[x.dst + lane];
  out = {};
  out.bits = bits;
  out.value = exactly(x.op, operands[0].value, operands[1].value, operands[2].value);
  // fract() takes the whole number that the run took away.
  if (x.op == Opcode::Fract) out.value = operands[0].value - std::floor(actual[0]);
  const double result = static_cast<double>(std::bit_cast<float>(bits));
  if (!std::isfinite(result) || !std::isfinite(out.value)) return;
  out.dispatch = dispatch_;
  out.kernel = kernel_;
  const ErrorParts parts = errorParts(x.op, operands, out.value);
  out.bound = roundedUp(parts.total());
  if (std::isnan(out.bound)) out.bound = HUGE_VALF;
  if (x.op == Opcode::MulF) out.product_error = static_cast<float>(actual[0] * actual[1] - result);
  if (x.op == Opcode::MulF) out.absorbed = in[0].absorbed * static_cast<float>(actual[1]) + in[1].absorbed * static_cast<float>(actual[0]);
  if (adds(x.op)) {
    const bool product = x.op != Opcode::AddF && x.op != Opcode::SubF;
    const double more = absorbedBy(x.op, actual, result);
    out.absorbed = (product ? in[2].absorbed : in[0].absorbed + in[1].absorbed) + static_cast<float>(more);
  }
  findOrigins(x, actual, in, parts, out);
}

void Shadows::findOrigins(const Instruction& x, const std::array<double, 3>& actual, const std::array<Shadow, 3>& in,
                          const ErrorParts& parts, Shadow& out) const {
  const double result = static_cast<double>(std::bit_cast<float>(out.bits));
  const size_t count = operandCount(x.op);
  // The bound: of what is largest.
  double most = parts.rounding;
  out.bound_origin = {x.site, ErrorKind::Rounding};
  double fusing = std::max(std::abs(static_cast<double>(in[0].product_error)), std::abs(static_cast<double>(in[1].product_error)));
  if (x.op != Opcode::AddF && x.op != Opcode::SubF) fusing = 0;
  if (multipliesAndAdds(x.op))
    fusing = std::abs(static_cast<double>(static_cast<float>(exactly(x.op, actual[0], actual[1], actual[2]))) - result);
  const bool contracts = fusing > kContracts * std::abs(result);
  if (contracts) out.bound_origin = {x.site, ErrorKind::Contraction};
  if (parts.flushed > most) {
    most = parts.flushed;
    out.bound_origin = {x.site, ErrorKind::Flush};
  }
  for (size_t k = 0; k < count; ++k) {
    // A product that was rounded once has no other error than the one that fusing takes away.
    const bool rounded_once = contracts && parts.operands[k] <= 4 * ulpOf(in[k].value);
    if (parts.operands[k] <= most || rounded_once) continue;
    most = parts.operands[k];
    out.bound_origin = in[k].bound_origin;
  }
  if (parts.total() == 0) out.bound_origin = {};

  // The error of this run.
  const double error = result - out.value;
  if (error == 0) return;
  const double own = result - exactly(x.op, actual[0], actual[1], actual[2]);
  const double relative = std::abs(error) / std::abs(out.value);
  double relative_in = 0x1p-24, largest = std::abs(own);
  out.origin = {x.site, ErrorKind::Rounding};
  for (size_t k = 0; k < count; ++k) {
    const double moved = actual[k] - in[k].value;
    if (moved == 0) continue;
    relative_in = std::max(relative_in, std::abs(moved) / std::abs(in[k].value));
    std::array<double, 3> at{in[0].value, in[1].value, in[2].value};
    at[k] = actual[k];
    const double share = std::abs(exactly(x.op, at[0], at[1], at[2]) - out.value);
    if (share < largest) continue;
    largest = share;
    out.origin = in[k].origin;
  }
  if (!adds(x.op)) return;
  if (relative > kLeastCancellation && relative > kCancels * relative_in) out.origin = {x.site, ErrorKind::Cancellation};
  const bool grew = std::abs(out.absorbed) > std::max({std::abs(in[0].absorbed), std::abs(in[1].absorbed), std::abs(in[2].absorbed)});
  if (grew && std::abs(static_cast<double>(out.absorbed)) > kAbsorbs * ulpOf(result)) out.origin = {x.site, ErrorKind::Absorption};
}

Shadow Shadows::combined(Opcode op, std::span<const Shadow> operands, uint32_t bits, uint32_t site) const {
  Shadow out;
  if (operands.empty()) return out;
  out = operands.front();
  for (const Shadow& next : operands.subspan(1)) {
    const BoundedOperands pair{Bounded{out.value, static_cast<double>(out.bound)}, Bounded{next.value, static_cast<double>(next.bound)}};
    const double value = exactly(op, pair[0].value, pair[1].value, 0);
    out.bound = roundedUp(errorParts(op, pair, value).total());
    out.value = value;
  }
  out.bits = bits;
  out.dispatch = dispatch_;
  out.kernel = kernel_;
  out.absorbed = 0;
  const double result = static_cast<double>(std::bit_cast<float>(bits));
  if (!std::isfinite(result) || !std::isfinite(out.value)) return {};
  out.bound_origin = out.bound != 0 ? ErrorOrigin{site, ErrorKind::Rounding} : ErrorOrigin{};
  out.origin = result != out.value ? ErrorOrigin{site, ErrorKind::Rounding} : ErrorOrigin{};
  return out;
}

}  // namespace lockstep::reference
