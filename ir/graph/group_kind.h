// SPDX-License-Identifier: Apache-2.0
// What the members of a group have in common, which says how a kernel can be made of them: the attribute `kind` of op `group`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::graph {

enum class GroupKind : uint8_t {
  Map,       ///< elements alone
  Rows,      ///< reductions over the rows of one space, with the elements around them; sums by columns over blocks of its rows beside them
  Columns,   ///< reductions over other axes
  Scan,      ///< a scan along an axis
  Scatter,   ///< sums of the rows that an index names
  Contract,  ///< a contraction with what was fused into its operands and its result
  Template,  ///< an op with templates, with the views of its operands
  RowChain   ///< contractions and reductions of the same rows, one after the other, with the elements around them
};
inline constexpr std::array kGroupKinds{GroupKind::Map,     GroupKind::Rows,     GroupKind::Columns,  GroupKind::Scan,
                                        GroupKind::Scatter, GroupKind::Contract, GroupKind::Template, GroupKind::RowChain};

constexpr std::string_view toString(GroupKind kind) {
  switch (kind) {
    case GroupKind::Map:
      return "map";
    case GroupKind::Rows:
      return "rows";
    case GroupKind::Columns:
      return "columns";
    case GroupKind::Scan:
      return "scan";
    case GroupKind::Scatter:
      return "scatter";
    case GroupKind::Contract:
      return "contract";
    case GroupKind::Template:
      return "template";
    case GroupKind::RowChain:
      return "row_chain";
  }
  return {};
}

constexpr std::optional<GroupKind> parseGroupKind(std::string_view text) {
  for (const GroupKind kind : kGroupKinds) {
    if (toString(kind) == text) return kind;
  }
  return std::nullopt;
}

/// Whether a node reduces the last axes, so that each result is of one row.
bool reducesRows(const Graph& graph, const Node& node);

/// What keeps `nodes` of a graph from being a kernel of this kind; empty: nothing. `inputs`: leaves named `input` may be among them.
std::string misfit(GroupKind kind, const Graph& graph, const std::vector<NodeId>& nodes, bool inputs);

/// Of a valid group.
inline GroupKind kindOf(const Node& group) {
  const std::optional<GroupKind> kind = parseGroupKind(group.attributes.get<std::string>("kind"));
  if (!kind) internalError("a group has a kind that does not exist");
  return *kind;
}

}  // namespace lockstep::graph
