// SPDX-License-Identifier: Apache-2.0
// Rebuilds a module in the order of its text. Everything that the text does not show is dropped or set to its default.
#include <algorithm>
#include <map>

#include "ir/kernel/literal.h"
#include "ir/kernel/module.h"
#include "ir/kernel/names.h"

namespace lockstep::kernel {
namespace {

class Canonicalizer {
 public:
  Canonicalizer(const Module& from, bool with_locations)
      : from_(from),
        names_(nameModule(from)),
        with_locations_(with_locations),
        types_(from.types.size()),
        values_(from.values.size()),
        block_seen_(from.blocks.size()) {}

  Module run() {
    to_.name = from_.name;
    if (with_locations_) to_.source = from_.source;
    to_.capabilities = from_.capabilities;
    std::sort(to_.capabilities.begin(), to_.capabilities.end());
    to_.capabilities.erase(std::unique(to_.capabilities.begin(), to_.capabilities.end()), to_.capabilities.end());
    for (TypeId id : names_.structs) type(id);
    for (const GlobalVariable& old : from_.globals) global(old);
    for (const Function& old : from_.functions) function(old);
    return std::move(to_);
  }

 private:
  static std::string hint(const std::string& name) { return isNumber(name) ? "" : name; }

  static void check(bool in_range) {
    if (!in_range) internalError("canonical: an id of the module is out of range");
  }

  TypeId type(TypeId old) {
    check(old.index() < types_.size());
    TypeId& mapped = types_[old.index()];
    if (mapped.valid()) return mapped;
    Type copy = from_.types[old];
    if (copy.element.valid()) copy.element = type(copy.element);
    if (copy.kind == TypeKind::Struct) copy.name = names_.types[old.index()];
    for (Member& member : copy.members) {
      member.name = memberName(member.name);
      member.type = type(member.type);
    }
    return mapped = to_.types.intern(copy);
  }

  ValueId add(Value value) {
    to_.values.push_back(std::move(value));
    return ValueId(to_.values.size() - 1);
  }

  ValueId value(ValueId old) {
    check(old.index() < values_.size());
    if (values_[old.index()].valid()) return values_[old.index()];
    const Value& from = from_[old];
    Value copy{.kind = from.kind, .type = type(from.type), .elements = {}, .name = hint(names_.values[old.index()])};
    ValueId mapped;
    if (from.kind == ValueKind::Constant) {
      const Type constant_type = to_.types[copy.type];
      copy.name.clear();
      if (constant_type.kind == TypeKind::Scalar) {
        copy.bits = canonicalBits(constant_type.scalar, from.bits);
      } else {
        for (ValueId element : from.elements) {
          check(element.index() < old.index());
          copy.elements.push_back(value(element));
        }
      }
      auto [entry, is_new] = constants_.try_emplace({copy.type, copy.bits, copy.elements});
      if (is_new) entry->second = add(std::move(copy));
      mapped = entry->second;
    } else {
      mapped = add(std::move(copy));  // `index` is set by whoever owns the value
    }
    return values_[old.index()] = mapped;
  }

  void global(const GlobalVariable& old) {
    GlobalVariable copy = old;
    copy.value = value(old.value);
    copy.type = type(old.type);
    copy.name = to_[copy.value].name;
    Value& pointer = to_.values[copy.value.index()];
    pointer.index = static_cast<uint32_t>(to_.globals.size());
    pointer.type = to_.types.pointer(copy.space, copy.type, copy.access);
    if (!isBound(copy.space)) copy.group = copy.binding = 0;
    if (old.initializer.valid()) copy.initializer = value(old.initializer);
    to_.globals.push_back(std::move(copy));
  }

  void function(const Function& old) {
    size_t index = to_.functions.size();
    Function copy = old;
    copy.name = hint(names_.functions[index]);
    for (Parameter& parameter : copy.parameters) {
      parameter.value = value(parameter.value);
      to_.values[parameter.value.index()].index = static_cast<uint32_t>(index);
    }
    copy.return_type = type(old.return_type);
    copy.body = block(old.body);
    to_.functions.push_back(std::move(copy));
  }

  BlockId block(BlockId old) {
    check(old.index() < block_seen_.size());
    if (block_seen_[old.index()]) internalError("canonical: a block has two parents");
    block_seen_[old.index()] = true;
    BlockId mapped(to_.blocks.size());
    to_.blocks.emplace_back();
    for (InstructionId id : from_[old].instructions) {
      check(id.index() < from_.instructions.size());
      InstructionId copy = instruction(from_[id]);
      to_.blocks[mapped.index()].instructions.push_back(copy);
    }
    return mapped;
  }

  InstructionId instruction(const Instruction& old) {
    InstructionId id(to_.instructions.size());
    to_.instructions.emplace_back();
    Instruction copy = old;
    copy.type = type(old.type);
    for (ValueId& operand : copy.operands) operand = value(operand);
    if (old.result.valid()) {
      copy.result = value(old.result);
      to_.values[copy.result.index()].index = static_cast<uint32_t>(id.index());
    }
    copy.immediate = immediate(old);
    copy.location = location(old.location);
    if (copy.op != Op::Switch) copy.cases.clear();
    if (copy.op != Op::Print) copy.labels.clear();
    bool owns_blocks = copy.op == Op::If || copy.op == Op::Loop || copy.op == Op::Switch;
    if (!owns_blocks) copy.blocks.clear();
    for (BlockId& owned : copy.blocks) owned = block(owned);
    to_.instructions[id.index()] = std::move(copy);
    return id;
  }

  [[nodiscard]] uint32_t immediate(const Instruction& old) const {
    if (old.op == Op::Call) return old.immediate;
    if (hasMajor(old.op)) return old.immediate & 1u;
    if (old.op != Op::Swizzle) return 0;
    return old.immediate & ((1u << (2 * from_.types[old.type].width())) - 1);
  }

  uint32_t location(uint32_t old) {
    if (!with_locations_ || old == 0 || old > from_.locations.size()) return 0;
    const Location& place = from_.locations[old - 1];
    auto [entry, is_new] = locations_.try_emplace({place.file, place.line, place.column});
    if (is_new) {
      to_.locations.push_back(place);
      entry->second = static_cast<uint32_t>(to_.locations.size());
    }
    return entry->second;
  }

  const Module& from_;
  Names names_;
  bool with_locations_;
  Module to_;
  std::vector<TypeId> types_;
  std::vector<ValueId> values_;
  std::vector<bool> block_seen_;
  std::map<std::tuple<TypeId, uint32_t, std::vector<ValueId>>, ValueId> constants_;
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint32_t> locations_;
};

}  // namespace

Module canonical(const Module& module, bool with_locations) { return Canonicalizer(module, with_locations).run(); }

}  // namespace lockstep::kernel
