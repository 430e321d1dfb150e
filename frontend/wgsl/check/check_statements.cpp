// SPDX-License-Identifier: Apache-2.0
// Statements: types, scopes and behaviors.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "frontend/wgsl/check/checker.h"

namespace lockstep::wgsl {

Behavior Checker::checkSequence(StmtList statements) {
  Behavior behavior = kNext;
  for (const StmtId id : statements) {
    const Behavior one = checkStatement(id);
    // What follows a statement that never ends normally is checked, but adds nothing.
    if ((behavior & kNext) != 0) behavior = static_cast<Behavior>((behavior & ~kNext) | one);
  }
  return behavior;
}

Behavior Checker::checkBlock(StmtId id, bool new_scope) {
  if (new_scope) scopes_.enter();
  const Behavior behavior = checkSequence(ast_[id].statements);
  if (new_scope) scopes_.leave();
  return behavior;
}

Behavior Checker::checkStatement(StmtId id) {
  const Stmt& stmt = ast_[id];
  switch (stmt.kind) {
    case StmtKind::Block:
      return checkBlock(id);
    case StmtKind::If: {
      checkCondition(stmt.condition, "if");
      const Behavior then = checkBlock(stmt.body);
      const Behavior otherwise = stmt.otherwise.valid() ? checkStatement(stmt.otherwise) : kNext;
      return then | otherwise;
    }
    case StmtKind::Switch:
      return checkSwitch(stmt);
    case StmtKind::Loop:
      return checkLoop(stmt);
    case StmtKind::For:
      return checkFor(stmt);
    case StmtKind::While:
      return checkWhile(stmt);
    case StmtKind::Break:
    case StmtKind::Continue:
      return checkJump(stmt);
    case StmtKind::BreakIf:
      checkCondition(stmt.condition, "break if");
      return kBreak | kNext;
    case StmtKind::Return:
      checkReturn(stmt);
      return kReturn;
    case StmtKind::Assign:
    case StmtKind::CompoundAssign:
    case StmtKind::Increment:
    case StmtKind::Decrement:
      checkAssign(stmt);
      return kNext;
    case StmtKind::Call:
      checkCallStatement(stmt);
      return kNext;
    case StmtKind::Phony:
      checkValue(stmt.value);
      return kNext;
    case StmtKind::Discard:
      defer(kUnsupported, stmt.span, "'discard' belongs to fragment shaders, and only compute shaders are supported");
      return kNext;
    case StmtKind::ConstAssert:
      checkConstAssert(stmt.condition);
      return kNext;
    case StmtKind::Declare:
      program_.declared[id.index()] = checkLocal(ast_.localOf(stmt));
      return kNext;
  }
  return kNext;
}

void Checker::checkCondition(ExprId id, std::string_view what) {
  const Ty type = checkValue(id);
  if (type != kBool && type != kError)
    fail(kType, ast_[id].span, fmt::format("condition of '{}' has type {}, but bool is needed", what, name(type)));
}

void Checker::checkConstAssert(ExprId id) {
  const Ty type = checkValue(id);
  if (type == kError) return;
  const ExprInfo& info = infoOf(id);
  if (type != kBool || info.stage != Stage::Const) {
    fail(kConstant, ast_[id].span, "const_assert needs a constant bool expression");
  } else if (info.value && info.value->integer == 0) {
    fail(kConstant, ast_[id].span, "assertion failed");
  }
}

EntityId Checker::declareLocal(std::string_view name, Entity entity) {
  entity.scope = scopes_.depth();
  const Span span = entity.span;
  const EntityId id = addEntity(std::move(entity));
  if (const EntityId first = scopes_.declare(name, id); first != id) {
    fail(kName, span, fmt::format("'{}' is declared twice in this scope", name), {},
         {reporter_.note(program_[first].span, "first declared here")});
  }
  return id;
}

EntityId Checker::checkLocal(const VariableDecl& decl) {
  if (!decl.attributes.empty()) {
    fail(kAttribute, decl.attributes[0].span, fmt::format("attribute '{}' is not allowed on a local variable", decl.attributes[0].name));
  }
  if (decl.kind == VariableKind::Const) {
    const EntityId id = checkConst(decl, scopes_.depth());
    if (scopes_.declare(decl.name, id) != id) fail(kName, decl.name_span, fmt::format("'{}' is declared twice in this scope", decl.name));
    return id;
  }
  Entity entity{.kind = decl.kind == VariableKind::Let ? EntityKind::Let : EntityKind::Var,
                .name = std::string(decl.name),
                .span = decl.name_span,
                .type = kError,
                .value = {}};
  if (decl.templates.size() > 1) fail(kType, ast_[decl.templates[1]].span, "only variables in storage take an access mode");
  for (const ExprId argument : decl.templates) {
    AddressSpace space = AddressSpace::Function;
    if (readSpace(argument, space) && space != AddressSpace::Function) {
      fail(kType, ast_[argument].span, fmt::format("a local variable cannot be in address space {}", kernel::toString(space)));
    }
  }
  Ty type = decl.type.valid() ? resolveType(decl.type) : Ty();
  if (decl.initializer.valid()) {
    const Ty value_type = checkValue(decl.initializer);
    if (!type.valid()) type = types_.concrete(value_type);
    if (value_type == kError || type == kError || !materialize(decl.initializer, type, "initializer")) type = kError;
  } else if (!type.valid()) {
    type = fail(kType, decl.name_span, fmt::format("variable '{}' has neither a type nor a value", decl.name));
  }
  const bool pointer_let = entity.kind == EntityKind::Let && types_.isPointer(type);
  if (type != kError && !types_.isConstructible(type) && !pointer_let) {
    type = fail(kType, decl.name_span, fmt::format("'{}' cannot have type {}", decl.name, name(type)));
  }
  const bool is_var = entity.kind == EntityKind::Var && type != kError;
  entity.type = is_var ? types_.reference(AddressSpace::Function, type, Access::ReadWrite) : type;
  return declareLocal(decl.name, std::move(entity));
}

Ty Checker::assignable(ExprId target) {
  checkExpr(target);
  const Ty type = infoOf(target).type;
  if (type == kError) return kError;
  if (const auto place = types_.isReference(type) ? std::nullopt : findSwizzlePlace(ast_, program_, target)) {
    return assignableSwizzle(target, *place);
  }
  if (!types_.isReference(type)) {
    const auto& entity = infoOf(target).entity;
    std::string message = "the left side of an assignment must be a variable or a part of one";
    if (entity.valid()) message = fmt::format("'{}' cannot be assigned, because it is not a variable", program_[entity].name);
    return fail(kType, ast_[target].span, std::move(message));
  }
  const Type reference = types_[type];
  if (reference.access == Access::Read)
    return fail(kType, ast_[target].span, "this memory is read-only", "declare the buffer with access mode read_write");
  if (!types_.isConstructible(reference.element)) {
    const bool atomic = types_[reference.element].kind == Kind::Atomic;
    return fail(kType, ast_[target].span, fmt::format("a value of type {} cannot be assigned", name(reference.element)),
                atomic ? "use atomicStore" : "");
  }
  return reference.element;
}

Ty Checker::assignableSwizzle(ExprId target, const SwizzlePlace& place) {
  if (memoryView(place.vector)->access == Access::Read) {
    return fail(kType, ast_[target].span, "this memory is read-only", "declare the buffer with access mode read_write");
  }
  std::set<uint32_t> seen;
  for (const uint32_t component : place.components) {
    if (place.index.valid() || seen.insert(component).second) continue;
    return fail(kType, ast_[target].span, fmt::format("component '{}' would be assigned twice", "xyzw"[component]));
  }
  return infoOf(target).type;
}

void Checker::checkAssign(const Stmt& stmt) {
  const Ty type = assignable(stmt.target);
  if (stmt.kind == StmtKind::Increment || stmt.kind == StmtKind::Decrement) {
    if (type != kError && type != kI32 && type != kU32) {
      fail(kType, stmt.span, fmt::format("only i32 and u32 can be incremented and decremented, not {}", name(type)));
    }
    return;
  }
  const Ty value = checkValue(stmt.value);
  if (type == kError || value == kError) return;
  if (stmt.kind == StmtKind::Assign) {
    materialize(stmt.value, type, "assigned value");
    return;
  }
  const Ty result = binaryType(stmt.op, stmt.span, stmt.target, stmt.value);
  if (result != kError && result != type) {
    fail(kType, stmt.span, fmt::format("the result of '{}=' has type {}, but {} is needed", toString(stmt.op), name(result), name(type)));
  }
}

void Checker::checkCallStatement(const Stmt& stmt) {
  const Expr& call = ast_[stmt.value];
  checkExpr(stmt.value);
  const ExprInfo& info = infoOf(stmt.value);
  if (info.type == kError) return;
  const bool from_builtin = info.call == CallKind::Builtin && info.type != kVoid && wgsl::info(info.builtin).signature != Signature::Atomic;
  const bool must_use =
      info.call == CallKind::Construct || from_builtin || (info.call == CallKind::Function && program_.functions[info.function].must_use);
  if (must_use) fail(kType, call.span, fmt::format("the result of '{}' must be used", call.name), "write '_ = ...;' to drop it");
}

void Checker::checkReturn(const Stmt& stmt) {
  for (const Breakable& loop : breakables_) {
    if (loop.in_continuing) {
      fail(kFlow, stmt.span, "'return' is not allowed in a continuing block");
      return;
    }
  }
  const Ty wanted = program_.functions[function_].return_type;
  if (!stmt.value.valid()) {
    if (wanted != kVoid && wanted != kError) fail(kType, stmt.span, fmt::format("this function returns {}", name(wanted)));
    return;
  }
  const Ty type = checkValue(stmt.value);
  if (type == kError || wanted == kError) return;
  if (wanted == kVoid) {
    fail(kType, stmt.span, "this function returns nothing");
  } else {
    materialize(stmt.value, wanted, "returned value");
  }
}

Behavior Checker::checkJump(const Stmt& stmt) {
  const bool is_break = stmt.kind == StmtKind::Break;
  for (Breakable& place : std::views::reverse(breakables_)) {
    if (place.in_continuing) {
      fail(kFlow, stmt.span, fmt::format("'{}' is not allowed in a continuing block", is_break ? "break" : "continue"),
           is_break ? "use 'break if' at its end" : "");
      return is_break ? kBreak : kContinue;
    }
    if (is_break) return kBreak;
    if (!place.is_loop) continue;
    place.first_continue = std::min(place.first_continue, stmt.span.begin);
    return kContinue;
  }
  fail(kFlow, stmt.span, fmt::format("'{}' is not inside a {}", is_break ? "break" : "continue", is_break ? "loop or switch" : "loop"));
  return is_break ? kBreak : kContinue;
}

Behavior Checker::checkLoop(const Stmt& stmt) {
  breakables_.push_back({.is_loop = true});
  scopes_.enter();
  breakables_.back().body_scope = scopes_.depth();
  Behavior behavior = checkSequence(ast_[stmt.body].statements);
  const bool always_returns = behavior == kReturn;  // then nothing reaches the continuing block
  if (stmt.continuing.valid()) {
    breakables_.back().in_continuing = true;
    behavior |= checkBlock(stmt.continuing);
  }
  scopes_.leave();
  breakables_.pop_back();
  if (always_returns) {
    if (stmt.continuing.valid()) program_.never_continued.insert(stmt.continuing.value);
    return kReturn;
  }
  if ((behavior & kBreak) != 0) return static_cast<Behavior>((behavior & ~(kBreak | kContinue)) | kNext);
  if ((behavior & kReturn) != 0) return kReturn;
  fail(kFlow, {stmt.span.begin, stmt.span.begin + 4}, "this loop never ends");
  return kNext;
}

Behavior Checker::checkFor(const Stmt& stmt) {
  scopes_.enter();
  if (stmt.initializer.valid()) checkStatement(stmt.initializer);
  if (stmt.condition.valid()) checkCondition(stmt.condition, "for");
  if (stmt.update.valid()) checkStatement(stmt.update);
  breakables_.push_back({.is_loop = true});
  const Behavior body = checkBlock(stmt.body);
  breakables_.pop_back();
  scopes_.leave();
  if (body == kReturn && stmt.update.valid()) program_.never_continued.insert(stmt.update.value);
  const bool breaks = stmt.condition.valid() || (body & kBreak) != 0;
  if (breaks) return static_cast<Behavior>((body & kReturn) | kNext);
  if ((body & kReturn) != 0) return kReturn;
  fail(kFlow, {stmt.span.begin, stmt.span.begin + 3}, "this loop never ends");
  return kNext;
}

Behavior Checker::checkWhile(const Stmt& stmt) {
  checkCondition(stmt.condition, "while");
  breakables_.push_back({.is_loop = true});
  const Behavior body = checkBlock(stmt.body);
  breakables_.pop_back();
  return static_cast<Behavior>((body & kReturn) | kNext);
}

Behavior Checker::checkSwitch(const Stmt& stmt) {
  Ty type = checkValue(stmt.condition);
  std::vector<ExprId> selectors;
  for (const CaseClause& clause : stmt.cases) selectors.insert(selectors.end(), clause.selectors.begin(), clause.selectors.end());
  // SPIR-V has no larger switch. WGSL asks for 1023.
  constexpr size_t kMaximumSelectors = 16383;
  if (selectors.size() > kMaximumSelectors) {
    fail(kLimit, ast_[selectors[kMaximumSelectors]].span,
         fmt::format("a switch has at most {} case selectors, this one has {}", kMaximumSelectors, selectors.size()));
  }
  for (const ExprId selector : selectors) {
    const Ty selector_type = checkValue(selector);
    if (type == kAbstractInt && selector_type != kAbstractInt) type = selector_type;
  }
  if (type == kAbstractInt) type = kI32;
  if (type != kI32 && type != kU32 && type != kError) {
    type = fail(kType, ast_[stmt.condition].span, fmt::format("switch selector has type {}, but i32 or u32 is needed", name(type)));
  }
  if (type != kError) materialize(stmt.condition, type, "switch selector");
  std::set<int64_t> seen;
  for (const ExprId selector : selectors) {
    if (valueType(selector) == kError || type == kError || !materialize(selector, type, "case selector")) continue;
    const ExprInfo& info = infoOf(selector);
    if (!info.value || info.stage != Stage::Const) {
      fail(kConstant, ast_[selector].span, "case selector is not a constant expression");
    } else if (!seen.insert(info.value->integer).second) {
      fail(kFlow, ast_[selector].span, fmt::format("case {} appears twice in this switch", info.value->integer));
    }
  }
  const auto defaults = std::count_if(stmt.cases.begin(), stmt.cases.end(), [](const CaseClause& clause) { return clause.is_default; });
  if (defaults != 1) {
    fail(kFlow, {stmt.span.begin, stmt.span.begin + 6}, fmt::format("switch needs exactly one default, it has {}", defaults));
  }
  breakables_.push_back({.is_loop = false});
  Behavior behavior = 0;
  for (const CaseClause& clause : stmt.cases) behavior |= checkBlock(clause.body);
  breakables_.pop_back();
  if ((behavior & kBreak) != 0) behavior = static_cast<Behavior>((behavior & ~kBreak) | kNext);
  return behavior;
}

}  // namespace lockstep::wgsl
