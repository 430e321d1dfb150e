// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/restrict_print.h"

#include <algorithm>

#include "ir/kernel/builder.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::InstructionId;
using kernel::Op;
using kernel::ValueId;

class Restricter {
 public:
  Restricter(kernel::Module module, const InvocationRange& range) : builder_(std::move(module)), m_(builder_.module()), range_(range) {}

  kernel::Module run() {
    prints_ = builder_.global(
        {.name = "prints", .value = {}, .type = m_.types.boolean(), .space = kernel::AddressSpace::Private, .initializer = {}});
    // Blocks that are made here hold nothing that is to be changed.
    const size_t blocks = m_.blocks.size();
    for (size_t i = 0; i < blocks; ++i) guardPrints(BlockId(i));
    for (size_t i = 0; i < m_.functions.size(); ++i) {
      if (m_.functions[i].workgroup_size) decide(kernel::FunctionId(i));
    }
    return builder_.take();
  }

 private:
  void append(InstructionId id) { m_.blocks[builder_.block().index()].instructions.push_back(id); }

  void guardPrints(BlockId block) {
    const std::vector<InstructionId> old = m_[block].instructions;
    if (std::ranges::none_of(old, [&](InstructionId id) { return m_[id].op == Op::Print; })) return;
    m_.blocks[block.index()].instructions.clear();
    builder_.setBlock(block);
    for (const InstructionId id : old) {
      if (m_[id].op != Op::Print) {
        append(id);
        continue;
      }
      const size_t first_new = m_.instructions.size();
      const ValueId wanted = builder_.load(prints_);
      builder_.ifThen(wanted, [&] { append(id); });
      for (size_t k = first_new; k < m_.instructions.size(); ++k) m_.instructions[k].location = m_[id].location;
    }
  }

  /// Stores whether the invocation is in the range, at the start of an entry point.
  void decide(kernel::FunctionId function) {
    const BlockId body = m_[function].body;
    std::vector<InstructionId> old = std::move(m_.blocks[body.index()].instructions);
    m_.blocks[body.index()].instructions.clear();
    builder_.setBlock(body);
    ValueId inside = builder_.boolean(true);
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const uint32_t first = range_.first[axis], last = range_.last[axis];
      if (first == 0 && last == UINT32_MAX) continue;
      const ValueId id = builder_.extract(invocation(function), axis);
      const ValueId from = builder_.make(Op::Ge, {id, builder_.u32(first)});
      const ValueId to = builder_.make(Op::Le, {id, builder_.u32(last)});
      const ValueId both = builder_.make(Op::And, {from, to});
      inside = builder_.make(Op::And, {inside, both});
    }
    builder_.store(prints_, inside);
    for (const InstructionId id : old) append(id);
  }

  ValueId invocation(kernel::FunctionId function) {
    for (const kernel::Parameter& parameter : m_[function].parameters) {
      if (parameter.builtin == kernel::Builtin::GlobalInvocationId) return parameter.value;
    }
    return builder_.parameter(function, "invocation", m_.types.vector(kernel::Scalar::U32, 3), kernel::Builtin::GlobalInvocationId);
  }

  kernel::Builder builder_;
  kernel::Module& m_;
  const InvocationRange& range_;
  ValueId prints_;
};

}  // namespace

kernel::Module restrictPrint(kernel::Module module, const InvocationRange& range) { return Restricter(std::move(module), range).run(); }

}  // namespace lockstep::passes
