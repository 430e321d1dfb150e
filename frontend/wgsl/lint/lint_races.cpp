// SPDX-License-Identifier: Apache-2.0
// Invocations that store in one element, and invocations that read what others store. Only what is sure of some dispatch of the kernel:
// a condition that might leave one invocation, and an index with a part that is not known, are given the benefit of the doubt.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/lint/index_form.h"
#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

using kernel::AddressSpace;
using kernel::Instruction;
using kernel::Op;
using kernel::ValueId;
using What = TermKey::What;

constexpr std::array<char, 3> kAxes{'x', 'y', 'z'};
/// Loads and stores of one variable that are compared with each other.
constexpr size_t kMostPairs = 4000;

class Races {
 public:
  Races(const LintInput& input, const kernel::Function& entry, const InvocationFlow& flow, LintReporter& reporter)
      : input_(input), entry_(entry), flow_(flow), m_(flow.module()), reporter_(reporter), size_(flow.size()) {}

  void run() {
    if (sameForAllLanes()) return;
    for (const MemoryAccess& access : flow_.accesses()) {
      if (access.isStore()) visitStore(access);
    }
    if (!flow_.hasStorageAtomics()) comparePairs();
  }

 private:
  [[nodiscard]] AddressSpace spaceOf(const MemoryAccess& access) const { return flow_.spaceOf(access.root); }
  [[nodiscard]] uint64_t lanes() const { return uint64_t{size_[0]} * size_[1] * size_[2]; }

  /// A kernel that takes workgroup_id for the place of an invocation.
  bool sameForAllLanes() {
    if (lanes() == 1 || flow_.usesLanes()) return false;
    for (const MemoryAccess& access : flow_.accesses()) {
      if (!access.isStore() || spaceOf(access) != AddressSpace::Storage || (access.address & kGroups) == 0) continue;
      if (const auto where = placeOf(access)) {
        reporter_.report(
            DiagnosticRule::Index, *where,
            fmt::format("'{}' uses workgroup_id but no id of an invocation: all {} invocations of a workgroup do the same, and "
                        "a dispatch that counts elements in invocations leaves most of them out",
                        entry_.name, lanes()),
            "use global_invocation_id, or @workgroup_size(1)");
      }
      return true;
    }
    return false;
  }

  // Many invocations, one element.

  void visitStore(const MemoryAccess& access) {
    const AddressSpace space = spaceOf(access);
    if (space != AddressSpace::Storage && space != AddressSpace::Workgroup) return;
    const auto kept = static_cast<Ids>(access.address | access.reached.narrowed);
    if ((kept & kOther) != 0) return;
    const bool again = readsItself(access, access.instruction->operands[1], 12);
    Ids lost = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      if (size_[axis] > 1) lost |= laneId(axis) & ~kept;
      const bool many = flow_.usesWorkgroupId(axis) || (flow_.usesGlobalId(axis) && (again || size_[axis] == 1));
      if (space == AddressSpace::Storage && many) lost |= groupId(axis) & ~kept;
    }
    const Reached& reached = access.reached;
    if (lost == 0 && (reached.narrowed | reached.picked | reached.above) == 0 && reached.below == UINT32_MAX)
      lost = sharedBy(access, again);
    if (lost == 0 && again && (reached.narrowed | reached.picked) == 0 && isHistogram(access)) lost = kLanes;
    // An update of what others update loses theirs, whatever is added; equal values do no harm.
    if (!again) lost &= static_cast<Ids>((access.value & kOther) != 0 ? kLanes | kGroups : access.value);
    if (lost == 0) return;
    for (size_t axis = 0; axis < 3; ++axis) {
      if (size_[axis] == 1) lost &= static_cast<Ids>(~laneId(axis));
    }
    const auto where = placeOf(access);
    if (!where || lost == 0) return;
    const std::string_view name = nameOf(access.root);
    reporter_.report(
        DiagnosticRule::Race, *where,
        again
            ? fmt::format("invocations that differ in {} only change the same element of '{}' without atomics: updates are lost",
                          namesOf(lost), name)
            : fmt::format("invocations that differ in {} only store values of their own in the same element of '{}'", namesOf(lost), name),
        again ? "add in one invocation, or first in workgroup memory, or use an atomic"
              : "use these ids in the index, or let one invocation store");
  }

  /// The ids that an index such as i / 4 or i % 16 does not keep apart, where the value is not a function of that index.
  [[nodiscard]] Ids sharedBy(const MemoryAccess& access, bool again) const {
    const auto form = indexForm(flow_, access.pointer);
    if (!form) return 0;
    const Instruction* merged = nullptr;
    for (const auto& [key, times] : form->terms) {
      const Ids ids = key.what == What::Value ? flow_.idsOf(ValueId(key.which)) : kLanes;
      if (ids == 0 && key.what == What::Value) continue;
      if (key.what == What::Group && key.factor == 0) continue;
      if (key.what != What::Value || key.factor != 0 || merged != nullptr) return 0;
      merged = kernel::definition(m_, ValueId(key.which));
      if (merged == nullptr) return 0;
    }
    const auto bits = merged == nullptr || merged->operands.size() != 2 ? std::nullopt : kernel::constantBits(m_, merged->operands[1]);
    const auto counted = bits ? indexSum(flow_, merged->operands[0]) : std::nullopt;
    if (!counted || (!again && !hasOwnValue(access.instruction->operands[1], flow_.numberOf(merged->result), 16))) return 0;
    Ids shared = 0;
    for (const auto& [key, times] : *counted) {
      if (key.what == What::Group && key.factor == 0) continue;
      if (key.what != What::Lane || key.factor != 0 || times <= 0 || shared != 0) return 0;
      const int64_t span = times * int64_t{size_[key.which]};
      const bool divides = (merged->op == Op::Div && int64_t{*bits} >= 2 * times) ||
                           (merged->op == Op::Shr && *bits < 32 && (int64_t{1} << *bits) >= 2 * times);
      const bool turns = (merged->op == Op::Rem && *bits != 0 && int64_t{*bits} < span) ||
                         (merged->op == Op::And && (*bits & (*bits + 1)) == 0 && int64_t{*bits} + 1 < span);
      if (!divides && !turns) return 0;
      shared |= laneId(key.which);
    }
    return shared;
  }

  /// Whether the index sorts data into classes: what invocations read does not keep them apart.
  [[nodiscard]] bool isHistogram(const MemoryAccess& access) const {
    const Instruction* place = kernel::definition(m_, access.pointer);
    if (place == nullptr || place->op != Op::Access) return false;
    size_t varying = 0;
    bool sorts = false;
    for (auto index = place->operands.begin() + 1; index != place->operands.end(); ++index) {
      if (flow_.idsOf(*index) == 0) continue;
      ++varying;
      const Instruction* x = kernel::definition(m_, *index);
      while (x != nullptr && (x->op == Op::Min || x->op == Op::Clamp)) x = kernel::definition(m_, x->operands[0]);
      if (x == nullptr) continue;
      const bool from_float = x->op == Op::Convert && m_.typeOf(x->operands[0]).isFloat();
      const bool divides =
          (x->op == Op::Rem || x->op == Op::And || x->op == Op::Shr || x->op == Op::Div) && flow_.idsOf(x->operands[1]) == 0;
      sorts |= (from_float || divides) && isOfData(x->operands[0], 8);
    }
    return sorts && varying == 1;
  }

  /// Whether nothing but what was loaded from buffers tells the values of invocations apart.
  [[nodiscard]] bool isOfData(ValueId value, int depth) const {
    const Instruction* x = kernel::definition(m_, value);
    if (x == nullptr || depth == 0 || flow_.component(value)) return false;
    if (x->op == Op::Load)
      return flow_.spaceOf(kernel::rootOf(m_, x->operands[0])) == AddressSpace::Storage && (flow_.idsOf(value) & kLanes) != 0;
    bool found = false;
    for (const ValueId operand : x->operands) {
      if (flow_.idsOf(operand) == 0) continue;
      if (!isOfData(operand, depth - 1)) return false;
      found = true;
    }
    return found;
  }

  /// Whether an id is in a value other than by way of the number `through`. What a variable holds is not followed.
  [[nodiscard]] bool hasOwnValue(ValueId value, uint32_t through, int depth) const {
    if (flow_.numberOf(value) == through || (flow_.idsOf(value) & kLanes) == 0 || depth == 0) return false;
    if (flow_.component(value)) return true;
    const Instruction* x = kernel::definition(m_, value);
    if (x == nullptr) return false;
    if (x->op == Op::Load) {
      if (const ValueId initial = flow_.initialOf(x->operands[0]); initial.valid()) return hasOwnValue(initial, through, depth - 1);
      const Instruction* place = kernel::definition(m_, x->operands[0]);
      if (place == nullptr || place->op != Op::Access) return false;
      return std::any_of(place->operands.begin() + 1, place->operands.end(),
                         [&](ValueId index) { return hasOwnValue(index, through, depth - 1); });
    }
    return std::ranges::any_of(x->operands, [&](ValueId operand) { return hasOwnValue(operand, through, depth - 1); });
  }

  /// Whether a value is made of what is in the element that it is stored in.
  [[nodiscard]] bool readsItself(const MemoryAccess& access, ValueId value, int depth) const {
    const Instruction* x = kernel::definition(m_, value);
    if (x == nullptr || depth == 0) return false;
    if (x->op == Op::Load) {
      return kernel::rootOf(m_, x->operands[0]) == access.root && flow_.numberOf(x->operands[0]) == flow_.numberOf(access.pointer);
    }
    return std::ranges::any_of(x->operands, [&](ValueId operand) { return readsItself(access, operand, depth - 1); });
  }

  // One invocation reads, another one stores.

  struct Formed {
    const MemoryAccess* access;
    IndexForm form;
  };

  void comparePairs() {
    std::map<ValueId, std::pair<std::vector<Formed>, std::vector<Formed>>> all;
    for (const MemoryAccess& access : flow_.accesses()) {
      const AddressSpace space = spaceOf(access);
      const bool shared = space == AddressSpace::Storage || (space == AddressSpace::Workgroup && !flow_.hasBarrier());
      auto form = shared ? indexForm(flow_, access.pointer) : std::nullopt;
      if (!form || form->element_bytes == 0) continue;
      auto& [loads, stores] = all[access.root];
      (access.isStore() ? stores : loads).push_back({.access = &access, .form = *std::move(form)});
    }
    for (const auto& [root, lists] : all) {
      if (lists.first.size() * lists.second.size() > kMostPairs) continue;
      for (const Formed& load : lists.first) {
        const auto store = std::ranges::find_if(
            lists.second, [&](const Formed& each) { return meets(load, each) || (lists.second.size() == 1 && isForeign(load, each)); });
        if (store != lists.second.end()) reportPair(*load.access, *store->access);
      }
    }
  }

  /// Whether the element that is loaded is stored by another invocation.
  [[nodiscard]] bool meets(const Formed& load, const Formed& store) const {
    const auto& ids = store.form.terms;
    if (ids.empty() || store.form.has(What::Variable) || store.access->reached.narrowed != 0) return false;
    if ((store.access->reached.picked | load.access->reached.picked) != 0) return false;
    if (std::ranges::any_of(ids, [](const auto& term) { return term.first.factor != 0; })) return false;
    // Values beside the ids are the same for all.
    for (const auto& [key, times] : ids) {
      if (key.what == What::Value && flow_.idsOf(ValueId(key.which)) != 0) return false;
    }
    if (spaceOf(*store.access) == AddressSpace::Storage && flow_.hasBarrier() && !isAcrossWorkgroups(store.form)) return false;
    if (load.form.terms == ids) return load.access->reached.narrowed == 0 && isNeighbour(load.form, store.form, store.access->reached);
    if (store.form.has(What::Value) || store.form.constant != 0 || store.access->reached.above != 0) return false;
    if (load.form.constant != 0) return false;
    if (load.form.terms.empty()) return load.access->reached.narrowed == 0 && load.access->reached.above == 0;
    return isWholeLoop(load);
  }

  /// Without any barrier, in workgroup memory where every invocation stores one element: whether the load is of another one.
  [[nodiscard]] bool isForeign(const Formed& load, const Formed& store) const {
    if (((store.access->reached.picked | load.access->reached.picked) & kLanes) != 0) return false;
    if (spaceOf(*load.access) != AddressSpace::Workgroup || store.access->reached.narrowed != 0 || load.access->reached.narrowed != 0)
      return false;
    if ((load.access->address & kLanes) == 0 || (load.form.terms == store.form.terms && load.form.constant == store.form.constant))
      return false;
    int64_t next = store.form.element_bytes;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      if (size_[axis] == 1) continue;
      const auto term = store.form.terms.find({.what = What::Lane, .which = axis});
      if (term == store.form.terms.end() || term->second != next) return false;
      next *= size_[axis];
    }
    return store.form.terms.size() == static_cast<size_t>(std::ranges::count_if(size_, [](uint32_t count) { return count > 1; })) &&
           load.form.terms != store.form.terms;
  }

  /// The kernel says that there are many workgroups, and they store in different elements.
  [[nodiscard]] bool isAcrossWorkgroups(const IndexForm& form) const {
    return std::ranges::any_of(form.terms,
                               [&](const auto& term) { return term.first.what == What::Group && flow_.usesWorkgroupId(term.first.which); });
  }

  /// Whether an invocation a few places away stores what this one loads, and is among those that do.
  [[nodiscard]] bool isNeighbour(const IndexForm& load, const IndexForm& store, const Reached& stored) const {
    constexpr int64_t kNear = 4;
    const int64_t away = load.constant - store.constant;
    if (away == 0) return false;
    const int64_t elements = std::abs(away / int64_t{store.element_bytes});
    if ((stored.bounded && elements > kNear) || elements >= int64_t{stored.below}) return false;
    return std::ranges::any_of(store.terms, [&](const auto& term) {
      const auto& [key, times] = term;
      if (key.what == What::Lane) return away % times == 0 && std::abs(away / times) < int64_t{size_[key.which]};
      const bool many = lanes() == 1 || flow_.usesWorkgroupId(key.which) || flow_.usesGlobalId(key.which);
      // Further away there may be no workgroup: the other half of a buffer, for example.
      return key.what == What::Group && many && std::abs(away) == std::abs(times);
    });
  }

  /// x[k] for k from 0 on.
  [[nodiscard]] bool isWholeLoop(const Formed& load) const {
    if (load.form.terms.size() != 1 || load.access->loops == 0) return false;
    const auto& [key, times] = *load.form.terms.begin();
    if (key.what != What::Variable || key.factor != 0 || times != int64_t{load.form.element_bytes}) return false;
    const Instruction* variable = kernel::definition(m_, ValueId(key.which));
    return variable->operands.empty() || kernel::constantBits(m_, variable->operands[0]) == 0u;
  }

  void reportPair(const MemoryAccess& load, const MemoryAccess& store) {
    const auto where = placeOf(load), other = placeOf(store);
    if (!where || !other) return;
    const bool storage = spaceOf(load) == AddressSpace::Storage;
    reporter_.report(
        DiagnosticRule::Race, *where,
        fmt::format("an element of '{}' is read here that another invocation writes, and nothing orders the two", nameOf(load.root)),
        storage ? "read one buffer and write another, or make two dispatches of it: between workgroups nothing is ordered"
                : "put a workgroupBarrier() between the two",
        {reporter_.note(*other, "it is written here")});
  }

  // Words.

  [[nodiscard]] std::string_view nameOf(ValueId root) const {
    const auto found = std::ranges::find(m_.globals, root, &kernel::GlobalVariable::value);
    return found == m_.globals.end() ? std::string_view() : std::string_view(found->name);
  }

  /// "local_invocation_id.x and workgroup_id.y"
  [[nodiscard]] static std::string namesOf(Ids ids) {
    std::string text;
    for (size_t axis = 0; axis < 3; ++axis) {
      if ((ids & laneId(axis)) != 0) text += fmt::format("{}local_invocation_id.{}", text.empty() ? "" : " and ", kAxes[axis]);
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      if ((ids & groupId(axis)) != 0) text += fmt::format("{}workgroup_id.{}", text.empty() ? "" : " and ", kAxes[axis]);
    }
    return text;
  }

  [[nodiscard]] std::optional<Span> placeOf(const MemoryAccess& access) const {
    return findPlace(input_, m_, *access.instruction, reporter_.source());
  }

  const LintInput& input_;
  const kernel::Function& entry_;
  const InvocationFlow& flow_;
  const kernel::Module& m_;
  LintReporter& reporter_;
  std::array<uint32_t, 3> size_;
};

}  // namespace

void lintRaces(const LintInput& input, LintReporter& reporter) {
  forEachEntryPoint(*input.module,
                    [&](const kernel::Function& entry, const InvocationFlow& flow) { Races(input, entry, flow, reporter).run(); });
}

}  // namespace lockstep::wgsl
