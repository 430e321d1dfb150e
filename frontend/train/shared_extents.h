// SPDX-License-Identifier: Apache-2.0
// Private to the front end: which programs serve several extents of the dynamic axes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/trace/host_values.h"
#include "passes/graph/open_extents.h"

namespace lockstep::detail {

/// A graph for each extent up to `capacity` that it was checked for.
struct SharedExtents {
  int64_t capacity = 0;
  graph::Graph graph;
  std::vector<graph::OpenAxes> outputs;  ///< as of the graph
};
/// What an extent takes from one.
struct ChosenExtent {
  std::shared_ptr<const SharedExtents> shared;  ///< null: the extent needs a program of its own
  std::vector<double> numbers;                  ///< passes::extentNumber()
};

/// The first extent has a program of its own, and so have 1 and 2. All others share those of the next powers of two where a trace at the
/// extent says that it is right: then there are at most as many programs as there are powers of two, and none does more than twice the
/// work.
class ExtentChooser {
 public:
  using TraceAt = std::function<graph::Graph(int64_t extent)>;

  /// Traces the function where the extent is new; a trace at the capacity that throws (it is more than some table has) counts as one that
  /// cannot be shared.
  const ChosenExtent& choose(int64_t extent, const TraceAt& traceAt);
  /// No program of this capacity can be had, as when it needs too much memory.
  void refuse(int64_t capacity);

 private:
  struct Wide {
    graph::Graph traced;
    std::shared_ptr<const SharedExtents> shared;  ///< of the first extent that has one
    std::vector<double> numbers;                  ///< at the capacity itself
    bool is_refused = false;
  };
  int64_t first_ = 0;
  std::map<int64_t, Wide> wide_;            ///< by capacity
  std::map<int64_t, ChosenExtent> chosen_;  ///< by extent
};

/// The elements of an input of that extent, and after them the first ones again up to the capacity: rows that a function can take.
std::vector<std::byte> filledUp(const graph::TensorType& declared, std::span<const std::byte> bytes, int64_t extent, int64_t capacity);
/// The elements of a result that count at that extent.
HostTensor counted(const std::string& name, const graph::TensorType& type, std::span<const std::byte> bytes, const graph::OpenAxes& axes,
                   int64_t capacity, int64_t extent);

}  // namespace lockstep::detail
