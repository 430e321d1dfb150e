// SPDX-License-Identifier: Apache-2.0
// Identifiers, unary operators, indices, members, calls of user functions; automatic conversion.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/check/checker.h"
#include "ir/support/nearest.h"

namespace lockstep::wgsl {
namespace {

/// Which member was meant, or which there are.
std::string similarMember(std::string_view name, const std::vector<StructMember>& members) {
  constexpr size_t kLongest = 40, kListed = 8;
  std::vector<std::string_view> names;
  for (const StructMember& member : members) {
    if (member.name.size() <= kLongest) names.push_back(member.name);
  }
  const std::string near = name.size() >= 3 && name.size() <= kLongest ? nearestName(name, names) : "";
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  return names.size() <= kListed ? fmt::format("it has {}", joinNames(names)) : "";
}

}  // namespace

void Checker::checkExpr(ExprId id) {
  const Expr& expr = ast_[id];
  // No `default`: a new kind of expression must be checked.
  switch (expr.kind) {
    case ExprKind::Literal: {
      constexpr std::array<Ty, 7> kTypes{kBool, kAbstractInt, kAbstractFloat, kI32, kU32, kF32, kF16};
      const Literal& literal = ast_.literals[expr.literal];
      if (literal.kind == LiteralKind::Text) {
        fail(kType, expr.span, "a text can only be an argument of print");
        return;
      }
      const Ty type = kTypes[static_cast<size_t>(literal.kind)];
      if (type == kF16 && !f16_enabled_) {
        fail(kType, expr.span, "f16 is used without being enabled", "write 'enable f16;' at the top of the module");
        return;
      }
      setResult(id, type, Stage::Const, Evaluated({.type = type, .integer = literal.integer, .number = literal.number, .elements = {}}));
      return;
    }
    case ExprKind::Identifier:
      return checkIdentifier(id);
    case ExprKind::Call:
      return checkCall(id);
    case ExprKind::Unary:
      return checkUnary(id);
    case ExprKind::Binary:
      return checkBinary(id);
    case ExprKind::Index:
      return checkIndex(id);
    case ExprKind::Member:
      return checkMember(id);
  }
}

Ty Checker::checkValue(ExprId id) {
  checkExpr(id);
  const Ty type = infoOf(id).type;
  if (!types_.isReference(type)) {
    if (type != kVoid) return type;
    infoOf(id).type = kError;
    return fail(kType, ast_[id].span, "this call returns nothing that could be used");
  }
  const Ty stored = types_[type].element;
  if (types_.isConstructible(stored)) return stored;
  infoOf(id).type = kError;
  const bool atomic = types_[stored].kind == Kind::Atomic;
  return fail(kType, ast_[id].span, fmt::format("a value of type {} cannot be read as a whole", name(stored)),
              atomic ? "use atomicLoad" : "read its elements one by one");
}

void Checker::setResult(ExprId id, Ty type, Stage stage, const std::optional<Evaluated>& value) {
  ExprInfo& info = infoOf(id);
  info.type = type;
  info.stage = stage;
  if (type == kError || !value) return;
  if (value->value) {
    info.value = value->value;
  } else if (quiet_ > 0) {
    info.value = ConstEval::zero(type);
  } else {
    fail(stage == Stage::Override ? kOverride : kConstant, ast_[id].span, value->error);
    info.type = kError;
  }
}

bool Checker::materialize(ExprId id, Ty to, std::string_view context) {
  ExprInfo& info = infoOf(id);
  const Ty from = types_.value(info.type);
  if (from == kError || to == kError) return false;
  if (types_.mayBeSame(from, to)) return true;
  const auto mismatch = [&] {
    fail(kType, ast_[id].span, fmt::format("{} has type {}, but {} is needed", context, name(from), name(to)));
    return false;
  };
  if (!types_.conversionRank(from, to)) return mismatch();
  if (!info.value) return mismatch();
  const Evaluated converted = eval_.convert(*info.value, to);
  if (converted.value) {
    info.value = converted.value;
  } else if (quiet_ > 0) {
    info.value = ConstEval::zero(to);
  } else {
    fail(info.stage == Stage::Override ? kOverride : kConstant, ast_[id].span, converted.error);
    info.type = kError;
    return false;
  }
  info.type = to;
  return true;
}

bool Checker::materializeDefault(ExprId id) {
  const Ty type = valueType(id);
  return !types_.isAbstract(type) || materialize(id, types_.concrete(type), "operand");
}

Stage Checker::stageOf(ExprList ids) const {
  Stage stage = Stage::Const;
  for (const ExprId id : ids) stage = std::max(stage, program_[id].stage);
  return stage;
}

void Checker::checkIdentifier(ExprId id) {
  const Expr& expr = ast_[id];
  const Meaning meaning = lookUp(expr.name, expr.name_span);
  if (meaning.kind == Meaning::Kind::Unknown || meaning.kind == Meaning::Kind::Failed) return;
  if (meaning.kind != Meaning::Kind::Value) {
    const bool type = meaning.kind == Meaning::Kind::Type || meaning.kind == Meaning::Kind::TypeGenerator;
    if (type && meaning.kind == Meaning::Kind::Type && meaning.type == kError) return;
    fail(kName, expr.span, fmt::format("'{}' is a {}, not a value", expr.name, type ? "type" : "function"));
    return;
  }
  if (expr.has_templates) {
    fail(kType, expr.span, fmt::format("'{}' takes no template list", expr.name));
    return;
  }
  const Entity& entity = program_[meaning.entity];
  for (const Breakable& loop : breakables_) {
    const bool declared_in_body = loop.is_loop && loop.in_continuing && entity.scope == loop.body_scope;
    if (declared_in_body && entity.kind != EntityKind::Const && entity.span.begin > loop.first_continue) {
      fail(kFlow, expr.span, fmt::format("'{}' may not be used here, because a continue can skip its declaration", entity.name), {},
           {reporter_.note(entity.span, "declared here")});
      return;
    }
  }
  ExprInfo& info = infoOf(id);
  info.entity = meaning.entity;
  info.type = entity.type;
  info.stage = entity.stage;
  if (entity.kind == EntityKind::Const || entity.kind == EntityKind::Override) info.value = entity.value;
}

void Checker::checkUnary(ExprId id) {
  const Expr& expr = ast_[id];
  if (expr.unary == UnaryOp::AddressOf) {
    checkExpr(expr.left);
    const Ty type = infoOf(expr.left).type;
    if (type == kError) return;
    const Expr& operand = ast_[expr.left];
    const bool part = operand.kind != ExprKind::Identifier && operand.left.valid() && operand.kind != ExprKind::Unary;
    const auto whole = part ? memoryView(operand.left) : std::nullopt;
    const bool component = whole && types_.isVector(whole->element), element = whole && types_.isSubgroupMatrix(whole->element);
    if (!types_.isReference(type) || component || element) {
      fail(kType, expr.span,
           component ? "the address of a vector component cannot be taken"
           : element ? "the address of an element of a subgroup matrix cannot be taken"
                     : "'&' needs a variable or a part of one");
      return;
    }
    const Type reference = types_[type];
    setResult(id, types_.pointer(reference.space, reference.element, reference.access), Stage::Runtime, std::nullopt);
    return;
  }
  const Ty type = checkValue(expr.left);
  if (type == kError) return;
  if (expr.unary == UnaryOp::Dereference) {
    if (!types_.isPointer(type)) {
      fail(kType, expr.span, fmt::format("'*' needs a pointer, not a value of type {}", name(type)));
      return;
    }
    const Type pointer = types_[type];
    setResult(id, types_.reference(pointer.space, pointer.element, pointer.access), Stage::Runtime, std::nullopt);
    return;
  }
  const Ty scalar = types_.isMatrix(type) ? kError : types_.scalarOf(type);
  const bool integer = scalar == kAbstractInt || scalar == kI32 || scalar == kU32;
  const bool fits = expr.unary == UnaryOp::Not          ? scalar == kBool
                    : expr.unary == UnaryOp::Complement ? integer
                                                        : scalar != kError && scalar != kBool && scalar != kU32;
  if (!fits) {
    fail(kType, expr.span, fmt::format("operator '{}' does not take an operand of type {}", toString(expr.unary), name(type)));
    return;
  }
  const ExprInfo& operand = infoOf(expr.left);
  setResult(id, type, operand.stage, operand.value ? std::optional(eval_.unary(expr.unary, *operand.value)) : std::nullopt);
}

std::optional<Type> Checker::memoryView(ExprId id) const {
  const Type& type = types_[program_[id].type];
  if (type.kind == Kind::Pointer || type.kind == Kind::Reference) {
    // A reference to memory that holds a pointer cannot exist, so one level is enough.
    return type;
  }
  return std::nullopt;
}

void Checker::checkIndex(ExprId id) {
  const Expr& expr = ast_[id];
  checkExpr(expr.left);
  const Ty index_type = checkValue(expr.right);
  if (infoOf(expr.left).type == kError || index_type == kError) return;
  if (index_type == kAbstractInt) {
    if (!materialize(expr.right, kI32, "index")) return;
  } else if (index_type != kI32 && index_type != kU32) {
    fail(kType, ast_[expr.right].span, fmt::format("index has type {}, but i32 or u32 is needed", name(index_type)));
    return;
  }
  const auto view = memoryView(expr.left);
  const Ty base = view ? view->element : infoOf(expr.left).type;
  const bool holds_elements = types_.isSubgroupMatrix(base) && types_[base].element != kBF16;
  if (!types_.isVector(base) && !types_.isMatrix(base) && !types_.isArray(base) && !holds_elements) {
    std::vector<Note> notes = hiddenBy(infoOf(expr.left).entity);
    const std::string remedy = notes.empty() ? "" : fmt::format("rename the local '{}', or what it hides", ast_[expr.left].name);
    fail(kType, expr.span, fmt::format("a value of type {} cannot be indexed", name(base)), remedy, std::move(notes));
    return;
  }
  const auto index = infoOf(expr.right).value;
  if (index && quiet_ == 0) {
    const int64_t count = types_.elementCount(base);
    // How many elements of a subgroup matrix an invocation holds is up to its subgroup.
    const bool counted = !holds_elements && (!types_.isArray(base) || types_[base].count > 0);
    if (index->integer < 0 || (counted && index->integer >= count)) {
      fail(kConstant, ast_[expr.right].span, fmt::format("index {} is outside {}", index->integer, name(base)));
      return;
    }
  }
  if (holds_elements && unit_ != SIZE_MAX) matrix_elements_.try_emplace(unit_, expr.span);
  if (view) {
    const Ty element = types_.elementOf(base);
    setResult(id, types_.reference(view->space, element, view->access), Stage::Runtime, std::nullopt);
    return;
  }
  if (infoOf(expr.right).stage != Stage::Const && !materializeDefault(expr.left)) return;
  const Ty element = types_.elementOf(infoOf(expr.left).type);
  const auto& value = infoOf(expr.left).value;
  const bool inside = index && index->integer >= 0 && index->integer < types_.elementCount(base);
  std::optional<Evaluated> result;
  if (value && index) result = inside ? eval_.element(*value, static_cast<uint32_t>(index->integer)) : ConstEval::zero(element);
  setResult(id, element, std::max(infoOf(expr.left).stage, infoOf(expr.right).stage), result);
}

std::vector<Note> Checker::hiddenBy(EntityId local) const {
  if (!local.valid() || program_[local].scope == 0) return {};
  const Entity& entity = program_[local];
  const auto hidden = global_names_.find(std::string_view(entity.name));
  if (hidden == global_names_.end()) return {};
  return {reporter_.note(entity.span, fmt::format("'{}' is this local", entity.name)),
          reporter_.note(globals_[hidden->second].span, fmt::format("it hides this '{}' of the module", entity.name))};
}

void Checker::checkMember(ExprId id) {
  const Expr& expr = ast_[id];
  checkExpr(expr.left);
  if (infoOf(expr.left).type == kError) return;
  const auto view = memoryView(expr.left);
  const Ty base = view ? view->element : infoOf(expr.left).type;
  if (types_.isVector(base)) return checkSwizzle(id, base, view.has_value());
  if (types_[base].kind != Kind::Struct) {
    fail(kType, expr.name_span, fmt::format("a value of type {} has no member '{}'", name(base), expr.name));
    return;
  }
  const auto& members = types_.structure(base).members;
  const auto member = std::find_if(members.begin(), members.end(), [&](const StructMember& m) { return m.name == expr.name; });
  if (member == members.end()) {
    fail(kName, expr.name_span, fmt::format("struct '{}' has no member '{}'", name(base), expr.name),
         reporter_.full() ? "" : similarMember(expr.name, members));
    return;
  }
  const Ty type = member->type;
  const auto index = static_cast<uint32_t>(member - members.begin());
  if (view) {
    setResult(id, types_.reference(view->space, type, view->access), Stage::Runtime, std::nullopt);
    return;
  }
  const ExprInfo& value = infoOf(expr.left);
  setResult(id, type, value.stage, value.value ? std::optional<Evaluated>(eval_.element(*value.value, index)) : std::nullopt);
}

void Checker::checkSwizzle(ExprId id, Ty base, bool through_reference) {
  const Expr& expr = ast_[id];
  const uint32_t width = types_.width(base);
  const auto component = [&](std::string_view letters, char c) {
    const size_t at = letters.find(c);
    return at < width ? std::optional(static_cast<uint32_t>(at)) : std::nullopt;
  };
  std::vector<uint32_t> components;
  for (const std::string_view letters : {std::string_view("xyzw"), std::string_view("rgba")}) {
    components.clear();
    for (const char c : expr.name) {
      if (const auto at = component(letters, c)) components.push_back(*at);
    }
    if (components.size() == expr.name.size()) break;
  }
  if (components.size() != expr.name.size() || components.size() > 4) {
    fail(kName, expr.name_span, fmt::format("'{}' does not name components of {}", expr.name, name(base)));
    return;
  }
  const Ty scalar = types_.scalarOf(base);
  const Ty result = types_.scalarOrVector(scalar, static_cast<uint32_t>(components.size()));
  if (through_reference) {
    const Type view = *memoryView(expr.left);
    const bool single = components.size() == 1;
    setResult(id, single ? types_.reference(view.space, scalar, view.access) : result, Stage::Runtime, std::nullopt);
    return;
  }
  const ExprInfo& value = infoOf(expr.left);
  std::optional<Evaluated> constant;
  if (value.value) {
    std::vector<ConstValue> elements;
    for (const uint32_t at : components) elements.push_back(eval_.element(*value.value, at));
    constant = elements.size() == 1 ? elements[0] : ConstEval::composite(result, std::move(elements));
  }
  setResult(id, result, value.stage, constant);
}

void Checker::checkCall(ExprId id) {
  const Expr& expr = ast_[id];
  const Meaning meaning = lookUp(expr.name, expr.name_span);
  if (meaning.kind == Meaning::Kind::Unknown || meaning.kind == Meaning::Kind::Failed) {
    checkArguments(expr);
    return;
  }
  if (meaning.kind == Meaning::Kind::Value) {
    std::vector<Note> notes = hiddenBy(meaning.entity);
    const std::string remedy = notes.empty() ? "" : fmt::format("rename the local '{}', or what it hides", expr.name);
    fail(kType, expr.name_span, fmt::format("'{}' is a value and cannot be called", expr.name), remedy, std::move(notes));
  } else if (meaning.kind == Meaning::Kind::Function) {
    checkUserCall(id, meaning.function);
  } else if (meaning.kind == Meaning::Kind::Builtin) {
    checkBuiltinCall(id, meaning.builtin);
  } else if (meaning.kind == Meaning::Kind::Type) {
    if (meaning.type == kError) {
      checkArguments(expr);
    } else {
      checkConstructor(id, meaning.type);
    }
  } else if (expr.has_templates || meaning.type_name.scalar.valid()) {
    const Ty type = typeFromName(meaning.type_name, expr);
    if (type == kError) {
      checkArguments(expr);
    } else {
      checkConstructor(id, type);
    }
  } else {
    checkInferredConstructor(id, meaning.type_name);
  }
}

void Checker::checkUserCall(ExprId id, uint32_t function) {
  const Expr& expr = ast_[id];
  const FunctionDecl& decl = ast_.functions[function];
  if (expr.has_templates) fail(kType, expr.span, fmt::format("function '{}' takes no template list", expr.name));
  const bool arguments_good = checkArguments(expr);
  // A copy: checking the arguments may resolve other functions and move the table.
  const FunctionInfo info = program_.functions[function];
  if (function_ == UINT32_MAX) {
    fail(kConstant, expr.span, fmt::format("function '{}' cannot be called at module scope", expr.name));
    return;
  }
  program_.functions[function_].calls.try_emplace(function, expr.name_span);
  if (info.workgroup_size) {
    fail(kType, expr.span, fmt::format("entry point '{}' cannot be called", expr.name));
    return;
  }
  if (expr.arguments.size() != decl.parameters.size()) {
    fail(kType, expr.span,
         fmt::format("function '{}' takes {} arguments, {} are given", expr.name, decl.parameters.size(), expr.arguments.size()), {},
         {reporter_.note(decl.name_span, "declared here")});
    return;
  }
  if (!info.valid || !arguments_good) return;
  for (size_t i = 0; i < expr.arguments.size(); ++i) {
    const Ty wanted = program_[info.parameters[i]].type;
    if (valueType(expr.arguments[i]) == wanted) continue;
    materialize(expr.arguments[i], wanted, fmt::format("argument '{}'", decl.parameters[i].name));
  }
  ExprInfo& out = infoOf(id);
  out.type = info.return_type;
  out.stage = Stage::Runtime;
  out.call = CallKind::Function;
  out.function = function;
}

bool Checker::checkArguments(const Expr& call) {
  bool good = true;
  for (const ExprId argument : call.arguments) good = checkValue(argument) != kError && good;
  return good;
}

}  // namespace lockstep::wgsl
