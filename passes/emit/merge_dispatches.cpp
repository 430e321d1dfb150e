// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/merge_dispatches.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "ir/kernel/builder.h"
#include "ir/kernel/link.h"
#include "ir/kernel/queries.h"
#include "passes/cost.h"
#include "passes/emit/loop_budget.h"
#include "passes/emit/merged_parts.h"
#include "passes/schedule/kernel_table.h"
#include "passes/visits.h"

namespace lockstep::passes {

using kernel::AddressSpace;
using kernel::Builtin;
using kernel::Function;
using kernel::GlobalVariable;
using kernel::Module;
using kernel::Op;
using kernel::TypeKind;
using kernel::ValueId;
using program::Command;
using program::DeviceProfile;
using program::Dispatch;
using program::KernelId;
using program::Program;

namespace {

constexpr uint32_t kPartsWithoutCount = 16;
// Of a level that are looked at for one more part; the others are older and mostly full.
constexpr size_t kMostBins = 16;

bool isSmall(const Dispatch& dispatch, const DeviceProfile& profile) {
  return dispatch.groups[0] <= cost::kGroupsPerUnit * profile.parallel_units && dispatch.groups[1] == 1 && dispatch.groups[2] == 1;
}

/// Builds one kernel of several.
class Merger {
 public:
  void add(const Part& part) {
    const Module& module = *part.kernel->module;
    const std::vector<size_t> places = shared_.add(part);
    std::vector<ValueId> variables;
    for (size_t i = 0; i < places.size(); ++i) variables.push_back(existing(module, i, places[i]));
    const size_t old_globals = module_.globals.size();
    const std::vector<kernel::FunctionId> functions = link(module_, module, variables);
    // New variables come in the order of the part.
    size_t next = old_globals;
    for (size_t i = 0; i < places.size(); ++i) {
      if (variables[i].valid()) continue;
      GlobalVariable& global = module_.globals[next];
      if (kernel::isBound(global.space)) {
        global.binding = static_cast<uint32_t>(places[i]);
        bindings_.push_back(next);
      } else if (global.space == AddressSpace::Workgroup) {
        memory_.push_back(next);
      }
      ++next;
    }
    for (size_t i = 0; i < functions.size(); ++i) {
      const Function& function = module.functions[i];
      if (!function.workgroup_size) continue;
      module_.functions[functions[i].index()].name = "part" + std::to_string(calls_.size());
      calls_.push_back({functions[i], function.parameters, groups_});
      workgroup_size_ = *function.workgroup_size;
      subgroup_size_ = std::max(subgroup_size_, function.subgroup_size);
    }
    groups_ += part.dispatch.groups[0];
    name_ += (name_.empty() ? "" : "_") + module.name;
  }

  Module take() {
    kernel::Builder b(std::move(module_));
    kernel::FunctionId main = b.function("main", b.types().voidType());
    ValueId id = b.parameter(main, "group_id", b.types().vector(kernel::Scalar::U32, 3), Builtin::WorkgroupId);
    ValueId lane = b.parameter(main, "lane", b.types().u32(), Builtin::LocalInvocationIndex);
    b.setWorkgroupSize(main, workgroup_size_);
    b.setSubgroupSize(main, subgroup_size_);
    b.enterFunction(main);
    ValueId group = b.extract(id, 0u);
    auto call = [&](const Call& called) {
      ValueId shifted = id;
      if (called.first_group > 0) {
        ValueId own = b.make(Op::Sub, {group, b.u32(called.first_group)});
        shifted = b.construct(b.typeIdOf(id), {own, b.u32(0), b.u32(0)});
      }
      std::vector<ValueId> arguments;
      for (const kernel::Parameter& parameter : called.parameters) {
        arguments.push_back(parameter.builtin == Builtin::WorkgroupId ? shifted : lane);
      }
      b.call(called.function, std::move(arguments));
    };
    std::function<void(size_t)> callFrom = [&](size_t i) {
      if (i + 1 == calls_.size()) return call(calls_[i]);
      ValueId is_own = b.make(Op::Lt, {group, b.u32(calls_[i + 1].first_group)});
      b.ifThen(is_own, [&] { call(calls_[i]); }, [&] { callFrom(i + 1); });
    };
    callFrom(0);
    Module merged = kernel::canonical(b.take(), true);
    merged.name = name_;
    return merged;
  }

 private:
  struct Call {
    kernel::FunctionId function;
    std::vector<kernel::Parameter> parameters;
    uint32_t first_group = 0;
  };

  /// The variable that takes the place of one of a part; invalid where there is none yet.
  ValueId existing(const Module& part, size_t index, size_t place) {
    const GlobalVariable& wanted = part.globals[index];
    if (kernel::isBound(wanted.space)) return place < bindings_.size() ? module_.globals[bindings_[place]].value : ValueId{};
    if (wanted.space != AddressSpace::Workgroup || place >= memory_.size()) return ValueId{};
    GlobalVariable& global = module_.globals[memory_[place]];
    const kernel::Type mine = module_.types[global.type];
    global.type = module_.types.array(mine.element, std::max(mine.count, part.types[wanted.type].count));
    module_.values[global.value.index()].type = module_.types.pointer(global.space, global.type, global.access);
    return global.value;
  }

  Module module_;
  SharedVariables shared_;
  std::vector<size_t> bindings_, memory_;  // the globals of the shared ones
  std::vector<Call> calls_;
  std::array<uint32_t, 3> workgroup_size_{1, 1, 1};
  uint32_t subgroup_size_ = 0;  ///< that of the device where a part wants one
  uint32_t groups_ = 0;
  std::string name_;
};

/// Dispatches that become one, or a command that stays as it is.
struct Bin {
  Command command;          // the first one
  std::vector<Part> parts;  // none: it stays
  SharedVariables shared;   // of the parts
  std::vector<size_t> key;  // what the merged kernel depends on: kernels, workgroups, and which variables are shared
  uint64_t rounds = 0;      // of the parts

  void add(Part part) {
    const std::vector<size_t> places = shared.add(part);
    key.insert(key.end(), {part.dispatch.kernel.index(), part.dispatch.groups[0]});
    key.insert(key.end(), places.begin(), places.end());
    rounds += part.kernel->rounds;
    parts.push_back(std::move(part));
  }

  /// The bindings that a part saves here; nullopt where it does not fit.
  [[nodiscard]] std::optional<size_t> saves(const Part& part, const DeviceProfile& profile) const {
    if (parts.empty() || part.kernel->workgroup_size != parts.front().kernel->workgroup_size) return std::nullopt;
    if (profile.max_loop_iterations > 0 && rounds + part.kernel->rounds > profile.max_loop_iterations) return std::nullopt;
    const bool holds_up =
        std::ranges::any_of(parts, [&](const Part& other) { return isHeldUp(part, other, profile) || isHeldUp(other, part, profile); });
    if (holds_up) return std::nullopt;
    SharedVariables all = shared;
    (void)all.add(part);
    if (all.bindings() > profile.max_storage_buffers || all.workgroupBytes() > profile.max_workgroup_bytes) return std::nullopt;
    return shared.bindings() + part.dispatch.bindings.size() - all.bindings();
  }
};

/// Puts a part where it shares the most. False when it fits nowhere.
bool join(std::vector<Bin>& bins, const Part& part, const DeviceProfile& profile) {
  Bin* best = nullptr;
  size_t most = 0;
  for (Bin& bin : std::span(bins).last(std::min(bins.size(), kMostBins))) {
    countVisits();
    std::optional<size_t> saves = bin.saves(part, profile);
    if (!saves || (best != nullptr && *saves <= most)) continue;
    best = &bin;
    most = *saves;
  }
  if (best != nullptr) best->add(part);
  return best != nullptr;
}

/// The program that is made, level by level.
class Rewriter {
 public:
  Rewriter(const Program& in, const DeviceProfile& profile) : in_(in), profile_(profile), out_(in) { out_.commands.clear(); }

  Program run() {
    for (size_t i = 0; i < in_.commands.size(); ++i) {
      add(in_.commands[i]);
      if (i + 1 == in_.commands.size() || in_.commands[i + 1].level != in_.commands[i].level) finishLevel();
    }
    out_.kernels = kernels_.take();
    return std::move(out_);
  }

 private:
  void add(const Command& command) {
    Bin bin{.command = command, .parts = {}, .shared = {}, .key = {}};
    if (const auto* dispatch = std::get_if<Dispatch>(&command.action); dispatch != nullptr && isSmall(*dispatch, profile_)) {
      Part part{&factsOf(dispatch->kernel), *dispatch, command.label};
      if (part.kernel->is_callable) {
        if (join(bins_, part, profile_)) return;
        bin.add(std::move(part));
      }
    }
    bins_.push_back(std::move(bin));
  }

  void finishLevel() {
    for (Bin& bin : bins_) {
      Command& command = bin.command;
      if (bin.parts.size() > 1) {
        command = merged(bin);
      } else if (auto* dispatch = std::get_if<Dispatch>(&command.action)) {
        dispatch->kernel = kept(dispatch->kernel);
      }
      out_.commands.push_back(std::move(command));
    }
    bins_.clear();
  }

  Command merged(const Bin& bin) {
    uint32_t groups = 0;
    std::string label;
    for (const Part& part : bin.parts) {
      groups += part.dispatch.groups[0];
      label += (label.empty() ? "" : ", ") + part.label;
    }
    auto [found, inserted] = merged_.try_emplace(bin.key, KernelId{});
    if (inserted) {
      Merger merger;
      for (const Part& part : bin.parts) merger.add(part);
      Module module = merger.take();
      const std::string name = module.name;
      found->second = kernels_.add(name, std::move(module));
    }
    Dispatch dispatch{.kernel = found->second, .groups = {groups, 1, 1}, .bindings = bin.shared.ranges()};
    return {std::move(dispatch), bin.command.level, std::move(label)};
  }

  const KernelFacts& factsOf(KernelId kernel) {
    auto [found, inserted] = facts_.try_emplace(kernel);
    if (inserted) {
      const auto& module = std::get<Module>(in_[kernel].code);
      found->second = passes::factsOf(module);
      // Counted exactly where the plain bound would keep more than a few such parts apart.
      const bool counts = profile_.max_loop_iterations > 0 && found->second.is_callable;
      if (counts) found->second.rounds = roundsOf(module, profile_.max_loop_iterations / kPartsWithoutCount);
    }
    return found->second;
  }

  KernelId kept(KernelId old) {
    auto [found, inserted] = kept_.try_emplace(old, KernelId{});
    const auto& module = std::get<Module>(in_[old].code);
    if (inserted) found->second = kernels_.add(module.name, module);
    return found->second;
  }

  const Program& in_;
  const DeviceProfile& profile_;
  Program out_;
  KernelTable kernels_;
  std::map<KernelId, KernelId> kept_;
  std::map<KernelId, KernelFacts> facts_;
  std::map<std::vector<size_t>, KernelId> merged_;
  std::vector<Bin> bins_;  // of the level
};

}  // namespace

Program mergeDispatches(const Program& program, const DeviceProfile& profile) {
  return profile.whole_buffer_access ? program : Rewriter(program, profile).run();
}

}  // namespace lockstep::passes
