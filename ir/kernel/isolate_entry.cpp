// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/isolate_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/support/nearest.h"

namespace lockstep::kernel {
namespace {

/// Marks what a function reaches.
class Reach {
 public:
  explicit Reach(const Module& module) : module_(module), functions_(module.functions.size()), values_(module.values.size()) {}
  /// Callees stand before callers, so one walk backwards meets every caller first; chains of calls may be as long as the module.
  void visitFunction(size_t index) {
    functions_[index] = true;
    for (size_t i = index + 1; i-- > 0;) {
      if (functions_[i]) visitBlock(module_.functions[i].body);
    }
  }
  [[nodiscard]] bool function(size_t index) const { return functions_[index]; }
  [[nodiscard]] bool value(ValueId id) const { return values_[id.index()]; }

 private:
  void visitBlock(BlockId id) {
    for (const InstructionId instruction_id : module_[id].instructions) {
      const Instruction& instruction = module_[instruction_id];
      for (const ValueId operand : instruction.operands) {
        if (operand.valid()) values_[operand.index()] = true;
      }
      if (instruction.op == Op::Call) functions_[instruction.immediate] = true;
      for (const BlockId block : instruction.blocks) visitBlock(block);
    }
  }
  const Module& module_;
  std::vector<bool> functions_, values_;
};

Result<size_t> findEntry(const Module& module, const std::string& name) {
  std::vector<std::string_view> entries;
  size_t found = module.functions.size();
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    if (!function.workgroup_size) continue;
    entries.push_back(function.name);
    if (function.name == name || name.empty()) found = i;
  }
  if (entries.empty()) return fail("run.entry", "the module has no entry point", {}, "mark a function with @compute @workgroup_size(..)");
  if (name.empty() && entries.size() > 1) {
    return fail("run.entry", "the module has several entry points", {}, suggest("", entries) + "; choose with --entry");
  }
  if (found == module.functions.size())
    return fail("run.entry", fmt::format("there is no entry point '{}'", name), {}, suggest(name, entries));
  return found;
}

}  // namespace

Result<Module> isolateEntry(const Module& module, const std::string& name) {
  LS_TRY(const size_t entry, findEntry(module, name));
  Reach reach(module);
  reach.visitFunction(entry);

  Module result = module;
  result.functions.clear();
  std::vector<uint32_t> new_index(module.functions.size(), 0);
  for (size_t i = 0; i < module.functions.size(); ++i) {
    if (!reach.function(i)) continue;
    new_index[i] = static_cast<uint32_t>(result.functions.size());
    result.functions.push_back(module.functions[i]);
  }
  // Instructions of dropped functions are unreachable and disappear below, so their immediates do not matter.
  for (Instruction& instruction : result.instructions) {
    if (instruction.op == Op::Call) instruction.immediate = new_index[instruction.immediate];
  }
  for (Value& value : result.values) {
    if (value.kind == ValueKind::Parameter) value.index = new_index[value.index];
  }
  std::erase_if(result.globals, [&](const GlobalVariable& variable) { return !reach.value(variable.value); });
  for (Value& value : result.values) {
    if (value.kind == ValueKind::Variable) value.index = 0;
  }
  for (size_t i = 0; i < result.globals.size(); ++i) result.values[result.globals[i].value.index()].index = static_cast<uint32_t>(i);
  return canonical(result, true);
}

}  // namespace lockstep::kernel
