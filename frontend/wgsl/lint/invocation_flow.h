// SPDX-License-Identifier: Apache-2.0
// Which ids of an invocation the values, the conditions and the accesses of an entry point depend on.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "ir/kernel/queries.h"

namespace lockstep::wgsl {

/// A set of ids: bits 0 to 2 are the axes of the place in the workgroup, 3 to 5 those of the workgroup; kOther is what differs in a way
/// that is not known, such as the result of an atomic. Axes on which a workgroup has one invocation do not count.
using Ids = uint8_t;
inline constexpr Ids kLanes = 0b111, kGroups = 0b111000, kOther = 0b1000000;
constexpr Ids laneId(size_t axis) { return static_cast<Ids>(1u << axis); }
constexpr Ids groupId(size_t axis) { return static_cast<Ids>(8u << axis); }

/// What the conditions around a place say of the invocations that get there.
struct Reached {
  Ids depends = 0;              ///< which of them do depends on these
  Ids narrowed = 0;             ///< perhaps only one value of these, or a few
  Ids above = 0;                ///< not the first of these
  Ids single = 0;               ///< one value of these, for certain
  Ids picked = 0;               ///< some values of these, by a condition on a number that is computed from them
  uint32_t below = UINT32_MAX;  ///< an id is below this number
  bool bounded = false;         ///< an id is below a number that is not known
};

struct MemoryAccess {
  const kernel::Instruction* instruction = nullptr;  ///< Load or Store
  kernel::ValueId pointer, root;
  Ids address = 0, value = 0;
  Reached reached;
  size_t loops = 0;  ///< around it

  [[nodiscard]] bool isStore() const { return instruction->op == kernel::Op::Store; }
};

/// Of an entry point without calls.
class InvocationFlow {
 public:
  InvocationFlow(const kernel::Module& module, const kernel::Function& entry);

  [[nodiscard]] const kernel::Module& module() const { return m_; }
  [[nodiscard]] const std::array<uint32_t, 3>& size() const { return size_; }
  [[nodiscard]] Ids idsOf(kernel::ValueId value) const { return ids_[value.index()]; }
  /// Plain loads and stores of module-scope variables, in the order of the text.
  [[nodiscard]] const std::vector<MemoryAccess>& accesses() const { return accesses_; }
  [[nodiscard]] bool hasBarrier() const { return has_barrier_; }
  [[nodiscard]] bool hasStorageAtomics() const { return has_storage_atomics_; }
  [[nodiscard]] bool usesWorkgroupId(size_t axis) const { return (uses_workgroup_ & groupId(axis)) != 0; }
  [[nodiscard]] bool usesGlobalId(size_t axis) const { return (uses_global_ & groupId(axis)) != 0; }
  [[nodiscard]] bool usesLanes() const { return uses_lanes_; }
  /// Equal for values that are computed alike from the same values.
  [[nodiscard]] uint32_t numberOf(kernel::ValueId value) const { return numbers_[value.index()]; }
  /// The space of the variable that a pointer leads to.
  [[nodiscard]] kernel::AddressSpace spaceOf(kernel::ValueId root) const { return m_.typeOf(root).space; }
  /// Of a local variable that nothing is stored to: what it begins with. Invalid for others.
  [[nodiscard]] kernel::ValueId initialOf(kernel::ValueId variable) const;
  /// Builtin and component of an id, where the value is one.
  struct Component {
    kernel::Builtin builtin;
    uint32_t axis;
  };
  [[nodiscard]] std::optional<Component> component(kernel::ValueId value) const;

 private:
  void declareParameters(const kernel::Function& entry);
  [[nodiscard]] Ids idsOf(kernel::Builtin builtin, uint32_t axis) const;
  Ids wholeIds(kernel::Builtin builtin) const;
  void block(kernel::BlockId id, Reached reached);
  Reached afterIf(const kernel::Instruction& x, const Reached& reached) const;
  void loop(const kernel::Instruction& x, Reached& reached);
  void jump(const kernel::Instruction& x, const Reached& reached);
  void define(const kernel::Instruction& x);
  Ids loaded(kernel::ValueId pointer) const;
  void store(const kernel::Instruction& x, const Reached& reached);
  void number(const kernel::Instruction& x);
  [[nodiscard]] Ids indexIds(kernel::ValueId pointer) const;
  [[nodiscard]] Reached assumed(kernel::ValueId condition, bool holds, Reached reached) const;
  [[nodiscard]] Reached compared(const kernel::Instruction& x, bool holds, Reached reached) const;
  [[nodiscard]] bool isPlain(kernel::ValueId value) const;
  [[nodiscard]] bool isData(kernel::ValueId a, kernel::ValueId b) const;
  void findLogical(const kernel::Instruction& x);
  [[nodiscard]] bool escapes(kernel::BlockId id, bool in_loop = false, bool in_switch = false) const;
  [[nodiscard]] bool returns(kernel::BlockId id) const;

  const kernel::Module& m_;
  std::array<uint32_t, 3> size_{1, 1, 1};
  Ids lanes_ = 0;  ///< axes of a workgroup with more than one invocation
  std::map<kernel::ValueId, kernel::Builtin> builtins_;
  std::vector<Ids> ids_;           // by value
  std::vector<uint32_t> numbers_;  // by value
  std::map<std::vector<uint32_t>, uint32_t> expressions_;
  std::map<kernel::ValueId, Ids> contents_;          // by variable
  std::map<const kernel::Instruction*, Ids> exits_;  // of loops: what leaving them depends on
  std::set<kernel::ValueId> stored_;                 // variables
  /// `a && b` and `a || b` where b is not evaluated always: a variable that begins as a and becomes b in an `if`.
  struct Logical {
    kernel::ValueId left, right;
    bool is_and = false;
  };
  std::map<kernel::ValueId, Logical> logical_;
  std::vector<const kernel::Instruction*> around_;  // loops and switches
  std::vector<MemoryAccess> accesses_;
  bool changed_ = false, has_barrier_ = false, has_storage_atomics_ = false, uses_lanes_ = false;
  Ids uses_workgroup_ = 0, uses_global_ = 0;
};

/// For each entry point of the module, as one function. Those that would be too large are left out.
void forEachEntryPoint(const kernel::Module& module,
                       const std::function<void(const kernel::Function& entry, const InvocationFlow& flow)>& visit);

}  // namespace lockstep::wgsl
