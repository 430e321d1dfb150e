// SPDX-License-Identifier: Apache-2.0
// Control flow and the values of variables along it (WGSL, "Uniformity rules for statements").
#include <algorithm>

#include "frontend/wgsl/analyse/uniformity.h"

namespace lockstep::wgsl {

void UniformityAnalysis::assign(EntityId entity, NodeId node) {
  journal_.emplace_back(entity, current_[entity.index()]);
  touched_.push_back(entity);
  current_[entity.index()] = node;
}

void UniformityAnalysis::rollback(size_t mark) {
  while (journal_.size() > mark) {
    const auto [entity, node] = journal_.back();
    journal_.pop_back();
    touched_.push_back(entity);
    current_[entity.index()] = node;
  }
}

UniformityAnalysis::Join UniformityAnalysis::newJoin() const {
  Join join;
  join.seen = touched_.size();
  return join;
}

/// A variable that was not touched since the last path was recorded has the value that it had there.
void UniformityAnalysis::record(Join& join) {
  for (; join.seen < touched_.size(); ++join.seen) {
    const EntityId entity = touched_[join.seen];
    const NodeId node = current_[entity.index()];
    if (node == kNoNode) continue;
    const auto [place, is_new] = join.index.try_emplace(entity.value, join.entries.size());
    if (is_new) join.entries.push_back({.entity = entity, .node = graph_.add(), .from_start = join.any});
    Join::Entry& entry = join.entries[place->second];
    if (entry.last == node) continue;
    graph_.edge(entry.node, node);
    entry.last = node;
  }
  join.any = true;
}

void UniformityAnalysis::apply(Join& join, bool inner) {
  for (const Join::Entry& entry : join.entries) {
    const NodeId before = current_[entry.entity.index()];
    if (before == kNoNode && !inner) continue;
    if (entry.from_start && before != kNoNode) graph_.edge(entry.node, before);
    assign(entry.entity, entry.node);
  }
}

UniformityAnalysis::Flow UniformityAnalysis::visitSequence(StmtList statements, NodeId flow) {
  Flow result{.node = flow};
  for (const StmtId statement : statements) {
    const Flow one = visitStatement(statement, result.node);
    result = {.node = one.node, .behavior = static_cast<Behavior>((result.behavior & ~kNext) | one.behavior)};
    // What cannot be reached asks for nothing.
    if ((one.behavior & kNext) == 0) break;
  }
  return result;
}

UniformityAnalysis::Flow UniformityAnalysis::visitStatement(StmtId id, NodeId flow) {
  const Stmt& stmt = ast_[id];
  switch (stmt.kind) {
    case StmtKind::Block:
      return visitSequence(stmt.statements, flow);
    case StmtKind::If:
      return visitIf(stmt, flow);
    case StmtKind::Switch:
      return visitSwitch(stmt, flow);
    case StmtKind::Loop:
    case StmtKind::For:
    case StmtKind::While:
      return visitLoop(stmt, flow);
    case StmtKind::Break:
    case StmtKind::BreakIf:
    case StmtKind::Continue:
      return visitJump(stmt, flow);
    case StmtKind::Return:
      visitReturn(stmt, flow);
      return {.node = flow, .behavior = kReturn};
    case StmtKind::Assign:
    case StmtKind::CompoundAssign:
    case StmtKind::Increment:
    case StmtKind::Decrement:
      visitAssign(stmt, flow);
      return {.node = flow};
    case StmtKind::Call:
    case StmtKind::Phony:
      value(stmt.value, flow);
      return {.node = flow};
    case StmtKind::Discard:
    case StmtKind::ConstAssert:
      return {.node = flow};
    case StmtKind::Declare:
      visitDeclaration(id, flow);
      return {.node = flow};
  }
  return {.node = flow};
}

UniformityAnalysis::Flow UniformityAnalysis::visitIf(const Stmt& stmt, NodeId flow) {
  const NodeId start = condition(stmt.condition, flow);
  const size_t mark = journal_.size();
  Join join = newJoin();
  const Flow then = visitStatement(stmt.body, start);
  if ((then.behavior & kNext) != 0) record(join);
  rollback(mark);
  const Flow otherwise = stmt.otherwise.valid() ? visitStatement(stmt.otherwise, start) : Flow{.node = start};
  if ((otherwise.behavior & kNext) != 0) record(join);
  rollback(mark);
  apply(join);
  const Behavior behavior = then.behavior | otherwise.behavior;
  if (behavior == kNext) return {.node = flow};
  const NodeId end = graph_.add();
  graph_.edge(end, then.node);
  graph_.edge(end, otherwise.node);
  return {.node = end, .behavior = behavior};
}

UniformityAnalysis::Flow UniformityAnalysis::visitSwitch(const Stmt& stmt, NodeId flow) {
  const NodeId start = condition(stmt.condition, flow);
  const NodeId end = graph_.add();
  const size_t mark = journal_.size();
  targets_.push_back({.is_loop = false, .exits = newJoin(), .continues = {}});
  Behavior behavior = 0;
  for (const CaseClause& clause : stmt.cases) {
    const Flow one = visitStatement(clause.body, start);
    if ((one.behavior & kNext) != 0) record(targets_.back().exits);
    rollback(mark);
    graph_.edge(end, one.node);
    behavior |= one.behavior;
  }
  apply(targets_.back().exits);
  targets_.pop_back();
  if ((behavior & kBreak) != 0) behavior = static_cast<Behavior>((behavior & ~kBreak) | kNext);
  return {.node = behavior == kNext ? flow : end, .behavior = behavior};
}

/// `for` and `while` are loops that begin with `if !condition { break; }`.
UniformityAnalysis::Flow UniformityAnalysis::visitLoop(const Stmt& stmt, NodeId flow) {
  if (stmt.initializer.valid()) visitStatement(stmt.initializer, flow);
  const NodeId start = graph_.add();
  graph_.edge(start, flow);
  // A variable that the loop assigns has at its start the value from before or from the last iteration.
  std::vector<std::pair<EntityId, NodeId>> heads;
  for (const EntityId entity : assignedIn(stmt.span)) {
    if (current_[entity.index()] == kNoNode) continue;
    const NodeId head = graph_.add();
    graph_.edge(head, current_[entity.index()]);
    assign(entity, head);
    heads.emplace_back(entity, head);
  }
  const size_t mark = journal_.size();
  targets_.push_back({.is_loop = true, .exits = newJoin(), .continues = newJoin()});
  Behavior behavior = 0;
  NodeId body_start = start;
  if (stmt.condition.valid()) {
    body_start = condition(stmt.condition, start);
    record(targets_.back().exits);
    behavior |= kBreak;
  }
  const Flow body = visitStatement(stmt.body, body_start);
  behavior |= body.behavior;
  if ((body.behavior & kNext) != 0) record(targets_.back().continues);
  rollback(mark);
  apply(targets_.back().continues, true);
  NodeId end = body.node;
  const bool repeats = (body.behavior & (kNext | kContinue)) != 0;  // otherwise nothing reaches the continuing block
  if (stmt.continuing.valid() && repeats) {
    const Flow continuing = visitStatement(stmt.continuing, body.node);
    end = continuing.node;
    behavior |= continuing.behavior;
  }
  if (stmt.update.valid() && repeats) visitStatement(stmt.update, body.node);
  if (targets_.back().continues.any) {
    for (const auto& [entity, head] : heads) graph_.edge(head, contents(entity));
  }
  if (repeats) graph_.edge(start, end);
  rollback(mark);
  apply(targets_.back().exits);
  targets_.pop_back();
  const bool ends = (behavior & kBreak) != 0;
  behavior = static_cast<Behavior>((behavior & kReturn) | (ends ? kNext : 0));
  return {.node = behavior == kNext ? flow : repeats ? start : end, .behavior = behavior};
}

UniformityAnalysis::Flow UniformityAnalysis::visitJump(const Stmt& stmt, NodeId flow) {
  if (stmt.kind == StmtKind::Continue) {
    const auto loop = std::find_if(targets_.rbegin(), targets_.rend(), [](const Target& target) { return target.is_loop; });
    record(loop->continues);
    return {.node = flow, .behavior = kContinue};
  }
  const bool conditional = stmt.kind == StmtKind::BreakIf;
  if (conditional) flow = condition(stmt.condition, flow);
  record(targets_.back().exits);
  return {.node = flow, .behavior = static_cast<Behavior>(conditional ? kBreak | kNext : kBreak)};
}

void UniformityAnalysis::visitReturn(const Stmt& stmt, NodeId flow) {
  if (stmt.value.valid()) graph_.edge(result_, value(stmt.value, flow));
  record(returns_);
}

void UniformityAnalysis::visitAssign(const Stmt& stmt, NodeId flow) {
  const NodeId address = evaluate(stmt.target, flow, false);
  NodeId stored = stmt.value.valid() ? value(stmt.value, flow) : flow;
  const EntityId root = tracked(stmt.target);
  if (!root.valid()) return;
  const NodeId node = graph_.add({.reason = Reason::Assignment, .span = stmt.span, .subject = root.value});
  graph_.edge(node, address);
  graph_.edge(node, stored);
  const bool keeps_old = stmt.kind != StmtKind::Assign || !coversRoot(stmt.target);
  if (keeps_old) graph_.edge(node, contents(root));
  assign(root, node);
}

void UniformityAnalysis::visitDeclaration(StmtId id, NodeId flow) {
  const EntityId entity = program_.declared[id.index()];
  const VariableDecl& decl = ast_.localOf(ast_[id]);
  if (decl.kind == VariableKind::Const || !entity.valid()) return;
  NodeId node = flow;
  if (decl.initializer.valid()) {
    node = graph_.add({.reason = Reason::Assignment, .span = decl.span, .subject = entity.value});
    graph_.edge(node, value(decl.initializer, flow));
  }
  if (decl.kind == VariableKind::Var) {
    assign(entity, node);
  } else {
    values_[entity.index()] = node;
  }
}

std::vector<EntityId> UniformityAnalysis::assignedIn(Span span) {
  const auto before = [](const Assigned& assigned, uint32_t offset) { return assigned.offset < offset; };
  const auto begin = std::lower_bound(assigned_.begin(), assigned_.end(), span.begin, before);
  const auto end = std::lower_bound(begin, assigned_.end(), span.end, before);
  std::vector<EntityId> entities;
  for (auto assigned = begin; assigned != end; ++assigned) entities.push_back(assigned->entity);
  std::sort(entities.begin(), entities.end());
  entities.erase(std::unique(entities.begin(), entities.end()), entities.end());
  return entities;
}

}  // namespace lockstep::wgsl
