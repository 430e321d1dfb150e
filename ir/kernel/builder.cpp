// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/builder.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace lockstep::kernel {

Builder::Builder(Module module) : module_(std::move(module)) {
  for (size_t i = 0; i < module_.values.size(); ++i) {
    const Value& value = module_.values[i];
    if (value.kind != ValueKind::Constant) continue;
    if (module_.types[value.type].kind == TypeKind::Scalar) {
      scalars_.emplace(std::pair(value.type, value.bits), ValueId(i));
    } else {
      composites_.emplace(std::pair(value.type, value.elements), ValueId(i));
    }
  }
  for (size_t i = 0; i < module_.locations.size(); ++i) {
    const Location& location = module_.locations[i];
    locations_.emplace(std::tuple(location.file, location.line, location.column), static_cast<uint32_t>(i + 1));
  }
}

ValueId Builder::addValue(Value value) {
  module_.values.push_back(std::move(value));
  return ValueId(module_.values.size() - 1);
}

ValueId Builder::f32(float value) { return scalar(Scalar::F32, std::bit_cast<uint32_t>(value)); }

ValueId Builder::scalar(Scalar scalar, uint32_t bits) {
  TypeId type = types().scalar(scalar);
  auto [entry, is_new] = scalars_.try_emplace(std::pair(type, bits));
  if (is_new) entry->second = addValue({.kind = ValueKind::Constant, .type = type, .bits = bits, .elements = {}, .name = {}});
  return entry->second;
}

ValueId Builder::composite(TypeId type, std::vector<ValueId> elements) {
  if (elements.empty()) return zero(type);
  if (elements.size() != types().elementCount(type)) {
    internalError(fmt::format("a constant of type {} made of {} elements", types().toString(type), elements.size()));
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    bool fits =
        module_[elements[i]].kind == ValueKind::Constant && typeIdOf(elements[i]) == types().elementOf(type, static_cast<uint32_t>(i));
    if (!fits) internalError(fmt::format("element {} of a constant of type {} is not a constant of its type", i, types().toString(type)));
  }
  auto [entry, is_new] = composites_.try_emplace(std::pair(type, elements));
  if (is_new) entry->second = addValue({.kind = ValueKind::Constant, .type = type, .elements = std::move(elements), .name = {}});
  return entry->second;
}

ValueId Builder::zero(TypeId type) {
  if (types()[type].kind == TypeKind::Scalar) return scalar(types()[type].scalar, 0);
  auto [entry, is_new] = composites_.try_emplace(std::pair(type, std::vector<ValueId>()));
  if (is_new) entry->second = addValue({.kind = ValueKind::Constant, .type = type, .elements = {}, .name = {}});
  return entry->second;
}

ValueId Builder::global(GlobalVariable variable) {
  if (variable.space != AddressSpace::Storage) variable.access = defaultAccess(variable.space);
  variable.value = addValue({.kind = ValueKind::Variable,
                             .type = types().pointer(variable.space, variable.type, variable.access),
                             .index = static_cast<uint32_t>(module_.globals.size()),
                             .elements = {},
                             .name = variable.name});
  module_.globals.push_back(std::move(variable));
  return module_.globals.back().value;
}

FunctionId Builder::function(std::string name, TypeId return_type) {
  BlockId body = newBlock();
  module_.functions.push_back(
      {.name = std::move(name), .parameters = {}, .return_type = return_type, .body = body, .workgroup_size = std::nullopt});
  return FunctionId(module_.functions.size() - 1);
}

ValueId Builder::parameter(FunctionId function, std::string name, TypeId type, Builtin builtin) {
  ValueId value = addValue({.kind = ValueKind::Parameter,
                            .type = type,
                            .index = static_cast<uint32_t>(function.index()),
                            .elements = {},
                            .name = std::move(name)});
  module_.functions[function.index()].parameters.push_back({.value = value, .builtin = builtin});
  return value;
}

void Builder::setWorkgroupSize(FunctionId function, std::array<uint32_t, 3> size) {
  module_.functions[function.index()].workgroup_size = size;
}

void Builder::setSubgroupSize(FunctionId function, uint32_t size) { module_.functions[function.index()].subgroup_size = size; }

BlockId Builder::newBlock() {
  module_.blocks.emplace_back();
  return BlockId(module_.blocks.size() - 1);
}

void Builder::setLocation(Location location) {
  if (!location.known()) {
    location_ = 0;
    return;
  }
  if (location_ != 0 && module_.locations[location_ - 1] == location) return;
  auto [entry, is_new] = locations_.try_emplace(std::tuple(location.file, location.line, location.column));
  if (is_new) {
    module_.locations.push_back(std::move(location));
    entry->second = static_cast<uint32_t>(module_.locations.size());
  }
  location_ = entry->second;
}

InstructionId Builder::append(Instruction instruction) {
  if (!block_.valid()) internalError(fmt::format("{} is built outside any block", info(instruction.op).text));
  OpGroup group = info(instruction.op).group;
  bool computes = (group == OpGroup::Arithmetic || group == OpGroup::Math) && !instruction.operands.empty();
  if (computes) {
    Scalar scalar = typeOf(instruction.operands[0]).scalar;
    if (scalar == Scalar::F32 || scalar == Scalar::F16) instruction.float_mode = float_mode_;
  }
  instruction.origin = origin_;
  instruction.location = location_;
  InstructionId id(module_.instructions.size());
  if (instruction.type != types().voidType()) {
    instruction.result = addValue(
        {.kind = ValueKind::Instruction, .type = instruction.type, .index = static_cast<uint32_t>(id.index()), .elements = {}, .name = {}});
  }
  module_.instructions.push_back(std::move(instruction));
  module_.blocks[block_.index()].instructions.push_back(id);
  return id;
}

ValueId Builder::make(Op op, std::vector<ValueId> operands) {
  // All ops whose type is inferred have few operands; the rest are wrong, and are to be reported.
  std::array<TypeId, 8> few;
  std::vector<TypeId> many(operands.size() > few.size() ? operands.size() : 0);
  const std::span<TypeId> operand_types = many.empty() ? std::span(few).first(operands.size()) : std::span(many);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].index() >= module_.values.size()) internalError(fmt::format("{} is given an operand that has no value", info(op).text));
    operand_types[i] = typeIdOf(operands[i]);
  }
  std::optional<TypeId> type = inferType(types(), op, operand_types);
  if (!type) {
    std::string list;
    for (TypeId operand : operand_types) list += (list.empty() ? "" : ", ") + types().toString(operand);
    internalError(fmt::format("{} does not take operands of type ({})", info(op).text, list));
  }
  return makeAs(op, *type, std::move(operands));
}

ValueId Builder::makeAs(Op op, TypeId type, std::vector<ValueId> operands, uint32_t immediate) {
  Instruction instruction;
  instruction.op = op;
  instruction.type = type;
  instruction.operands = std::move(operands);
  instruction.immediate = immediate;
  return module_[append(std::move(instruction))].result;
}

void Builder::makeVoid(Op op, std::vector<ValueId> operands) { make(op, std::move(operands)); }

void Builder::print(std::vector<ValueId> values, std::vector<std::string> labels) {
  makeVoid(Op::Print, std::move(values));
  module_.instructions.back().labels = std::move(labels);
}

ValueId Builder::extract(ValueId composite, uint32_t index) {
  TypeId element = types().elementOf(typeIdOf(composite), index);
  if (!element.valid()) internalError(fmt::format("{} has no element {}", types().toString(typeIdOf(composite)), index));
  return makeAs(Op::Extract, element, {composite, u32(index)});
}

ValueId Builder::extract(ValueId composite, ValueId index) {
  if (module_[index].kind == ValueKind::Constant) return extract(composite, module_[index].bits);
  return make(Op::Extract, {composite, index});
}

ValueId Builder::swizzle(ValueId vector, std::span<const uint32_t> components) {
  if (components.size() == 1) return extract(vector, components[0]);
  uint32_t immediate = 0;
  for (size_t i = 0; i < components.size(); ++i) immediate |= components[i] << (2 * i);
  TypeId type = types().vector(typeOf(vector).scalar, static_cast<uint32_t>(components.size()));
  return makeAs(Op::Swizzle, type, {vector}, immediate);
}

ValueId Builder::var(TypeId type, std::string name, ValueId initial) {
  std::vector<ValueId> operands;
  if (initial.valid()) operands.push_back(initial);
  ValueId value = makeAs(Op::Var, types().pointer(AddressSpace::Function, type), std::move(operands));
  this->name(value, std::move(name));
  return value;
}

ValueId Builder::access(ValueId pointer, std::vector<ValueId> indices, bool in_bounds) {
  const Type base = typeOf(pointer);
  if (base.kind != TypeKind::Pointer) internalError("access needs a pointer");
  TypeId part = base.element;
  for (ValueId index : indices) {
    const Value& value = module_[index];
    TypeId whole = part;
    part = types().elementOf(whole, value.kind == ValueKind::Constant ? value.bits : 0);
    if (!part.valid()) internalError(fmt::format("access cannot index {}", types().toString(whole)));
  }
  Instruction instruction;
  instruction.op = Op::Access;
  instruction.type = types().pointer(base.space, part, base.access);
  instruction.operands.push_back(pointer);
  instruction.operands.insert(instruction.operands.end(), indices.begin(), indices.end());
  instruction.in_bounds = in_bounds;
  return module_[append(std::move(instruction))].result;
}

ValueId Builder::load(ValueId pointer) { return make(Op::Load, {pointer}); }

ValueId Builder::call(FunctionId function, std::vector<ValueId> arguments) {
  return makeAs(Op::Call, module_[function].return_type, std::move(arguments), static_cast<uint32_t>(function.index()));
}

void Builder::name(ValueId value, std::string name) { module_.values[value.index()].name = std::move(name); }

void Builder::ifThen(ValueId condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  Instruction instruction;
  instruction.op = Op::If;
  instruction.type = types().voidType();
  instruction.operands = {condition};
  instruction.blocks = {newBlock(), newBlock()};
  std::vector<BlockId> blocks = instruction.blocks;
  append(std::move(instruction));
  BlockId after = block_;
  block_ = blocks[0];
  then();
  block_ = blocks[1];
  if (otherwise) otherwise();
  block_ = after;
}

void Builder::loop(const std::function<void()>& body, const std::function<void()>& continuing) {
  Instruction instruction;
  instruction.op = Op::Loop;
  instruction.type = types().voidType();
  instruction.blocks = {newBlock(), newBlock()};
  std::vector<BlockId> blocks = instruction.blocks;
  append(std::move(instruction));
  BlockId after = block_;
  block_ = blocks[0];
  body();
  block_ = blocks[1];
  if (continuing) continuing();
  block_ = after;
}

void Builder::forRange(ValueId begin, ValueId end, ValueId step, const std::string& name, const std::function<void(ValueId)>& body) {
  ValueId counter = var(types().u32(), name, begin);
  loop(
      [&] {
        ValueId index = load(counter);
        ifThen(make(Op::Ge, {index, end}), [&] { breakLoop(); });
        body(index);
      },
      [&] { store(counter, make(Op::Add, {load(counter), step})); });
}

void Builder::switchOn(ValueId selector, std::vector<SwitchCase> cases, const std::function<void(size_t)>& fill) {
  Instruction instruction;
  instruction.op = Op::Switch;
  instruction.type = types().voidType();
  instruction.operands = {selector};
  for (size_t i = 0; i < cases.size(); ++i) instruction.blocks.push_back(newBlock());
  std::vector<BlockId> blocks = instruction.blocks;
  instruction.cases = std::move(cases);
  append(std::move(instruction));
  BlockId after = block_;
  for (size_t i = 0; i < blocks.size(); ++i) {
    block_ = blocks[i];
    fill(i);
  }
  block_ = after;
}

}  // namespace lockstep::kernel
