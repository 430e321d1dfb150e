// SPDX-License-Identifier: Apache-2.0
// Which operations of the model a command computes, and where the user called them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "ir/support/location.h"

namespace lockstep::tools {

/// An operation of a group.
struct OpOrigin {
  std::string op;     ///< "matmul"
  std::string value;  ///< the type of its result: "f32[256,64]"
  Location where;     ///< the user's call; unknown for what a pass added
};

struct CommandOrigin {
  std::vector<OpOrigin> ops;                   ///< what the command computes, in order; views are left out
  std::map<program::BufferId, OpOrigin> made;  ///< by buffer: the operation whose result it holds
  /// The operation that made a buffer, or the last one with a known place; null if there is none.
  [[nodiscard]] const OpOrigin* makerOf(program::BufferId buffer) const;
};

/// One entry for each command of `last`. `grouped` is what `schedule` took, `scheduled` what it gave. Commands that are found in neither
/// have no operations.
std::vector<CommandOrigin> originsOf(const graph::Graph& grouped, const program::Program& scheduled, const program::Program& last);

/// The same from the stages of the dump that a program's file lies in; without operations where it lies in none.
std::vector<CommandOrigin> originsFrom(const std::filesystem::path& folder, const program::Program& last);

/// "matmul, add and relu at examples/models/mlp.cpp:24:21" and the like, one line for each place.
std::vector<std::string> placesOf(const CommandOrigin& origin);

}  // namespace lockstep::tools
