// SPDX-License-Identifier: Apache-2.0
// Values (WGSL, "Uniformity rules for expressions" and "for function calls").
#include "frontend/wgsl/analyse/uniformity.h"

namespace lockstep::wgsl {

NodeId UniformityAnalysis::both(NodeId a, NodeId b, NodeId flow) {
  if (a == b || b == flow) return a;
  if (a == flow) return b;
  const NodeId node = graph_.add();
  graph_.edge(node, a);
  graph_.edge(node, b);
  return node;
}

NodeId UniformityAnalysis::varying(const UniformityNode& node) {
  const NodeId id = graph_.add(node);
  graph_.edge(id, Graph::kMayBeNonUniform);
  return id;
}

NodeId UniformityAnalysis::condition(ExprId id, NodeId flow) {
  const NodeId decided = value(id, flow);
  const NodeId node = graph_.add({.reason = Reason::Condition, .span = ast_[id].span});
  graph_.edge(node, decided);
  graph_.edge(node, flow);
  return node;
}

EntityId UniformityAnalysis::tracked(ExprId id) const {
  const EntityId root = roots_.of(id);
  if (!root.valid()) return {};
  const Type& type = program_.types[program_[root].type];
  const bool view = type.kind == Kind::Reference || type.kind == Kind::Pointer;
  return view && type.space == AddressSpace::Function ? root : EntityId();
}

/// A type is never part of itself, so equal types are the whole variable.
bool UniformityAnalysis::coversRoot(ExprId id) const {
  return program_.types[program_[id].type].element == program_.types[program_[roots_.of(id)].type].element;
}

NodeId UniformityAnalysis::evaluate(ExprId id, NodeId flow, bool load) {
  const Expr& expr = ast_[id];
  // An error type: a function that will be left out, since it lacks the value of an override.
  if (program_[id].stage != Stage::Runtime || program_[id].type == kError) return flow;
  const auto is = [&](ExprId e, Kind kind) { return program_.types[program_[e].type].kind == kind; };
  NodeId node = flow;
  switch (expr.kind) {
    case ExprKind::Literal:
      break;
    case ExprKind::Identifier:
      node = visitIdentifier(id, flow);
      break;
    case ExprKind::Unary:
      node = evaluate(expr.left, flow, expr.unary != UnaryOp::AddressOf);
      break;
    case ExprKind::Binary:
      node = visitBinary(id, flow);
      break;
    case ExprKind::Index:
    case ExprKind::Member: {
      node = evaluate(expr.left, flow, false);
      // A part of a reference is a reference, but several components of a vector are a value.
      const bool reads_base = !is(id, Kind::Reference) && (is(expr.left, Kind::Reference) || is(expr.left, Kind::Pointer));
      if (reads_base) node = loaded(expr.left, node);
      if (expr.kind == ExprKind::Index) {
        node = both(node, value(expr.right, flow), flow);
      }
      break;
    }
    case ExprKind::Call:
      node = visitCall(id, flow);
      break;
  }
  return load && is(id, Kind::Reference) ? loaded(id, node) : node;
}

NodeId UniformityAnalysis::contents(EntityId root) const {
  const NodeId node = current_[root.index()];
  return node == kNoNode ? Graph::kFlowStart : node;  // declared in code that cannot be reached
}

NodeId UniformityAnalysis::loaded(ExprId id, NodeId address) {
  if (const EntityId root = tracked(id); root.valid()) return both(address, contents(root), Graph::kFlowStart);
  if (program_.types[program_[id].type].access == Access::Read) return address;
  return varying({.reason = Reason::Memory, .span = ast_[id].span, .subject = roots_.of(id).value});
}

NodeId UniformityAnalysis::visitIdentifier(ExprId id, NodeId flow) {
  const EntityId entity = program_[id].entity;
  if (program_[entity].kind == EntityKind::Var) return flow;  // its address
  const NodeId node = values_[entity.index()];
  if (node == kNoNode) return flow;  // declared in code that cannot be reached
  if (node != Graph::kMayBeNonUniform) return both(flow, node, Graph::kFlowStart);
  return varying({.reason = Reason::BuiltinValue, .span = ast_[id].span, .subject = entity.value});
}

/// Chains of operators may be very long, so their left side is walked, not recursed.
NodeId UniformityAnalysis::visitBinary(ExprId id, NodeId flow) {
  std::vector<ExprId> spine;
  ExprId at = id;
  for (; ast_[at].kind == ExprKind::Binary && program_[at].stage == Stage::Runtime; at = ast_[at].left) spine.push_back(at);
  NodeId left = value(at, flow);
  for (auto node = spine.rbegin(); node != spine.rend(); ++node) {
    const Expr& expr = ast_[*node];
    NodeId right_flow = flow;
    if (expr.binary == BinaryOp::LogicalAnd || expr.binary == BinaryOp::LogicalOr) {
      right_flow = graph_.add({.reason = Reason::Condition, .span = ast_[expr.left].span});
      graph_.edge(right_flow, left);
      graph_.edge(right_flow, flow);
    }
    left = both(left, value(expr.right, right_flow), flow);
  }
  return left;
}

NodeId UniformityAnalysis::arguments(const Expr& call, NodeId flow) {
  NodeId all = flow;
  for (const ExprId argument : call.arguments) all = both(all, value(argument, flow), flow);
  return all;
}

NodeId UniformityAnalysis::visitCall(ExprId id, NodeId flow) {
  switch (program_[id].call) {
    case CallKind::None:
    case CallKind::Construct:
      return arguments(ast_[id], flow);
    case CallKind::Builtin:
      return visitBuiltinCall(id, flow);
    case CallKind::Function:
      return visitFunctionCall(id, flow);
  }
  return flow;
}

NodeId UniformityAnalysis::visitBuiltinCall(ExprId id, NodeId flow) {
  const Expr& call = ast_[id];
  const BuiltinInfo& builtin = info(program_[id].builtin);
  const Uniformity uniformity = builtin.uniformity;
  if (uniformity == Uniformity::Pure) return arguments(call, flow);
  std::vector<NodeId> values;
  for (const ExprId argument : call.arguments) values.push_back(value(argument, flow));
  Requirement needed;
  needed.place = call.span;
  needed.callee = builtin.text;
  const bool has_rule = uniformity >= Uniformity::Subgroup;
  if (has_rule) {
    needed.rule = uniformity == Uniformity::Derivative ? DiagnosticRule::DerivativeUniformity : DiagnosticRule::SubgroupUniformity;
    needed.severity = filters_.severity(*needed.rule, call.span.begin);
  }
  if (uniformity != Uniformity::Varying) {
    needed.node = flow;
    require(needed);
  }
  const size_t argument = uniformity == Uniformity::UniformLoad ? 0 : uniformity == Uniformity::SubgroupShuffle ? 1 : values.size();
  if (argument < values.size()) {
    needed.what = Requirement::What::Argument;
    needed.node = values[argument];
    needed.place = ast_[call.arguments[argument]].span;
    require(needed);
  }
  if (uniformity == Uniformity::Barrier || uniformity == Uniformity::UniformLoad) return flow;
  return varying({.reason = Reason::BuiltinCall, .span = call.span, .subject = static_cast<uint32_t>(program_[id].builtin)});
}

NodeId UniformityAnalysis::visitFunctionCall(ExprId id, NodeId flow) {
  const Expr& call = ast_[id];
  const uint32_t callee = program_[id].function;
  const Facts& facts = facts_[callee];
  const FunctionDecl& decl = ast_.functions[callee];
  // By source, as Facts numbers them.
  std::vector<NodeId> sources{flow};
  for (const ExprId argument : call.arguments) {
    sources.push_back(value(argument, flow));
    const bool is_pointer = program_.types.isPointer(program_[argument].type);
    const EntityId root = is_pointer ? tracked(argument) : EntityId();
    sources.push_back(root.valid() ? contents(root) : flow);
  }
  for (size_t source = 0; source < facts.needs.size(); ++source) {
    for (const uint32_t inner : facts.needs[source]) {
      if (inner == kNone) continue;
      Requirement needed = requirements_[inner];
      needed.what = source == 0 ? Requirement::What::Flow : source % 2 == 1 ? Requirement::What::Argument : Requirement::What::Contents;
      needed.node = sources[source];
      needed.place = call.span;
      needed.callee = decl.name;
      needed.inner = inner;
      if (source > 0) {
        needed.argument = decl.parameters[(source - 1) / 2].name;
        needed.place = ast_[call.arguments[(source - 1) / 2]].span;
      }
      require(needed);
    }
  }
  const auto outcome = [&](const Effect& effect, const UniformityNode& description) {
    const NodeId node = effect.varies ? varying(description) : graph_.add();
    graph_.edge(node, flow);
    for (const uint32_t source : effect.sources) graph_.edge(node, sources[source]);
    return node;
  };
  for (uint32_t i = 0; i < facts.contents.size(); ++i) {
    if (!facts.contents[i]) continue;
    const EntityId root = tracked(call.arguments[i]);
    const NodeId node = outcome(
        *facts.contents[i], {.reason = Reason::FunctionPointer, .span = ast_[call.arguments[i]].span, .subject = callee, .argument = i});
    graph_.edge(node, sources[1 + 2 * i]);
    if (!coversRoot(call.arguments[i])) graph_.edge(node, sources[2 + 2 * i]);
    assign(root, node);
  }
  if (program_.functions[callee].return_type == kVoid) return flow;
  return outcome(facts.result, {.reason = Reason::FunctionResult, .span = call.span, .subject = callee});
}

}  // namespace lockstep::wgsl
