// SPDX-License-Identifier: Apache-2.0
// Linear code -> bytecode: slots by linear scan, handlers by the operands' kinds, jump targets; and the choice of the batch size.
#include <algorithm>
#include <map>
#include <queue>

#include <fmt/core.h>

#include "backends/reference/bytecode.h"
#include "backends/reference/linear.h"

namespace lockstep::reference {
namespace {

constexpr uint32_t kBatchLanes = 256;  ///< lanes of a batch: registers stay in the first-level cache

constexpr std::string_view kOpcodeNames[] = {
#define LS_VM_OP1(name, r, a) #name,
#define LS_VM_OP2(name, r, a, b) #name,
#define LS_VM_OP3(name, r, a, b, c) #name,
#define LS_VM_CONTROL(name) #name,
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
};

class Assembler {
 public:
  Assembler(const Code& code, std::vector<Access> accesses, LinearCode linear, uint32_t batch_groups)
      : code_(code), accesses_(std::move(accesses)), linear_(std::move(linear)) {
    out_.batch_groups = batch_groups;
  }

  Bytecode run() {
    out_.name = code_.name;
    out_.workgroup_size = code_.workgroup_size;
    out_.group_lanes = code_.invocations();
    out_.width = (out_.group_lanes * out_.batch_groups + kLaneBlock - 1) / kLaneBlock * kLaneBlock;
    out_.variables = code_.variables;
    out_.expressions = code_.expressions;
    out_.table = code_.table;
    out_.lane_words = code_.lane_words;
    out_.workgroup_words = code_.workgroup_words;
    out_.frames = linear_.frames;
    findLives();
    placeScalars();
    placeRows();
    for (size_t k = 0; k < 3; ++k) {
      out_.local_id[k] = builtin(code_.local_id[k]);
      out_.group_id[k] = builtin(code_.group_id[k]);
      out_.group_count[k] = builtin(code_.group_count[k]);
    }
    out_.subgroup_size = code_.subgroups.size;
    out_.subgroup_order = subgroupOrder(out_.group_lanes, code_.subgroups.seed);
    out_.subgroup_lane = builtin(code_.subgroup_lane);
    out_.subgroup_id = builtin(code_.subgroup_id);
    assembleAccesses();
    assembleInstructions();
    return std::move(out_);
  }

 private:
  /// Positions are 2 * step, plus 1 for the definitions of pure steps (which may share a slot with an operand that ends there).
  struct Life {
    uint32_t first = kNone, last = 0;
    bool read = false;
    [[nodiscard]] bool exists() const { return first != kNone; }
  };

  [[nodiscard]] bool varying(Register r) const { return code_.registers[r].varying; }
  [[nodiscard]] bool isBuiltin(Register r) const {
    auto in = [&](const std::array<Register, 3>& list) { return std::find(list.begin(), list.end(), r) != list.end(); };
    return r == code_.subgroup_lane || r == code_.subgroup_id || in(code_.local_id) || in(code_.group_id) || in(code_.group_count);
  }

  void findLives() {
    lives_.assign(code_.registers.size(), {});
    uint32_t end = 2 * static_cast<uint32_t>(linear_.steps.size()) + 1;
    for (uint32_t k = 0; k < linear_.steps.size(); ++k) {
      Linear& step = linear_.steps[k];
      if (step.dead) continue;
      visitRegisters(step, accesses_, [&](Register r, bool definition) {
        uint32_t position = 2 * k + (step.isPure() == definition ? 1 : 0);
        Life& life = lives_[r];
        life.first = std::min(life.first, position);
        life.last = std::max(life.last, position);
        life.read = life.read || !definition;
      });
    }
    // Values that enter or leave a loop live through all of it.
    for (bool again = true; again;) {
      again = false;
      for (Life& life : lives_) {
        for (const auto& [first, last] : linear_.loops) {
          uint32_t from = 2 * first, to = 2 * last + 1;
          bool overlaps = life.exists() && life.first <= to && life.last >= from;
          bool inside = life.first >= from && life.last <= to;
          if (!overlaps || inside || (life.first <= from && life.last >= to)) continue;
          life.first = std::min(life.first, from);
          life.last = std::max(life.last, to);
          again = true;
        }
      }
    }
    for (Register r = 0; r < lives_.size(); ++r)
      if (isBuiltin(r) && lives_[r].exists()) lives_[r] = {0, end, true};
  }

  /// Uniform values and constants get a word each.
  void placeScalars() {
    slots_.assign(code_.registers.size(), kNone);
    for (Register r = 0; r < lives_.size(); ++r) {
      if (!lives_[r].exists() || varying(r)) continue;
      slots_[r] = static_cast<uint32_t>(out_.scalars.size());
      out_.scalars.push_back(0);
    }
    auto note = [&](const Operand& operand) {
      if (operand.isConstant() && constants_.emplace(operand.value, static_cast<uint32_t>(out_.scalars.size())).second)
        out_.scalars.push_back(operand.value);
    };
    for (const Linear& step : linear_.steps) {
      if (step.dead) continue;
      note(step.a);
      note(step.b);
      note(step.c);
      if (step.access == kNone) continue;
      note(accesses_[step.access].index);
      for (const Operand& value : accesses_[step.access].values) note(value);
    }
    out_.scalars.resize((out_.scalars.size() + kLaneBlock - 1) / kLaneBlock * kLaneBlock);
  }

  /// Linear scan over the lives of varying registers; the lowest free row first, so that rows stay in the cache.
  void placeRows() {
    std::vector<Register> order;
    for (Register r = 0; r < lives_.size(); ++r)
      if (lives_[r].exists() && varying(r)) order.push_back(r);
    std::stable_sort(order.begin(), order.end(), [&](Register a, Register b) { return lives_[a].first < lives_[b].first; });
    using Ending = std::pair<uint32_t, uint32_t>;  // last position, row
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free;
    uint32_t rows = 0, base = static_cast<uint32_t>(out_.scalars.size());
    for (Register r : order) {
      while (!active.empty() && active.top().first < lives_[r].first) {
        free.push(active.top().second);
        active.pop();
      }
      uint32_t row = rows;
      if (free.empty()) {
        ++rows;
      } else {
        row = free.top();
        free.pop();
      }
      active.emplace(lives_[r].last, row);
      slots_[r] = base + row * out_.width;
    }
    out_.mask_row = base + rows * out_.width;
    out_.scratch_row = out_.mask_row + (1 + 2 * out_.frames) * out_.width;
    out_.file_words = out_.scratch_row + Bytecode::kScratchRows * out_.width;
  }

  [[nodiscard]] uint32_t builtin(Register r) const { return slots_[r]; }

  [[nodiscard]] uint32_t slot(const Operand& operand) const {
    if (operand.kind == Operand::Kind::None) return 0;
    return operand.isConstant() ? constants_.at(operand.value) : slots_[operand.value];
  }
  [[nodiscard]] bool isVarying(const Operand& operand) const { return operand.isRegister() && varying(operand.value); }

  void assembleAccesses() {
    for (const Access& access : accesses_) {
      MemoryAccess result{.variable = access.variable,
                          .half = access.half,
                          .offset = access.offset,
                          .stride = access.stride,
                          .count = access.count,
                          .array = access.array,
                          .expression = access.expression,
                          .values = {}};
      if (access.variable != kNone) {
        const Variable& variable = code_.variables[access.variable];
        result.home = variable.home;
        result.binding = variable.binding;
        result.offset += variable.home == Home::Buffer ? 0 : variable.offset * (access.half ? 2 : 1);
      }
      // Values of accesses that no step uses any more have no slot.
      for (size_t k = 0; k < access.values.size(); ++k) {
        const Operand& value = access.values[k];
        bool placed = !value.isRegister() || slots_[value.value] != kNone;
        bool used = !value.isRegister() || (placed && lives_[value.value].read);
        bool known = !value.isConstant() || constants_.contains(value.value);
        result.values.push_back({access.words[k], placed && known ? slot(value) : 0, isVarying(value), used});
      }
      out_.accesses.push_back(std::move(result));
    }
  }

  void assembleInstructions() {
    std::vector<uint32_t> moved(linear_.steps.size() + 1);  // step -> instruction
    for (size_t k = 0; k < linear_.steps.size(); ++k) {
      moved[k] = static_cast<uint32_t>(out_.instructions.size());
      const Linear& step = linear_.steps[k];
      const bool goes_on = step.op == Opcode::Jump && isNext(k);
      if (!step.dead && !goes_on) out_.instructions.push_back(assembled(step));
    }
    moved[linear_.steps.size()] = static_cast<uint32_t>(out_.instructions.size());
    for (Instruction& x : out_.instructions) {
      if (x.target != kNone) x.target = moved[linear_.labels[x.target]];
    }
  }

  /// Memory instructions have the index of their access in place of `a`; addresses and checks of an index have it there already.
  [[nodiscard]] const Operand& firstOperand(const Linear& step) const {
    const bool indexed =
        step.access != kNone && step.op != Opcode::Address && step.op != Opcode::CheckIndex && step.op != Opcode::ClampIndex;
    return indexed ? accesses_[step.access].index : step.a;
  }

  /// The step with slots in place of registers. Its target is still a label.
  [[nodiscard]] Instruction assembled(const Linear& step) const {
    const Operand& first = firstOperand(step);
    Instruction x{.op = step.op,
                  .join = step.join,
                  .masked = step.masked,
                  .left = step.left,
                  .dst = step.dst == kNone ? 0 : slots_[step.dst],
                  .a = first.kind == Operand::Kind::None ? kNone : slot(first),
                  .b = slot(step.b),
                  .c = slot(step.c),
                  .frame = step.frame,
                  .alive = step.alive,
                  .target = step.target,
                  .access = step.access == kNone ? 0 : step.access,
                  .site = step.site};
    if (isVarying(first)) x.varying |= kVaryingA;
    if (isVarying(step.b)) x.varying |= kVaryingB;
    if (isVarying(step.c)) x.varying |= kVaryingC;
    if (step.dst != kNone && varying(step.dst)) x.varying |= kVaryingDst;
    if (step.isPure()) chooseRoutine(x);
    return x;
  }

  /// The routine of a pure operation, by which of its operands vary. A uniform value for each lane has none: the interpreter spreads it.
  static void chooseRoutine(Instruction& x) {
    const uint8_t operands = x.varying & kVaryingOperands;
    if ((x.varying & kVaryingDst) == 0 || operands != 0) {
      x.handler = vectorRoutines().pure[static_cast<size_t>(x.op)][operands];
      return;
    }
    if (x.op != Opcode::Move) internalError("a uniform operation writes a varying register");
    x.op = Opcode::Splat;
  }

  /// Whether the jump at `k` goes to what follows it anyway.
  [[nodiscard]] bool isNext(size_t k) const {
    uint32_t target = linear_.labels[linear_.steps[k].target];
    if (target <= k) return false;
    for (size_t between = k + 1; between < target; ++between)
      if (!linear_.steps[between].dead) return false;
    return true;
  }

  const Code& code_;
  std::vector<Access> accesses_;
  LinearCode linear_;
  Bytecode out_;
  std::vector<Life> lives_;
  std::vector<uint32_t> slots_;
  std::map<uint32_t, uint32_t> constants_;
};

Bytecode assemble(Code& code, uint32_t batch_groups) {
  code.batched = batch_groups > 1;
  analyseUniformity(code);
  LinearCode linear = linearise(code);
  std::vector<Access> accesses = code.accesses;
  optimise(code, accesses, linear);
  Bytecode made = Assembler(code, std::move(accesses), std::move(linear), batch_groups).run();
  made.in_order = needsOrder(code, true);
  made.in_order_of_grid = needsOrder(code, false);
  return made;
}

/// Time of one lane in arbitrary units: a fixed price for each instruction, shared by the lanes, and one for each lane of a varying one.
/// Code in loops counts ten times per level.
double estimate(const Bytecode& code) {
  constexpr double kDispatch = 5, kLane = 0.12, kGather = 0.6;
  std::vector<double> weight(code.instructions.size() + 1, 1);
  for (size_t k = 0; k < code.instructions.size(); ++k)
    if (code.instructions[k].op == Opcode::LoopBack)
      for (size_t inner = code.instructions[k].target; inner <= k; ++inner) weight[inner] *= 10;
  double lanes = code.group_lanes * code.batch_groups, sum = 0;
  for (size_t k = 0; k < code.instructions.size(); ++k) {
    const Instruction& x = code.instructions[k];
    double price = kDispatch;
    if (x.op >= Opcode::Address && x.op <= Opcode::AtomicCompareExchange) {
      bool wide = (x.varying & kVaryingA) != 0 || (code.batch_groups > 1 && code.accesses[x.access].home == Home::Workgroup);
      price += wide ? kGather * lanes * static_cast<double>(std::max<size_t>(1, code.accesses[x.access].values.size())) : 0;
    } else if (x.op >= Opcode::SubgroupReduce && x.op <= Opcode::SubgroupShuffle) {
      price += kGather * lanes;
    } else if (x.varying != 0) {
      price += kLane * lanes;
    }
    sum += weight[k] * price;
  }
  return sum / lanes;
}

}  // namespace

Result<Bytecode> decode(const kernel::Module& module, uint32_t batch_groups, const SubgroupShape& subgroups) {
  LS_TRY(Code code, lower(module, subgroups));
  removeDeadSteps(code);
  return assemble(code, batch_groups);
}

Result<Bytecode> decodeWatched(const kernel::Module& module, const SubgroupShape& subgroups, const Watched& watched) {
  LS_TRY(Code code, lower(module, subgroups, watched));
  removeDeadSteps(code);
  Bytecode made = assemble(code, 1);
  made.refills = findRefills(code);
  return made;
}

Result<Bytecode> decode(const kernel::Module& module, const SubgroupShape& subgroups) {
  LS_TRY(Code code, lower(module, subgroups));
  removeDeadSteps(code);
  Bytecode single = assemble(code, 1);
  uint32_t groups = kBatchLanes / code.invocations();
  if (groups < 2) return single;
  Bytecode batched = assemble(code, groups);
  return estimate(batched) < estimate(single) ? std::move(batched) : std::move(single);
}

std::string_view nameOf(Opcode op) { return kOpcodeNames[static_cast<size_t>(op)]; }

std::string print(const Bytecode& code) {
  std::string out = fmt::format("kernel {}: {} groups of {} lanes, {} scalars, {} words\n", code.name, code.batch_groups, code.group_lanes,
                                code.scalars.size(), code.file_words);
  auto slot = [&](uint32_t word) {
    if (word == kNone) return std::string("-");
    size_t scalars = code.scalars.size();
    return word < scalars ? fmt::format("s{}", word) : fmt::format("v{}", (word - scalars) / code.width);
  };
  for (size_t k = 0; k < code.instructions.size(); ++k) {
    const Instruction& x = code.instructions[k];
    out += fmt::format("{:4} {}{}", k, nameOf(x.op), x.masked ? " masked" : "");
    if (x.op >= Opcode::Barrier) {
      out += fmt::format(" frame {} a {} target {}", x.frame, slot(x.a), static_cast<int32_t>(x.target));
    } else {
      out += fmt::format(" {} <- {} {} {}", slot(x.dst), slot(x.a), slot(x.b), slot(x.c));
    }
    if (x.op >= Opcode::Address && x.op <= Opcode::AtomicCompareExchange) {
      out += " values";
      for (const MemoryValue& value : code.accesses[x.access].values) out += " " + slot(value.slot);
    }
    out += "\n";
  }
  return out;
}

}  // namespace lockstep::reference
