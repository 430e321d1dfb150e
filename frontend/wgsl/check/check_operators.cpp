// SPDX-License-Identifier: Apache-2.0
// Binary operators.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/check/checker.h"

namespace lockstep::wgsl {
namespace {

bool isArithmetic(BinaryOp op) { return op <= BinaryOp::Rem; }
bool isBitwise(BinaryOp op) { return op == BinaryOp::And || op == BinaryOp::Or || op == BinaryOp::Xor; }
bool isShift(BinaryOp op) { return op == BinaryOp::Shl || op == BinaryOp::Shr; }
bool isLogical(BinaryOp op) { return op == BinaryOp::LogicalAnd || op == BinaryOp::LogicalOr; }
bool isIntegerScalar(Ty type) { return type == kAbstractInt || type == kI32 || type == kU32; }

}  // namespace

/// Left operands may be chained thousands deep (a + b + c + ...), so the left spine is walked, not recursed.
void Checker::checkBinary(ExprId id) {
  std::vector<ExprId> spine;
  ExprId at = id;
  while (ast_[at].kind == ExprKind::Binary) {
    spine.push_back(at);
    at = ast_[at].left;
  }
  checkValue(at);
  for (auto node = spine.rbegin(); node != spine.rend(); ++node) checkBinaryNode(*node);
}

void Checker::checkBinaryNode(ExprId id) {
  const Expr& expr = ast_[id];
  // `false && x` and `true || x` do not evaluate x, though its types still matter.
  const auto& left = infoOf(expr.left).value;
  const bool decided =
      isLogical(expr.binary) && valueType(expr.left) == kBool && left && (left->integer != 0) == (expr.binary == BinaryOp::LogicalOr);
  if (decided) ++quiet_;
  const Ty right_type = checkValue(expr.right);
  if (decided) --quiet_;
  if (valueType(expr.left) == kError || right_type == kError) return;
  const Ty type = binaryType(expr.binary, expr.span, expr.left, expr.right);
  if (type == kError) return;
  const ExprInfo &a = infoOf(expr.left), &b = infoOf(expr.right);
  std::optional<Evaluated> value;
  if (a.value && b.value) value = eval_.binary(expr.binary, *a.value, *b.value, type);
  setResult(id, type, std::max(a.stage, b.stage), value);
}

Ty Checker::operatorError(BinaryOp op, Span span, ExprId left, ExprId right) {
  return fail(
      kType, span,
      fmt::format("operator '{}' does not take operands of types {} and {}", toString(op), name(valueType(left)), name(valueType(right))));
}

Ty Checker::commonScalar(Ty a, Ty b) const {
  if (types_.conversionRank(a, b)) return b;
  return types_.conversionRank(b, a) ? a : kError;
}

Ty Checker::binaryType(BinaryOp op, Span span, ExprId left, ExprId right) {
  if (isShift(op)) return shiftType(op, span, left, right);
  const Ty left_type = valueType(left), right_type = valueType(right);
  const Ty a = types_.scalarOf(left_type), b = types_.scalarOf(right_type);
  if (a == kError || b == kError) return operatorError(op, span, left, right);
  const Ty common = commonScalar(a, b);
  if (common == kError) return operatorError(op, span, left, right);

  const bool is_bool = common == kBool, is_integer = isIntegerScalar(common);
  const bool matrix = types_.isMatrix(left_type) || types_.isMatrix(right_type);
  const bool fits = isArithmetic(op)      ? !is_bool
                    : op == BinaryOp::Xor ? is_integer
                    : isBitwise(op)       ? is_integer || is_bool
                    : isLogical(op)       ? is_bool && types_.isScalar(left_type) && types_.isScalar(right_type)
                                          : op <= BinaryOp::Ne || !is_bool;
  const bool matrix_fits = op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mul;
  if (!fits || (matrix && !matrix_fits)) return operatorError(op, span, left, right);
  const Ty shape = arithmeticShape(op, types_.withScalar(left_type, common), types_.withScalar(right_type, common));
  if (shape == kError) return operatorError(op, span, left, right);
  const bool converted = materialize(left, types_.withScalar(left_type, common), "left operand") &&
                         materialize(right, types_.withScalar(right_type, common), "right operand");
  if (!converted) return kError;
  if (op == BinaryOp::Div || op == BinaryOp::Rem) checkDivisor(left, right);
  const bool comparison = op >= BinaryOp::Eq && op <= BinaryOp::Ge;
  return comparison ? types_.withScalar(shape, kBool) : shape;
}

/// The shape of the result of operands that already have one scalar type.
Ty Checker::arithmeticShape(BinaryOp op, Ty left, Ty right) {
  const bool left_matrix = types_.isMatrix(left), right_matrix = types_.isMatrix(right);
  if (op == BinaryOp::Mul && (left_matrix || right_matrix)) {
    const Type a = types_[left], b = types_[right];
    const Ty scalar = types_.scalarOf(left);
    if (left_matrix && right_matrix) return a.columns == b.rows ? types_.matrix(scalar, b.columns, a.rows) : kError;
    if (left_matrix && types_.isVector(right)) return a.columns == b.rows ? types_.vector(scalar, a.rows) : kError;
    if (right_matrix && types_.isVector(left)) return a.rows == b.rows ? types_.vector(scalar, b.columns) : kError;
    return left_matrix ? left : right;
  }
  if (left == right) return left;
  const bool splats = isArithmetic(op) && !left_matrix && !right_matrix;
  if (splats && types_.isScalar(left)) return right;
  return splats && types_.isScalar(right) ? left : kError;
}

Ty Checker::shiftType(BinaryOp op, Span span, ExprId left, ExprId right) {
  Ty left_type = valueType(left);
  const Ty right_type = valueType(right);
  const Ty scalar = types_.scalarOf(left_type);
  const Ty count = types_.scalarOf(right_type);
  const bool shapes =
      types_.isScalarOrVector(left_type) && types_.isScalarOrVector(right_type) && types_.width(left_type) == types_.width(right_type);
  if (!shapes || !isIntegerScalar(scalar) || (count != kAbstractInt && count != kU32)) return operatorError(op, span, left, right);
  if (!materialize(right, types_.withScalar(right_type, kU32), "shift count")) return kError;
  if (infoOf(right).stage != Stage::Const) {
    if (!materializeDefault(left)) return kError;
    left_type = valueType(left);
  }
  // A constant count must be below the width even when the shifted value is not constant.
  const auto& counts = infoOf(right).value;
  if (counts && !infoOf(left).value && quiet_ == 0) {
    for (uint32_t i = 0; i < types_.width(right_type); ++i) {
      const ConstValue lane = types_.isScalar(right_type) ? *counts : eval_.element(*counts, i);
      if (lane.integer >= 32) return fail(kConstant, ast_[right].span, fmt::format("shift count {} is not below 32", lane.integer));
    }
  }
  return left_type;
}

/// An integer division by a constant zero is an error even when the dividend is not constant.
void Checker::checkDivisor(ExprId left, ExprId right) {
  const auto& divisor = infoOf(right).value;
  const Ty type = valueType(right);
  if (!divisor || infoOf(left).value || quiet_ > 0 || !isIntegerScalar(types_.scalarOf(type))) return;
  for (uint32_t i = 0; i < types_.width(type); ++i) {
    const ConstValue lane = types_.isScalar(type) ? *divisor : eval_.element(*divisor, i);
    if (lane.integer == 0) {
      fail(kConstant, ast_[right].span, "division by zero");
      return;
    }
  }
}

}  // namespace lockstep::wgsl
