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
  Stores(const Ast& ast, const Program& program) : roots_(ast, program), values_(program.entities.size()) {
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

 private:
  MemoryRoots roots_;
  std::vector<std::vector<StoredValue>> values_;  // by entity
};

}  // namespace lockstep::wgsl
