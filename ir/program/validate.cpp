// SPDX-License-Identifier: Apache-2.0
// What a program needs beyond its structure to run: kernels that are valid, buffers that are placed, bindings that fit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/program/limits.h"
#include "ir/program/program.h"
#include "ir/program/text.h"
#include "ir/support/text.h"

namespace lockstep::program {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program) : program_(program), problems_(program), profile_(program.profile) {}

  Status run(std::vector<kernel::ValidModule>& modules) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].arena.valid()) continue;
      problems_.add(&TextLines::buffers, i, "program.buffer", fmt::format("buffer {} is not placed", quote(program_.buffers[i].name)));
    }
    for (size_t i = 0; i < program_.kernels.size(); ++i) kernel(i, modules);
    if (problems_.none()) {
      for (size_t i = 0; i < program_.commands.size(); ++i) {
        if (const auto* dispatch = std::get_if<Dispatch>(&program_.commands[i].action)) this->dispatch(i, *dispatch);
        if (profile_.whole_buffer_access) usage(i);
      }
    }
    return problems_.status();
  }

 private:
  // The resources of a module by binding number.
  using Bindings = std::map<uint32_t, const kernel::GlobalVariable*>;

  void kernel(size_t index, std::vector<kernel::ValidModule>& modules) {
    const auto* module = std::get_if<kernel::Module>(&program_.kernels[index].code);
    auto wrong = [&](std::string message) {
      problems_.add(&TextLines::kernels, index, "program.kernel",
                    fmt::format("kernel {} {}", quote(program_.kernels[index].name), message));
    };
    if (module == nullptr) return wrong("is not emitted");
    auto valid = kernel::validate(*module);
    if (!valid.ok()) return problems_.addKernel(index, valid.diagnostics());
    modules.push_back(std::move(*valid));
    const kernel::Function* entry_point = module->entryPoint();
    if (entry_point == nullptr) return wrong("has no entry point");
    Bindings& bindings = bindings_.emplace_back();
    for (const kernel::GlobalVariable& global : module->globals) {
      if (!kernel::isBound(global.space)) continue;
      if (global.group != 0)
        wrong(fmt::format("has variable {} in group {}, but a program binds group 0", quote(global.name), global.group));
      if (!bindings.emplace(global.binding, &global).second) wrong(fmt::format("has binding {} twice", global.binding));
    }
    const auto immediates = std::ranges::count(module->globals, kernel::AddressSpace::Immediate, &kernel::GlobalVariable::space);
    if (immediates > 1) wrong(fmt::format("has {} immediate variables, but a dispatch gives data for one", immediates));
    // Distinct keys that are all smaller than their number are 0, 1, 2, ...
    if (!bindings.empty() && bindings.rbegin()->first != bindings.size() - 1) wrong("has bindings that are not 0, 1, 2, ...");
    for (const LimitUse& use : limitUses(*module, profile_)) {
      if (use.exceeds()) wrong(fmt::format("has {} {}, but profile {} allows {}", use.used, use.what, profile_.name, use.allowed));
    }
  }

  void dispatch(size_t index, const Dispatch& dispatch) {
    auto wrong = [&](std::string_view code, std::string message) {
      problems_.add(&TextLines::commands, index, std::string(code), fmt::format("{} {}", describe(program_, index), message));
    };
    const Bindings& bindings = bindings_[dispatch.kernel.index()];
    const auto& module = std::get<kernel::Module>(program_[dispatch.kernel].code);
    if (dispatch.bindings.size() != bindings.size()) {
      return wrong("program.binding", fmt::format("binds {} ranges, but kernel {} has {} bindings", dispatch.bindings.size(),
                                                  quote(program_[dispatch.kernel].name), bindings.size()));
    }
    const uint64_t given = dispatch.immediates.size() * sizeof(uint32_t), taken = kernel::immediateBytes(module);
    if (given != taken) {
      wrong("program.binding",
            fmt::format("gives {} bytes of immediate data, but kernel {} takes {}", given, quote(program_[dispatch.kernel].name), taken));
    }
    for (const LimitUse& use : limitUses(dispatch.groups, profile_)) {
      if (!use.exceeds()) continue;
      wrong("program.groups", fmt::format("runs {} {}, but profile {} allows {}", use.used, use.what, profile_.name, use.allowed));
    }
    for (const auto& [number, global] : bindings) {
      const Range& range = dispatch.bindings[number];
      bool kernel_writes = global->access != kernel::Access::Read;
      bool range_writes = range.access != kernel::Access::Read;
      if (kernel_writes != range_writes) {
        wrong("program.access", fmt::format("has access {} to binding {}, but the kernel's variable {} has {}",
                                            kernel::toString(range.access), number, quote(global->name), kernel::toString(global->access)));
      }
      if (uint64_t least = module.types.sizeOf(global->type); range.size < least) {
        wrong("program.binding", fmt::format("gives {} bytes to binding {}, whose variable {} takes at least {}", range.size, number,
                                             quote(global->name), least));
      }
      uint64_t alignment = profile_.min_offset_alignment;
      if (uint64_t offset = program_[range.buffer].offset + range.offset; offset % alignment != 0) {
        wrong("program.alignment",
              fmt::format("has binding {} at offset {} of its arena, which is not a multiple of {}", number, offset, alignment));
      }
      if (range.step % static_cast<int64_t>(alignment) != 0) {
        wrong("program.alignment",
              fmt::format("moves binding {} by {} bytes per iteration, which is not a multiple of {}", number, range.step, alignment));
      }
      if (range.size > profile_.max_binding_bytes) {
        wrong("program.binding", fmt::format("gives {} bytes of buffer {} to binding {}, but profile {} allows {}", range.size,
                                             quote(program_[range.buffer].name), number, profile_.name, profile_.max_binding_bytes));
      }
    }
  }

  // Where an allocation is in one usage at a time, a command that writes it may not read other bytes of it.
  void usage(size_t index) {
    std::map<ArenaId, kernel::Access> usages;
    for (const Range& range : accesses(program_.commands[index])) {
      ArenaId arena = program_[range.buffer].arena;
      if (usages.try_emplace(arena, range.access).first->second == range.access) continue;
      return problems_.add(&TextLines::commands, index, "program.usage",
                           fmt::format("{} reads and writes arena {}, which profile {} does not allow", describe(program_, index),
                                       quote(program_[arena].name), profile_.name),
                           "put what it reads and what it writes into different arenas");
    }
  }

  const Program& program_;
  Problems problems_;
  const DeviceProfile& profile_;
  std::vector<Bindings> bindings_;  ///< by kernel, when all of them are valid
};

}  // namespace

Result<ValidProgram> validate(Program program) {
  LS_CHECK(validateStructure(program));
  std::vector<kernel::ValidModule> modules;
  LS_CHECK(Validator(program).run(modules));
  return ValidProgram(std::move(program), std::move(modules));
}

}  // namespace lockstep::program
