// SPDX-License-Identifier: Apache-2.0
// Values stored to variables of an invocation or a workgroup that nobody reads afterwards. Local variables by liveness, from the end of a
// function to its start; module-scope variables as a whole. A variable whose address is taken is left alone, and so is a constant that
// a declaration begins with.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <vector>

#include "frontend/wgsl/analyse/memory_roots.h"
#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

/// By number of the variable in its function.
using Live = std::vector<bool>;

void unite(Live& live, const Live& other) {
  for (size_t i = 0; i < live.size(); ++i) live[i] = live[i] || other[i];
}

constexpr uint32_t kUntracked = UINT32_MAX;
/// Loops deeper than this, and after more rounds, take all that they read as read in the next round.
constexpr size_t kExactNesting = 3, kMostRounds = 4;
/// Functions with more variables than this are left alone: time would grow with their square.
constexpr size_t kMostVariables = 2000;

class DeadStores {
 public:
  DeadStores(const LintInput& input, LintReporter& reporter)
      : ast_(input.ast),
        program_(input.program),
        reporter_(reporter),
        roots_(input.ast, input.program),
        addressed_(program_.entities.size()),
        numbers_(program_.entities.size(), kUntracked) {}

  void run() {
    findAddresses();
    visitGlobals();
    for (size_t i = 0; i < ast_.functions.size(); ++i) {
      if (program_.functions[i].valid && !program_.functions[i].left_out) visitFunction(ast_.functions[i]);
    }
  }

 private:
  /// Where `break` and `continue` lead.
  struct Target {
    Live exit, next;
    bool is_loop = false;
  };

  void findAddresses() {
    for (const Expr& expr : ast_.expressions) {
      if (expr.kind != ExprKind::Unary || expr.unary != UnaryOp::AddressOf) continue;
      if (const EntityId root = roots_.of(expr.left); root.valid()) addressed_[root.index()] = true;
    }
  }

  /// Private and workgroup variables that are stored to and never read.
  void visitGlobals() {
    std::vector<uint32_t> mentions(program_.entities.size()), stores(program_.entities.size());
    for (const ExprInfo& expression : program_.expressions) {
      if (expression.entity.valid()) ++mentions[expression.entity.index()];
    }
    const auto rootOf = [&](const Stmt& stmt) { return stmt.target.valid() ? roots_.of(stmt.target) : EntityId(); };
    for (const Stmt& stmt : ast_.statements) {
      if (const EntityId root = rootOf(stmt); root.valid()) ++stores[root.index()];
    }
    for (const Stmt& stmt : ast_.statements) {
      const EntityId root = rootOf(stmt);
      if (!root.valid() || program_[root].scope != 0 || addressed_[root.index()] || mentions[root.index()] > stores[root.index()]) continue;
      const AddressSpace space = program_.types[program_[root].type].space;
      if (space == AddressSpace::Private || space == AddressSpace::Workgroup) report(ast_[stmt.target].span, root);
    }
  }

  void visitFunction(const FunctionDecl& function) {
    count_ = 0;
    collect(function.body);
    if (count_ == 0 || count_ > kMostVariables) return;
    targets_.clear();
    reporting_ = true;
    visit(function.body, Live(count_));
  }

  void collect(StmtId id) {
    if (!id.valid()) return;
    const Stmt& stmt = ast_[id];
    if (stmt.kind == StmtKind::Declare && ast_.localOf(stmt).kind == VariableKind::Var) {
      const EntityId entity = program_.declared[id.index()];
      if (entity.valid() && !addressed_[entity.index()]) numbers_[entity.index()] = count_++;
    }
    forEachInner(stmt, [&](StmtId inner) { collect(inner); });
  }

  template <class Visit>
  static void forEachInner(const Stmt& stmt, const Visit& visit) {
    for (const StmtId inner : {stmt.body, stmt.otherwise, stmt.continuing, stmt.initializer, stmt.update}) visit(inner);
    for (const StmtId inner : stmt.statements) visit(inner);
    for (const CaseClause& clause : stmt.cases) visit(clause.body);
  }

  /// What is read later, before the statement, when `live` is read later behind it.
  Live visit(StmtId id, Live live) {
    if (!id.valid()) return live;
    const Stmt& stmt = ast_[id];
    switch (stmt.kind) {
      case StmtKind::Block:
        for (const StmtId inner : stmt.statements | std::views::reverse) live = visit(inner, std::move(live));
        return live;
      case StmtKind::If: {
        Live then = visit(stmt.body, live);
        unite(then, visit(stmt.otherwise, std::move(live)));
        use(stmt.condition, then);
        return then;
      }
      case StmtKind::Switch:
        return visitSwitch(stmt, live);
      case StmtKind::Loop:
      case StmtKind::For:
      case StmtKind::While:
        return visitLoop(stmt, live);
      case StmtKind::Break:
        return targets_.back().exit;
      case StmtKind::BreakIf:
        unite(live, targets_.back().exit);
        use(stmt.condition, live);
        return live;
      case StmtKind::Continue:
        return std::find_if(targets_.rbegin(), targets_.rend(), [](const Target& target) { return target.is_loop; })->next;
      case StmtKind::Return:
        live.assign(count_, false);
        break;
      case StmtKind::Assign:
      case StmtKind::CompoundAssign:
      case StmtKind::Increment:
      case StmtKind::Decrement:
        return visitStore(stmt, std::move(live));
      case StmtKind::Declare:
        return visitDeclaration(id, std::move(live));
      case StmtKind::Call:
      case StmtKind::Phony:
      case StmtKind::ConstAssert:
      case StmtKind::Discard:
        break;
    }
    use(stmt.value, live);
    return live;
  }

  Live visitSwitch(const Stmt& stmt, const Live& after) {
    targets_.push_back({.exit = after, .next = {}, .is_loop = false});
    Live live(count_);
    for (const CaseClause& clause : stmt.cases) unite(live, visit(clause.body, after));
    targets_.pop_back();
    use(stmt.condition, live);
    return live;
  }

  Live visitLoop(const Stmt& stmt, const Live& after) {
    const bool was_reporting = std::exchange(reporting_, false);
    ++nesting_;
    // What the next round reads: first as if there were none, then until that no longer changes.
    Live head(count_);
    bool settled = false;
    for (size_t round = 0; round < kMostRounds && nesting_ <= kExactNesting && !settled; ++round) {
      Live again = visitRound(stmt, after, head);
      settled = again == head;
      head = std::move(again);
    }
    if (!settled) {
      head = after;
      useAll(stmt, head);
    }
    reporting_ = was_reporting;
    Live live = visitRound(stmt, after, head);
    --nesting_;
    return visit(stmt.initializer, std::move(live));
  }

  Live visitRound(const Stmt& stmt, const Live& after, const Live& head) {
    targets_.push_back({.exit = after, .next = {}, .is_loop = true});
    Live live = visit(stmt.update, head);
    live = visit(stmt.continuing, std::move(live));
    targets_.back().next = live;
    live = visit(stmt.body, std::move(live));
    targets_.pop_back();
    if (stmt.condition.valid()) {
      unite(live, after);
      use(stmt.condition, live);
    }
    return live;
  }

  Live visitStore(const Stmt& stmt, Live live) {
    const EntityId root = roots_.of(stmt.target);
    const uint32_t variable = root.valid() ? numbers_[root.index()] : kUntracked;
    if (variable == kUntracked) {
      use(stmt.target, live);
      use(stmt.value, live);
      return live;
    }
    const bool read_later = live[variable];
    if (!read_later && reporting_) report(ast_[stmt.target].span, root);
    if (stmt.kind == StmtKind::Assign && ast_[stmt.target].kind == ExprKind::Identifier) live[variable] = false;
    use(stmt.value, live);
    useIndices(stmt.target, live);
    // What is read only to be stored again is not read.
    if (!read_later) live[variable] = false;
    if (read_later && stmt.kind != StmtKind::Assign) live[variable] = true;
    return live;
  }

  Live visitDeclaration(StmtId id, Live live) {
    const VariableDecl& decl = ast_.localOf(ast_[id]);
    const EntityId entity = program_.declared[id.index()];
    if (decl.kind == VariableKind::Var && entity.valid() && numbers_[entity.index()] != kUntracked) {
      const uint32_t variable = numbers_[entity.index()];
      const bool computed = decl.initializer.valid() && program_[decl.initializer].stage == Stage::Runtime;
      if (!live[variable] && computed && reporting_ && isMentioned(entity)) {
        report(decl.name_span, entity);
      }
      live[variable] = false;
    }
    if (decl.kind != VariableKind::Const) use(decl.initializer, live);
    return live;
  }

  /// Others are lint.unused.
  bool isMentioned(EntityId entity) const {
    return std::ranges::any_of(program_.expressions, [&](const ExprInfo& each) { return each.entity == entity; });
  }

  void use(ExprId id, Live& live) {
    while (id.valid()) {
      const Expr& expr = ast_[id];
      if (expr.kind == ExprKind::Identifier) {
        const EntityId entity = program_[id].entity;
        if (entity.valid() && numbers_[entity.index()] != kUntracked) live[numbers_[entity.index()]] = true;
      }
      for (const ExprId argument : expr.arguments) use(argument, live);
      use(expr.right, live);
      id = expr.left;
    }
  }

  void useIndices(ExprId target, Live& live) {
    for (ExprId id = target; id.valid(); id = ast_[id].left) {
      if (ast_[id].kind == ExprKind::Index) use(ast_[id].right, live);
    }
  }

  void useAll(const Stmt& stmt, Live& live) {
    use(stmt.condition, live);
    use(stmt.target, live);
    use(stmt.value, live);
    if (stmt.kind == StmtKind::Declare) use(ast_.localOf(stmt).initializer, live);
    forEachInner(stmt, [&](StmtId inner) {
      if (inner.valid()) useAll(ast_[inner], live);
    });
  }

  void report(Span where, EntityId variable) {
    reporter_.report(DiagnosticRule::DeadStore, where, fmt::format("what is stored in '{}' here is never used", program_[variable].name),
                     "remove the store, or use what it computed");
  }

  const Ast& ast_;
  const Program& program_;
  LintReporter& reporter_;
  MemoryRoots roots_;
  std::vector<bool> addressed_;    // by entity
  std::vector<uint32_t> numbers_;  // by entity
  uint32_t count_ = 0;
  size_t nesting_ = 0;
  bool reporting_ = false;
  std::vector<Target> targets_;
};

}  // namespace

void lintDeadStores(const LintInput& input, LintReporter& reporter) { DeadStores(input, reporter).run(); }

}  // namespace lockstep::wgsl
