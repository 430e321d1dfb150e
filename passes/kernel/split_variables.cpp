// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/split_variables.h"

#include <fmt/format.h>

#include "ir/kernel/builder.h"
#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::TypeKind;
using kernel::ValueId;

class Splitter {
 public:
  explicit Splitter(Module module) : m_(std::move(module)), keep_(m_.values.size()), parts_(m_.values.size()) {}

  Module run() {
    for (const kernel::Function& function : m_.functions) {
      forEachInstruction(m_, function.body, [&](InstructionId, const Instruction& x) {
        for (size_t i = 0; i < x.operands.size(); ++i) {
          bool element = x.op == Op::Access && i == 0 && constantBits(m_, x.operands[1]);
          if (!element) keep_[x.operands[i].index()] = true;
        }
      });
    }
    const std::vector<kernel::Function> functions = m_.functions;
    for (const kernel::Function& function : functions) block(function.body);
    return std::move(m_);
  }

 private:
  void block(BlockId id) {
    std::vector<InstructionId> old = std::move(m_.blocks[id.index()].instructions), kept;
    for (InstructionId each : old) {
      map_.rewrite(m_.instructions[each.index()].operands);
      if (m_[each].op == Op::Var && comesApart(m_[each])) {
        split(each, kept);
      } else if (m_[each].op != Op::Access || !choosePart(m_.instructions[each.index()])) {
        const std::vector<BlockId> inner = m_[each].blocks;
        for (BlockId one : inner) block(one);
        kept.push_back(each);
      }
    }
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  [[nodiscard]] bool comesApart(const Instruction& variable) const {
    kernel::TypeId type = m_.types[variable.type].element;
    TypeKind kind = m_.types[type].kind;
    bool known = variable.result.index() < keep_.size() && !keep_[variable.result.index()];
    return known && (kind == TypeKind::Array || kind == TypeKind::Struct) && m_.types.elementCount(type) <= kSplitElements &&
           !hasComputedInitial(variable);
  }

  [[nodiscard]] bool hasComputedInitial(const Instruction& variable) const {
    return !variable.operands.empty() && m_[variable.operands[0]].kind != kernel::ValueKind::Constant;
  }

  void split(InstructionId id, std::vector<InstructionId>& into) {
    const Instruction whole = m_[id];
    const std::string name = m_[whole.result].name;
    kernel::TypeId type = m_.types[whole.type].element;
    const std::vector<ValueId> initial = whole.operands.empty() ? std::vector<ValueId>{} : m_[whole.operands[0]].elements;
    std::vector<ValueId>& parts = parts_[whole.result.index()];
    for (uint32_t i = 0; i < m_.types.elementCount(type); ++i) {
      Instruction part = whole;
      part.type = m_.types.pointer(kernel::AddressSpace::Function, m_.types.elementOf(type, i));
      part.operands.clear();
      if (!initial.empty()) part.operands = {initial[i]};
      part.result = ValueId(m_.values.size());
      InstructionId made(m_.instructions.size());
      m_.values.push_back({.kind = kernel::ValueKind::Instruction,
                           .type = part.type,
                           .index = static_cast<uint32_t>(made.index()),
                           .elements = {},
                           .name = fmt::format("{}_{}", name, i)});
      parts.push_back(part.result);
      m_.instructions.push_back(std::move(part));
      into.push_back(made);
    }
  }

  /// True when the place is nothing but a part, which takes its place.
  bool choosePart(Instruction& access) {
    size_t base = access.operands[0].index();
    if (base >= parts_.size() || parts_[base].empty()) return false;
    ValueId part = parts_[base][*constantBits(m_, access.operands[1])];
    if (access.operands.size() == 2) {
      map_.set(access.result, part);
      return true;
    }
    access.operands.erase(access.operands.begin());
    access.operands[0] = part;
    return false;
  }

  Module m_;
  ValueMap map_;
  std::vector<bool> keep_;                   // used as a whole, or by an index that is computed
  std::vector<std::vector<ValueId>> parts_;  // of each variable that came apart
};

}  // namespace

Module splitVariables(Module module) {
  // A part that is an array may come apart in turn.
  while (true) {
    size_t before = module.values.size();
    module = Splitter(std::move(module)).run();
    if (module.values.size() == before) return module;
  }
}

}  // namespace lockstep::passes
