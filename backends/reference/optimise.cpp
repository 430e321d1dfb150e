// SPDX-License-Identifier: Apache-2.0
// Peephole improvements of linear code: multiply-add, reading variables in place, computing straight into variables.
#include <algorithm>
#include <optional>

#include "backends/reference/linear.h"

namespace lockstep::reference {
namespace {

struct References {
  std::vector<uint32_t> definitions, uses;  ///< ascending step indices
};

class Optimiser {
 public:
  Optimiser(const Code& code, std::vector<Access>& accesses, LinearCode& linear)
      : registers_(code.registers), accesses_(accesses), linear_(linear), steps_(linear.steps) {
    // Control steps and jump targets end a straight run; within one the mask does not change.
    std::vector<bool> starts(steps_.size() + 1, false);
    for (uint32_t label : linear.labels)
      if (label != kNone) starts[label] = true;
    uint32_t run = 0;
    for (size_t k = 0; k < steps_.size(); ++k) {
      bool control = steps_[k].op >= Opcode::Barrier;
      if (starts[k] || control) ++run;
      runs_.push_back(run);
      if (control) ++run;
    }
  }

  void run() {
    collect();
    fuseMultiplyAdd();
    collect();
    readInPlace();
    collect();
    writeInPlace();
  }

 private:
  void collect() {
    references_.assign(registers_.size(), {});
    for (uint32_t k = 0; k < steps_.size(); ++k) {
      if (steps_[k].dead) continue;
      visitRegisters(steps_[k], accesses_,
                     [&](Register r, bool definition) { (definition ? references_[r].definitions : references_[r].uses).push_back(k); });
    }
  }

  void fuseMultiplyAdd() {
    for (uint32_t p = 0; p < steps_.size(); ++p) {
      const Linear product = steps_[p];
      bool is_float = product.op == Opcode::MulF;
      if (product.dead || (!is_float && product.op != Opcode::MulI)) continue;
      if (registers_[product.dst].variable || references_[product.dst].uses.size() != 1) continue;
      uint32_t q = references_[product.dst].uses[0];
      Linear& sum = steps_[q];
      if (runs_[p] != runs_[q] || q <= p) continue;
      bool left = sum.a == reg(product.dst);
      Operand other = left ? sum.b : sum.a;
      if (sum.op == (is_float ? Opcode::AddF : Opcode::AddI)) {
        sum.op = is_float ? Opcode::MulAddF : Opcode::MulAddI;
      } else if (sum.op == Opcode::SubF && is_float) {
        sum.op = left ? Opcode::MulSubF : Opcode::NegMulAddF;
      } else {
        continue;
      }
      sum.a = product.a;
      sum.b = product.b;
      sum.c = other;
      steps_[p].dead = true;
    }
  }

  /// t = v; ... t ...  reads v itself when nothing assigns v while t is needed.
  void readInPlace() {
    for (uint32_t p = 0; p < steps_.size(); ++p) {
      Linear& move = steps_[p];
      if (move.dead || move.op != Opcode::Move || move.masked || !move.a.isRegister()) continue;
      Register copy = move.dst, variable = move.a.value;
      if (!registers_[variable].variable || registers_[copy].variable) continue;
      if (registers_[copy].varying != registers_[variable].varying || references_[copy].uses.empty()) continue;
      uint32_t last = references_[copy].uses.back(), end = last;
      // A use in a loop that does not hold the copy happens again in each iteration.
      for (const auto& [first_of_loop, last_of_loop] : linear_.loops)
        if (p < first_of_loop && first_of_loop <= last && last <= last_of_loop) end = std::max(end, last_of_loop);
      bool reads_first = end == last && steps_[last].isPure();
      const std::vector<uint32_t>& definitions = references_[variable].definitions;
      bool assigned =
          std::any_of(definitions.begin(), definitions.end(), [&](uint32_t d) { return d > p && (reads_first ? d < end : d <= end); });
      if (assigned) continue;
      for (uint32_t use : references_[copy].uses) replaceUses(steps_[use], copy, variable);
      move.dead = true;
    }
  }

  void replaceUses(Linear& step, Register from, Register to) {
    auto replace = [&](Operand& operand) {
      if (operand == reg(from)) operand = reg(to);
    };
    replace(step.a);
    replace(step.b);
    replace(step.c);
    if (step.access == kNone) return;
    replace(accesses_[step.access].index);
    if (step.op == Opcode::Store || step.op == Opcode::LaneStore || step.op == Opcode::Print || step.op == Opcode::WatchIndex)
      for (Operand& value : accesses_[step.access].values) replace(value);
  }

  [[nodiscard]] bool anyVarying(const Linear& step) const {
    auto varying = [&](const Operand& operand) { return operand.isRegister() && registers_[operand.value].varying; };
    return varying(step.a) || varying(step.b) || varying(step.c);
  }

  /// t = op ...; v = t  computes into v when t has no other use and v is not touched between.
  void writeInPlace() {
    for (uint32_t q = 0; q < steps_.size(); ++q) {
      Linear& assign = steps_[q];
      if (assign.dead || assign.op != Opcode::Move || !assign.a.isRegister() || !registers_[assign.dst].variable) continue;
      Register value = assign.a.value, variable = assign.dst;
      if (registers_[value].variable || references_[value].uses.size() != 1 || references_[value].definitions.size() != 1) continue;
      uint32_t p = references_[value].definitions[0];
      Linear& producer = steps_[p];
      if (p >= q || runs_[p] != runs_[q] || !producer.isPure() || producer.dead) continue;
      if (registers_[variable].varying != anyVarying(producer)) continue;
      auto between = [&](uint32_t k) { return k > p && k < q; };
      const References& seen = references_[variable];
      if (std::any_of(seen.definitions.begin(), seen.definitions.end(), between) ||
          std::any_of(seen.uses.begin(), seen.uses.end(), between))
        continue;
      producer.dst = variable;
      producer.masked = assign.masked;
      assign.dead = true;
      // Later candidates must see the definition where it is now.
      for (uint32_t& definition : references_[variable].definitions)
        if (definition == q) definition = p;
    }
  }

  const std::vector<RegisterInfo>& registers_;
  std::vector<Access>& accesses_;
  LinearCode& linear_;
  std::vector<Linear>& steps_;
  std::vector<uint32_t> runs_;
  std::vector<References> references_;
};

}  // namespace

void optimise(const Code& code, std::vector<Access>& accesses, LinearCode& linear) { Optimiser(code, accesses, linear).run(); }

}  // namespace lockstep::reference
