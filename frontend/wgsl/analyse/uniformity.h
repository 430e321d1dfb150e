// SPDX-License-Identifier: Apache-2.0
// The state of uniformity analysis, internal to it. One class over three files: uniformity (functions and messages),
// uniformity_statements, uniformity_expressions.
//
// A function becomes a graph (uniformity_graph.h) in one walk over its body. `flow` is the node of the control flow at a place. The value
// of a function-scope variable is the node that the last assignment left in `current_`; where paths meet, a Join gathers the values that
// changed on them, so the time does not depend on how many variables are in scope.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>

#include "frontend/wgsl/analyse/memory_roots.h"
#include "frontend/wgsl/analyse/uniformity_graph.h"
#include "frontend/wgsl/check/diagnostic_filters.h"

namespace lockstep::wgsl {

class UniformityAnalysis {
 public:
  UniformityAnalysis(const Ast& ast, const Program& program, Reporter& reporter);
  void run();

 private:
  using Graph = UniformityGraph;
  static constexpr uint32_t kNone = UINT32_MAX;

  /// A call that needs a node to be uniform.
  struct Requirement {
    enum class What : uint8_t { Flow, Argument, Contents } what = What::Flow;
    Severity severity = Severity::Error;
    std::optional<DiagnosticRule> rule;  // none: cannot be switched off
    NodeId node = kNoNode;
    Span place;
    std::string_view callee;
    std::string_view argument;  // the parameter's name; empty for builtin functions
    uint32_t inner = kNone;     // what makes the called function ask for it: an index into requirements_
  };
  /// A note whose line is not yet looked up.
  struct Remark {
    Span place;
    std::string message;
  };
  /// Where a value comes from, as a caller sees it.
  struct Effect {
    bool varies = false;
    Remark origin;                  // if it varies
    std::vector<uint32_t> sources;  // it is as uniform as these
  };
  /// What callers of a function must know. Sources are numbered: 0 is the control flow of the call, 1 + 2 i argument i, 2 + 2 i what
  /// argument i points to. Their nodes in the function's own graph are one higher.
  struct Facts {
    std::vector<std::array<uint32_t, 3>> needs;  // by source and severity: an index into requirements_
    Effect result;
    std::vector<std::optional<Effect>> contents;  // by parameter: what the function leaves there, if it stores
  };
  /// The values that function-scope variables have on the paths that meet at one place.
  struct Join {
    struct Entry {
      EntityId entity;
      NodeId node = kNoNode;
      NodeId last = kNoNode;
      bool from_start = false;  // some path has not changed it
    };
    size_t seen = 0;  // how much of touched_ is recorded
    bool any = false;
    std::vector<Entry> entries;
    std::unordered_map<uint32_t, size_t> index;
  };
  /// A loop or switch around the current statement.
  struct Target {
    bool is_loop = false;
    Join exits, continues;
  };
  struct Flow {
    NodeId node = kNoNode;
    Behavior behavior = kNext;
  };
  struct Assigned {
    uint32_t offset = 0;
    EntityId entity;
  };

  // uniformity.cpp
  void findAssignments();
  void analyse(uint32_t function);
  void declareParameters(uint32_t function);
  void summarise(uint32_t function);
  void require(Requirement requirement);
  void report(const Requirement& requirement, const std::vector<NodeId>& paths);
  /// Appends the steps; whether they start at a builtin value.
  bool explain(NodeId from, const std::vector<NodeId>& paths, std::vector<Remark>& remarks);
  Remark origin(NodeId from, const std::vector<NodeId>& paths);
  Remark remarkOn(const UniformityNode& node);
  std::string builtinValueOf(EntityId parameter);

  // uniformity_statements.cpp
  Flow visitStatement(StmtId id, NodeId flow);
  Flow visitSequence(StmtList statements, NodeId flow);
  Flow visitIf(const Stmt& stmt, NodeId flow);
  Flow visitSwitch(const Stmt& stmt, NodeId flow);
  Flow visitLoop(const Stmt& stmt, NodeId flow);
  Flow visitJump(const Stmt& stmt, NodeId flow);
  void visitReturn(const Stmt& stmt, NodeId flow);
  void visitAssign(const Stmt& stmt, NodeId flow);
  void visitDeclaration(StmtId id, NodeId flow);
  std::vector<EntityId> assignedIn(Span span);

  // Values of function-scope variables.
  void assign(EntityId entity, NodeId node);
  void rollback(size_t mark);
  [[nodiscard]] Join newJoin() const;
  void record(Join& join);
  /// Makes the gathered values current. `inner`: also those of variables that are no longer in scope.
  void apply(Join& join, bool inner = false);

  // uniformity_expressions.cpp: each returns a node that depends on `flow`, or one that may be non-uniform by itself.
  NodeId value(ExprId id, NodeId flow) { return evaluate(id, flow, true); }
  NodeId evaluate(ExprId id, NodeId flow, bool load);
  NodeId visitIdentifier(ExprId id, NodeId flow);
  NodeId visitBinary(ExprId id, NodeId flow);
  NodeId visitCall(ExprId id, NodeId flow);
  NodeId visitBuiltinCall(ExprId id, NodeId flow);
  NodeId visitFunctionCall(ExprId id, NodeId flow);
  NodeId arguments(const Expr& call, NodeId flow);
  NodeId loaded(ExprId id, NodeId address);
  /// The value of a variable that is tracked.
  [[nodiscard]] NodeId contents(EntityId root) const;
  NodeId condition(ExprId id, NodeId flow);
  /// A node that depends on both, which already depend on `flow`.
  NodeId both(NodeId a, NodeId b, NodeId flow);
  NodeId varying(const UniformityNode& node);
  /// The root of a reference or pointer if its value is tracked: function-scope variables and pointers to them. Else invalid.
  [[nodiscard]] EntityId tracked(ExprId id) const;
  [[nodiscard]] bool coversRoot(ExprId id) const;

  const Ast& ast_;
  const Program& program_;
  Reporter& reporter_;
  MemoryRoots roots_;
  DiagnosticFilters filters_;
  std::vector<Assigned> assigned_;  // assignments of function-scope variables, in source order
  std::vector<Facts> facts_;        // by function
  std::vector<Requirement> requirements_;

  // Of the current function.
  Graph graph_;
  uint32_t function_ = 0;
  size_t first_requirement_ = 0;
  NodeId result_ = kNoNode;
  Join returns_;
  std::deque<Target> targets_;
  std::vector<std::pair<EntityId, NodeId>> journal_;  // what current_ was before
  std::vector<EntityId> touched_;                     // whose current_ changed, assignments and rollbacks alike; only grows
  std::vector<NodeId> current_;                       // by entity: variables, and what pointer parameters point to
  std::vector<NodeId> values_;                        // by entity: lets and parameters
};

}  // namespace lockstep::wgsl
