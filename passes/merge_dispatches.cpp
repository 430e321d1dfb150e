// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_dispatches.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "ir/kernel/builder.h"
#include "ir/kernel/link.h"
#include "passes/kernel_table.h"
#include "passes/loop_budget.h"

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

constexpr uint32_t kGroupsPerUnit = 4;
constexpr uint32_t kPartsWithoutCount = 16;

/// A dispatch with its kernel.
struct Part {
  Module module;
  Dispatch dispatch;  // its kernel is `module`
  std::string label;
  uint64_t rounds = 0;  // of its loops; what a workgroup does not run counts too, as drivers run both arms of an `if`
};

/// Its one entry point asks for nothing but the workgroup and the lane, so others can be given to it.
bool isCallable(const Module& module) {
  auto isEntry = [](const Function& function) { return function.workgroup_size.has_value(); };
  if (std::ranges::count_if(module.functions, isEntry) != 1) return false;
  for (size_t i = 0; i < module.types.size(); ++i) {
    if (module.types[kernel::TypeId(i)].kind == TypeKind::Struct) return false;  // another part may have one of the same name
  }
  return std::ranges::all_of(module.entryPoint()->parameters, [](const kernel::Parameter& parameter) {
    return parameter.builtin == Builtin::WorkgroupId || parameter.builtin == Builtin::LocalInvocationIndex;
  });
}

bool isSmall(const Dispatch& dispatch, const DeviceProfile& profile) {
  return dispatch.groups[0] <= kGroupsPerUnit * profile.parallel_units && dispatch.groups[1] == 1 && dispatch.groups[2] == 1;
}

/// As program::validate counts them: each array begins at a multiple of 16.
uint32_t workgroupBytes(const Module& module) {
  uint32_t bytes = 0;
  for (const GlobalVariable& global : module.globals)
    bytes += global.space == AddressSpace::Workgroup ? (module.types.sizeOf(global.type) + 15) / 16 * 16 : 0;
  return bytes;
}

/// Builds one part of several.
class Merger {
 public:
  void add(const Part& part) {
    const std::vector<ValueId> variables = variablesFor(part);
    const size_t old_globals = module_.globals.size();
    const std::vector<kernel::FunctionId> functions = link(module_, part.module, variables);
    for (size_t i = old_globals; i < module_.globals.size(); ++i) {
      GlobalVariable& global = module_.globals[i];
      if (!kernel::isBound(global.space)) continue;
      dispatch_.bindings.push_back(part.dispatch.bindings[global.binding]);
      global.binding = static_cast<uint32_t>(dispatch_.bindings.size() - 1);
    }
    for (size_t i = 0; i < functions.size(); ++i) {
      const Function& function = part.module.functions[i];
      if (!function.workgroup_size) continue;
      module_.functions[functions[i].index()].name = "part" + std::to_string(calls_.size());
      calls_.push_back({functions[i], function.parameters, groups_});
      workgroup_size_ = *function.workgroup_size;
    }
    groups_ += part.dispatch.groups[0];
    label_ += (label_.empty() ? "" : ", ") + part.label;
    rounds_ += part.rounds;
    name_ += (name_.empty() ? "" : "_") + part.module.name;
  }

  Part take() {
    kernel::Builder b(std::move(module_));
    kernel::FunctionId main = b.function("main", b.types().voidType());
    ValueId id = b.parameter(main, "group_id", b.types().vector(kernel::Scalar::U32, 3), Builtin::WorkgroupId);
    ValueId lane = b.parameter(main, "lane", b.types().u32(), Builtin::LocalInvocationIndex);
    b.setWorkgroupSize(main, workgroup_size_);
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
    dispatch_.groups = {groups_, 1, 1};
    Part merged{kernel::canonical(b.take()), std::move(dispatch_), std::move(label_), rounds_};
    merged.module.name = name_;
    return merged;
  }

 private:
  struct Call {
    kernel::FunctionId function;
    std::vector<kernel::Parameter> parameters;
    uint32_t first_group = 0;
  };

  /// Which variable each one of a part becomes; invalid for those that the parts so far do not have.
  std::vector<ValueId> variablesFor(const Part& part) {
    std::vector<ValueId> variables;
    std::vector<size_t> taken;  // of the workgroup memory
    for (const GlobalVariable& global : part.module.globals) {
      ValueId found;
      for (size_t i = 0; i < module_.globals.size() && !found.valid(); ++i) {
        const GlobalVariable& candidate = module_.globals[i];
        if (candidate.space != global.space) continue;
        if (kernel::isBound(global.space)) {
          bool same = dispatch_.bindings[candidate.binding] == part.dispatch.bindings[global.binding] &&
                      module_.types.toString(candidate.type) == part.module.types.toString(global.type);
          if (same) found = candidate.value;
        } else if (global.space == AddressSpace::Workgroup && std::ranges::find(taken, i) == taken.end() && grow(i, part.module, global)) {
          taken.push_back(i);
          found = candidate.value;
        }
      }
      variables.push_back(found);
    }
    return variables;
  }

  /// Makes an array of the workgroup memory hold another one too. False when their elements differ, and for memory that starts as zero: its
  /// size is what a kernel of a user may rely on.
  bool grow(size_t index, const Module& other, const GlobalVariable& wanted) {
    GlobalVariable& global = module_.globals[index];
    const kernel::Type mine = module_.types[global.type];
    const kernel::Type& theirs = other.types[wanted.type];
    if (global.zero_initialized || wanted.zero_initialized) return false;
    if (mine.kind != TypeKind::Array || theirs.kind != TypeKind::Array) return false;
    if (module_.types.toString(mine.element) != other.types.toString(theirs.element)) return false;
    global.type = module_.types.array(mine.element, std::max(mine.count, theirs.count));
    module_.values[global.value.index()].type = module_.types.pointer(global.space, global.type, global.access);
    return true;
  }

  Module module_;
  Dispatch dispatch_;
  std::vector<Call> calls_;
  std::array<uint32_t, 3> workgroup_size_{1, 1, 1};
  uint32_t groups_ = 0;
  uint64_t rounds_ = 0;
  std::string label_, name_;
};

Part merge(const std::vector<Part>& parts) {
  Merger merger;
  for (const Part& part : parts) merger.add(part);
  return merger.take();
}

/// Dispatches that become one, or a command that stays as it is.
struct Bin {
  Command command;          // the first one
  std::vector<Part> parts;  // none: it stays
  Part merged;

  /// The bindings that a part saves here; nullopt where it does not fit.
  [[nodiscard]] std::optional<size_t> saves(const Part& part, const DeviceProfile& profile) const {
    if (parts.empty() || part.module.entryPoint()->workgroup_size != merged.module.entryPoint()->workgroup_size) return std::nullopt;
    if (profile.max_loop_iterations > 0 && merged.rounds + part.rounds > profile.max_loop_iterations) return std::nullopt;
    std::vector<Part> more = parts;
    more.push_back(part);
    const Part all = merge(more);
    if (all.dispatch.bindings.size() > profile.max_storage_buffers || workgroupBytes(all.module) > profile.max_workgroup_bytes) {
      return std::nullopt;
    }
    return merged.dispatch.bindings.size() + part.dispatch.bindings.size() - all.dispatch.bindings.size();
  }
};

/// Puts a part where it shares the most. False when it fits nowhere.
bool join(std::vector<Bin>& bins, const Part& part, const DeviceProfile& profile) {
  Bin* best = nullptr;
  size_t most = 0;
  for (Bin& bin : bins) {
    std::optional<size_t> saves = bin.saves(part, profile);
    if (!saves || (best != nullptr && *saves <= most)) continue;
    best = &bin;
    most = *saves;
  }
  if (best == nullptr) return false;
  best->parts.push_back(part);
  best->merged = merge(best->parts);
  return true;
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
    Bin bin{.command = command, .parts = {}, .merged = {}};
    if (const auto* dispatch = std::get_if<Dispatch>(&command.action); dispatch != nullptr && isSmall(*dispatch, profile_)) {
      Part part{std::get<Module>(in_[dispatch->kernel].code), *dispatch, command.label, roundsIn(dispatch->kernel)};
      if (isCallable(part.module)) {
        if (join(bins_, part, profile_)) return;
        bin.parts = {part};
        bin.merged = std::move(part);
      }
    }
    bins_.push_back(std::move(bin));
  }

  void finishLevel() {
    for (Bin& bin : bins_) {
      Command& command = bin.command;
      if (bin.parts.size() > 1) {
        Dispatch dispatch = std::move(bin.merged.dispatch);
        dispatch.kernel = kernels_.add(bin.merged.module.name, bin.merged.module);
        command = {std::move(dispatch), command.level, std::move(bin.merged.label)};
      } else if (auto* dispatch = std::get_if<Dispatch>(&command.action)) {
        dispatch->kernel = kept(dispatch->kernel);
      }
      out_.commands.push_back(std::move(command));
    }
    bins_.clear();
  }

  /// Counted exactly where the plain bound would keep more than a few such parts apart.
  uint64_t roundsIn(KernelId kernel) {
    if (profile_.max_loop_iterations == 0) return 0;
    auto [found, inserted] = rounds_.try_emplace(kernel, 0);
    if (inserted) found->second = roundsOf(std::get<Module>(in_[kernel].code), profile_.max_loop_iterations / kPartsWithoutCount);
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
  std::map<KernelId, uint64_t> rounds_;
  std::vector<Bin> bins_;  // of the level
};

}  // namespace

Program mergeDispatches(const Program& program, const DeviceProfile& profile) {
  return profile.whole_buffer_access ? program : Rewriter(program, profile).run();
}

}  // namespace lockstep::passes
