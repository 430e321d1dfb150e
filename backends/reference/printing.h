// SPDX-License-Identifier: Apache-2.0
// The lines of `print`, kept while a dispatch runs: the first ones by invocation, whichever thread runs what.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::reference {

struct PrintRecord {
  uint64_t invocation = 0;      ///< workgroup * lanes of a workgroup + local_invocation_index
  uint32_t site = 0;            ///< 1 + kernel instruction id
  std::vector<uint32_t> words;  ///< the scalars of the operands; an f16 as the f32 of the same value
};

class PrintLog {
 public:
  /// Whether a line of the invocation may still be among the first; else it is counted as left out.
  bool wants(uint64_t invocation);
  void add(PrintRecord record);
  /// Everything of a log of other invocations.
  void take(PrintLog other);
  /// Forgets invocations from this one on, and how many lines were left out: after a fault, that depends on the threads.
  void dropFrom(uint64_t invocation);
  /// The first lines by invocation, those of one as they came.
  std::vector<PrintRecord> sorted();
  [[nodiscard]] uint64_t leftOut() const { return left_out_; }

 private:
  void compact();
  std::vector<PrintRecord> records_;
  uint64_t left_out_ = 0;
  uint64_t limit_ = UINT64_MAX;  ///< there are enough lines of invocations below this one, and of itself
};

}  // namespace lockstep::reference
