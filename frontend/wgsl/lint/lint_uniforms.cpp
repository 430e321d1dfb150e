// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <optional>

#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

using kernel::Instruction;
using kernel::Op;
using kernel::Type;
using kernel::TypeKind;
using kernel::ValueId;
using kernel::ValueKind;

/// A part of a uniform or immediate variable that is always the same one.
struct Part {
  size_t bytes = 0;  ///< of which variable: an index into the list of contents
  uint64_t offset = 0;
  kernel::TypeId type;
};

class Substitution {
 public:
  Substitution(kernel::Module module, const UniformContents& contents) : m_(std::move(module)) {
    for (const kernel::GlobalVariable& variable : m_.globals) {
      if (variable.space != kernel::AddressSpace::Uniform && variable.space != kernel::AddressSpace::Immediate) continue;
      parts_[variable.value] = {.bytes = contents_.size(), .offset = 0, .type = variable.type};
      contents_.push_back(contents(m_, variable));
    }
  }

  kernel::Module run() {
    if (contents_.empty()) return std::move(m_);
    // Instructions were made in the order of the text, so that operands stand before their users.
    for (Instruction& x : m_.instructions) {
      for (ValueId& operand : x.operands) {
        if (const auto known = constants_.find(operand); known != constants_.end()) operand = known->second;
      }
      if (x.result.valid()) follow(x);
    }
    return std::move(m_);
  }

 private:
  /// A pointer to a part, a vector loaded from there, and its elements lead to a part; an integer there is a constant.
  void follow(const Instruction& x) {
    if (x.op != Op::Access && x.op != Op::Load && x.op != Op::Extract) return;
    const auto base = parts_.find(x.operands[0]);
    if (base == parts_.end()) return;
    std::optional<Part> part = base->second;
    for (size_t k = 1; k < x.operands.size() && part; ++k) part = partOf(*part, x.operands[k]);
    if (!part) return;
    const Type& type = m_.types[part->type];
    const bool word = x.op != Op::Access && (type.is(kernel::Scalar::U32) || type.is(kernel::Scalar::I32));
    const std::vector<std::byte>& bytes = contents_[part->bytes];
    if (word && part->offset + sizeof(uint32_t) <= bytes.size()) {
      kernel::Value value{.kind = ValueKind::Constant, .type = part->type, .elements = {}, .name = {}};
      std::memcpy(&value.bits, bytes.data() + part->offset, sizeof(value.bits));
      constants_[x.result] = ValueId(m_.values.size());
      m_.values.push_back(std::move(value));
    } else {
      parts_[x.result] = *part;
    }
  }

  /// The element of a part at a constant index. Only vectors of integers are looked into.
  std::optional<Part> partOf(Part part, ValueId index) {
    const kernel::Value& value = m_[index];
    const Type type = m_.types[part.type];
    const bool vector = type.kind == TypeKind::Vector && type.isInteger();
    if (value.kind != ValueKind::Constant) return std::nullopt;
    if (type.kind == TypeKind::Struct) {
      const kernel::Member& member = type.members[value.bits];
      return Part{.bytes = part.bytes, .offset = part.offset + member.offset, .type = member.type};
    }
    if (type.kind != TypeKind::Array && !vector) return std::nullopt;
    const uint64_t stride = vector ? sizeof(uint32_t) : m_.types.strideOf(part.type);
    return Part{.bytes = part.bytes, .offset = part.offset + value.bits * stride, .type = m_.types.elementOf(part.type)};
  }

  kernel::Module m_;
  std::vector<std::vector<std::byte>> contents_;
  std::map<ValueId, Part> parts_;
  std::map<ValueId, ValueId> constants_;  ///< a value -> the constant that it is
};

}  // namespace

kernel::Module withKnownUniforms(kernel::Module module, const UniformContents& contents) {
  return Substitution(std::move(module), contents).run();
}

}  // namespace lockstep::wgsl
