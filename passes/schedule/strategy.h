// SPDX-License-Identifier: Apache-2.0
// How a group becomes a kernel: the table of strategies. `schedule` asks it for a choice, `emit` for the code.
#pragma once

#include <array>
#include <string>

#include "ir/graph/op_def.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct StrategyChoice {
  std::string strategy;          ///< name of a row below
  graph::Attributes parameters;  ///< its numbers
  std::array<uint32_t, 3> groups{1, 1, 1};
};

/// What a strategy is asked about: a group's body as a self-contained graph.
struct StrategyQuery {
  const graph::Graph& body;
  std::string_view kind;  ///< as clusters.h prints them: "map", "rows", ...
  const program::DeviceProfile& profile;
  bool templates;  ///< shaders/ are at hand
};

/// Loop bodies per round where a device limits the rounds of loops; 1 unless a strategy chose more.
int64_t unrollOf(const graph::Attributes& parameters);

/// The rounds that a kernel of ours is planned for: a little below the device's limit. A number that no plan reaches where there is none.
int64_t plannedRounds(const program::DeviceProfile& profile);
/// Whether one of the templates for contractions sums the whole inner axis within the planned rounds.
bool sumsWithinRounds(const graph::ContractShape& shape, const program::DeviceProfile& profile);

/// Of a scatter: indices that a lane looks at between two barriers, and rows per word of the masks.
inline constexpr int64_t kIndicesPerLane = 8, kMaskBits = 32;

/// Rows: map, rows, columns, scan, scatter, naive_contract, shared_tiled, register_rows. Fails when a tensor is beyond the device's limits.
Result<StrategyChoice> chooseStrategy(const StrategyQuery& query);

/// Splits a flat number of workgroups over x and y, so that neither is above the device's limit.
std::array<uint32_t, 3> splitGroups(uint64_t groups, const program::DeviceProfile& profile);

/// The contraction of a "contract" body, with the nodes that belong to it.
struct ContractNode {
  graph::NodeId node;
  graph::ContractShape shape;
};
ContractNode findContract(const graph::Graph& body);
/// The scatter of a "scatter" body.
struct ScatterNode {
  graph::NodeId node;
  graph::ScatterShape shape;
};
ScatterNode findScatter(const graph::Graph& body);
/// The scan of a "scan" body: `outer` x `inner` lines of `length` elements.
struct ScanSpace {
  graph::NodeId node;
  int64_t outer = 1, length = 1, inner = 1;
};
ScanSpace scanSpace(const graph::Graph& body);
/// The first reduction of a "rows" or "columns" body.
graph::NodeId findReduce(const graph::Graph& body);

}  // namespace lockstep::passes
