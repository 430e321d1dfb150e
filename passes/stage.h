// SPDX-License-Identifier: Apache-2.0
// How far a program has come on its way from a traced function to kernels, and what it may hold there: a table, which the driver compares
// with the form before and after every pass.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "ir/graph/graph.h"
#include "ir/program/program.h"

namespace lockstep::passes {

/// What passes take and give, with its text: lockstep.graph or lockstep.program.
using Form = std::variant<graph::Graph, program::Program>;

std::string print(const Form& form);
/// Reads and checks a text of either form.
Result<Form> parseForm(std::string_view text, const std::string& file_name);

enum class Stage : uint8_t {
  Traced,          ///< as the function made it
  Differentiated,  ///< with the gradients that were asked for
  Updated,         ///< with the update; parameters are views of a flat state
  Primitive,       ///< nothing is left that stands for other ops
  Grouped,         ///< what is computed stands in groups, which become kernels
  Scheduled,       ///< commands and buffers; kernels are plans
  Planned,         ///< buffers have their places
  Emitted,         ///< kernels are kernel IR
  Optimized        ///< the kernel passes have run
};

/// A set of alternatives of graph::Lowering, by index.
using Set = uint32_t;

struct StageRule {
  Stage stage;
  std::string_view name;    ///< "traced"
  bool is_program = false;  ///< else a graph
  Set lowerings = 0;        ///< of the nodes of a graph
  Set in_groups = 0;        ///< of the members of its groups
  bool placed = false;      ///< programs: every buffer has its place
  bool emitted = false;     ///< programs: every kernel is kernel IR
};
/// By stage.
const std::array<StageRule, 9>& stageRules();
std::string_view toString(Stage stage);

/// What is wrong with a form at a stage, in words: "holds 'softmax', which stands for other ops"; empty: nothing.
std::string illegalAt(Stage stage, const Form& form);

/// Of a program by what it holds: Scheduled, Planned or Emitted.
Stage stageOf(const program::Program& program);

}  // namespace lockstep::passes
