// SPDX-License-Identifier: Apache-2.0
// Changes the results of float operations within what WGSL allows; see backends/perturb.h.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/perturb.h"
#include "backends/reference/bytecode.h"

namespace lockstep::reference {

class Perturber {
 public:
  Perturber(const Bytecode& code, const Perturbation& perturbation);
  void beginGroup(uint64_t group);
  /// A pure instruction is about to run, and has run.
  void before(const Instruction& x, const uint32_t* r);
  void after(const Instruction& x, uint32_t* r, const uint32_t* active, uint32_t lanes);

 private:
  uint32_t changed(Opcode op, uint32_t bits, uint32_t lane);
  const Bytecode& code_;
  Perturbation perturbation_;
  uint64_t state_ = 0;  ///< of splitmix64, the same for a group, however many threads there are
  std::array<std::vector<uint32_t>, 3> operands_;
};

}  // namespace lockstep::reference
