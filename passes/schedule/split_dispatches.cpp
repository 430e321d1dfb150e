// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/split_dispatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "passes/fuse/views.h"
#include "passes/schedule/binding_windows.h"
#include "passes/schedule/choose_plan.h"
#include "passes/schedule/kernel_table.h"
#include "passes/schedule/row_slices.h"
#include "passes/schedule/word_owners.h"

namespace lockstep::passes {

using namespace graph;
using program::Command;
using program::DeviceProfile;
using program::Dispatch;
using program::Program;
using program::Range;
using program::SymbolicKernel;

namespace {

constexpr uint64_t kWord = 4;

/// What a row takes. The rows of packed elements have no padding between them.
int64_t rowBytes(const TensorType& type, const RowCut& cut) {
  return type.shape.elementCount() / cut.rows * static_cast<int64_t>(byteSize(type.dtype));
}

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

  /// The tensor as its user knows it: a parameter by its own name, which is part of a state with all of them.
  [[nodiscard]] std::string nameOf(const Range& range) const {
    const program::Buffer& buffer = in[range.buffer];
    if (buffer.role == program::ArenaRole::State) {
      for (const ParameterLayout::Slot& slot : layoutParameters(in.parameters).slots) {
        const uint64_t bytes = byteSize(buffer.type.dtype);
        if (static_cast<uint64_t>(slot.offset) * bytes == range.offset && static_cast<uint64_t>(slot.size) * bytes == range.size)
          return fmt::format("parameter '{}'", slot.name);
      }
    }
    return fmt::format("tensor '{}'", buffer.name);
  }

  [[nodiscard]] Failure refuse(const Command& command, const Dispatch& dispatch, const std::string& why) const {
    const Range& range = *std::ranges::max_element(dispatch.bindings, {}, &Range::size);
    const std::vector<Location> locations = std::visit([](const auto& code) { return locationsOf(code); }, in[dispatch.kernel].code);
    return fail(
        "splitDispatches.binding",
        fmt::format("{} takes {} bytes and the device binds at most {}; {}", nameOf(range), range.size, profile.max_binding_bytes, why),
        locations.empty() ? Location{} : locations.front(),
        fmt::format("cut the tensor into parts along one axis before '{}', or choose a device with larger bindings (lockstep devices)",
                    command.label));
  }
  static std::vector<Location> locationsOf(const SymbolicKernel& kernel) { return kernel.body.locations; }
  static std::vector<Location> locationsOf(const kernel::Module& module) { return module.locations; }

  /// The largest number of rows whose share of every binding that is cut is within the limit and starts at an offset that can be bound; 0
  /// when there is none, or when what every row reads whole takes too many windows.
  [[nodiscard]] int64_t rowsPerSlice(const Dispatch& dispatch, const RowCut& cut, const std::vector<ValueId>& values) const {
    auto limit = static_cast<int64_t>(profile.max_binding_bytes), alignment = static_cast<int64_t>(profile.min_offset_alignment);
    int64_t most = cut.rows, granule = 1;
    std::vector<Range> bound = dispatch.bindings;  // of a slice, as far as their number goes
    for (size_t i = 0; i < values.size(); ++i) {
      if (!cut.cut[values[i].index()]) continue;
      bound[i].size = std::min(bound[i].size, profile.max_binding_bytes);
      const int64_t row = rowBytes(kernelOf(dispatch).body.typeOf(values[i]), cut);
      most = std::min(most, limit / row);
      granule = std::lcm(granule, alignment / std::gcd(alignment, row));
    }
    const size_t inputs = inputsOf(kernelOf(dispatch).body).size();
    return countBindings(bound, inputs, profile) > profile.max_storage_buffers ? 0 : most / granule * granule;
  }

  /// Whether no word of a packed result has two writers, as packStores saw to for the whole.
  static bool storesWholeWords(const PlanQuery& query) {
    for (size_t i = 0; i < query.body.outputs.size(); ++i) {
      if (graph::isPacked(query.body.typeOf(query.body.outputs[i].value).dtype) && !ownsWords(query, i)) return false;
    }
    return true;
  }

  /// One slice after the other, where the kernel works row by row; false where it does not.
  bool slice(const Command& command, const Dispatch& dispatch, std::vector<Command>& out) {
    const SymbolicKernel& whole = kernelOf(dispatch);
    const graph::GroupKind kind = program::kindOf(whole.plan);
    if (kind != graph::GroupKind::Map && kind != graph::GroupKind::Rows && kind != graph::GroupKind::Scan) return false;
    const std::optional<RowCut> cut = cutRows(whole.body);
    if (!cut) return false;
    const std::vector<ValueId> values = boundValues(whole.body);
    const int64_t step = rowsPerSlice(dispatch, *cut, values);
    if (step == 0) return false;
    std::vector<Command> slices;
    for (int64_t row = 0; row < cut->rows; row += step) {
      int64_t rows = std::min(step, cut->rows - row);
      std::optional<Graph> body = sliceRows(whole.body, *cut, rows);
      if (!body) return false;
      const PlanQuery query{*body, kind, profile, false};
      auto choice = choosePlan(query);
      if (!choice || !storesWholeWords(query)) return false;
      Dispatch part{kernels.add({std::move(*body), std::move(choice->plan)}), choice->groups, dispatch.bindings};
      for (size_t i = 0; i < values.size(); ++i) {
        if (!cut->cut[values[i].index()]) continue;
        Range& range = part.bindings[i];
        const auto row_bytes = static_cast<uint64_t>(rowBytes(whole.body.typeOf(values[i]), *cut));
        range.offset += row_bytes * static_cast<uint64_t>(row);
        range.size = (row_bytes * static_cast<uint64_t>(rows) + kWord - 1) / kWord * kWord;
      }
      slices.push_back({std::move(part), command.level, command.label});
    }
    std::ranges::move(slices, std::back_inserter(out));
    return true;
  }

  /// A dispatch above the limit: in slices, else whole with windows, which emit makes.
  Status split(const Command& command, const Dispatch& dispatch, std::vector<Command>& out) {
    if (slice(command, dispatch, out)) return Success{};
    const SymbolicKernel& whole = kernelOf(dispatch);
    const size_t bindings = countBindings(dispatch.bindings, inputsOf(whole.body).size(), profile);
    if (bindings > profile.max_storage_buffers) {
      return refuse(command, dispatch,
                    fmt::format("'{}' would need {} bindings of that size and a kernel has {}", command.label, bindings,
                                profile.max_storage_buffers));
    }
    out.push_back(command);
    std::get<Dispatch>(out.back().action).kernel = kernels.add(whole);
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
      if (tooLarge(*dispatch, config.profile)) return state.refuse(command, *dispatch, "a kernel of your own binds each tensor whole");
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
  program.commands = std::move(commands);
  program.kernels = state.kernels.take();
  return program;
}

}  // namespace lockstep::passes
