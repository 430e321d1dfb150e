// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/perturber.h"

#include <bit>
#include <cmath>

#include "backends/reference/sanitize/accuracy.h"
#include "ir/support/splitmix.h"

namespace lockstep::reference {
Perturber::Perturber(const Bytecode& code, const Perturbation& perturbation) : code_(code), perturbation_(perturbation) {
  for (std::vector<uint32_t>& row : operands_) row.resize(code.width);
}

void Perturber::beginGroup(uint64_t group) {
  state_ = perturbation_.seed;
  state_ = splitmix64(state_) ^ group;
  state_ = splitmix64(state_);
}

void Perturber::before(const Instruction& x, const uint32_t* r) {
  if (!isRounded(x.op)) return;
  const auto operands = operandsOf(x);
  const uint32_t lanes = (x.varying & kVaryingDst) != 0 ? code_.width : 1;
  for (size_t k = 0; k < operandCount(x.op); ++k) {
    const auto& [slot, bit] = operands[k];
    const uint32_t step = (x.varying & bit) != 0 ? 1 : 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) operands_[k][lane] = r[slot + lane * step];
  }
}

void Perturber::after(const Instruction& x, uint32_t* r, const uint32_t* active, uint32_t lanes) {
  if (!isRounded(x.op)) return;
  const bool varying = (x.varying & kVaryingDst) != 0;
  for (uint32_t lane = 0; lane < (varying ? lanes : 1); ++lane) {
    if (!varying || active[lane] != 0) r[x.dst + lane] = changed(x.op, r[x.dst + lane], lane);
  }
}

uint32_t Perturber::changed(Opcode op, uint32_t bits, uint32_t lane) {
  auto result = std::bit_cast<float>(bits);
  if (!std::isfinite(result)) return bits;
  std::array<double, 3> operands{};
  for (size_t k = 0; k < operandCount(op); ++k) {
    const uint32_t word = operands_[k][lane];
    operands[k] = op == Opcode::IntToF    ? static_cast<int32_t>(word)
                  : op == Opcode::UintToF ? word
                                          : static_cast<double>(std::bit_cast<float>(word));
  }
  const double exact = exactly(op, operands[0], operands[1], operands[2]);
  if (perturbation_.contraction && multipliesAndAdds(op) && std::isfinite(static_cast<float>(exact))) result = static_cast<float>(exact);
  if (perturbation_.rounding && static_cast<double>(result) != exact && (splitmix64(state_) & 1) != 0) {
    const float other = std::nextafter(result, exact > static_cast<double>(result) ? HUGE_VALF : -HUGE_VALF);
    if (std::isfinite(other)) result = other;
  }
  if (perturbation_.truncation && std::abs(static_cast<double>(result)) > std::abs(exact)) result = std::nextafter(result, 0.0f);
  if (perturbation_.flush && std::fpclassify(result) == FP_SUBNORMAL) result = std::copysign(0.0f, result);
  return std::bit_cast<uint32_t>(result);
}

}  // namespace lockstep::reference
