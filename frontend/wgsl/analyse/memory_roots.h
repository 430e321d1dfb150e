// SPDX-License-Identifier: Apache-2.0
// The variable or pointer parameter that a reference or pointer comes from: its root identifier.
#pragma once

#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {

class MemoryRoots {
 public:
  MemoryRoots(const Ast& ast, const Program& program);
  /// Of an expression that is a reference or a pointer. A `let` of a pointer has the root of its value. Invalid for other expressions.
  [[nodiscard]] EntityId of(ExprId id) const;

 private:
  const Ast& ast_;
  const Program& program_;
  std::vector<EntityId> let_roots_;  // by entity
};

}  // namespace lockstep::wgsl
