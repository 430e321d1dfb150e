// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/lint/invocation_flow.h"

#include <algorithm>
#include <ranges>

#include "ir/kernel/inline_calls.h"
#include "ir/kernel/inlined_size.h"
#include "ir/kernel/isolate_entry.h"

namespace lockstep::wgsl {

using kernel::AddressSpace;
using kernel::BlockId;
using kernel::Builtin;
using kernel::Instruction;
using kernel::Op;
using kernel::OpGroup;
using kernel::ValueId;
using kernel::ValueKind;

namespace {

/// What is known grows from round to round; few texts need more than three.
constexpr int kMostRounds = 12;

bool isComparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Gt || op == Op::Ge || op == Op::Eq || op == Op::Ne; }

Op mirrored(Op op) {
  if (op == Op::Lt) return Op::Gt;
  if (op == Op::Le) return Op::Ge;
  if (op == Op::Gt) return Op::Lt;
  return op == Op::Ge ? Op::Le : op;
}

Op negated(Op op) {
  if (op == Op::Lt) return Op::Ge;
  if (op == Op::Le) return Op::Gt;
  if (op == Op::Gt) return Op::Le;
  if (op == Op::Ge) return Op::Lt;
  return op == Op::Eq ? Op::Ne : Op::Eq;
}

}  // namespace

InvocationFlow::InvocationFlow(const kernel::Module& module, const kernel::Function& entry)
    : m_(module), ids_(module.values.size()), numbers_(module.values.size()) {
  size_ = entry.workgroup_size.value_or(size_);
  for (size_t axis = 0; axis < 3; ++axis) {
    if (size_[axis] > 1) lanes_ |= laneId(axis);
  }
  declareParameters(entry);
  kernel::forEachInstruction(m_, entry.body, [&](kernel::InstructionId, const Instruction& x) {
    if (x.op == Op::If) findLogical(x);
    if (x.op == Op::Store || x.op == Op::SubgroupMatrixStore) stored_.insert(kernel::rootOf(m_, x.operands[0]));
    has_barrier_ |= x.op == Op::WorkgroupBarrier || x.op == Op::StorageBarrier || x.op == Op::WorkgroupUniformLoad;
    if (kernel::info(x.op).group == OpGroup::Atomic) {
      has_storage_atomics_ |= m_.typeOf(x.operands[0]).space == AddressSpace::Storage;
    }
    uses_lanes_ |= kernel::info(x.op).group == OpGroup::Subgroup || kernel::info(x.op).group == OpGroup::SubgroupMatrix;
  });
  for (size_t i = 0; i < m_.values.size(); ++i) {
    const kernel::Value& value = m_.values[i];
    std::vector<uint32_t> key{0, value.type.value, value.bits};
    if (value.kind != ValueKind::Constant || !value.elements.empty()) key = {1, static_cast<uint32_t>(i), 0};
    numbers_[i] = expressions_.try_emplace(std::move(key), static_cast<uint32_t>(i)).first->second;
  }
  for (int round = 0; round < kMostRounds; ++round) {
    changed_ = false;
    accesses_.clear();
    block(entry.body, {});
    if (!changed_) break;
  }
}

void InvocationFlow::findLogical(const Instruction& x) {
  const auto& then = m_[x.blocks[0]].instructions;
  if (then.empty() || !m_[x.blocks[1]].instructions.empty()) return;
  const Instruction& store = m_[then.back()];
  const Instruction* variable = store.op == Op::Store ? kernel::definition(m_, store.operands[0]) : nullptr;
  if (variable == nullptr || variable->op != Op::Var || variable->operands.empty() || !m_.typeOf(variable->operands[0]).isBool()) return;
  const Instruction* condition = kernel::definition(m_, x.operands[0]);
  const ValueId left = variable->operands[0];
  const bool is_and = x.operands[0] == left;
  const bool is_or = condition != nullptr && condition->op == Op::Not && condition->operands[0] == left;
  // A second store to a variable with a name makes it something else.
  const bool named = !m_[variable->result].name.empty();
  if ((is_and || is_or) && !named) logical_[variable->result] = {.left = left, .right = store.operands[1], .is_and = is_and};
}

void InvocationFlow::declareParameters(const kernel::Function& entry) {
  for (const kernel::Parameter& parameter : entry.parameters) {
    builtins_[parameter.value] = parameter.builtin;
    ids_[parameter.value.index()] = wholeIds(parameter.builtin);
  }
}

Ids InvocationFlow::idsOf(Builtin builtin, uint32_t axis) const {
  const auto lane = static_cast<Ids>(laneId(axis) & lanes_);
  if (builtin == Builtin::LocalInvocationId) return lane;
  if (builtin == Builtin::GlobalInvocationId) return lane | groupId(axis);
  return builtin == Builtin::WorkgroupId ? groupId(axis) : Ids(0);
}

Ids InvocationFlow::wholeIds(Builtin builtin) const {
  if (builtin == Builtin::LocalInvocationIndex || builtin == Builtin::SubgroupInvocationId || builtin == Builtin::SubgroupId) return lanes_;
  if (builtin == Builtin::WorkgroupIndex) return kGroups;
  if (builtin == Builtin::GlobalInvocationIndex) return lanes_ | kGroups;
  return static_cast<Ids>(idsOf(builtin, 0) | idsOf(builtin, 1) | idsOf(builtin, 2));
}

std::optional<InvocationFlow::Component> InvocationFlow::component(ValueId value) const {
  const auto builtin = builtins_.find(value);
  if (builtin != builtins_.end()) return Component{builtin->second, 0};
  const Instruction* x = kernel::definition(m_, value);
  if (x == nullptr || x->op != Op::Extract) return std::nullopt;
  auto axis = kernel::constantBits(m_, x->operands[1]);
  ValueId vector = x->operands[0];
  const Instruction* made = kernel::definition(m_, vector);
  if (axis && made != nullptr && made->op == Op::Swizzle) {
    axis = (made->immediate >> (2 * *axis)) & 3u;
    vector = made->operands[0];
  }
  const auto found = builtins_.find(vector);
  return axis && found != builtins_.end() ? std::optional(Component{found->second, *axis}) : std::nullopt;
}

ValueId InvocationFlow::initialOf(ValueId variable) const {
  const Instruction* x = kernel::definition(m_, variable);
  return x != nullptr && x->op == Op::Var && !x->operands.empty() && !stored_.contains(variable) ? x->operands[0] : ValueId();
}

void InvocationFlow::block(BlockId id, Reached reached) {
  for (const auto each : m_[id].instructions) {
    const Instruction& x = m_[each];
    if (x.result.valid()) define(x);
    const bool memory = x.op == Op::Load || x.op == Op::Store;
    if (memory) {
      const ValueId root = kernel::rootOf(m_, x.operands[0]);
      if (m_[root].kind == ValueKind::Variable) {
        accesses_.push_back({.instruction = &x,
                             .pointer = x.operands[0],
                             .root = root,
                             .address = indexIds(x.operands[0]),
                             .value = x.op == Op::Store ? ids_[x.operands[1].index()] : Ids(0),
                             .reached = reached,
                             .loops = static_cast<size_t>(std::ranges::count(around_, Op::Loop, &Instruction::op))});
      }
    }
    if (x.op == Op::Store || x.op == Op::SubgroupMatrixStore) store(x, reached);
    if (x.op == Op::If) {
      block(x.blocks[0], assumed(x.operands[0], true, reached));
      block(x.blocks[1], assumed(x.operands[0], false, reached));
      reached = afterIf(x, reached);
    } else if (x.op == Op::Loop) {
      loop(x, reached);
    } else if (x.op == Op::Switch) {
      const Ids selector = ids_[x.operands[0].index()];
      Reached inner = reached;
      inner.depends |= selector;
      inner.narrowed |= selector;
      around_.push_back(&x);
      for (const BlockId one : x.blocks) block(one, inner);
      around_.pop_back();
      if (std::ranges::any_of(x.blocks, [&](BlockId one) { return escapes(one, false, true); })) {
        reached.depends |= selector;
        reached.narrowed |= selector;
      }
    } else {
      jump(x, reached);
    }
  }
}

void InvocationFlow::loop(const Instruction& x, Reached& reached) {
  Reached inner = reached;
  inner.depends |= exits_[&x];
  around_.push_back(&x);
  for (const BlockId one : x.blocks) block(one, inner);
  around_.pop_back();
  if (std::ranges::any_of(x.blocks, [&](BlockId one) { return returns(one); })) {
    reached.depends |= exits_[&x];
    reached.narrowed |= exits_[&x];
  }
}

void InvocationFlow::jump(const Instruction& x, const Reached& reached) {
  if (!kernel::isJump(x.op) && x.op != Op::BreakIf) return;
  Ids why = reached.depends;
  if (x.op == Op::BreakIf) why |= ids_[x.operands[0].index()];
  for (const Instruction* target : around_ | std::views::reverse) {
    Ids& known = exits_[target];
    changed_ |= (why & ~known) != 0;
    known |= why;
    const bool arrived = x.op == Op::Continue ? target->op == Op::Loop : x.op != Op::Return;
    if (arrived) break;
  }
}

/// Who goes on behind an `if` of which a branch may jump.
Reached InvocationFlow::afterIf(const Instruction& x, const Reached& reached) const {
  const bool then = escapes(x.blocks[0]), otherwise = escapes(x.blocks[1]);
  if (!then && !otherwise) return reached;
  if (then && !otherwise && kernel::jumpsAway(m_, x.blocks[0])) return assumed(x.operands[0], false, reached);
  if (otherwise && !then && kernel::jumpsAway(m_, x.blocks[1])) return assumed(x.operands[0], true, reached);
  Reached after = reached;
  Ids conditions = ids_[x.operands[0].index()];
  for (const BlockId inner : x.blocks) {
    kernel::forEachInstruction(m_, inner, [&](kernel::InstructionId, const Instruction& each) {
      if (each.op == Op::If || each.op == Op::Switch) conditions |= ids_[each.operands[0].index()];
    });
  }
  after.depends |= conditions;
  after.narrowed |= conditions;
  return after;
}

bool InvocationFlow::escapes(BlockId id, bool in_loop, bool in_switch) const {
  return std::ranges::any_of(m_[id].instructions, [&](kernel::InstructionId each) {
    const Instruction& x = m_[each];
    if (x.op == Op::Return) return true;
    if (x.op == Op::Break) return !in_loop && !in_switch;
    if (x.op == Op::Continue) return !in_loop;
    return std::ranges::any_of(
        x.blocks, [&](BlockId inner) { return escapes(inner, in_loop || x.op == Op::Loop, in_loop || in_switch || x.op == Op::Switch); });
  });
}

bool InvocationFlow::returns(BlockId id) const {
  bool found = false;
  kernel::forEachInstruction(m_, id, [&](kernel::InstructionId, const Instruction& x) { found |= x.op == Op::Return; });
  return found;
}

Ids InvocationFlow::indexIds(ValueId pointer) const {
  Ids ids = 0;
  const Instruction* x = kernel::definition(m_, pointer);
  while (x != nullptr && x->op == Op::Access) {
    for (size_t k = 1; k < x->operands.size(); ++k) ids |= ids_[x->operands[k].index()];
    x = kernel::definition(m_, x->operands[0]);
  }
  return ids;
}

Ids InvocationFlow::loaded(ValueId pointer) const {
  const ValueId root = kernel::rootOf(m_, pointer);
  Ids ids = indexIds(pointer);
  const auto contents = contents_.find(root);
  if (contents == contents_.end()) return ids;
  if (spaceOf(root) != AddressSpace::Workgroup) return ids | contents->second;
  // All invocations of a workgroup read the same there.
  return ids | ((contents->second & kOther) != 0 ? kGroups : contents->second & kGroups);
}

void InvocationFlow::store(const Instruction& x, const Reached& reached) {
  const ValueId root = kernel::rootOf(m_, x.operands[0]);
  const AddressSpace space = spaceOf(root);
  if (space == AddressSpace::Storage) return;
  Ids& known = contents_[root];
  // Which lanes hold which components of a matrix is not known.
  const Ids value = x.op == Op::Store ? ids_[x.operands[1].index()] : static_cast<Ids>(lanes_ | kGroups | kOther);
  const auto now = static_cast<Ids>(known | value | indexIds(x.operands[0]) | reached.depends);
  changed_ |= now != known;
  known = now;
}

void InvocationFlow::define(const Instruction& x) {
  Ids ids = 0;
  for (const ValueId operand : x.operands) ids |= ids_[operand.index()];
  const OpGroup group = kernel::info(x.op).group;
  if (const auto part = component(x.result)) {
    const bool vector = part->builtin == Builtin::LocalInvocationId || part->builtin == Builtin::GlobalInvocationId ||
                        part->builtin == Builtin::WorkgroupId || part->builtin == Builtin::NumWorkgroups;
    ids = vector ? idsOf(part->builtin, part->axis) : wholeIds(part->builtin);
    if (part->builtin == Builtin::WorkgroupId) uses_workgroup_ |= groupId(part->axis);
    if (part->builtin == Builtin::GlobalInvocationId) uses_global_ |= groupId(part->axis);
  } else if (x.op == Op::Extract && kernel::constantBits(m_, x.operands[1])) {
    const Instruction* made = kernel::definition(m_, x.operands[0]);
    const uint32_t index = *kernel::constantBits(m_, x.operands[1]);
    if (made != nullptr && made->op == Op::Construct && index < made->operands.size()) ids = ids_[made->operands[index].index()];
  } else if (x.op == Op::Var) {
    if (!x.operands.empty()) {
      Ids& known = contents_[x.result];
      changed_ |= (ids & ~known) != 0;
      known |= ids;
    }
    ids = 0;
  } else if (x.op == Op::Load || x.op == Op::AtomicLoad || x.op == Op::WorkgroupUniformLoad) {
    ids = loaded(x.operands[0]);
  } else if (x.op == Op::ArrayLength) {
    ids = 0;
  } else if (group == OpGroup::Atomic || group == OpGroup::SubgroupMatrix) {
    ids = lanes_ | kGroups | kOther;
  } else if (group == OpGroup::Subgroup) {
    ids |= lanes_;
  }
  uses_lanes_ |= (ids & (kLanes | kOther)) != 0;
  ids_[x.result.index()] = ids;
  number(x);
}

void InvocationFlow::number(const Instruction& x) {
  const OpGroup group = kernel::info(x.op).group;
  bool pure = group == OpGroup::Arithmetic || group == OpGroup::Math || group == OpGroup::Composite || x.op == Op::Access ||
              x.op == Op::ArrayLength;
  if (x.op == Op::Load) {
    const ValueId root = kernel::rootOf(m_, x.operands[0]);
    if (const ValueId initial = initialOf(x.operands[0]); initial.valid()) {
      numbers_[x.result.index()] = numbers_[initial.index()];
      return;
    }
    const AddressSpace space = spaceOf(root);
    pure =
        space == AddressSpace::Uniform || space == AddressSpace::Immediate || (space == AddressSpace::Storage && !stored_.contains(root));
  }
  if (!pure) return;
  std::vector<uint32_t> key{2 + static_cast<uint32_t>(x.op), x.type.value, x.immediate};
  for (const ValueId operand : x.operands) key.push_back(numbers_[operand.index()]);
  numbers_[x.result.index()] = expressions_.try_emplace(std::move(key), numbers_[x.result.index()]).first->second;
}

Reached InvocationFlow::assumed(ValueId condition, bool holds, Reached reached) const {
  const Ids ids = ids_[condition.index()];
  if (ids == 0) return reached;
  const Instruction* x = kernel::definition(m_, condition);
  if (x != nullptr && x->op == Op::Not) return assumed(x->operands[0], !holds, reached);
  if (x != nullptr && (x->op == (holds ? Op::And : Op::Or))) {
    return assumed(x->operands[1], holds, assumed(x->operands[0], holds, reached));
  }
  if (x != nullptr && x->op == Op::Load) {
    const auto logical = logical_.find(x->operands[0]);
    if (logical != logical_.end() && logical->second.is_and == holds) {
      return assumed(logical->second.right, holds, assumed(logical->second.left, holds, reached));
    }
  }
  reached.depends |= ids;
  if (x != nullptr && isComparison(x->op)) return compared(*x, holds, reached);
  reached.narrowed |= ids;
  return reached;
}

/// An id, perhaps with a number added.
bool InvocationFlow::isPlain(ValueId value) const {
  if (component(value)) return true;
  const Instruction* x = kernel::definition(m_, value);
  if (x == nullptr || (x->op != Op::Add && x->op != Op::Sub)) return false;
  return (component(x->operands[0]) && idsOf(x->operands[1]) == 0) || (component(x->operands[1]) && idsOf(x->operands[0]) == 0);
}

/// Whether one of them was loaded from a buffer, and the other one is the same for all invocations or was loaded, too.
bool InvocationFlow::isData(ValueId a, ValueId b) const {
  const auto isLoaded = [&](ValueId value) {
    const Instruction* x = kernel::definition(m_, value);
    return x != nullptr && x->op == Op::Load && spaceOf(kernel::rootOf(m_, x->operands[0])) == AddressSpace::Storage;
  };
  return (isLoaded(a) && (isLoaded(b) || idsOf(b) == 0)) || (isLoaded(b) && idsOf(a) == 0);
}

Reached InvocationFlow::compared(const Instruction& x, bool holds, Reached reached) const {
  const Ids left = ids_[x.operands[0].index()], right = ids_[x.operands[1].index()];
  const auto all = static_cast<Ids>(left | right);
  const bool on_left = right == 0;
  const Op op = holds ? (on_left ? x.op : mirrored(x.op)) : negated(on_left ? x.op : mirrored(x.op));
  const auto bound = kernel::constantBits(m_, x.operands[on_left ? 1 : 0]);
  const uint32_t invocations = size_[0] * size_[1] * size_[2];
  // `id < n` and `id > 0` let many through; what compares ids with ids, or asks for one value, perhaps not.
  const bool integers = m_.typeOf(x.operands[0]).isInteger();
  // Which elements of a buffer are above or below a float nobody knows: not just one.
  const bool measures = m_.typeOf(x.operands[0]).isFloat() && x.op != Op::Eq && x.op != Op::Ne && isData(x.operands[0], x.operands[1]);
  if (measures) return reached;
  const bool upper = (op == Op::Lt && (!bound || *bound > 1)) || (op == Op::Le && (!bound || *bound > 0));
  const bool lower = (op == Op::Gt || op == Op::Ge || op == Op::Ne) && bound && uint64_t{*bound} * 2 < std::max(invocations, 4u);
  if (!integers || (left != 0 && right != 0) || !(upper || lower)) reached.narrowed |= all;
  if (!isPlain(x.operands[on_left ? 0 : 1])) {
    reached.picked |= all;
  } else if (upper) {
    reached.below = std::min(reached.below, bound.value_or(UINT32_MAX));
    reached.bounded |= !bound;
  }
  if (lower) reached.above |= all;
  const auto id = component(x.operands[on_left ? 0 : 1]);
  const bool own = id && (id->builtin == Builtin::LocalInvocationId || id->builtin == Builtin::LocalInvocationIndex ||
                          id->builtin == Builtin::GlobalInvocationId);
  if (own && bound && (op == Op::Eq || (op == Op::Lt && *bound == 1))) reached.single |= all;
  return reached;
}

void forEachEntryPoint(const kernel::Module& module, const std::function<void(const kernel::Function&, const InvocationFlow&)>& visit) {
  constexpr uint64_t kMostInstructions = 20'000;
  for (const kernel::Function& function : module.functions) {
    if (!function.workgroup_size || kernel::inlinedSize(module, function).instructions > kMostInstructions) continue;
    const auto alone = kernel::isolateEntry(module, function.name);
    if (!alone.ok()) continue;
    const kernel::Module flat = kernel::inlineAllCalls(*alone).module;
    const kernel::Function* entry = flat.entryPoint();
    if (entry != nullptr) visit(*entry, InvocationFlow(flat, *entry));
  }
}

}  // namespace lockstep::wgsl
