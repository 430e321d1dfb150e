// SPDX-License-Identifier: Apache-2.0
// Kernel IR -> scalar code: module scope and control flow. Values are in lower_values.cpp, memory in lower_memory.cpp.
#include "backends/reference/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/inlined_size.h"
#include "ir/kernel/spread_matrices.h"

namespace lockstep::reference {

using kernel::AddressSpace;
using kernel::Op;
using kernel::OpGroup;
using kernel::TypeKind;
using kernel::ValueKind;

namespace {

bool has(const kernel::Module& module, kernel::Capability capability) {
  return std::find(module.capabilities.begin(), module.capabilities.end(), capability) != module.capabilities.end();
}

bool hasF16(const kernel::Module& module) {
  auto isF16 = [&](const kernel::Value& value) {
    const kernel::Type& type = module.types[value.type];
    bool scalars = type.kind == TypeKind::Scalar || type.kind == TypeKind::Vector || type.kind == TypeKind::Matrix;
    return scalars && type.scalar == kernel::Scalar::F16;
  };
  return has(module, kernel::Capability::F16) || std::any_of(module.values.begin(), module.values.end(), isF16);
}

void flattenInto(const kernel::TypeTable& types, kernel::TypeId id, uint32_t unit, uint32_t word, std::vector<Component>& out) {
  const kernel::Type& type = types[id];
  const uint32_t step = (type.scalar == kernel::Scalar::F16 ? 2 : 4) / unit;
  switch (type.kind) {
    case TypeKind::Scalar:
    case TypeKind::Atomic:
      out.push_back({type.scalar, word});
      return;
    case TypeKind::Vector:
      for (uint32_t k = 0; k < type.rows; ++k) out.push_back({type.scalar, word + k * step});
      return;
    case TypeKind::Matrix:
      for (uint32_t c = 0; c < type.columns; ++c)
        for (uint32_t r = 0; r < type.rows; ++r) out.push_back({type.scalar, word + c * types.columnStride(id) / unit + r * step});
      return;
    case TypeKind::Array:
      for (uint32_t k = 0; k < type.count; ++k) flattenInto(types, type.element, unit, word + k * types.strideOf(id) / unit, out);
      return;
    case TypeKind::Struct:
      for (const kernel::Member& member : type.members) flattenInto(types, member.type, unit, word + member.offset / unit, out);
      return;
    case TypeKind::Void:
    case TypeKind::Pointer:
    case TypeKind::SubgroupMatrix:
      return;
  }
}

}  // namespace

std::vector<Component> flatten(const kernel::TypeTable& types, kernel::TypeId type, uint32_t unit) {
  std::vector<Component> out;
  flattenInto(types, type, unit, 0, out);
  return out;
}

bool hasHalves(const kernel::TypeTable& types, kernel::TypeId id) {
  const kernel::Type& type = types[id];
  if (type.kind == TypeKind::Array) return hasHalves(types, type.element);
  if (type.kind == TypeKind::Struct)
    return std::ranges::any_of(type.members, [&](const kernel::Member& member) { return hasHalves(types, member.type); });
  return type.scalar == kernel::Scalar::F16;
}

Result<Code> lower(const kernel::Module& module, const SubgroupShape& subgroups, const Watched& watched) {
  const kernel::Function* entry = module.entryPoint();
  if (entry == nullptr) return fail("reference.no_entry_point", "the kernel has no entry point");
  LS_CHECK(kernel::checkInlinedSize(module, *entry, "reference.limit"));
  const uint32_t lanes = entry->subgroup_size == 0 ? subgroups.size : entry->subgroup_size;
  const std::array<uint32_t, 3> size = *entry->workgroup_size;
  if (kernel::hasSubgroupMatrices(module) && size[0] * size[1] * size[2] % lanes != 0) {
    return fail("reference.subgroups",
                fmt::format("{} has subgroup matrices, and its workgroup of {} x {} x {} is not a multiple of the subgroup size {}",
                            entry->name, size[0], size[1], size[2], lanes),
                {}, "make the workgroup a multiple of the subgroup size");
  }
  LS_TRY(const kernel::InlinedModule inlined, kernel::spreadMatrices(kernel::inlineAllCalls(module), lanes));
  return Lowering(inlined).run(subgroups, watched);
}

Result<Code> Lowering::run(const SubgroupShape& subgroups, const Watched& wanted) {
  watched = wanted;
  const kernel::Function* entry = m.entryPoint();
  if (hasF16(m)) unit = 2;
  code.name = entry->name;
  code.workgroup_size = *entry->workgroup_size;
  values.resize(m.values.size());
  pointers.resize(m.values.size());
  layouts.resize(types.size());
  findIndexedVariables();
  findBitNumbers();
  for (size_t k = 0; k < 3; ++k) {
    code.local_id[k] = newRegister();
    code.group_id[k] = newRegister();
    code.group_count[k] = newRegister();
  }
  code.subgroups = entry->subgroup_size == 0 ? subgroups : SubgroupShape{.size = entry->subgroup_size};
  code.subgroup_lane = newRegister();
  code.subgroup_id = newRegister();
  LS_CHECK(addGlobals());
  addBuiltins(*entry);
  Step scope{.kind = StepKind::Scope, .construct = code.construct_count++};
  whole = scope.construct;
  inside(scope.body, [&] { block(entry->body); });
  emit(std::move(scope));
  code.divergent.resize(code.construct_count, false);
  return std::move(code);
}

/// A variable lives in registers unless some index into it is computed at run time.
void Lowering::findIndexedVariables() {
  indexed.assign(m.values.size(), false);
  std::vector<kernel::ValueId> root(m.values.size());
  auto rootOf = [&](kernel::ValueId id) { return root[id.index()].valid() ? root[id.index()] : id; };
  auto visit = [&](auto& self, kernel::BlockId block) -> void {
    for (kernel::InstructionId id : m[block].instructions) {
      const KernelInstruction& x = m[id];
      if (x.op == Op::Access) {
        root[x.result.index()] = rootOf(x.operands[0]);
        for (size_t k = 1; k < x.operands.size(); ++k)
          if (m[x.operands[k]].kind != ValueKind::Constant) indexed[rootOf(x.operands[0]).index()] = true;
      }
      for (kernel::BlockId child : x.blocks) self(self, child);
    }
  };
  visit(visit, m.entryPoint()->body);
}

Status Lowering::addGlobals() {
  const auto bound = std::ranges::count_if(m.globals, [](const kernel::GlobalVariable& global) { return kernel::isBound(global.space); });
  for (const kernel::GlobalVariable& global : m.globals) {
    const bool immediate = global.space == AddressSpace::Immediate, buffer = immediate || kernel::isBound(global.space);
    Home home = buffer                                    ? Home::Buffer
                : global.space == AddressSpace::Workgroup ? Home::Workgroup
                : indexed[global.value.index()]           ? Home::Lanes
                                                          : Home::Registers;
    if (buffer && global.group != 0)
      return fail("reference.group", "binding group " + std::to_string(global.group) + " of variable " + global.name + " is not 0");
    uint32_t index = addVariable(global.name, global.type, home);
    Variable& variable = code.variables[index];
    variable.binding = immediate ? static_cast<uint32_t>(bound) : global.binding;  // immediate data comes after the buffers
    variable.zeroed = global.zero_initialized;
    variable.writable = global.space == AddressSpace::Storage && global.access != kernel::Access::Read;
    pointers[global.value.index()] = Pointer{index, 0, {}, global.type};
    if (global.space == AddressSpace::Private) {
      Operands initial = global.initializer.valid() ? constantValue(global.initializer) : Operands{};
      initialise(index, global.type, global.initializer.valid() ? &initial : nullptr);
    }
  }
  return Success{};
}

/// The place of `id` in a grid of num_workgroups cells of this size, x first.
Operand Lowering::gridIndex(const Operands& id, const std::array<uint32_t, 3>& cell) {
  Operand index = id[2];
  for (size_t k = 2; k-- > 0;) {
    Operand extent = pure(Opcode::MulI, reg(code.group_count[k]), constant(cell[k]));
    index = pure(Opcode::AddI, pure(Opcode::MulI, index, extent), id[k]);
  }
  return index;
}

void Lowering::addBuiltins(const kernel::Function& entry) {
  const std::array<uint32_t, 3>& size = code.workgroup_size;
  std::array<Operand, 3> local, global;
  for (size_t k = 0; k < 3; ++k) {
    local[k] = size[k] == 1 ? constant(0) : reg(code.local_id[k]);
    global[k] = pure(Opcode::AddI, pure(Opcode::MulI, reg(code.group_id[k]), constant(size[k])), local[k]);
  }
  Operand index = pure(Opcode::AddI, pure(Opcode::MulI, local[2], constant(size[1])), local[1]);
  index = pure(Opcode::AddI, pure(Opcode::MulI, index, constant(size[0])), local[0]);
  auto triple = [](const std::array<Register, 3>& r) { return Operands{reg(r[0]), reg(r[1]), reg(r[2])}; };
  for (const kernel::Parameter& parameter : entry.parameters) {
    Operands& out = values[parameter.value.index()];
    switch (parameter.builtin) {
      case kernel::Builtin::LocalInvocationId:
        out = {local.begin(), local.end()};
        break;
      case kernel::Builtin::LocalInvocationIndex:
        out = {index};
        break;
      case kernel::Builtin::GlobalInvocationId:
        out = {global.begin(), global.end()};
        break;
      case kernel::Builtin::WorkgroupId:
        out = triple(code.group_id);
        break;
      case kernel::Builtin::NumWorkgroups:
        out = triple(code.group_count);
        break;
      case kernel::Builtin::SubgroupSize:
        out = {constant(code.subgroups.size)};
        break;
      case kernel::Builtin::SubgroupInvocationId:
        out = {reg(code.subgroup_lane)};
        break;
      case kernel::Builtin::SubgroupId:
        out = {reg(code.subgroup_id)};
        break;
      case kernel::Builtin::NumSubgroups:
        out = {constant((code.invocations() + code.subgroups.size - 1) / code.subgroups.size)};
        break;
      case kernel::Builtin::WorkgroupIndex:
        out = {gridIndex(triple(code.group_id), {1, 1, 1})};
        break;
      case kernel::Builtin::GlobalInvocationIndex:
        out = {gridIndex({global.begin(), global.end()}, size)};
        break;
      case kernel::Builtin::None:
        internalError("an entry point's parameter has no builtin");
    }
  }
}

void Lowering::block(kernel::BlockId id) {
  for (kernel::InstructionId instruction_id : m[id].instructions) instruction(instruction_id);
}

void Lowering::instruction(kernel::InstructionId id) {
  const KernelInstruction& x = m[id];
  uint32_t outer_site = site;
  site = static_cast<uint32_t>(sources[id.index()].index()) + 1;
  switch (kernel::info(x.op).group) {
    case OpGroup::Arithmetic:
    case OpGroup::Math:
    case OpGroup::Composite:
      pureInstruction(x);
      break;
    case OpGroup::Memory:
      if (x.op == Op::Var) declareVariable(x);
      if (x.op == Op::Access) access(x);
      if (x.op == Op::Load) define(x, load(pointer(x.operands[0])));
      if (x.op == Op::Store) store(pointer(x.operands[0]), value(x.operands[1]));
      if (x.op == Op::ArrayLength) arrayLength(x);
      break;
    case OpGroup::Atomic:
      atomic(x);
      break;
    case OpGroup::Barrier:
      emit({.kind = StepKind::Barrier, .spaces = x.op == Op::StorageBarrier ? kOrdersStorage : kOrdersWorkgroup});
      if (x.op == Op::WorkgroupUniformLoad) {
        define(x, load(pointer(x.operands[0])));
        emit({.kind = StepKind::Barrier, .spaces = kOrdersWorkgroup});
      }
      break;
    case OpGroup::Debug:
      print(x);
      break;
    case OpGroup::Subgroup:
      subgroup(x);
      break;
    case OpGroup::SubgroupMatrix:
      internalError("a subgroup matrix is left after all were spread");
    case OpGroup::Control:
      control(x);
      break;
    case OpGroup::Call:
      internalError("a call is left after all calls were inlined");
  }
  site = outer_site;
}

void Lowering::control(const KernelInstruction& x) {
  if (x.op == Op::If) {
    Step step{.kind = StepKind::If, .a = value(x.operands[0])[0], .construct = code.construct_count++};
    inside(step.body, [&] { block(x.blocks[0]); });
    if (x.blocks.size() > 1) inside(step.other, [&] { block(x.blocks[1]); });
    emit(std::move(step));
  } else if (x.op == Op::Loop) {
    loop(x);
  } else if (x.op == Op::Switch) {
    switchOn(x);
  } else if (x.op == Op::Break) {
    emit({.kind = StepKind::Exit, .construct = targets.breaks.back()});
  } else if (x.op == Op::Continue) {
    emit({.kind = StepKind::Exit, .construct = targets.continues.back()});
  } else if (x.op == Op::BreakIf) {
    Step step{.kind = StepKind::If, .a = value(x.operands[0])[0], .construct = code.construct_count++};
    step.body.push_back({.kind = StepKind::Exit, .construct = targets.breaks.back()});
    emit(std::move(step));
  } else if (x.op == Op::Return) {
    emit({.kind = StepKind::Exit, .construct = whole});
  }
}

/// Loop { Scope { body }, continuing }: `continue` leaves the inner scope, `break` the loop.
void Lowering::loop(const KernelInstruction& x) {
  Step step{.kind = StepKind::Loop, .construct = code.construct_count++};
  Step iteration{.kind = StepKind::Scope, .construct = code.construct_count++};
  targets.breaks.push_back(step.construct);
  targets.continues.push_back(iteration.construct);
  inside(step.body, [&] {
    inside(iteration.body, [&] { block(x.blocks[0]); });
    emit(std::move(iteration));
    if (x.blocks.size() > 1) block(x.blocks[1]);
  });
  targets.breaks.pop_back();
  targets.continues.pop_back();
  emit(std::move(step));
}

/// A chain of ifs in a scope that `break` leaves; the default case comes last, as there is no fall-through.
void Lowering::switchOn(const KernelInstruction& x) {
  Step scope{.kind = StepKind::Scope, .construct = code.construct_count++};
  targets.breaks.push_back(scope.construct);
  Operand selector = value(x.operands[0])[0];
  std::vector<size_t> order;
  for (size_t k = 0; k < x.cases.size(); ++k)
    if (!x.cases[k].is_default) order.push_back(k);
  auto last = std::find_if(x.cases.begin(), x.cases.end(), [](const kernel::SwitchCase& c) { return c.is_default; });
  auto chain = [&](auto& self, size_t position) -> void {
    if (position == order.size()) {
      if (last != x.cases.end()) block(x.blocks[static_cast<size_t>(last - x.cases.begin())]);
      return;
    }
    Operand matches = constant(0);
    for (uint32_t bits : x.cases[order[position]].selectors)
      matches = pure(Opcode::Or, matches, pure(Opcode::EqI, selector, constant(bits)));
    Step step{.kind = StepKind::If, .a = matches, .construct = code.construct_count++};
    inside(step.body, [&] { block(x.blocks[order[position]]); });
    inside(step.other, [&] { self(self, position + 1); });
    emit(std::move(step));
  };
  inside(scope.body, [&] { chain(chain, 0); });
  targets.breaks.pop_back();
  emit(std::move(scope));
}

void Lowering::print(const KernelInstruction& x) {
  Access values{.variable = UINT32_MAX};
  for (kernel::ValueId operand : x.operands) {
    for (const Operand& lane : value(operand)) {
      values.words.push_back(0);
      values.values.push_back(lane);
    }
  }
  emit({.kind = StepKind::Print, .op = Opcode::Print, .access = addAccess(std::move(values))});
}

void Lowering::declareVariable(const KernelInstruction& x) {
  kernel::TypeId type = types[x.type].element;
  size_t id = x.result.index();
  if (!pointers[id]) {
    const std::string& name = m[x.result].name;
    uint32_t index = addVariable(name.empty() ? "var" : name, type, indexed[id] ? Home::Lanes : Home::Registers);
    pointers[id] = Pointer{index, 0, {}, type};
  }
  initialise(pointers[id]->variable, type, x.operands.empty() ? nullptr : &value(x.operands[0]));
}

Register Lowering::newRegister(bool variable) {
  code.registers.push_back({.variable = variable});
  return static_cast<Register>(code.registers.size() - 1);
}

Step& Lowering::emit(Step step) {
  step.site = site;
  steps->push_back(std::move(step));
  return steps->back();
}

const std::vector<Component>& Lowering::components(kernel::TypeId type) {
  if (type.index() >= layouts.size()) layouts.resize(types.size());
  std::vector<Component>& layout = layouts[type.index()];
  if (layout.empty()) layout = flatten(types, type, unit);
  return layout;
}

const Pointer& Lowering::pointer(kernel::ValueId id) const {
  if (!pointers[id.index()]) internalError("a pointer has no known variable");
  return *pointers[id.index()];
}

}  // namespace lockstep::reference
