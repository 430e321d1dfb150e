// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/wgsl/analyse/analyses.h"
#include "frontend/wgsl/analyse/memory_roots.h"

namespace lockstep::wgsl {
namespace {

/// How a function uses a module-scope variable or what a pointer parameter points to, and one place for each.
struct Access {
  bool reads = false, writes = false;
  Span read_place, write_place;

  void read(Span place) {
    if (!reads) read_place = place;
    reads = true;
  }
  void write(Span place) {
    if (!writes) write_place = place;
    writes = true;
  }
  void add(const Access& other, Span place) {
    if (other.reads) read(place);
    if (other.writes) write(place);
  }
};
using Accesses = std::map<EntityId, Access>;

bool conflict(const Access& a, const Access& b) { return (a.writes && (b.reads || b.writes)) || (b.writes && a.reads); }

class AliasAnalysis {
 public:
  AliasAnalysis(const Ast& ast, const Program& program, Reporter& reporter)
      : ast_(ast), program_(program), reporter_(reporter), roots_(ast, program), functions_(ast.functions.size()) {}

  void run() {
    for (const uint32_t function : program_.function_order) {
      if (!program_.functions[function].valid || program_.functions[function].broken) continue;
      current_ = &functions_[function];
      merged_.clear();
      visitStatement(ast_.functions[function].body);
    }
  }

 private:
  void visitStatement(StmtId id) {
    if (!id.valid()) return;
    const Stmt& stmt = ast_[id];
    visitStatement(stmt.initializer);
    if (stmt.condition.valid() && stmt.kind != StmtKind::ConstAssert) visit(stmt.condition, true);
    if (stmt.target.valid()) {
      visit(stmt.target, stmt.kind != StmtKind::Assign);
      if (Access* access = accessOf(stmt.target)) access->write(ast_[stmt.target].span);
    }
    if (stmt.value.valid()) visit(stmt.value, true);
    if (stmt.kind == StmtKind::Declare && ast_.localOf(stmt).initializer.valid()) visit(ast_.localOf(stmt).initializer, true);
    for (const StmtId statement : stmt.statements) visitStatement(statement);
    visitStatement(stmt.body);
    visitStatement(stmt.otherwise);
    visitStatement(stmt.continuing);
    visitStatement(stmt.update);
    for (const CaseClause& clause : stmt.cases) visitStatement(clause.body);
  }

  /// `load`: the value is used, so a reference is read.
  void visit(ExprId id, bool load) {
    const Expr& expr = ast_[id];
    // A function that will be left out, since it lacks the value of an override.
    if (program_[id].type == kError) return;
    switch (expr.kind) {
      case ExprKind::Literal:
      case ExprKind::Identifier:
        break;
      case ExprKind::Unary:
        visit(expr.left, expr.unary != UnaryOp::AddressOf);
        break;
      case ExprKind::Binary:
        visitBinary(id);
        break;
      case ExprKind::Index:
      case ExprKind::Member: {
        // A part of a reference is a reference, but several components of a vector are a value.
        const bool reads_base = !isReference(id) && isView(expr.left);
        visit(expr.left, false);
        if (reads_base) read(expr.left, expr.span);
        if (expr.kind == ExprKind::Index) visit(expr.right, true);
        break;
      }
      case ExprKind::Call:
        visitCall(id);
        break;
    }
    if (load && isReference(id)) read(id, expr.span);
  }

  /// Chains of operators may be very long, so their left side is walked, not recursed.
  void visitBinary(ExprId id) {
    while (ast_[id].kind == ExprKind::Binary) {
      visit(ast_[id].right, true);
      id = ast_[id].left;
    }
    visit(id, true);
  }

  void visitCall(ExprId id) {
    const Expr& call = ast_[id];
    const ExprInfo& info = program_[id];
    for (const ExprId argument : call.arguments) visit(argument, true);
    if (info.call == CallKind::Function) return checkCall(call, info.function);
    if (info.call != CallKind::Builtin || call.arguments.empty()) return;
    const Signature signature = wgsl::info(info.builtin).signature;
    const bool atomic = signature == Signature::Atomic, stores = signature == Signature::SubgroupMatrixStore;
    if (!atomic && !stores && signature != Signature::UniformLoad && signature != Signature::SubgroupMatrixLoad) return;
    Access* access = accessOf(call.arguments[0]);
    if (access == nullptr) return;
    if (info.builtin != Builtin::AtomicStore && !stores) access->read(call.span);
    if (stores || (atomic && info.builtin != Builtin::AtomicLoad)) access->write(call.span);
  }

  void checkCall(const Expr& call, uint32_t callee) {
    const Accesses& accesses = functions_[callee];
    std::map<EntityId, std::vector<size_t>> arguments;  // the first that is used, and the first that is written
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (!program_.types.isPointer(program_[call.arguments[i]].type)) continue;
      const auto used = accesses.find(program_.functions[callee].parameters[i]);
      const EntityId root = roots_.of(call.arguments[i]);
      if (used == accesses.end() || !root.valid()) continue;
      std::vector<size_t>& others = arguments[root];
      for (const size_t other : others) {
        const Access& first = accesses.at(program_.functions[callee].parameters[other]);
        if (!conflict(first, used->second)) continue;
        reportArguments(call, callee, other, i, root);
        return;
      }
      if (others.empty() || used->second.writes) others.push_back(i);
      if (const auto named = accesses.find(root); named != accesses.end() && conflict(named->second, used->second)) {
        reportName(call, callee, i, root);
        return;
      }
      if (Access* access = accessOf(call.arguments[i])) access->add(used->second, ast_[call.arguments[i]].span);
    }
    if (!merged_.insert(callee).second) return;
    for (const auto& [entity, access] : accesses) {
      if (program_[entity].kind == EntityKind::Var) (*current_)[entity].add(access, call.span);
    }
  }

  void reportArguments(const Expr& call, uint32_t callee, size_t first, size_t second, EntityId root) {
    const FunctionDecl& decl = ast_.functions[callee];
    std::vector<Note> notes{reporter_.note(ast_[call.arguments[first]].span, fmt::format("argument '{}'", decl.parameters[first].name))};
    for (const size_t i : {first, second}) addNotes(notes, callee, program_.functions[callee].parameters[i], "through ");
    reporter_.error(kAlias, ast_[call.arguments[second]].span,
                    fmt::format("arguments '{}' and '{}' of '{}' point into the same variable '{}', and one of them is written",
                                decl.parameters[first].name, decl.parameters[second].name, decl.name, program_[root].name),
                    "give a copy to one of them, or pass the pointer once", std::move(notes));
  }

  void reportName(const Expr& call, uint32_t callee, size_t argument, EntityId root) {
    const FunctionDecl& decl = ast_.functions[callee];
    std::vector<Note> notes;
    addNotes(notes, callee, program_.functions[callee].parameters[argument], "through ");
    addNotes(notes, callee, root, "");
    reporter_.error(kAlias, ast_[call.arguments[argument]].span,
                    fmt::format("argument '{}' of '{}' points into '{}', which the function also uses by its name, and writes",
                                decl.parameters[argument].name, decl.name, program_[root].name),
                    "give a copy to the function, or let it use the pointer only", std::move(notes));
  }

  void addNotes(std::vector<Note>& notes, uint32_t callee, EntityId entity, std::string_view how) {
    const Access& access = functions_[callee].at(entity);
    const std::string& name = program_[entity].name;
    if (access.writes) {
      notes.push_back(reporter_.note(access.write_place, fmt::format("written {}'{}' here", how, name)));
    } else {
      notes.push_back(reporter_.note(access.read_place, fmt::format("read {}'{}' here", how, name)));
    }
  }

  [[nodiscard]] bool isReference(ExprId id) const { return program_.types.isReference(program_[id].type); }
  [[nodiscard]] bool isView(ExprId id) const { return isReference(id) || program_.types.isPointer(program_[id].type); }

  void read(ExprId id, Span place) {
    if (Access* access = accessOf(id)) access->read(place);
  }

  /// Null for variables that callers cannot see.
  Access* accessOf(ExprId id) {
    const EntityId root = roots_.of(id);
    if (!root.valid()) return nullptr;
    const Entity& entity = program_[root];
    const bool visible = entity.kind == EntityKind::Parameter || entity.scope == 0;
    return visible ? &(*current_)[root] : nullptr;
  }

  const Ast& ast_;
  const Program& program_;
  Reporter& reporter_;
  MemoryRoots roots_;
  std::vector<Accesses> functions_;
  Accesses* current_ = nullptr;
  std::set<uint32_t> merged_;  // callees whose variables the current function has already
};

}  // namespace

void checkAliases(const Ast& ast, const Program& program, Reporter& reporter) {
  const auto takes_pointer = [&](const FunctionInfo& function) {
    return std::ranges::any_of(function.parameters, [&](EntityId id) { return program.types.isPointer(program[id].type); });
  };
  if (std::ranges::any_of(program.functions, takes_pointer)) AliasAnalysis(ast, program, reporter).run();
}

}  // namespace lockstep::wgsl
