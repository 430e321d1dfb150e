// SPDX-License-Identifier: Apache-2.0
// What the checker found out about a syntax tree: a type for every expression, an entity for every name, the order of functions.
// Vectors named `expressions` and `declared` run parallel to the arenas of the Ast.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/wgsl/check/builtins.h"
#include "frontend/wgsl/check/const_eval.h"
#include "frontend/wgsl/check/types.h"
#include "frontend/wgsl/syntax/ast.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl {

/// What can happen after a statement (WGSL, "Behavior analysis"); bits.
using Behavior = uint8_t;
inline constexpr Behavior kNext = 1, kBreak = 2, kContinue = 4, kReturn = 8;

/// When an expression's value is known. Types depend on the stage alone, never on whether a value is there: override expressions have
/// one only when the values of overrides are given.
enum class Stage : uint8_t { Const, Override, Runtime };

enum class EntityKind : uint8_t { Const, Override, Let, Var, Parameter };
using EntityId = Id<struct WgslEntityTag>;

/// A named value: const, override, let, var or parameter.
struct Entity {
  EntityKind kind = EntityKind::Let;
  std::string name;
  Span span;  ///< of the name
  Ty type;    ///< a reference for Var
  Stage stage = Stage::Runtime;
  std::optional<ConstValue> value;  ///< if it is known; for a module-scope Var its initializer
  size_t scope = 0;                 ///< depth of the scope that declares it; 0 = module
  uint32_t group = 0, binding = 0;  ///< module-scope Var in uniform or storage
  bool has_binding = false;
};

enum class CallKind : uint8_t { None, Function, Builtin, Construct };

struct ExprInfo {
  Ty type = kError;  ///< after automatic conversion; may be a reference, which its user loads from
  Stage stage = Stage::Runtime;
  std::optional<ConstValue> value;
  EntityId entity;  ///< Identifier
  CallKind call = CallKind::None;
  Builtin builtin = Builtin::Abs;
  uint32_t function = 0;  ///< index into Program::functions
};

struct FunctionInfo {
  bool valid = false;
  Ty return_type = kVoid;
  std::vector<EntityId> parameters;
  std::vector<kernel::Builtin> builtins;  ///< of each parameter; None for struct parameters of entry points
  std::optional<std::array<uint32_t, 3>> workgroup_size;
  uint32_t subgroup_size = 0;  ///< that the entry point asks for; 0 = none, or not known yet
  bool must_use = false;
  bool broken = false;             ///< its body is not whole, or control in it leads nowhere: analyses leave it out
  bool left_out = false;           ///< no entry point reaches it and the override values given are not enough to make it
  std::map<uint32_t, Span> calls;  ///< callee -> one place
  std::vector<EntityId> reaches;   ///< of an entry point: module-scope variables and overrides, in the order of the text
};

struct Program {
  Types types;
  std::vector<ExprInfo> expressions;
  std::vector<EntityId> declared;      ///< per statement: what a Declare makes
  std::set<uint32_t> never_continued;  ///< continuing blocks and updates (StmtId) of loops whose body always returns
  std::vector<Entity> entities;
  std::vector<EntityId> globals;         ///< module-scope vars in source order, without those that are left out
  std::vector<FunctionInfo> functions;   ///< parallel to Ast::functions
  std::vector<uint32_t> function_order;  ///< callees first
  bool uses_f16 = false, uses_subgroups = false, uses_subgroup_matrices = false;
  bool ordered = true;  ///< no function reaches itself

  [[nodiscard]] const ExprInfo& operator[](ExprId id) const { return expressions[id.index()]; }
  [[nodiscard]] const Entity& operator[](EntityId id) const { return entities[id.index()]; }
};

/// The left side of an assignment to a swizzle, such as `v.zy`, `v.zyx.x` or `v.zyx[i]`.
struct SwizzlePlace {
  ExprId vector;                     ///< reference or pointer to the whole vector
  std::vector<uint32_t> components;  ///< of it that are assigned, in order
  ExprId index;                      ///< if valid, only components[index]
};
/// `id` was checked. Nothing for any other expression.
std::optional<SwizzlePlace> findSwizzlePlace(const Ast& ast, const Program& program, ExprId id);

/// Resolves names, checks types, evaluates constant expressions; override expressions get types only. Problems go to the reporter.
Program checkModule(const Ast& ast, const ReadOptions& options, Reporter& reporter);

/// The same with the values of overrides, for a module that checkModule accepts (or with overrides_are_constants). The program may be
/// lowered when there are no problems. They have code wgsl.override and belong to what the entry points reach.
Program substituteOverrides(const Ast& ast, const ReadOptions& options, Reporter& reporter);

}  // namespace lockstep::wgsl
