// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/count_rounds.h"

#include <algorithm>
#include <utility>

#include "ir/kernel/builder.h"
#include "ir/kernel/hidden_rounds.h"

namespace lockstep::kernel {
namespace {

class Counter {
 public:
  Counter(Module module, const RoundLimit& limit) : b_(std::move(module)), m_(b_.module()), limit_(limit) {}

  CountedRounds run() {
    for (const Function& function : m_.functions) passed_.push_back(loopsPassed(function.body));  // callees stand before callers
    const auto entry = static_cast<size_t>(m_.entryPoint() - m_.functions.data());
    declare(entry);
    passed_[entry] += hiddenRounds(m_, m_.functions[entry]);
    for (size_t i = 0; i < m_.functions.size(); ++i) block(m_.functions[i].body);
    begin(entry);
    m_.capabilities.push_back(Capability::Subgroups);
    return {.module = canonical(b_.take(), true), .binding = binding_, .loops = std::move(loops_)};
  }

 private:
  /// The loops that control flow through the block meets, those inside of others not counted: each costs a round however it is passed. And
  /// the rounds of those that only SPIR-V has.
  [[nodiscard]] uint64_t loopsPassed(BlockId id) const {
    uint64_t count = 0;
    for (const InstructionId each : m_[id].instructions) {
      const Instruction& x = m_[each];
      if (x.op == Op::Call) count += passed_[x.immediate];
      count += hiddenRounds(m_, x);
      if (x.op == Op::Loop) {
        ++count;
        continue;
      }
      for (const BlockId inner : x.blocks) count += loopsPassed(inner);
    }
    return count;
  }

  void declare(size_t entry) {
    for (const GlobalVariable& global : m_.globals) {
      if (isBound(global.space) && global.group == 0) binding_ = std::max(binding_, global.binding + 1);
    }
    const std::array<uint32_t, 3> size = *m_.functions[entry].workgroup_size;
    const uint32_t subgroups = (size[0] * size[1] * size[2] + limit_.lanes - 1) / limit_.lanes;
    auto variable = [&](std::string name, TypeId type, AddressSpace space) {
      return b_.global({.name = std::move(name),
                        .value = {},
                        .type = type,
                        .space = space,
                        .access = Access::ReadWrite,
                        .group = 0,
                        .binding = binding_,
                        .initializer = {}});
    };
    flag_ = variable("loop_limit", b_.types().atomic(Scalar::U32), AddressSpace::Storage);
    counts_ = variable("loop_rounds", b_.types().array(b_.types().u32(), subgroups), AddressSpace::Workgroup);
    m_.globals.back().zero_initialized = false;
    slot_ = variable("loop_subgroup", b_.types().u32(), AddressSpace::Private);
  }

  void block(BlockId id) {
    // Blocks are added on the way.
    const std::vector<InstructionId> instructions = m_[id].instructions;
    for (const InstructionId each : instructions) {
      const std::vector<BlockId> inner = m_[each].blocks;
      if (m_[each].op == Op::Loop) loop(each);
      for (const BlockId one : inner) block(one);
    }
  }

  /// The last round is paid for by whoever passes the loop; those before it are counted where they end.
  void loop(InstructionId id) {
    const Instruction& x = m_[id];
    uint64_t rounds = 1;
    for (const BlockId inner : x.blocks) rounds += loopsPassed(inner);
    loops_.push_back(x.location == 0 ? Location{} : m_.locations[x.location - 1]);
    const BlockId continuing = x.blocks[1];
    std::vector<InstructionId> old = std::exchange(m_.blocks[continuing.index()].instructions, {});
    b_.setBlock(continuing);
    onePerSubgroup([&] {
      const ValueId count = b_.access(counts_, {b_.load(slot_)}, true);
      const ValueId sum = b_.make(Op::Add, {b_.load(count), b_.u32(limited(rounds))});
      b_.store(count, sum);
      b_.ifThen(b_.make(Op::Ge, {sum, b_.u32(limit_.most)}),
                [&] { b_.makeAs(Op::AtomicMax, b_.types().u32(), {flag_, b_.u32(static_cast<uint32_t>(loops_.size()))}); });
    });
    std::vector<InstructionId>& now = m_.blocks[continuing.index()].instructions;
    now.insert(now.end(), old.begin(), old.end());
  }

  [[nodiscard]] Location firstPlace(size_t entry) const {
    for (const InstructionId each : m_[m_.functions[entry].body].instructions) {
      if (m_[each].location != 0) return m_.locations[m_[each].location - 1];
    }
    return {};
  }

  void begin(size_t entry) {
    const auto& parameters = m_.functions[entry].parameters;
    const auto known = std::ranges::find(parameters, Builtin::LocalInvocationIndex, &Parameter::builtin);
    const ValueId lane =
        known != parameters.end() ? known->value : b_.parameter(FunctionId(entry), "lane", b_.types().u32(), Builtin::LocalInvocationIndex);
    const BlockId body = m_.functions[entry].body;
    const std::vector<InstructionId> old = std::exchange(m_.blocks[body.index()].instructions, {});
    b_.setBlock(body);
    b_.store(slot_, b_.make(Op::Div, {lane, b_.u32(limit_.lanes)}));
    onePerSubgroup([&] { b_.store(b_.access(counts_, {b_.load(slot_)}, true), b_.u32(limited(passed_[entry]))); });
    if (passed_[entry] >= limit_.most) {
      loops_.push_back(firstPlace(entry));
      onePerSubgroup([&] { b_.makeAs(Op::AtomicMax, b_.types().u32(), {flag_, b_.u32(static_cast<uint32_t>(loops_.size()))}); });
    }
    std::vector<InstructionId>& now = m_.blocks[body.index()].instructions;
    now.insert(now.end(), old.begin(), old.end());
  }

  /// As a number that the counter can hold beside the limit.
  [[nodiscard]] uint32_t limited(uint64_t rounds) const { return static_cast<uint32_t>(std::min<uint64_t>(rounds, limit_.most)); }

  void onePerSubgroup(const std::function<void()>& then) { b_.ifThen(b_.makeAs(Op::SubgroupElect, b_.types().boolean(), {}), then); }

  Builder b_;
  Module& m_;
  const RoundLimit limit_;
  std::vector<uint64_t> passed_;  ///< by function: rounds that a call makes without those that loops count
  std::vector<Location> loops_;
  uint32_t binding_ = 0;
  ValueId flag_, counts_, slot_;
};

}  // namespace

CountedRounds countRounds(Module module, const RoundLimit& limit) { return Counter(std::move(module), limit).run(); }

}  // namespace lockstep::kernel
