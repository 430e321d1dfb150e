// SPDX-License-Identifier: Apache-2.0
// Stores that fill a workgroup array again in each round of a loop, with a guard that leaves out a tail: see Refill. Whether a round filled
// less than the one before is seen while the kernel runs (sanitize/refills.h); what is decided here is that the author cannot have meant
// the rest to stay. That is so where
//
//   - the loop holds the store, a barrier and loads of the array;
//   - the guard is a limit: comparisons of index arithmetic with a number that is the same for all lanes;
//   - the stored value is not computed from the array.
//
// What is updated in place, kept where a lane has finished, or appended to a queue is not of this form.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backends/reference/code.h"

namespace lockstep::reference {
namespace {

constexpr uint32_t kRoot = UINT32_MAX;

/// A step and where it stands. Steps are numbered in the order of the text, so those inside of step k are k + 1 .. end - 1.
struct Node {
  const Step* step;
  uint32_t parent;  ///< kRoot: none
  bool in_body;     ///< of its parent, and not in `other`
  uint32_t end = 0;
};

/// What a value was computed from.
struct Origins {
  std::set<uint32_t> variables;  ///< memory that was loaded
  bool other_lanes = false;      ///< some of it was chosen by a lane's index, or by what other lanes did
};

class Finder {
 public:
  explicit Finder(const Code& code) : code_(code), definitions_(code.registers.size()) { collect(code.body, kRoot, true); }

  std::vector<Refill> run() {
    std::map<uint32_t, Refill> found;  // by site
    std::set<uint32_t> refused;        // a function may be inlined in several places
    for (uint32_t k = 0; k < nodes_.size(); ++k) {
      const Step& step = *nodes_[k].step;
      if (step.op != Opcode::Store || variableOf(step).home != Home::Workgroup || roundsOf(k) == kRoot) continue;
      std::optional<Refill> refill = refillOf(k);
      if (!refill) {
        refused.insert(step.site);
      } else if (!found.emplace(step.site, *refill).second) {
        Refill& known = found.at(step.site);
        known.loads.insert(known.loads.end(), refill->loads.begin(), refill->loads.end());
        if (known.variable != refill->variable) refused.insert(step.site);
      }
    }
    std::vector<Refill> refills;
    for (auto& [site, refill] : found)
      if (!refused.contains(site)) refills.push_back(std::move(refill));
    return refills;
  }

 private:
  struct Guard {
    Operand condition;
    bool holds;  ///< false: the step runs where the condition is false
  };

  [[nodiscard]] const Access& accessOf(const Step& step) const { return code_.accesses[step.access]; }
  [[nodiscard]] const Variable& variableOf(const Step& step) const { return code_.variables[accessOf(step).variable]; }
  [[nodiscard]] bool varying(const Operand& operand) const { return operand.isRegister() && code_.registers[operand.value].varying; }
  [[nodiscard]] bool isInside(uint32_t node, uint32_t outer) const { return outer < node && node < nodes_[outer].end; }

  static bool isLoad(const Step& step) { return step.kind == StepKind::Memory && (step.op == Opcode::Load || step.op == Opcode::LaneLoad); }
  static bool isStore(const Step& step) {
    return step.kind == StepKind::Memory && (step.op == Opcode::Store || step.op == Opcode::LaneStore);
  }

  void collect(const std::vector<Step>& steps, uint32_t parent, bool in_body) {
    for (const Step& step : steps) {
      const auto id = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.step = &step, .parent = parent, .in_body = in_body});
      if (isLoad(step)) {
        for (const Operand& value : accessOf(step).values) definitions_[value.value].push_back(id);
      } else if (step.dst != UINT32_MAX) {
        definitions_[step.dst].push_back(id);
      }
      if (step.kind == StepKind::Memory) (isLoad(step) ? loads_ : writes_)[accessOf(step).variable].push_back(id);
      if (step.kind == StepKind::Exit) exits_.push_back(id);
      collect(step.body, id, true);
      collect(step.other, id, false);
      nodes_[id].end = static_cast<uint32_t>(nodes_.size());
    }
  }

  /// The innermost loop around a step that has a barrier in it.
  [[nodiscard]] uint32_t roundsOf(uint32_t node) const {
    const auto orders = [&](uint32_t loop) {
      for (uint32_t k = loop + 1; k < nodes_[loop].end; ++k)
        if (nodes_[k].step->kind == StepKind::Barrier && (nodes_[k].step->spaces & kOrdersWorkgroup) != 0) return true;
      return false;
    };
    uint32_t loop = nodes_[node].parent;
    while (loop != kRoot && !(nodes_[loop].step->kind == StepKind::Loop && orders(loop))) loop = nodes_[loop].parent;
    return loop;
  }

  [[nodiscard]] std::optional<Refill> refillOf(uint32_t store) const {
    const uint32_t loop = roundsOf(store);
    const Step& step = *nodes_[store].step;
    const Access& access = accessOf(step);
    Refill refill{.variable = access.variable, .store = step.site, .loads = {}};
    if (const auto loads = loads_.find(access.variable); loads != loads_.end()) {
      for (const uint32_t load : loads->second)
        if (isInside(load, loop)) refill.loads.push_back(nodes_[load].step->site);
    }
    if (refill.loads.empty() || !isLimited(store, loop)) return std::nullopt;
    if (originsOf(access.values).variables.contains(access.variable)) return std::nullopt;
    return refill;
  }

  /// The condition of the `if` right around a node, where lanes part there.
  void addGuard(uint32_t node, std::vector<Guard>& guards) const {
    const uint32_t parent = nodes_[node].parent;
    if (parent == kRoot || nodes_[parent].step->kind != StepKind::If || !code_.divergent[nodes_[parent].step->construct]) return;
    guards.push_back({.condition = nodes_[parent].step->a, .holds = nodes_[node].in_body});
  }

  /// Whether limits decide which lanes run a step in a round of a loop, and nothing else that changes from round to round.
  [[nodiscard]] bool isLimited(uint32_t node, uint32_t loop) const {
    std::vector<Guard> guards;
    for (uint32_t k = node; k != loop; k = nodes_[k].parent) addGuard(k, guards);
    for (const uint32_t exit : exits_) {
      const uint32_t construct = nodes_[exit].step->construct;
      if (!isInside(exit, loop) || !code_.divergent[construct]) continue;
      std::vector<Guard> leaves;
      uint32_t target = exit;
      while (target == exit || nodes_[target].step->construct != construct) {
        addGuard(target, leaves);
        target = nodes_[target].parent;
      }
      if (target != loop && !isInside(target, loop)) return false;
      // Who has left a scope is back in the next round; who has left a loop is not.
      if (!isInside(node, target) || (nodes_[target].step->kind == StepKind::Scope && exit > node)) continue;
      if (leaves.size() > 1 && !std::ranges::all_of(leaves, [&](const Guard& one) { return isInvariant(one.condition, loop); }))
        return false;
      for (const Guard& one : leaves) guards.push_back({.condition = one.condition, .holds = !one.holds});
    }
    const bool changes = std::ranges::any_of(guards, [&](const Guard& one) { return !isInvariant(one.condition, loop); });
    return changes && std::ranges::all_of(guards, [&](const Guard& one) { return isLimit(one, loop); });
  }

  /// Whether a value is the same in all rounds of a loop.
  [[nodiscard]] bool isInvariant(const Operand& operand, uint32_t loop) const {
    if (!operand.isRegister()) return true;
    return std::ranges::all_of(definitions_[operand.value], [&](uint32_t id) {
      if (!isInside(id, loop)) return true;
      if (code_.registers[operand.value].variable) return false;
      const Step& step = *nodes_[id].step;
      if (step.kind == StepKind::Length) return true;
      if (isLoad(step)) return isConstant(variableOf(step)) && isInvariant(accessOf(step).index, loop);
      const bool computed = step.kind == StepKind::Pure || step.kind == StepKind::Address || step.kind == StepKind::Clamp;
      return computed && isInvariant(step.a, loop) && isInvariant(step.b, loop) && isInvariant(step.c, loop);
    });
  }

  [[nodiscard]] static bool isConstant(const Variable& variable) {
    return variable.home == Home::Table || (variable.home == Home::Buffer && !variable.writable);
  }

  /// Whether a guard is the same in all rounds, a limit, or several of them of which all must hold.
  [[nodiscard]] bool isLimit(const Guard& guard, uint32_t loop) const {
    // Lanes that agree run the step or leave it, so no part of them does.
    if (!varying(guard.condition) || isInvariant(guard.condition, loop)) return true;
    const std::vector<uint32_t>& made = definitions_[guard.condition.value];
    if (const std::optional<Logical> logical = logicalOf(made)) {
      return logical->is_and == guard.holds && isLimit({.condition = logical->left, .holds = guard.holds}, loop) &&
             isLimit({.condition = logical->right, .holds = guard.holds}, loop);
    }
    if (made.size() != 1) return false;
    const Step& step = *nodes_[made[0]].step;
    if (step.op == Opcode::Move) return isLimit({.condition = step.a, .holds = guard.holds}, loop);
    if (step.op == Opcode::Not) return isLimit({.condition = step.a, .holds = !guard.holds}, loop);
    const bool compares = step.op == Opcode::LtU || step.op == Opcode::LtI || step.op == Opcode::LeU || step.op == Opcode::LeI;
    if (!compares || originsOf({step.a, step.b}).other_lanes) return false;
    const Operand &less = guard.holds ? step.a : step.b, &more = guard.holds ? step.b : step.a;
    // A lane below a lower limit that rises is done, and what it left may be meant to stay.
    return varying(less) ? !varying(more) : isInvariant(less, loop);
  }

  /// `left && right` or `left || right`, also where the right side is only computed if the left side asks for it.
  struct Logical {
    bool is_and;
    Operand left, right;
  };
  [[nodiscard]] std::optional<Logical> logicalOf(const std::vector<uint32_t>& made) const {
    if (made.size() == 1) {
      const Step& step = *nodes_[made[0]].step;
      if (step.op != Opcode::And && step.op != Opcode::Or) return std::nullopt;
      return Logical{.is_and = step.op == Opcode::And, .left = step.a, .right = step.b};
    }
    if (made.size() != 2 || nodes_[made[0]].step->kind != StepKind::Declare || nodes_[made[1]].parent == kRoot) return std::nullopt;
    const Operand left = nodes_[made[0]].step->a, right = nodes_[made[1]].step->a;
    const Step& test = *nodes_[nodes_[made[1]].parent].step;
    if (test.kind != StepKind::If || !nodes_[made[1]].in_body || !test.a.isRegister()) return std::nullopt;
    if (test.a == left) return Logical{.is_and = true, .left = left, .right = right};
    const std::vector<uint32_t>& asked = definitions_[test.a.value];
    const bool inverted = asked.size() == 1 && nodes_[asked[0]].step->op == Opcode::Not && nodes_[asked[0]].step->a == left;
    return inverted ? std::optional(Logical{.is_and = false, .left = left, .right = right}) : std::nullopt;
  }

  [[nodiscard]] Origins originsOf(const std::vector<Operand>& operands) const {
    Origins origins;
    std::vector<bool> seen(code_.registers.size());
    for (const Operand& operand : operands) addOrigins(operand, seen, origins);
    return origins;
  }

  void addOrigins(const Operand& operand, std::vector<bool>& seen, Origins& origins) const {
    if (!operand.isRegister() || seen[operand.value]) return;
    seen[operand.value] = true;
    for (const uint32_t id : definitions_[operand.value]) {
      const Step& step = *nodes_[id].step;
      for (const Operand& one : {step.a, step.b, step.c}) addOrigins(one, seen, origins);
      if (step.kind == StepKind::Assign) addDecisions(id, seen, origins);
      if (step.kind == StepKind::Subgroup) origins.other_lanes = true;
      if (step.kind != StepKind::Memory) continue;
      addOrigins(accessOf(step).index, seen, origins);
      if (!isLoad(step) || varying(operand)) origins.other_lanes = true;
      const uint32_t variable = accessOf(step).variable;
      if (!origins.variables.insert(variable).second) continue;
      const auto writes = writes_.find(variable);
      if (writes == writes_.end()) continue;
      for (const uint32_t write : writes->second) {
        if (isStore(*nodes_[write].step))
          for (const Operand& value : accessOf(*nodes_[write].step).values) addOrigins(value, seen, origins);
        for (const Operand& value : {nodes_[write].step->b, nodes_[write].step->c}) addOrigins(value, seen, origins);
      }
    }
  }

  /// What decides whether, and how often, an assignment is reached.
  void addDecisions(uint32_t node, std::vector<bool>& seen, Origins& origins) const {
    for (uint32_t k = nodes_[node].parent; k != kRoot; k = nodes_[k].parent) {
      const Step& step = *nodes_[k].step;
      if (step.kind == StepKind::If) addOrigins(step.a, seen, origins);
      if (step.kind != StepKind::Loop) continue;
      for (const uint32_t exit : exits_) {
        if (nodes_[exit].step->construct != step.construct) continue;
        for (uint32_t around = nodes_[exit].parent; around != k; around = nodes_[around].parent)
          if (nodes_[around].step->kind == StepKind::If) addOrigins(nodes_[around].step->a, seen, origins);
      }
    }
  }

  const Code& code_;
  std::vector<Node> nodes_;
  std::vector<std::vector<uint32_t>> definitions_;            ///< by register: nodes
  std::map<uint32_t, std::vector<uint32_t>> loads_, writes_;  ///< by variable: nodes; atomics write
  std::vector<uint32_t> exits_;
};

}  // namespace

std::vector<Refill> findRefills(const Code& code) { return Finder(code).run(); }

}  // namespace lockstep::reference
