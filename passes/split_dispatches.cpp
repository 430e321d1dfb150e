// SPDX-License-Identifier: Apache-2.0
#include "passes/split_dispatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "passes/access.h"
#include "passes/kernel_table.h"
#include "passes/row_slices.h"
#include "passes/strategy.h"

namespace lockstep::passes {

using namespace graph;
using program::Command;
using program::DeviceProfile;
using program::Dispatch;
using program::Program;
using program::Range;
using program::SymbolicKernel;

namespace {

/// The values of a body in the order of its dispatch's bindings.
std::vector<ValueId> boundValues(const Graph& body) {
  std::vector<ValueId> values = inputsOf(body);
  for (const Output& output : body.outputs) values.push_back(output.value);
  return values;
}

bool tooLarge(const Dispatch& dispatch, const DeviceProfile& profile) {
  return std::any_of(dispatch.bindings.begin(), dispatch.bindings.end(),
                     [&](const Range& range) { return range.size > profile.max_binding_bytes; });
}

struct State {
  const Program& in;
  const DeviceProfile& profile;
  KernelTable kernels;

  const SymbolicKernel& kernelOf(const Dispatch& dispatch) const { return std::get<SymbolicKernel>(in[dispatch.kernel].code); }

  Failure refuse(const Command& command, const Dispatch& dispatch) const {
    const Range& range = *std::max_element(dispatch.bindings.begin(), dispatch.bindings.end(),
                                           [](const Range& a, const Range& b) { return a.size < b.size; });
    const auto* symbolic = std::get_if<SymbolicKernel>(&in[dispatch.kernel].code);
    const std::vector<Location> locations = symbolic == nullptr ? std::vector<Location>{} : symbolic->body.locations;
    return fail("splitDispatches.binding",
                fmt::format("tensor '{}' takes {} bytes and the device binds at most {}; '{}' does not run in slices of it",
                            in[range.buffer].name, range.size, profile.max_binding_bytes, command.label),
                locations.empty() ? Location{} : locations.front(), "use a smaller batch or a device with larger bindings");
  }

  /// The largest number of rows whose share of every binding is within the limit and starts at an offset that can be bound; 0 when there is
  /// none.
  int64_t rowsPerSlice(const Dispatch& dispatch, const RowCut& cut, const std::vector<ValueId>& values) const {
    auto limit = static_cast<int64_t>(profile.max_binding_bytes), alignment = static_cast<int64_t>(profile.min_offset_alignment);
    int64_t most = cut.rows, granule = 1;
    for (size_t i = 0; i < values.size(); ++i) {
      auto size = static_cast<int64_t>(dispatch.bindings[i].size);
      if (!cut.cut[values[i].index()]) {
        if (size > limit) return 0;
        continue;
      }
      int64_t row = size / cut.rows;
      most = std::min(most, limit / row);
      granule = std::lcm(granule, alignment / std::gcd(alignment, row));
    }
    return most / granule * granule;
  }

  Status split(const Command& command, const Dispatch& dispatch, std::vector<Command>& out) {
    const SymbolicKernel& whole = kernelOf(dispatch);
    std::optional<RowCut> cut;
    if (whole.strategy == "map" || whole.strategy == "rows") cut = cutRows(whole.body);
    if (!cut.has_value()) return refuse(command, dispatch);
    std::vector<ValueId> values = boundValues(whole.body);
    int64_t step = rowsPerSlice(dispatch, *cut, values);
    if (step == 0) return refuse(command, dispatch);
    for (int64_t row = 0; row < cut->rows; row += step) {
      int64_t rows = std::min(step, cut->rows - row);
      std::optional<Graph> body = sliceRows(whole.body, *cut, rows);
      if (!body.has_value()) return refuse(command, dispatch);
      // The kind of a group is the strategy's name for maps and rows.
      LS_TRY(StrategyChoice choice, chooseStrategy({*body, whole.strategy, profile, false}));
      Dispatch slice{kernels.add({std::move(*body), choice.strategy, choice.parameters}), choice.groups, dispatch.bindings};
      for (size_t i = 0; i < values.size(); ++i) {
        if (!cut->cut[values[i].index()]) continue;
        Range& range = slice.bindings[i];
        uint64_t row_bytes = range.size / static_cast<uint64_t>(cut->rows);
        range.offset += row_bytes * static_cast<uint64_t>(row);
        range.size = row_bytes * static_cast<uint64_t>(rows);
      }
      out.push_back({std::move(slice), command.level, command.label});
    }
    return Success{};
  }
};

}  // namespace

Result<Program> splitDispatches(const Program& in, const SplitDispatchesConfig& config) {
  State state{in, config.profile, {}};
  std::vector<Command> commands;
  for (const Command& command : in.commands) {
    const auto* dispatch = std::get_if<Dispatch>(&command.action);
    const auto* module = dispatch == nullptr ? nullptr : std::get_if<kernel::Module>(&in[dispatch->kernel].code);
    if (module != nullptr) {  // the user's own
      if (tooLarge(*dispatch, config.profile)) return state.refuse(command, *dispatch);
      commands.push_back(command);
      std::get<Dispatch>(commands.back().action).kernel = state.kernels.add(module->name, *module);
      continue;
    }
    if (dispatch != nullptr && tooLarge(*dispatch, config.profile)) {
      LS_CHECK(state.split(command, *dispatch, commands));
      continue;
    }
    commands.push_back(command);
    if (dispatch != nullptr) std::get<Dispatch>(commands.back().action).kernel = state.kernels.add(state.kernelOf(*dispatch));
  }
  Program program = in;
  if (commands.size() == in.commands.size()) return program;
  program.commands = std::move(commands);
  program.kernels = state.kernels.take();
  return program;
}

}  // namespace lockstep::passes
