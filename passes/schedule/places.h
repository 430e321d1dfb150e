// SPDX-License-Identifier: Apache-2.0
// Where the values of a graph are in memory: leaves, packs, outputs and next versions of states have their places before there is any
// command; all else gets a buffer of its own when somebody asks for it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/schedule/schedule.h"

namespace lockstep::passes {

struct Place {
  program::BufferId buffer;
  uint64_t offset = 0;  ///< bytes
};

/// What has to be copied because it cannot be made where it belongs.
struct PendingCopy {
  graph::ValueId source;
  Place target;
};

class Places {
 public:
  /// Adds buffers, constants, inputs, states and outputs to `program`. `copied`: states that are updated by copies in any case.
  Places(const graph::Graph& graph, const ScheduleConfig& config, const std::set<graph::ValueId>& copied, program::Program& program);

  /// The leaf or group result that a chain of contiguous slices starts from.
  [[nodiscard]] graph::ValueId root(graph::ValueId value) const;
  /// The leaf that a state's version belongs to, or the root of any other value.
  graph::ValueId storageOf(graph::ValueId value);
  Place of(graph::ValueId value);
  program::Range rangeOf(graph::ValueId value, kernel::Access access);

  /// The copies that make parts of a pack, or the next version of a state; none for any other value.
  [[nodiscard]] const std::vector<PendingCopy>& copiesFor(graph::ValueId made) const;
  [[nodiscard]] const std::vector<PendingCopy>& outputCopies() const { return output_copies_; }
  /// By value that is made in the bytes of a state: the state.
  [[nodiscard]] const std::map<graph::ValueId, graph::ValueId>& madeInPlace() const { return in_place_; }

 private:
  program::BufferId newBuffer(std::string name, const graph::TensorType& type, program::ArenaRole role, double initial = 0);
  void placeLeaves();
  void placeUpdates();
  void placePacks();
  void placeOutputs();
  [[nodiscard]] bool mayOwn(graph::ValueId value) const;
  [[nodiscard]] bool updatesInPlace(graph::ValueId value, graph::ValueId state, const program::Range& written);

  const graph::Graph& graph_;
  const ScheduleConfig& config_;
  const std::set<graph::ValueId>& copied_;
  program::Program& program_;
  std::map<graph::ValueId, Place> places_;
  std::map<graph::ValueId, size_t> uses_;             // counted only where mayOwn() asks
  std::map<graph::ValueId, graph::ValueId> storage_;  // by version of a state: the leaf
  std::map<graph::ValueId, graph::ValueId> in_place_;
  std::map<graph::ValueId, std::vector<PendingCopy>> copies_;  // by the pack or state that is complete once they have run
  std::vector<PendingCopy> output_copies_;
};

}  // namespace lockstep::passes
