// SPDX-License-Identifier: Apache-2.0
// What a module stores in each of its variables, for lints that ask what a variable can hold.
#pragma once

#include <optional>
#include <vector>

#include "frontend/wgsl/analyse/memory_roots.h"
#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {

/// A value that is stored in a variable or a part of it. `op` is that of `x op= value`.
struct StoredValue {
  ExprId target, value;  ///< `target` is invalid where the declaration has the value
  std::optional<BinaryOp> op;
};

class Stores {
 public:
  Stores(const Ast& ast, const Program& program)
      : roots_(ast, program), values_(program.entities.size()), holds_matrices_(program.entities.size()) {
    findMatrices(ast, program);
    for (size_t i = 0; i < ast.statements.size(); ++i) {
      const Stmt& stmt = ast.statements[i];
      if (stmt.kind == StmtKind::Declare) {
        const VariableDecl& decl = ast.localOf(stmt);
        const EntityId entity = program.declared[i];
        if (entity.valid() && decl.kind == VariableKind::Var && decl.initializer.valid()) {
          values_[entity.index()].push_back({.target = {}, .value = decl.initializer, .op = {}});
        }
      }
      const EntityId root = stmt.target.valid() && stmt.value.valid() ? roots_.of(stmt.target) : EntityId();
      if (!root.valid()) continue;
      const auto op = stmt.kind == StmtKind::CompoundAssign ? std::optional(stmt.op) : std::nullopt;
      values_[root.index()].push_back({.target = stmt.target, .value = stmt.value, .op = op});
    }
  }
  /// The variable that a reference or pointer is in.
  [[nodiscard]] EntityId rootOf(ExprId id) const { return roots_.of(id); }
  [[nodiscard]] const std::vector<StoredValue>& of(EntityId variable) const { return values_[variable.index()]; }
  /// Whether subgroup matrices are stored there, of which nothing is known.
  [[nodiscard]] bool holdsMatrices(EntityId variable) const { return holds_matrices_[variable.index()]; }

 private:
  /// Variables that subgroup matrices are stored in: by their name, or through a parameter that points to them.
  void findMatrices(const Ast& ast, const Program& program) {
    const auto mark = [&](ExprId pointer) {
      const EntityId root = roots_.of(pointer);
      const bool is_new = root.valid() && !holds_matrices_[root.index()];
      if (is_new) holds_matrices_[root.index()] = true;
      return is_new;
    };
    for (bool changed = program.uses_subgroup_matrices; changed;) {
      changed = false;
      for (size_t i = 0; i < ast.expressions.size(); ++i) {
        const ExprInfo& call = program.expressions[i];
        const ExprList arguments = ast.expressions[i].arguments;
        if (call.call == CallKind::Builtin && call.builtin == Builtin::SubgroupMatrixStore) changed = mark(arguments[0]) || changed;
        if (call.call != CallKind::Function) continue;
        const std::vector<EntityId>& parameters = program.functions[call.function].parameters;
        for (size_t k = 0; k < arguments.size(); ++k) {
          if (holds_matrices_[parameters[k].index()]) changed = mark(arguments[k]) || changed;
        }
      }
    }
  }

  MemoryRoots roots_;
  std::vector<std::vector<StoredValue>> values_;  // by entity
  std::vector<bool> holds_matrices_;              // by entity
};

}  // namespace lockstep::wgsl
