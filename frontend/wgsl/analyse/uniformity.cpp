// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/analyse/uniformity.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/analyse/analyses.h"

namespace lockstep::wgsl {
namespace {

/// Builtin values that all invocations of a workgroup share.
constexpr std::array<std::string_view, 5> kUniformBuiltins{"workgroup_id", "num_workgroups", "subgroup_size", "num_subgroups",
                                                           "workgroup_index"};

bool isUniform(kernel::Builtin builtin) {
  return std::find(kUniformBuiltins.begin(), kUniformBuiltins.end(), kernel::toString(builtin)) != kUniformBuiltins.end();
}

/// Steps of an explanation that are shown between a call and the value at the start.
constexpr size_t kMaximumSteps = 4;

/// A call that needs something to be uniform.
bool asks(const ExprInfo& expression) {
  if (expression.call != CallKind::Builtin) return false;
  const Uniformity uniformity = info(expression.builtin).uniformity;
  return uniformity != Uniformity::Pure && uniformity != Uniformity::Varying;
}

}  // namespace

void checkUniformity(const Ast& ast, const Program& program, Reporter& reporter) {
  if (std::ranges::any_of(program.expressions, asks)) UniformityAnalysis(ast, program, reporter).run();
}

UniformityAnalysis::UniformityAnalysis(const Ast& ast, const Program& program, Reporter& reporter)
    : ast_(ast),
      program_(program),
      reporter_(reporter),
      roots_(ast, program),
      filters_(ast.filters),
      facts_(ast.functions.size()),
      current_(program.entities.size(), kNoNode),
      values_(program.entities.size(), kNoNode) {}

void UniformityAnalysis::run() {
  findAssignments();
  for (const uint32_t function : program_.function_order) {
    if (reporter_.full()) return;
    if (program_.functions[function].valid && !program_.functions[function].broken) analyse(function);
  }
}

void UniformityAnalysis::findAssignments() {
  const auto add = [&](ExprId target, uint32_t offset) {
    if (const EntityId root = tracked(target); root.valid()) assigned_.push_back({.offset = offset, .entity = root});
  };
  for (const Stmt& stmt : ast_.statements) {
    if (stmt.target.valid()) add(stmt.target, stmt.span.begin);
  }
  for (size_t i = 0; i < ast_.expressions.size(); ++i) {
    if (program_.expressions[i].call != CallKind::Function) continue;
    for (const ExprId argument : ast_.expressions[i].arguments) {
      if (program_.types.isPointer(program_[argument].type)) add(argument, ast_.expressions[i].span.begin);
    }
  }
  std::sort(assigned_.begin(), assigned_.end(), [](const Assigned& a, const Assigned& b) { return a.offset < b.offset; });
}

void UniformityAnalysis::declareParameters(uint32_t function) {
  const FunctionInfo& info = program_.functions[function];
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const EntityId parameter = info.parameters[i];
    // The order of these two is that of the sources in Facts.
    const NodeId node = graph_.add(), contents = graph_.add();
    graph_.edge(node, Graph::kFlowStart);
    graph_.edge(contents, Graph::kFlowStart);
    values_[parameter.index()] = node;
    current_[parameter.index()] = contents;
    if (!info.workgroup_size) continue;
    values_[parameter.index()] = builtinValueOf(parameter).empty() ? Graph::kFlowStart : Graph::kMayBeNonUniform;
  }
}

/// The builtin value in a parameter of an entry point that makes it non-uniform; empty if none does.
std::string UniformityAnalysis::builtinValueOf(EntityId parameter) {
  const FunctionInfo& info = program_.functions[function_];
  const auto place = std::find(info.parameters.begin(), info.parameters.end(), parameter);
  const kernel::Builtin builtin = info.builtins[static_cast<size_t>(place - info.parameters.begin())];
  if (builtin != kernel::Builtin::None) return isUniform(builtin) ? "" : std::string(kernel::toString(builtin));
  const Ty type = program_[parameter].type;
  if (program_.types[type].kind != Kind::Struct) return "";
  for (const StructMember& member : program_.types.structure(type).members) {
    if (!isUniform(member.builtin)) return std::string(kernel::toString(member.builtin));
  }
  return "";
}

void UniformityAnalysis::analyse(uint32_t function) {
  function_ = function;
  first_requirement_ = requirements_.size();
  graph_.clear();
  journal_.clear();
  touched_.clear();
  targets_.clear();
  declareParameters(function);
  result_ = graph_.add();
  returns_ = newJoin();
  const Flow end = visitStatement(ast_.functions[function].body, Graph::kFlowStart);
  if ((end.behavior & kNext) != 0) record(returns_);
  rollback(0);
  apply(returns_);
  summarise(function);
}

void UniformityAnalysis::require(Requirement requirement) {
  if (requirement.severity != Severity::Off) requirements_.push_back(requirement);
}

void UniformityAnalysis::summarise(uint32_t function) {
  const FunctionInfo& info = program_.functions[function];
  Facts& facts = facts_[function];
  const size_t parameters = info.parameters.size();
  // Node 2 + 2 i + 1 is what parameter i pointed to at the start.
  const auto stores = [&](size_t i) { return current_[info.parameters[i].index()] != static_cast<NodeId>(3 + 2 * i); };

  const std::vector<NodeId>& varying = graph_.pathsTo(Graph::kMayBeNonUniform);
  std::set<NodeId> reported;
  for (size_t i = first_requirement_; i < requirements_.size(); ++i) {
    const Requirement& requirement = requirements_[i];
    if (varying[requirement.node] != kNoNode && reported.insert(requirement.node).second) report(requirement, varying);
  }
  if (info.workgroup_size) return;
  const auto begin = [&](Effect& effect, NodeId node) {
    effect.varies = varying[node] != kNoNode;
    if (effect.varies) effect.origin = origin(node, varying);
  };
  begin(facts.result, result_);
  facts.contents.resize(parameters);
  for (size_t i = 0; i < parameters; ++i) {
    if (stores(i)) begin(facts.contents[i].emplace(), current_[info.parameters[i].index()]);
  }

  facts.needs.assign(1 + 2 * parameters, {kNone, kNone, kNone});
  for (uint32_t source = 0; source < facts.needs.size(); ++source) {
    const std::vector<NodeId>& paths = graph_.pathsTo(source + 1);
    for (size_t i = first_requirement_; i < requirements_.size(); ++i) {
      uint32_t& need = facts.needs[source][static_cast<size_t>(requirements_[i].severity) - 1];
      if (need == kNone && paths[requirements_[i].node] != kNoNode) need = static_cast<uint32_t>(i);
    }
    if (paths[result_] != kNoNode) facts.result.sources.push_back(source);
    for (size_t i = 0; i < parameters; ++i) {
      const NodeId contents = current_[info.parameters[i].index()];
      if (facts.contents[i] && paths[contents] != kNoNode) facts.contents[i]->sources.push_back(source);
    }
  }
}

void UniformityAnalysis::report(const Requirement& requirement, const std::vector<NodeId>& paths) {
  std::string message;
  switch (requirement.what) {
    case Requirement::What::Flow:
      message = fmt::format("'{}' needs uniform control flow, but perhaps not all invocations come here", requirement.callee);
      break;
    case Requirement::What::Argument:
      message = requirement.argument.empty()
                    ? fmt::format("this argument of '{}' must be uniform, but may differ between invocations", requirement.callee)
                    : fmt::format("argument '{}' of '{}' must be uniform, but may differ between invocations", requirement.argument,
                                  requirement.callee);
      break;
    case Requirement::What::Contents:
      message = fmt::format("what argument '{}' of '{}' points to must be uniform, but may differ between invocations",
                            requirement.argument, requirement.callee);
      break;
  }
  std::vector<Remark> remarks;
  for (uint32_t inner = requirement.inner; inner != kNone && remarks.size() < kMaximumSteps; inner = requirements_[inner].inner) {
    const Requirement& reason = requirements_[inner];
    remarks.push_back({.place = reason.place, .message = fmt::format("'{}' needs it here", reason.callee)});
  }
  const bool from_builtin = explain(requirement.node, paths, remarks);
  std::vector<Note> notes;
  for (const Remark& remark : remarks) notes.push_back(reporter_.note(remark.place, remark.message));
  const std::string remedy =
      requirement.rule ? fmt::format("where this is intended, write @diagnostic(off, {})", toString(*requirement.rule))
      : requirement.what == Requirement::What::Flow
          ? (from_builtin
                 ? "move the call to where all invocations come, or let the conditions depend on workgroup_id, which is uniform"
                 : "move the call to where all invocations come, or make the conditions uniform, for example by workgroupUniformLoad")
          : "use a value that is the same for all invocations of the workgroup";
  reporter_.report(requirement.severity, kUniformity, requirement.place, std::move(message), remedy, std::move(notes));
}

bool UniformityAnalysis::explain(NodeId from, const std::vector<NodeId>& paths, std::vector<Remark>& remarks) {
  size_t steps = 0;
  NodeId at = from;
  for (; paths[at] != Graph::kMayBeNonUniform; at = paths[at]) {
    if (graph_[at].reason == Reason::None || steps == kMaximumSteps) continue;
    remarks.push_back(remarkOn(graph_[at]));
    ++steps;
  }
  remarks.push_back(remarkOn(graph_[at]));
  const UniformityNode& start = graph_[at];
  const Facts* facts = start.reason == Reason::FunctionResult || start.reason == Reason::FunctionPointer ? &facts_[start.subject] : nullptr;
  if (facts != nullptr)
    remarks.push_back(start.reason == Reason::FunctionResult ? facts->result.origin : facts->contents[start.argument]->origin);
  return start.reason == Reason::BuiltinValue;
}

UniformityAnalysis::Remark UniformityAnalysis::origin(NodeId from, const std::vector<NodeId>& paths) {
  std::vector<Remark> remarks;
  explain(from, paths, remarks);
  return std::move(remarks.back());
}

UniformityAnalysis::Remark UniformityAnalysis::remarkOn(const UniformityNode& node) {
  const auto remark = [](Span place, std::string message) { return Remark{.place = place, .message = std::move(message)}; };
  const auto entity = [&]() -> const Entity& { return program_.entities[node.subject]; };
  switch (node.reason) {
    case Reason::None:
      break;
    case Reason::Condition:
      return remark(node.span, "control flow depends on this");
    case Reason::Assignment:
      return remark(node.span, fmt::format("'{}' gets its value here", entity().name));
    case Reason::BuiltinValue: {
      const bool is_struct = program_.types[entity().type].kind == Kind::Struct;
      return remark(node.span, fmt::format("'{}' {} {}, which differs between invocations", entity().name, is_struct ? "holds" : "is",
                                           builtinValueOf(EntityId(node.subject))));
    }
    case Reason::Memory: {
      const AddressSpace space = program_.types[entity().type].space;
      const std::string where = space == AddressSpace::Storage ? "read_write storage" : fmt::format("{} memory", kernel::toString(space));
      const std::string_view why =
          space == AddressSpace::Private ? "which each invocation has for itself" : "which other invocations may write";
      const bool is_pointer = entity().kind == EntityKind::Parameter;
      return remark(node.span, fmt::format("'{}' {} {}, {}", entity().name, is_pointer ? "points into" : "is in", where, why));
    }
    case Reason::BuiltinCall:
      return remark(node.span,
                    fmt::format("the result of '{}' may differ between invocations", info(static_cast<Builtin>(node.subject)).text));
    case Reason::FunctionResult:
      return remark(node.span, fmt::format("the result of '{}' may differ between invocations", ast_.functions[node.subject].name));
    case Reason::FunctionPointer:
      return remark(node.span,
                    fmt::format("'{}' stores a value here that may differ between invocations", ast_.functions[node.subject].name));
  }
  return {};
}

}  // namespace lockstep::wgsl
