// SPDX-License-Identifier: Apache-2.0
// Value constructors and conversions.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/check/checker.h"

namespace lockstep::wgsl {

/// A type that all expressions convert to; kError when there is none.
Ty Checker::commonType(ExprList ids) {
  Ty common = valueType(ids[0]);
  for (const ExprId id : ids) {
    const Ty type = valueType(id);
    if (types_.conversionRank(type, common)) continue;
    if (!types_.conversionRank(common, type)) return kError;
    common = type;
  }
  return common;
}

void Checker::checkConstructor(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  if (!checkArguments(expr)) return;
  if (!types_.isConstructible(type)) {
    fail(kType, expr.span, fmt::format("a value of type {} cannot be constructed", name(type)));
    return;
  }
  if (expr.arguments.empty()) {
    infoOf(id).call = CallKind::Construct;
    setResult(id, type, Stage::Const, Evaluated(ConstEval::zero(type)));
    return;
  }
  if (types_.isSubgroupMatrix(type)) return constructSubgroupMatrix(id, type);
  if (types_.isScalar(type)) return constructScalar(id, type);
  if (types_.isVector(type)) return constructVector(id, type);
  if (types_.isMatrix(type)) return constructMatrix(id, type);
  constructComposite(id, type);
}

/// vec3(...), mat2x2(...) and array(...) without a template list.
void Checker::checkInferredConstructor(ExprId id, const TypeName& type_name) {
  const Expr& expr = ast_[id];
  if (!checkArguments(expr)) return;
  if (type_name.kind == Kind::Vector && expr.arguments.empty()) {
    infoOf(id).call = CallKind::Construct;
    setResult(id, types_.vector(kAbstractInt, type_name.rows), Stage::Const,
              Evaluated(ConstEval::zero(types_.vector(kAbstractInt, type_name.rows))));
    return;
  }
  const bool infers = type_name.kind == Kind::Vector || type_name.kind == Kind::Matrix || type_name.kind == Kind::Array;
  if (expr.arguments.empty() || !infers) {
    fail(kType, expr.span, fmt::format("the type of '{}' cannot be inferred", expr.name), "write its template list");
    return;
  }
  Ty common = type_name.kind == Kind::Array ? commonType(expr.arguments) : kError;
  if (type_name.kind == Kind::Array) {
    if (common == kError || !types_.isConstructible(common)) {
      fail(kType, expr.span, "the elements of the array have no common type");
      return;
    }
    return constructComposite(id, types_.array(common, static_cast<uint32_t>(expr.arguments.size())));
  }
  common = types_.scalarOf(valueType(expr.arguments[0]));
  for (const ExprId argument : expr.arguments)
    common = common == kError ? kError : commonScalar(common, types_.scalarOf(valueType(argument)));
  if (common == kError) {
    fail(kType, expr.span, "the arguments of the constructor have no common type");
    return;
  }
  if (type_name.kind == Kind::Vector) return constructVector(id, types_.vector(common, type_name.rows));
  if (common == kAbstractInt) common = kAbstractFloat;
  if (common != kAbstractFloat && common != kF32 && common != kF16) {
    fail(kType, expr.span, fmt::format("a matrix cannot have elements of type {}", name(common)));
    return;
  }
  constructMatrix(id, types_.matrix(common, type_name.columns, type_name.rows));
}

void Checker::constructScalar(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  const ExprId argument = expr.arguments[0];
  const Ty from = valueType(argument);
  if (expr.arguments.size() != 1 || !types_.isScalar(from)) {
    fail(kType, expr.span, fmt::format("{} cannot be constructed from these arguments", name(type)));
    return;
  }
  const ExprInfo& info = infoOf(argument);
  infoOf(id).call = CallKind::Construct;
  setResult(id, type, info.stage, info.value ? std::optional(eval_.cast(*info.value, type)) : std::nullopt);
}

void Checker::constructVector(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  const Ty scalar = types_.scalarOf(type);
  const uint32_t width = types_.width(type);
  const ExprId first = expr.arguments[0];
  if (expr.arguments.size() == 1 && types_.isVector(valueType(first)) && types_.width(valueType(first)) == width) {
    const ExprInfo& info = infoOf(first);
    infoOf(id).call = CallKind::Construct;
    setResult(id, type, info.stage, info.value ? std::optional(eval_.cast(*info.value, type)) : std::nullopt);
    return;
  }
  uint32_t components = 0;
  bool good = true;
  for (const ExprId argument : expr.arguments) {
    const Ty from = valueType(argument);
    if (!types_.isScalarOrVector(from)) {
      fail(kType, ast_[argument].span, fmt::format("a vector cannot be constructed from a value of type {}", name(from)));
      return;
    }
    components += types_.width(from);
    good = materialize(argument, types_.withScalar(from, scalar), "component") && good;
  }
  const bool splat = expr.arguments.size() == 1 && components == 1;
  if (good && components != width && !splat) {
    fail(kType, expr.span, fmt::format("{} needs {} components, {} are given", name(type), width, components));
    return;
  }
  if (good) finishConstructor(id, type);
}

void Checker::constructMatrix(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  const Type matrix = types_[type];
  const Ty scalar = matrix.element;
  const size_t count = expr.arguments.size();
  const Ty first = valueType(expr.arguments[0]);
  if (count == 1 && types_.isMatrix(first) && types_[first].columns == matrix.columns && types_[first].rows == matrix.rows) {
    const ExprInfo& info = infoOf(expr.arguments[0]);
    infoOf(id).call = CallKind::Construct;
    setResult(id, type, info.stage, info.value ? std::optional(eval_.cast(*info.value, type)) : std::nullopt);
    return;
  }
  const bool columns = count == matrix.columns && types_.isVector(first);
  const bool scalars = count == size_t(matrix.columns) * matrix.rows && types_.isScalar(first);
  if (!columns && !scalars) {
    fail(kType, expr.span,
         fmt::format("{} needs {} column vectors or {} scalars", name(type), matrix.columns, matrix.columns * matrix.rows));
    return;
  }
  bool good = true;
  for (const ExprId argument : expr.arguments) {
    good = materialize(argument, columns ? types_.vector(scalar, matrix.rows) : scalar, columns ? "column" : "element") && good;
  }
  if (good) finishConstructor(id, type);
}

void Checker::constructComposite(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  const uint32_t count = types_.elementCount(type);
  if (expr.arguments.size() != count) {
    fail(kType, expr.span, fmt::format("{} needs {} values, {} are given", name(type), count, expr.arguments.size()));
    return;
  }
  bool good = true;
  for (uint32_t i = 0; i < count; ++i) {
    good = materialize(expr.arguments[i], types_.elementOf(type, i), types_.isArray(type) ? "element" : "member") && good;
  }
  if (good) finishConstructor(id, type);
}

void Checker::finishConstructor(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  infoOf(id).call = CallKind::Construct;
  setResult(id, type, stageOf(expr.arguments), constantComposite(expr, type));
}

/// The value of a constructor from its parts; nothing when one of them is not constant.
std::optional<Evaluated> Checker::constantComposite(const Expr& call, Ty type) {
  std::vector<ConstValue> parts;
  for (const ExprId argument : call.arguments) {
    const auto& value = infoOf(argument).value;
    if (!value) return std::nullopt;
    const bool flatten = types_.isVector(type) && types_.isVector(value->type);
    for (uint32_t i = 0; i < (flatten ? types_.width(value->type) : 1); ++i) parts.push_back(flatten ? eval_.element(*value, i) : *value);
  }
  if (types_.scalarCount(type) > kMaximumConstantScalars) {
    return Evaluated(fmt::format("a constant of type {} has too many elements", name(type)));
  }
  if (types_.isVector(type)) parts.resize(types_.width(type), parts[0]);
  if (types_.isMatrix(type) && parts.size() > types_[type].columns) {
    const uint32_t rows = types_[type].rows;
    std::vector<ConstValue> columns;
    for (size_t i = 0; i < parts.size(); i += rows) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(i);
      columns.push_back(ConstEval::composite(types_.elementOf(type), {begin, begin + rows}));
    }
    parts = std::move(columns);
  }
  return Evaluated(ConstEval::composite(type, std::move(parts)));
}

}  // namespace lockstep::wgsl
