// SPDX-License-Identifier: Apache-2.0
// Beside each float of a running kernel: the real number that it stands for, in f64, how far a device's float may be from it, and which
// operations that error comes from. Control flow, and choices such as floor(), are those of the run.
//
// A shadow belongs to the bits that it was made with: where a word holds other ones, it was made by something that has no shadows, such as
// integer arithmetic, and counts as exact.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/reference/machine.h"
#include "backends/reference/sanitize/accuracy.h"

namespace lockstep::reference {

/// How an error came about.
enum class ErrorKind : uint8_t { Rounding, Cancellation, Absorption, Flush, Contraction };

/// An operation that an error comes from; site 0: there is no error.
struct ErrorOrigin {
  uint32_t packed = 0;
  ErrorOrigin() = default;
  ErrorOrigin(uint32_t site, ErrorKind kind) : packed(static_cast<uint32_t>(kind) << 28 | site) {}
  [[nodiscard]] uint32_t site() const { return packed & ((1u << 28) - 1); }
  [[nodiscard]] ErrorKind kind() const { return static_cast<ErrorKind>(packed >> 28); }
  friend auto operator<=>(const ErrorOrigin&, const ErrorOrigin&) = default;
};

struct Shadow {
  double value = 0;
  float bound = 0;
  float absorbed = 0;        ///< what a sum lost of addends that did not change it
  float product_error = 0;   ///< of a product: what its rounding left out
  uint32_t bits = 0;         ///< of the float that this belongs to
  uint32_t dispatch = 0;     ///< that made it
  uint32_t kernel = 0;       ///< of that dispatch; origins are sites of it
  ErrorOrigin origin;        ///< of the difference between the float and the value
  ErrorOrigin bound_origin;  ///< of most of the bound
};

/// A choice that another float in range would make differently.
struct UnstableChoice {
  uint64_t count = 0;
  uint64_t invocation = 0;  ///< the first one
};

class Shadows {
 public:
  /// `dispatch`: a number of its own for each dispatch, not 0. `kernel`: one for each kernel of all executables that share memory.
  Shadows(const Bytecode& code, uint32_t dispatch, uint32_t kernel);
  /// Workgroup memory is new.
  void beginGroup(uint64_t first_invocation);
  /// A pure instruction is about to run, and has run. `active`: not 0 for each lane that takes part.
  void before(const Instruction& x, const uint32_t* r);
  void after(const Instruction& x, const uint32_t* r, const uint32_t* active, uint32_t lanes);

  /// The shadow of a word of the register file, which holds `bits`.
  [[nodiscard]] Shadow of(uint32_t slot, uint32_t bits) const { return checked(file_[slot], bits); }
  void set(uint32_t slot, const Shadow& shadow) { file_[slot] = shadow; }
  /// One that was loaded from memory by the instruction: errors of other dispatches come from there.
  void setLoaded(uint32_t slot, Shadow shadow, uint32_t site);
  [[nodiscard]] std::vector<Shadow>& laneMemory() { return lane_memory_; }
  [[nodiscard]] std::vector<Shadow>& workgroupMemory() { return workgroup_memory_; }
  [[nodiscard]] uint32_t dispatch() const { return dispatch_; }
  /// The result of `op` on operands that a device may have combined in any order.
  [[nodiscard]] Shadow combined(Opcode op, std::span<const Shadow> operands, uint32_t bits, uint32_t site) const;

  /// By site.
  [[nodiscard]] const std::map<uint32_t, UnstableChoice>& unstable() const { return unstable_; }

  /// What is beside a word of memory that holds `bits`.
  [[nodiscard]] static Shadow checked(const Shadow& shadow, uint32_t bits);
  static Shadow exact(uint32_t bits);

 private:
  struct Saved {
    std::vector<uint32_t> bits;
    std::vector<Shadow> shadows;
  };
  void copy(const Instruction& x, const uint32_t* r, uint32_t lane);
  void compute(const Instruction& x, uint32_t bits, uint32_t lane);
  void findOrigins(const Instruction& x, const std::array<double, 3>& actual, const std::array<Shadow, 3>& in, const ErrorParts& parts,
                   Shadow& out) const;

  const Bytecode& code_;
  uint32_t dispatch_, kernel_;
  uint64_t first_invocation_ = 0;
  std::vector<Shadow> file_, lane_memory_, workgroup_memory_;
  std::array<Saved, 3> saved_;  ///< operands of the instruction that is running
  std::map<uint32_t, UnstableChoice> unstable_;
};

/// As one reads them; see findingsOf().
std::vector<RoundingBounds::Choice> choicesOf(const Shadows& shadows, const Bytecode& code, const kernel::Module& module,
                                              const std::string& kernel, std::array<uint32_t, 3> groups);

}  // namespace lockstep::reference
