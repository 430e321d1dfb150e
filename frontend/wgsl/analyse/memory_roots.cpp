// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/analyse/memory_roots.h"

namespace lockstep::wgsl {

MemoryRoots::MemoryRoots(const Ast& ast, const Program& program) : ast_(ast), program_(program), let_roots_(program.entities.size()) {
  // Statements of the arena are in source order, so the pointers that a value names are known before it.
  for (size_t i = 0; i < ast.statements.size(); ++i) {
    const EntityId entity = program.declared[i];
    if (!entity.valid() || program[entity].kind != EntityKind::Let || !program.types.isPointer(program[entity].type)) continue;
    let_roots_[entity.index()] = of(ast.localOf(ast.statements[i]).initializer);
  }
}

EntityId MemoryRoots::of(ExprId id) const {
  while (true) {
    const Expr& expr = ast_[id];
    switch (expr.kind) {
      case ExprKind::Identifier: {
        const EntityId entity = program_[id].entity;
        if (!entity.valid()) return {};
        return program_[entity].kind == EntityKind::Let ? let_roots_[entity.index()] : entity;
      }
      case ExprKind::Unary:
      case ExprKind::Index:
      case ExprKind::Member:
        id = expr.left;
        continue;
      case ExprKind::Literal:
      case ExprKind::Call:
      case ExprKind::Binary:
        return {};
    }
  }
}

}  // namespace lockstep::wgsl
