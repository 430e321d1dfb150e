// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what a user's function appends to a trace, taken out of it again as a graph of its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/trace/trace.h"

namespace lockstep::detail {

/// A function of a graph's own.
struct DetachedGraph {
  graph::Graph graph;                    ///< with leaves for what it was given, and capture0, ... for the rest
  std::vector<graph::ValueId> captures;  ///< of the trace, by number of the leaf
  bool is_random = false;                ///< it has a leaf with the name of the key of random ops (kRandomKeyInput)
};

/// From its construction to its end, what is traced belongs to the function.
class Detached {
 public:
  /// `op` names the call in messages: "scan.capture" for what a function must not do.
  Detached(Trace& trace, std::string_view op, const Where& where);
  ~Detached();
  Detached(const Detached&) = delete;
  Detached& operator=(const Detached&) = delete;

  [[nodiscard]] Tensor input(const std::string& name, const TensorType& type);
  /// What the function computes, with outputs of these names. Errors "<op>.capture" for a function that captures or prints a tensor and
  /// "<op>.buffer" for one that updates a buffer.
  [[nodiscard]] DetachedGraph take(const std::vector<Tensor>& results, const std::vector<std::string>& names);

 private:
  Trace& trace_;
  std::string_view op_;
  const Where& where_;
  size_t nodes_ = 0, values_ = 0, body_ = 0, outputs_ = 0;
};

}  // namespace lockstep::detail
