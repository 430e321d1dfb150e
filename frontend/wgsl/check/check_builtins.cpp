// SPDX-License-Identifier: Apache-2.0
// Calls of builtin functions: argument types by signature, results, and the errors that constant arguments alone make.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/check/checker.h"
#include "frontend/wgsl/syntax/printed_text.h"
#include "ir/kernel/module.h"

namespace lockstep::wgsl {
namespace {

/// The scalar that T becomes when the arguments' common scalar is `common`; kError when the family does not have it.
Ty familyScalar(Family family, Ty common) {
  const bool abstract = common == kAbstractInt || common == kAbstractFloat;
  const bool is_float = common == kAbstractFloat || common == kF32 || common == kF16;
  switch (family) {
    case Family::Float:
      return is_float ? common : common == kAbstractInt ? kAbstractFloat : kError;
    case Family::Numeric:
      return common == kBool ? kError : common;
    case Family::Signed:
      return common == kBool || common == kU32 ? kError : common;
    case Family::Integer:
      return common == kAbstractInt ? kI32 : common == kI32 || common == kU32 ? common : kError;
    case Family::F32:
      return abstract || common == kF32 ? kF32 : kError;
    case Family::U32:
      return common == kAbstractInt || common == kU32 ? kU32 : kError;
  }
  return kError;
}

struct SignatureRow {
  Signature signature;
  Family family;
  size_t count;
};

/// Signatures whose arguments all have one type T, which is also the result.
constexpr std::array<SignatureRow, 8> kSameRows{{
    {Signature::FloatUnary, Family::Float, 1},
    {Signature::F32Unary, Family::F32, 1},
    {Signature::FloatBinary, Family::Float, 2},
    {Signature::FloatTernary, Family::Float, 3},
    {Signature::NumericUnary, Family::Numeric, 1},
    {Signature::SignedUnary, Family::Signed, 1},
    {Signature::NumericBinary, Family::Numeric, 2},
    {Signature::NumericTernary, Family::Numeric, 3},
}};

/// Builtins whose calls have a template list.
struct TemplateUse {
  Builtin builtin;
  size_t count;
  std::string_view what, text;
};
constexpr std::array<TemplateUse, 5> kTemplateUses{{
    {Builtin::Bitcast, 1, "a type", "bitcast<u32>(x)"},
    {Builtin::SubgroupMatrixLoad, 2, "a type and a direction",
     "subgroupMatrixLoad<subgroup_matrix_left<f32, 8, 8>, row_major>(&array, offset, stride)"},
    {Builtin::SubgroupMatrixStore, 1, "a direction", "subgroupMatrixStore<row_major>(&array, offset, matrix, stride)"},
    {Builtin::SubgroupMatrixMultiply, 1, "a type", "subgroupMatrixMultiply<f32>(left, right)"},
    {Builtin::SubgroupMatrixConvert, 1, "a type", "subgroupMatrixConvert<subgroup_matrix_left<f16, 8, 8>>(result)"},
}};

}  // namespace

Ty Checker::noOverload(const Expr& call) {
  std::string types;
  for (const ExprId argument : call.arguments) types += (types.empty() ? "" : ", ") + name(valueType(argument));
  return fail(kType, call.span, fmt::format("'{}' does not take arguments of types ({})", call.name, types));
}

bool Checker::argumentCount(const Expr& call, size_t count) {
  if (call.arguments.size() == count) return true;
  fail(kType, call.span, fmt::format("'{}' takes {} arguments, {} are given", call.name, count, call.arguments.size()));
  return false;
}

/// Converts arguments [first, first + count) to one scalar or vector type of the family and returns it.
Ty Checker::sameArguments(const Expr& call, size_t first, size_t count, Family family) {
  const Ty shape = valueType(call.arguments[first]);
  Ty common = types_.isScalarOrVector(shape) ? types_.scalarOf(shape) : kError;
  for (size_t i = first; i < first + count && common != kError; ++i) {
    const Ty type = valueType(call.arguments[i]);
    const bool same_shape =
        types_.isScalarOrVector(type) && types_.isVector(type) == types_.isVector(shape) && types_.width(type) == types_.width(shape);
    common = same_shape ? commonScalar(common, types_.scalarOf(type)) : kError;
  }
  const Ty scalar = common == kError ? kError : familyScalar(family, common);
  if (scalar == kError) return noOverload(call);
  const Ty type = types_.withScalar(shape, scalar);
  for (size_t i = first; i < first + count; ++i) {
    if (!materialize(call.arguments[i], type, "argument")) return kError;
  }
  return type;
}

/// Two vectors of floats and a scalar of their type, which all three settle together.
Ty Checker::vectorsAndScalar(const Expr& call) {
  const Ty first = valueType(call.arguments[0]), second = valueType(call.arguments[1]), factor = valueType(call.arguments[2]);
  const bool shapes =
      types_.isVector(first) && types_.isVector(second) && types_.width(first) == types_.width(second) && types_.isScalar(factor);
  const Ty vectors = shapes ? commonScalar(types_.scalarOf(first), types_.scalarOf(second)) : kError;
  const Ty common = vectors == kError ? kError : commonScalar(vectors, factor);
  const Ty scalar = common == kError ? kError : familyScalar(Family::Float, common);
  if (scalar == kError) return noOverload(call);
  const Ty type = types_.withScalar(first, scalar);
  const bool good = materialize(call.arguments[0], type, "argument") && materialize(call.arguments[1], type, "argument") &&
                    materialize(call.arguments[2], scalar, "argument");
  return good ? type : kError;
}

void Checker::checkBuiltinCall(ExprId id, Builtin builtin) {
  const Expr& expr = ast_[id];
  if (builtin == Builtin::Print ? !checkPrinted(expr) : !checkArguments(expr)) return;
  const Signature signature = info(builtin).signature;
  if (isSubgroupMatrix(signature) && (!subgroupMatricesEnabled(expr) || hasDirectionArgument(expr, signature))) return;
  const auto* use = std::ranges::find(kTemplateUses, builtin, &TemplateUse::builtin);
  const bool wants_templates = use != kTemplateUses.end();
  if (expr.has_templates != wants_templates || (wants_templates && expr.templates.size() != use->count)) {
    fail(kType, expr.span,
         wants_templates ? fmt::format("{} needs {}, as in {}", expr.name, use->what, use->text)
                         : fmt::format("'{}' takes no template list", expr.name));
    return;
  }
  const bool at_run_time = signature >= Signature::ArrayLength && signature != Signature::Bitcast;
  if (function_ == UINT32_MAX && at_run_time) {
    fail(kConstant, expr.span, fmt::format("'{}' cannot be called at module scope", expr.name));
    return;
  }
  const Ty type = builtinType(expr, builtin);
  if (type == kError) return;
  const Stage stage = at_run_time ? Stage::Runtime : stageOf(expr.arguments);
  std::optional<Evaluated> value;
  if (stage != Stage::Runtime) {
    std::vector<ConstValue> arguments;
    for (const ExprId argument : expr.arguments) {
      if (infoOf(argument).value) arguments.push_back(*infoOf(argument).value);
    }
    if (arguments.size() == expr.arguments.size()) value = eval_.builtin(builtin, arguments, type);
  }
  if (!value) checkConstantArguments(expr, builtin);
  ExprInfo& out = infoOf(id);
  out.call = CallKind::Builtin;
  out.builtin = builtin;
  setResult(id, type, stage, value);
}

Ty Checker::builtinType(const Expr& call, Builtin builtin) {
  const Signature signature = info(builtin).signature;
  const auto* same = std::find_if(kSameRows.begin(), kSameRows.end(), [&](const SignatureRow& row) { return row.signature == signature; });
  if (same != kSameRows.end()) return argumentCount(call, same->count) ? sameArguments(call, 0, same->count, same->family) : kError;
  if (signature >= Signature::SubgroupElect && signature <= Signature::SubgroupLane) return subgroupType(call, builtin);
  if (isSubgroupMatrix(signature)) return matrixBuiltinType(call, builtin);
  if (signature == Signature::Print) return printType(call);
  if (signature >= Signature::ArrayLength && signature <= Signature::UniformLoad) return memoryBuiltinType(call, builtin);
  if (signature >= Signature::Dot && signature <= Signature::Determinant) return vectorBuiltinType(call, builtin);
  if (signature == Signature::Bitcast) return bitcastType(call);
  if (signature == Signature::Select) return selectType(call);
  if (signature == Signature::IntegerUnary) return argumentCount(call, 1) ? sameArguments(call, 0, 1, Family::Integer) : kError;
  if (signature == Signature::Mix) {
    if (!argumentCount(call, 3)) return kError;
    const bool scalar_factor = types_.isVector(valueType(call.arguments[0])) && types_.isScalar(valueType(call.arguments[2]));
    return scalar_factor ? vectorsAndScalar(call) : sameArguments(call, 0, 3, Family::Float);
  }
  if (signature == Signature::Ldexp) {
    if (!argumentCount(call, 2)) return kError;
    const Ty type = sameArguments(call, 0, 1, Family::Float);
    const Ty exponent = valueType(call.arguments[1]);
    if (type == kError) return kError;
    const bool fits = types_.isScalarOrVector(exponent) && types_.width(exponent) == types_.width(type) &&
                      (types_.scalarOf(exponent) == kAbstractInt || types_.scalarOf(exponent) == kI32);
    if (!fits) return noOverload(call);
    const bool all_abstract = types_.isAbstract(type) && types_.isAbstract(exponent);
    if (all_abstract) return type;
    if (!materialize(call.arguments[1], types_.withScalar(exponent, kI32), "argument")) return kError;
    if (infoOf(call.arguments[1]).stage == Stage::Const) return type;
    return materializeDefault(call.arguments[0]) ? valueType(call.arguments[0]) : kError;
  }
  if (signature == Signature::ExtractBits || signature == Signature::InsertBits) {
    const size_t values = signature == Signature::ExtractBits ? 1 : 2;
    if (!argumentCount(call, values + 2)) return kError;
    const Ty type = sameArguments(call, 0, values, Family::Integer);
    if (type == kError) return kError;
    for (size_t i = values; i < values + 2; ++i) {
      if (!materialize(call.arguments[i], kU32, "argument")) return kError;
    }
    return type;
  }
  if (signature == Signature::FloatParts) {
    const Ty value = argumentCount(call, 1) ? sameArguments(call, 0, 1, Family::Float) : kError;
    if (value == kError) return kError;
    return builtin == Builtin::Frexp ? types_.frexpResult(value) : types_.modfResult(value);
  }
  if (signature == Signature::Derivative) {
    defer(kUnsupported, call.span, fmt::format("'{}' belongs to fragment shaders, and only compute shaders are supported", call.name));
    return argumentCount(call, 1) ? sameArguments(call, 0, 1, Family::F32) : kError;
  }
  if (signature == Signature::BoolReduce) {
    if (!argumentCount(call, 1)) return kError;
    const Ty type = valueType(call.arguments[0]);
    return types_.isScalarOrVector(type) && types_.scalarOf(type) == kBool ? kBool : noOverload(call);
  }
  if (signature == Signature::DotPacked) {
    if (!argumentCount(call, 2)) return kError;
    if (!types_.isScalar(valueType(call.arguments[0]))) return noOverload(call);
    if (sameArguments(call, 0, 2, Family::U32) == kError) return kError;
    return builtin == Builtin::Dot4I8Packed ? kI32 : kU32;
  }
  // Pack and Unpack.
  using Lane = PackFormat::Lane;
  const PackFormat format = packFormat(builtin);
  const Ty lane = format.lane == Lane::Signed ? kI32 : format.lane == Lane::Unsigned ? kU32 : kF32;
  const Ty vector = types_.vector(lane, format.lanes);
  if (!argumentCount(call, 1)) return kError;
  const bool pack = signature == Signature::Pack;
  if (!materialize(call.arguments[0], pack ? vector : kU32, "argument")) return kError;
  return pack ? kU32 : vector;
}

Ty Checker::vectorBuiltinType(const Expr& call, Builtin builtin) {
  const Signature signature = info(builtin).signature;
  const bool unary = signature == Signature::Length || signature == Signature::FloatVectorUnary || signature == Signature::Transpose ||
                     signature == Signature::Determinant;
  const bool ternary = signature == Signature::Refract || signature == Signature::FloatVectorTernary;
  if (!argumentCount(call, unary ? 1 : ternary ? 3 : 2)) return kError;
  const Ty first = valueType(call.arguments[0]);
  if (signature == Signature::Transpose || signature == Signature::Determinant) {
    const Type matrix = types_[first];
    if (matrix.kind != Kind::Matrix) return noOverload(call);
    if (signature == Signature::Transpose) return types_.matrix(matrix.element, matrix.rows, matrix.columns);
    return matrix.rows == matrix.columns ? matrix.element : noOverload(call);
  }
  if (signature == Signature::Refract) return vectorsAndScalar(call);
  const bool scalars_too = signature == Signature::Length || signature == Signature::Distance;
  const bool cross = signature == Signature::Cross;
  if (!scalars_too && !types_.isVector(first)) return noOverload(call);
  if (cross && types_.width(first) != 3) return noOverload(call);
  const Family family = signature == Signature::Dot ? Family::Numeric : Family::Float;
  const size_t vectors = unary ? 1 : signature == Signature::FloatVectorTernary ? 3 : 2;
  const Ty type = sameArguments(call, 0, vectors, family);
  if (type == kError) return kError;
  return scalars_too || signature == Signature::Dot ? types_.scalarOf(type) : type;
}

Ty Checker::selectType(const Expr& call) {
  if (!argumentCount(call, 3)) return kError;
  const Ty condition = valueType(call.arguments[2]);
  const Ty a = valueType(call.arguments[0]), b = valueType(call.arguments[1]);
  const bool condition_fits = types_.isScalarOrVector(condition) && types_.scalarOf(condition) == kBool;
  if (!condition_fits || !types_.isScalarOrVector(a) || !types_.isScalarOrVector(b)) return noOverload(call);
  const Ty common = commonScalar(types_.scalarOf(a), types_.scalarOf(b));
  const bool shapes = types_.withScalar(a, kBool) == types_.withScalar(b, kBool);
  if (common == kError || !shapes || (types_.isVector(condition) && types_.width(condition) != types_.width(a))) return noOverload(call);
  Ty type = types_.withScalar(a, common);
  if (types_.isAbstract(type) && infoOf(call.arguments[2]).stage != Stage::Const) type = types_.concrete(type);
  const bool good = materialize(call.arguments[0], type, "argument") && materialize(call.arguments[1], type, "argument");
  return good ? type : kError;
}

Ty Checker::bitcastType(const Expr& call) {
  if (!argumentCount(call, 1)) return kError;
  const Ty to = resolveType(call.templates[0]);
  if (to == kError) return kError;
  const auto fits = [&](Ty type) { return types_.isScalarOrVector(type) && types_.scalarOf(type) != kBool; };
  const auto bytes = [&](Ty type) { return types_.width(type) * (types_.scalarOf(type) == kF16 ? 2 : 4); };
  const Ty given = valueType(call.arguments[0]);
  if (types_.isAbstract(given) && fits(given) && fits(to)) {
    // bitcast<u32>(4000000000) is the number itself. What has only the bits of f16 becomes f16: bitcast<i32>(vec2(1, 2)).
    const bool halves = f16_enabled_ && bytes(given) == 2 * bytes(to);
    const bool number = types_.scalarOf(to) == kU32 && types_.scalarOf(given) == kAbstractInt;
    const Ty scalar = halves ? kF16 : number ? kU32 : types_.scalarOf(types_.concrete(given));
    if (!materialize(call.arguments[0], types_.withScalar(given, scalar), "argument")) return kError;
  }
  const Ty from = valueType(call.arguments[0]);
  if (from == kError) return kError;
  if (!fits(from) || !fits(to) || bytes(from) != bytes(to)) {
    return fail(kType, call.span, fmt::format("{} cannot be bitcast to {}", name(from), name(to)));
  }
  return to;
}

/// Not of WGSL: debug output, as Tint has it, of one value or more.
/// The arguments that are values; texts have no type.
bool Checker::checkPrinted(const Expr& call) {
  bool good = true;
  for (const ExprId argument : call.arguments) {
    if (!ast_.isText(argument)) good = checkValue(argument) != kError && good;
  }
  return good;
}

Ty Checker::printType(const Expr& call) {
  if (call.arguments.empty()) return fail(kType, call.span, "'print' takes at least one value or text");
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const ExprId argument = call.arguments[i];
    if (ast_.isText(argument)) {
      const bool names = isPrintedName(ast_[argument].name);
      const bool has_value = i + 1 < call.arguments.size() && !ast_.isText(call.arguments[i + 1]);
      if (names ? has_value : i == 0) continue;
      return fail(kType, ast_[argument].span,
                  names ? "a text that ends with '=' names the value after it, and there is none"
                        : "a text is the first argument, or names the value after it and ends with '='");
    }
    const Ty type = valueType(argument);
    if (!types_.isConstructible(type) || types_.containsSubgroupMatrix(type)) {
      return fail(kType, ast_[argument].span, fmt::format("'print' takes values and texts, not {}", name(type)));
    }
    if (!materializeDefault(argument) || valueType(argument) == kError) return kError;
    const uint64_t scalars = types_.scalarCount(valueType(argument));
    if (scalars > kernel::kMaxPrintedScalars) {
      return fail(kType, ast_[argument].span,
                  fmt::format("'print' shows at most {} numbers of a value, and {} has more", kernel::kMaxPrintedScalars, name(type)),
                  "print the parts that matter");
    }
  }
  return kVoid;
}

Ty Checker::memoryBuiltinType(const Expr& call, Builtin builtin) {
  const Signature signature = info(builtin).signature;
  if (signature == Signature::Barrier) return argumentCount(call, 0) ? kVoid : kError;
  const bool load = builtin == Builtin::AtomicLoad, exchange = builtin == Builtin::AtomicCompareExchangeWeak;
  const size_t count = signature != Signature::Atomic || load ? 1 : exchange ? 3 : 2;
  if (!argumentCount(call, count)) return kError;
  const Ty first = valueType(call.arguments[0]);
  if (!types_.isPointer(first)) return noOverload(call);
  const Type pointer = types_[first];
  const Type pointee = types_[pointer.element];
  if (signature == Signature::ArrayLength) {
    const bool runtime_array = pointee.kind == Kind::Array && types_.isRuntimeSized(pointer.element);
    return runtime_array ? kU32 : noOverload(call);
  }
  if (signature == Signature::UniformLoad) {
    if (pointer.space != AddressSpace::Workgroup) return noOverload(call);
    if (pointee.kind == Kind::Atomic) return pointee.element;
    return types_.isConstructible(pointer.element) ? pointer.element : noOverload(call);
  }
  const bool shared = pointer.space == AddressSpace::Workgroup || pointer.space == AddressSpace::Storage;
  if (pointee.kind != Kind::Atomic || !shared || pointer.access != Access::ReadWrite) return noOverload(call);
  for (size_t i = 1; i < count; ++i) {
    if (!materialize(call.arguments[i], pointee.element, "argument")) return kError;
  }
  if (builtin == Builtin::AtomicStore) return kVoid;
  return exchange ? types_.atomicExchangeResult(pointee.element) : pointee.element;
}

/// An exponent that no result can have is an error whatever the other argument is.
void Checker::checkLdexpExponent(const Expr& call) {
  const auto& exponent = infoOf(call.arguments[1]).value;
  if (!exponent) return;
  const int64_t most = types_.scalarOf(valueType(call.arguments[0])) == kF16 ? 16 : 128;
  for (uint32_t i = 0; i < types_.width(exponent->type); ++i) {
    const ConstValue lane = types_.isScalar(exponent->type) ? *exponent : eval_.element(*exponent, i);
    if (lane.integer > most) {
      fail(kConstant, ast_[call.arguments[1]].span, fmt::format("the exponent of ldexp is above {}", most));
      return;
    }
  }
}

/// Some rules bind constant arguments even when the call as a whole is not constant.
void Checker::checkConstantArguments(const Expr& call, Builtin builtin) {
  if (quiet_ > 0) return;
  const auto constant = [&](size_t i) -> const ConstValue* {
    const auto& value = infoOf(call.arguments[i]).value;
    return value ? &*value : nullptr;
  };
  const auto bits = [&](size_t first) {
    const ConstValue *offset = constant(first), *count = constant(first + 1);
    const bool known = offset != nullptr && count != nullptr;
    if (known && offset->integer + count->integer > 32) fail(kConstant, call.span, "offset + count is above 32");
  };
  if (builtin == Builtin::ExtractBits) bits(1);
  if (builtin == Builtin::InsertBits) bits(2);
  if (builtin == Builtin::Ldexp) return checkLdexpExponent(call);
  const bool clamp = builtin == Builtin::Clamp;
  if (!clamp && builtin != Builtin::Smoothstep) return;
  const ConstValue *low = constant(clamp ? 1 : 0), *high = constant(clamp ? 2 : 1);
  if (low == nullptr || high == nullptr) return;
  for (uint32_t i = 0; i < types_.width(low->type); ++i) {
    const ConstValue a = types_.isScalar(low->type) ? *low : eval_.element(*low, i),
                     b = types_.isScalar(low->type) ? *high : eval_.element(*high, i);
    const bool bad = clamp ? a.integer > b.integer || a.number > b.number : a.number == b.number;
    if (bad) {
      fail(kConstant, call.span, clamp ? "the low bound of clamp is above the high bound" : "the edges of smoothstep are equal");
      return;
    }
  }
}

}  // namespace lockstep::wgsl
