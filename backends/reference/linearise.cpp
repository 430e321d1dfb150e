// SPDX-License-Identifier: Apache-2.0
// Control flow -> masks and jumps. Uniform control flow becomes plain jumps and does no mask work. A divergent `if` keeps the mask that it
// found in a frame and runs each arm with a part of it; a scope that lanes leave apart keeps in its frame the lanes that are still inside
// ("alive"). An exit takes its lanes out of the alive masks up to its target; the next join then computes what is left.
#include <algorithm>

#include "backends/reference/linear.h"

namespace lockstep::reference {
namespace {

/// Whether a step inside leaves for a construct outside of `inner`.
bool leaves(const std::vector<Step>& steps, std::vector<uint32_t>& inner) {
  for (const Step& step : steps) {
    if (step.kind == StepKind::Exit && std::find(inner.begin(), inner.end(), step.construct) == inner.end()) return true;
    if (step.kind != StepKind::If && step.kind != StepKind::Loop && step.kind != StepKind::Scope) continue;
    inner.push_back(step.construct);
    bool found = leaves(step.body, inner) || leaves(step.other, inner);
    inner.pop_back();
    if (found) return true;
  }
  return false;
}

bool leaves(const Step& step) {
  std::vector<uint32_t> inner{step.construct};
  return leaves(step.body, inner) || leaves(step.other, inner);
}

class Lineariser {
 public:
  explicit Lineariser(const Code& code) : code_(code), ends_(code.construct_count, kNone) {}

  LinearCode run() {
    walk(code_.body);
    emit({.op = Opcode::End});
    return std::move(out_);
  }

 private:
  /// An enclosing construct that needs masks: where lanes meet again, and its frame.
  struct Divergent {
    uint32_t construct, join, frame;
    bool is_scope;
  };

  void walk(const std::vector<Step>& steps) {
    for (const Step& step : steps) visit(step);
  }

  void visit(const Step& step) {
    switch (step.kind) {
      case StepKind::Pure:
        emit({.op = step.op, .dst = step.dst, .a = step.a, .b = step.b, .c = step.c, .site = step.site});
        break;
      case StepKind::Declare:
        if (step.a.kind != Operand::Kind::None) emit({.op = Opcode::Move, .dst = step.dst, .a = step.a, .site = step.site});
        break;
      case StepKind::Assign:
        emit({.op = Opcode::Move, .dst = step.dst, .a = step.a, .masked = code_.registers[step.dst].varying, .site = step.site});
        break;
      case StepKind::Memory:
      case StepKind::Address:
      case StepKind::Check:
      case StepKind::Clamp:
      case StepKind::Length:
      case StepKind::Print:
        emit({.op = step.op, .dst = step.dst, .a = step.a, .b = step.b, .c = step.c, .access = step.access, .site = step.site});
        break;
      case StepKind::Watch:
        emit({.op = step.op, .a = step.a, .b = step.b, .c = step.c, .join = step.join, .site = step.site});
        break;
      case StepKind::Subgroup:
        emit({.op = step.op, .dst = step.dst, .a = step.a, .b = step.b, .join = step.join, .site = step.site});
        break;
      case StepKind::Barrier:
        emit({.op = Opcode::Barrier, .frame = step.spaces, .site = step.site});
        break;
      case StepKind::If:
        if (code_.divergent[step.construct]) {
          divergentIf(step);
        } else {
          uniformIf(step);
        }
        break;
      case StepKind::Loop:
      case StepKind::Scope:
        scope(step);
        break;
      case StepKind::Exit:
        leave(step);
        break;
    }
  }

  void uniformIf(const Step& step) {
    uint32_t otherwise = newLabel(), end = newLabel();
    emit({.op = Opcode::JumpIfFalse, .a = step.a, .target = otherwise, .site = step.site});
    walk(step.body);
    if (!step.other.empty()) emit({.op = Opcode::Jump, .target = end});
    place(otherwise);
    walk(step.other);
    place(end);
  }

  void divergentIf(const Step& step) {
    uint32_t frame = enterFrame(), otherwise = newLabel(), end = newLabel();
    bool has_other = !step.other.empty();
    emit({.op = Opcode::IfBegin, .a = step.a, .frame = frame, .target = has_other ? otherwise : end, .site = step.site});
    divergent_.push_back({step.construct, has_other ? otherwise : end, frame, false});
    walk(step.body);
    place(otherwise);
    if (has_other) {
      emit({.op = Opcode::IfElse, .a = step.a, .frame = frame, .target = end, .site = step.site});
      divergent_.back().join = end;
      walk(step.other);
    }
    divergent_.pop_back();
    place(end);
    join(Opcode::IfEnd, step, frame);
  }

  void scope(const Step& step) {
    bool tracked = code_.divergent[step.construct];
    uint32_t end = newLabel(), frame = 0;
    ends_[step.construct] = end;
    if (tracked) {
      frame = enterFrame();
      emit({.op = Opcode::ScopeBegin, .frame = frame, .site = step.site});
      divergent_.push_back({step.construct, end, frame, true});
    }
    uint32_t top = newLabel();
    place(top);
    uint32_t first = static_cast<uint32_t>(out_.steps.size());
    walk(step.body);
    if (step.kind == StepKind::Loop) {
      emit({.op = Opcode::LoopBack, .target = top, .site = step.site});
      out_.loops.emplace_back(first, static_cast<uint32_t>(out_.steps.size() - 1));
    }
    place(end);
    if (tracked) {
      divergent_.pop_back();
      join(Opcode::ScopeEnd, step, frame);
    }
  }

  /// Restores the mask that the construct found; when lanes may have gone further, without those.
  void join(Opcode op, const Step& step, uint32_t frame) {
    --depth_;
    Linear linear{.op = op, .frame = frame, .left = leaves(step), .site = step.site};
    if (linear.left) {
      auto outer = std::find_if(divergent_.rbegin(), divergent_.rend(), [](const Divergent& d) { return d.is_scope; });
      if (outer == divergent_.rend()) internalError("lanes leave a construct for a scope that does not track them");
      linear.alive = outer->frame;
      linear.target = divergent_.back().join;
    }
    emit(linear);
  }

  void leave(const Step& step) {
    if (!code_.divergent[step.construct]) {
      emit({.op = Opcode::Jump, .target = ends_[step.construct], .site = step.site});
      return;
    }
    for (size_t k = divergent_.size(); k-- > 0;) {
      if (divergent_[k].is_scope) emit({.op = Opcode::Clear, .frame = divergent_[k].frame, .site = step.site});
      if (divergent_[k].construct == step.construct) break;
    }
    emit({.op = Opcode::Jump, .target = divergent_.back().join, .site = step.site});
  }

  uint32_t enterFrame() {
    out_.frames = std::max(out_.frames, depth_ + 1);
    return depth_++;
  }
  uint32_t newLabel() {
    out_.labels.push_back(kNone);
    return static_cast<uint32_t>(out_.labels.size() - 1);
  }
  void place(uint32_t label) { out_.labels[label] = static_cast<uint32_t>(out_.steps.size()); }
  void emit(const Linear& linear) { out_.steps.push_back(linear); }

  const Code& code_;
  LinearCode out_;
  std::vector<uint32_t> ends_;  ///< label after each loop and scope
  std::vector<Divergent> divergent_;
  uint32_t depth_ = 0;
};

}  // namespace

LinearCode linearise(const Code& code) { return Lineariser(code).run(); }

}  // namespace lockstep::reference
