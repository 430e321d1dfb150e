// SPDX-License-Identifier: Apache-2.0
// The node that a group is made around, with what its kernel needs to know of it. Each group has one, but for maps.
#pragma once

#include "ir/graph/op_def.h"

namespace lockstep::passes {

/// The contraction of a "contract" body.
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

/// The op with templates of a "template" body.
struct TemplateNode {
  graph::NodeId node;
  std::string_view shader;
  graph::TemplateShape shape;
};
TemplateNode findTemplate(const graph::Graph& body);

/// The scan of a "scan" body: `outer` x `inner` lines of `length` elements.
struct ScanSpace {
  graph::NodeId node;
  int64_t outer = 1, length = 1, inner = 1;
  bool is_total = false;  ///< one result per line
};
ScanSpace scanSpace(const graph::Graph& body);

/// The first reduction of a "rows" or "columns" body: `results` of `length` elements each.
struct ReduceSpace {
  graph::NodeId node;
  int64_t results = 1, length = 1;
};
ReduceSpace reduceSpace(const graph::Graph& body);

}  // namespace lockstep::passes
