// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/link.h"

#include <algorithm>

namespace lockstep::kernel {
namespace {

class Linker {
 public:
  Linker(Module& module, const Module& part) : to_(module), from_(part) {
    first_value_ = to_.values.size();
    first_block_ = to_.blocks.size();
    first_instruction_ = to_.instructions.size();
    first_function_ = to_.functions.size();
  }

  std::vector<FunctionId> run(const std::vector<ValueId>& variables) {
    for (size_t i = 0; i < from_.types.size(); ++i) types_.push_back(type(from_.types[TypeId(i)]));
    for (size_t i = 0; i < from_.values.size(); ++i) values_.emplace_back(first_value_ + i);
    for (size_t i = 0; i < from_.globals.size(); ++i) {
      if (variables[i].valid()) values_[from_.globals[i].value.index()] = variables[i];
    }
    for (const Value& value : from_.values) to_.values.push_back(shifted(value));
    for (size_t i = 0; i < from_.globals.size(); ++i) {
      if (!variables[i].valid()) global(from_.globals[i]);
    }
    for (const Block& block : from_.blocks) {
      to_.blocks.push_back(block);
      for (InstructionId& id : to_.blocks.back().instructions) id = InstructionId(first_instruction_ + id.index());
    }
    for (const Instruction& instruction : from_.instructions) to_.instructions.push_back(shifted(instruction));
    std::vector<FunctionId> functions;
    for (const Function& function : from_.functions) {
      functions.emplace_back(to_.functions.size());
      to_.functions.push_back(shifted(function));
    }
    to_.capabilities.insert(to_.capabilities.end(), from_.capabilities.begin(), from_.capabilities.end());
    std::sort(to_.capabilities.begin(), to_.capabilities.end());
    to_.capabilities.erase(std::unique(to_.capabilities.begin(), to_.capabilities.end()), to_.capabilities.end());
    return functions;
  }

 private:
  /// What a type is made of stands before it in the table.
  TypeId type(Type copy) {
    if (copy.element.valid()) copy.element = types_[copy.element.index()];
    for (Member& member : copy.members) member.type = types_[member.type.index()];
    return to_.types.intern(copy);
  }
  [[nodiscard]] ValueId value(ValueId old) const { return old.valid() ? values_[old.index()] : old; }

  [[nodiscard]] Value shifted(Value value) const {
    value.type = types_[value.type.index()];
    for (ValueId& element : value.elements) element = values_[element.index()];
    if (value.kind == ValueKind::Parameter) value.index += static_cast<uint32_t>(first_function_);
    if (value.kind == ValueKind::Instruction) value.index += static_cast<uint32_t>(first_instruction_);
    return value;
  }

  void global(GlobalVariable copy) {
    copy.value = value(copy.value);
    copy.type = types_[copy.type.index()];
    copy.initializer = value(copy.initializer);
    to_.values[copy.value.index()].index = static_cast<uint32_t>(to_.globals.size());
    to_.globals.push_back(std::move(copy));
  }

  [[nodiscard]] Instruction shifted(Instruction instruction) const {
    instruction.type = types_[instruction.type.index()];
    instruction.result = value(instruction.result);
    for (ValueId& operand : instruction.operands) operand = value(operand);
    for (BlockId& block : instruction.blocks) block = BlockId(first_block_ + block.index());
    if (instruction.op == Op::Call) instruction.immediate += static_cast<uint32_t>(first_function_);
    instruction.location = 0;
    return instruction;
  }

  [[nodiscard]] Function shifted(Function function) const {
    for (Parameter& parameter : function.parameters) parameter = {value(parameter.value), Builtin::None};
    function.return_type = types_[function.return_type.index()];
    function.body = BlockId(first_block_ + function.body.index());
    function.workgroup_size.reset();
    function.subgroup_size = 0;
    return function;
  }

  Module& to_;
  const Module& from_;
  size_t first_value_ = 0, first_block_ = 0, first_instruction_ = 0, first_function_ = 0;
  std::vector<TypeId> types_;
  std::vector<ValueId> values_;
};

}  // namespace

std::vector<FunctionId> link(Module& module, const Module& part, const std::vector<ValueId>& variables) {
  return Linker(module, part).run(variables);
}

}  // namespace lockstep::kernel
