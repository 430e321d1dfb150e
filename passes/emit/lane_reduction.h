// SPDX-License-Identifier: Apache-2.0
// Sums (and other reductions) over the lanes of each row of a workgroup, several at a time with the same barriers.
#pragma once

#include <map>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/kernel/builder.h"

namespace lockstep::passes {

/// Elements combined pair by pair, pairs of pairs and so on: few wait for one another, and sums round less than one after the other.
class PairwiseReduction {
 public:
  PairwiseReduction(kernel::Builder& builder, const graph::ReduceLowering& reduce) : b_(&builder), reduce_(&reduce) {}
  void add(kernel::ValueId element);
  /// Of one element or more.
  kernel::ValueId total();
  [[nodiscard]] const graph::ReduceLowering& reduce() const { return *reduce_; }

 private:
  kernel::Builder* b_;
  const graph::ReduceLowering* reduce_;
  size_t count_ = 0;
  std::vector<kernel::ValueId> waiting_;  ///< one for each bit of the count, the largest first
};

/// A reduction and what it is of: of one lane, then of its row.
struct LanePart {
  const graph::ReduceLowering* reduce;
  kernel::ValueId value;
};

/// Combines each part over `lanes` lanes of a subgroup, which are `stride` invocations apart; every lane gets the same bits.
void combineInSubgroup(kernel::Builder& builder, std::vector<LanePart>& parts, int64_t lanes, int64_t stride = 1);

class LaneReduction {
 public:
  struct Shape {
    int64_t lanes = 1, rows = 1;  ///< of a row; of a workgroup
    int64_t subgroup = 1;         ///< neighbouring lanes that are a subgroup; 1: nothing is known of them
  };
  struct Place {
    kernel::ValueId invocation, lane, row;
  };
  using Part = LanePart;
  LaneReduction(kernel::Builder& builder, Shape shape, Place place) : b_(builder), shape_(shape), place_(place) {}

  /// Every lane gets the same bits. At most two barriers, and one where few lanes or subgroups share a row.
  void combine(std::vector<Part>& parts);

  /// At the end of the body of a loop: what its first combine() writes has been read by all.
  void endRound();

  /// Words of workgroup memory that a kernel takes whose phases have at most `reductions` reductions.
  static int64_t words(const Shape& shape, int64_t reductions);

 private:
  /// Writes where `writes` holds (everywhere where it is invalid), waits, and combines the `count` values of the lane's row, which are
  /// `stride` apart from number `first` on.
  struct Exchange {
    kernel::ValueId writes, slot, first;
    int64_t count = 1, stride = 1, slots = 1;
  };
  void exchange(std::vector<Part>& parts, const Exchange& how);
  kernel::ValueId memory(kernel::TypeId type, size_t index, int64_t slots);

  kernel::Builder& b_;
  Shape shape_;
  Place place_;
  size_t turn_ = 0;  ///< of two sets of arrays: the barrier of the other one lies between two uses of either
  std::map<std::vector<size_t>, kernel::ValueId> memory_;
};

}  // namespace lockstep::passes
