// SPDX-License-Identifier: Apache-2.0
// Subgroup matrices: their types, their constructors and the functions on them. An extent that is up to an override without value is 0;
// what depends on it is checked when the values are there.
#include <fmt/format.h>

#include "frontend/wgsl/check/checker.h"

namespace lockstep::wgsl {

using kernel::MatrixUse;

namespace {

bool isFloat(Ty scalar) { return scalar == kF32 || scalar == kF16; }
bool differ(uint32_t known, uint32_t other) { return known != 0 && other != 0 && known != other; }

/// Components of a matrix in one element of an array; 0 when it has others. A u32 has the bits of one, or in loads of two with 16 bits.
uint32_t componentsIn(const Types& types, Ty element, Ty component, bool loads) {
  if (!types.isScalarOrVector(element) || types.width(element) == 3) return 0;
  if (types.scalarOf(element) == component) return types.width(element);
  if (types.scalarOf(element) != kU32) return 0;
  if (component == kF32) return types.width(element);
  return loads ? 2 * types.width(element) : 0;
}

/// Of which elements an array may be.
std::string fittingElements(std::string_view component, bool loads) {
  const std::string packed = fmt::format("u32, vec2<u32> or vec4<u32> with two {} in a u32", component);
  if (component == "bf16") return fmt::format("the elements may be {}", packed);
  const std::string plain = fmt::format("the elements may be {0}, vec2<{0}> or vec4<{0}>", component);
  if (component == "f32") return plain + ", or u32, vec2<u32> or vec4<u32> with its bits";
  return loads ? plain + ", or " + packed : plain;
}

}  // namespace

bool Checker::subgroupMatricesEnabled(const Expr& expr) {
  if (subgroup_matrices_enabled_) return true;
  fail(kType, expr.span, fmt::format("'{}' is used without subgroup matrices being enabled", expr.name),
       "write 'enable chromium_experimental_subgroup_matrix;' at the top of the module");
  return false;
}

/// True after reporting. Earlier versions of Dawn had a bool before the stride.
bool Checker::hasDirectionArgument(const Expr& call, Signature signature) {
  const bool loads = signature == Signature::SubgroupMatrixLoad && call.templates.size() == 1 && call.arguments.size() == 4;
  const bool stores = signature == Signature::SubgroupMatrixStore && !call.has_templates && call.arguments.size() == 5;
  if (!loads && !stores) return false;
  const ExprId direction = call.arguments[loads ? 2 : 3];
  const bool by_columns = valueType(direction) == kBool && infoOf(direction).value && infoOf(direction).value->integer != 0;
  const std::string_view word = by_columns ? kColumnMajor : kRowMajor;
  fail(kType, ast_[direction].span, fmt::format("'{}' takes the direction in its template list", call.name),
       loads
           ? fmt::format("write {}<{}, {}>(array, offset, stride)", call.name, reporter_.source().text(ast_[call.templates[0]].span), word)
           : fmt::format("write {}<{}>(array, offset, matrix, stride)", call.name, word));
  return true;
}

Ty Checker::subgroupMatrixType(const TypeName& type_name, const Expr& expr) {
  if (!subgroupMatricesEnabled(expr)) return kError;
  if (expr.templates.size() != 3) {
    return fail(kType, expr.span, fmt::format("'{}' needs a component type, a number of columns and a number of rows", expr.name),
                fmt::format("write {}<f32, 8, 8>", expr.name));
  }
  const Ty component = matrixComponent(expr.templates[0], expr, type_name.use);
  uint32_t columns = 0, rows = 0;
  const bool has_columns = matrixExtent(expr.templates[1], "columns", columns);
  const bool has_rows = matrixExtent(expr.templates[2], "rows", rows);
  return component == kError || !has_columns || !has_rows ? kError : types_.subgroupMatrix(type_name.use, component, columns, rows);
}

Ty Checker::matrixComponent(ExprId id, const Expr& matrix, MatrixUse use) {
  const Expr& expr = ast_[id];
  // The one place where bf16 is a type, unless it is a declaration of the module.
  const bool is_name = expr.kind == ExprKind::Identifier && !expr.has_templates && expr.name == "bf16";
  if (is_name && lookUp(expr.name, expr.name_span).type_name.kind == Kind::BF16) {
    if (use != MatrixUse::Result) return kBF16;
    return fail(kType, expr.span, fmt::format("'{}' cannot have components of type bf16", matrix.name),
                "products of bf16 are added up in f32");
  }
  const Ty type = resolveType(id);
  if (type == kError || isFloat(type)) return type;
  const bool integer = type == kI32 || type == kU32;
  return fail(integer ? kUnsupported : kType, expr.span,
              integer ? fmt::format("'{}' with components of type {} is not supported", matrix.name, name(type))
                      : fmt::format("'{}' cannot have components of type {}", matrix.name, name(type)),
              use == MatrixUse::Result ? "use f32 or f16" : "use f32, f16 or bf16");
}

bool Checker::matrixExtent(ExprId id, std::string_view what, uint32_t& extent) {
  const uint32_t quiet = std::exchange(quiet_, 0);
  const Ty type = checkValue(id);
  quiet_ = quiet;
  if (type == kError) return false;
  const ExprInfo& info = infoOf(id);
  const Span where = ast_[id].span;
  const bool is_integer = type == kAbstractInt || type == kI32 || type == kU32;
  if (!is_integer || info.stage == Stage::Runtime) {
    fail(kType, where,
         is_integer ? fmt::format("the number of {} is not a constant expression", what)
                    : fmt::format("the number of {} has type {}, but i32 or u32 is needed", what, name(type)));
    return false;
  }
  if (!info.value) return true;
  const int64_t value = info.value->integer;
  if (value < 1 || value > int64_t{kernel::kMaxSubgroupMatrixExtent}) {
    fail(kType, where, fmt::format("a subgroup matrix has 1 to {} {}, not {}", kernel::kMaxSubgroupMatrixExtent, what, value));
    return false;
  }
  extent = static_cast<uint32_t>(value);
  return true;
}

/// From one scalar; the zero value is not made here.
void Checker::constructSubgroupMatrix(ExprId id, Ty type) {
  const Expr& expr = ast_[id];
  const Ty component = types_[type].element;
  if (component == kBF16) {
    fail(kType, expr.span, fmt::format("{} can only be constructed as zero", name(type)), "load its components from memory");
  } else if (expr.arguments.size() != 1) {
    fail(kType, expr.span, fmt::format("{} is filled with one scalar, {} are given", name(type), expr.arguments.size()));
  } else if (materialize(expr.arguments[0], component, "component")) {
    infoOf(id).call = CallKind::Construct;
    setResult(id, type, Stage::Runtime, std::nullopt);
  }
}

Ty Checker::matrixBuiltinType(const Expr& call, Builtin builtin) {
  const Signature signature = info(builtin).signature;
  const bool loads = signature == Signature::SubgroupMatrixLoad, multiplies = signature == Signature::SubgroupMatrixMultiply;
  const bool converts = signature == Signature::SubgroupMatrixConvert;
  if (loads || multiplies || converts) {
    if (!argumentCount(call, loads ? 3 : multiplies ? 2 : 1)) return kError;
    const Ty given = resolveType(call.templates[0]);
    const Span where = ast_[call.templates[0]].span;
    if (given == kError) return kError;
    if (loads) {
      if (!types_.isSubgroupMatrix(given)) {
        return fail(kType, where, fmt::format("'{}' gives a subgroup matrix, not {}", call.name, name(given)));
      }
      return checkMatrixPlace(call, given, true) ? given : kError;
    }
    if (converts) return matrixConversion(call, given, where);
    if (!isFloat(given)) {
      return fail(kType, where, fmt::format("'{}' takes the component type of the result, not {}", call.name, name(given)));
    }
    return matrixProduct(call, types_.subgroupMatrix(MatrixUse::Result, given, 0, 0), where);
  }
  const bool stores = signature == Signature::SubgroupMatrixStore, sums = signature == Signature::SubgroupMatrixMultiplyAccumulate;
  const bool rows = signature == Signature::SubgroupMatrixRows;
  if (!argumentCount(call, stores ? 4 : sums ? 3 : rows ? 1 : 2)) return kError;
  if (sums) return matrixProduct(call, valueType(call.arguments[2]), ast_[call.arguments[2]].span);
  const Ty matrix = valueType(call.arguments[stores ? 2 : 0]);
  if (!types_.isSubgroupMatrix(matrix)) return noOverload(call);
  if (types_[matrix].element == kBF16) {
    return fail(kType, call.span, fmt::format("'{}' does not take {}", call.name, name(matrix)),
                "matrices of bf16 are only loaded, converted to and multiplied");
  }
  if (rows) {
    if (types_[matrix].use == MatrixUse::Result) return matrix;
    return fail(kType, call.span, fmt::format("'{}' takes a subgroup_matrix_result, not {}", call.name, name(matrix)));
  }
  if (signature == Signature::SubgroupMatrixPlace) {
    matrix_elements_.try_emplace(unit_, call.span);
    return materialize(call.arguments[1], kU32, "argument") ? kU32 : kError;
  }
  if (stores) return checkMatrixPlace(call, matrix, false) ? kVoid : kError;
  if (signature == Signature::SubgroupMatrixScalar) {
    return materialize(call.arguments[1], types_[matrix].element, "argument") ? matrix : kError;
  }
  const Ty other = valueType(call.arguments[1]);
  if (types_.mayBeSame(matrix, other)) return matrix;
  return fail(kType, call.span, fmt::format("'{}' takes two matrices of one type, not {} and {}", call.name, name(matrix), name(other)));
}

/// A sum becomes a factor of the next product.
Ty Checker::matrixConversion(const Expr& call, Ty to_type, Span to_place) {
  const Ty from_type = valueType(call.arguments[0]);
  if (!types_.isSubgroupMatrix(from_type)) return noOverload(call);
  const Type from = types_[from_type], to = types_[to_type];
  if (from.use != MatrixUse::Result || from.element != kF32) {
    return fail(kType, ast_[call.arguments[0]].span,
                fmt::format("'{}' takes a subgroup_matrix_result of f32, not {}", call.name, name(from_type)));
  }
  const bool factor = types_.isSubgroupMatrix(to_type) && to.use == MatrixUse::Left && (to.element == kF16 || to.element == kBF16);
  if (!factor) {
    return fail(kType, to_place, fmt::format("'{}' gives a subgroup_matrix_left of f16 or bf16, not {}", call.name, name(to_type)));
  }
  if (!differ(from.columns, to.columns) && !differ(from.rows, to.rows)) return to_type;
  return fail(kType, to_place, fmt::format("{} and {} do not have the same columns and rows", name(from_type), name(to_type)));
}

/// The type of left * right + `sum`. A product alone knows only the component of its `sum`.
Ty Checker::matrixProduct(const Expr& call, Ty sum, Span sum_place) {
  const auto is = [&](Ty type, MatrixUse use) { return types_.isSubgroupMatrix(type) && types_[type].use == use; };
  const Ty left_type = valueType(call.arguments[0]), right_type = valueType(call.arguments[1]);
  if (!is(left_type, MatrixUse::Left) || !is(right_type, MatrixUse::Right) || !is(sum, MatrixUse::Result)) return noOverload(call);
  const Type left = types_[left_type], right = types_[right_type];
  const Ty component = types_[sum].element;
  const std::string both = fmt::format("{} and {}", name(left_type), name(right_type));
  if (left.element != right.element) {
    return fail(kType, call.span, fmt::format("{} cannot be multiplied: their components have different types", both));
  }
  if (differ(left.columns, right.rows)) {
    return fail(kType, call.span,
                fmt::format("{} cannot be multiplied: the left one has {} columns, the right one {} rows", both, left.columns, right.rows));
  }
  if (component != kF32 && component != left.element) {
    return fail(kType, sum_place, fmt::format("products of {} are not added up in {}", name(left.element), name(component)),
                left.element == kF16 ? "use f32 or f16" : "use f32");
  }
  const Ty product = types_.subgroupMatrix(MatrixUse::Result, component, right.columns, left.rows);
  if (types_.mayBeSame(product, sum)) return call.arguments.size() == 3 ? sum : product;
  return fail(kType, sum_place, fmt::format("the product of {} is {}, to which {} cannot be added", both, name(product), name(sum)));
}

/// What says where in memory the matrix is: a pointer to an array, an offset, a stride and the direction.
bool Checker::checkMatrixPlace(const Expr& call, Ty matrix, bool loads) {
  const ExprId place = call.arguments[0];
  bool by_columns = false;
  if (!readDirection(call.templates.back(), by_columns)) return false;
  const auto bad = [&](std::string message, std::string remedy = {}, const char* code = kType) {
    fail(code, ast_[place].span, std::move(message), std::move(remedy));
    return false;
  };
  const Ty given = valueType(place);
  const Type pointer = types_[given];
  const bool shared = types_.isPointer(given) && (pointer.space == AddressSpace::Workgroup || pointer.space == AddressSpace::Storage);
  if (!shared || !types_.isArray(pointer.element)) {
    return bad(fmt::format("'{}' takes a pointer to an array in workgroup memory or storage, not {}", call.name, name(given)),
               types_.isArray(given) ? "write '&' before it" : "");
  }
  if (!loads && pointer.access == Access::Read) return bad("this memory is read-only", "declare the buffer with access mode read_write");
  const Ty component = types_[matrix].element, element = types_[pointer.element].element;
  const uint32_t held = componentsIn(types_, element, component, loads);
  if (held == 0) {
    // Dawn has arrays of all numbers and vectors that are as large as a component, of which the bits are taken.
    const bool numeric = types_.isScalarOrVector(element) && types_.scalarOf(element) != kBool;
    const bool elsewhere = numeric && !(component == kF32 && element == kF16);
    return bad(fmt::format("{} does not hold the components of {}", name(pointer.element), name(matrix)),
               fittingElements(name(component), loads), elsewhere ? kUnsupported : kType);
  }
  if (!checkMatrixNumber(call, call.arguments[1], "offset") || !checkMatrixNumber(call, call.arguments.back(), "stride")) return false;
  return checkMatrixLines(call, pointer.element, matrix, held, by_columns);
}

/// An offset or a stride: of either type, and never negative where that is known.
bool Checker::checkMatrixNumber(const Expr& call, ExprId id, std::string_view what) {
  const Ty type = valueType(id);
  const Span where = ast_[id].span;
  if (type != kAbstractInt && type != kI32 && type != kU32) {
    fail(kType, where, fmt::format("the {} of '{}' has type {}, not i32 or u32", what, call.name, name(type)));
    return false;
  }
  const auto& value = infoOf(id).value;
  if (value && value->integer < 0 && quiet_ == 0) {
    fail(kConstant, where, fmt::format("the {} of '{}' is {}, which is negative", what, call.name, value->integer));
    return false;
  }
  return type != kAbstractInt || materialize(id, kU32, what);
}

/// A line, a row or column that lies together, is whole elements, and the array has room for one: else no offset could be right.
bool Checker::checkMatrixLines(const Expr& call, Ty array, Ty matrix, uint32_t held, bool by_columns) {
  const std::string_view line = by_columns ? "column" : "row";
  const uint32_t length = by_columns ? types_[matrix].rows : types_[matrix].columns, count = types_[array].count;
  const bool whole = length % held == 0, fits = count == 0 || length / held <= count;
  if (whole && fits) return true;
  fail(kType, ast_[call.arguments[0]].span,
       !whole ? fmt::format("a {} of {} has {} components, which are no whole elements of {}", line, name(matrix), length, name(array))
              : fmt::format("{} is smaller than a {} of {}, which takes {} elements", name(array), line, name(matrix), length / held));
  return false;
}

}  // namespace lockstep::wgsl
