// SPDX-License-Identifier: Apache-2.0
// Functions on subgroup matrices.
#include "frontend/wgsl/lower/lower.h"

namespace lockstep::wgsl {

/// An instruction even where the component is constant: a matrix has no constants but zero.
kernel::ValueId Lowerer::filled(kernel::TypeId matrix, Value component) { return builder_.construct(matrix, {component}); }

kernel::ValueId Lowerer::lowerMatrixBuiltin(ExprId id) {
  const ExprInfo& call = infoOf(id);
  const Expr& expr = ast_[id];
  const Signature signature = info(call.builtin).signature;
  const bool loads = signature == Signature::SubgroupMatrixLoad, stores = signature == Signature::SubgroupMatrixStore;
  std::vector<Value> arguments;
  for (const ExprId argument : expr.arguments) arguments.push_back(lowerValue(argument));
  at(expr.span);
  const bool column_major = (loads || stores) && ast_[expr.templates.back()].name == kColumnMajor;
  if (loads || stores) {
    for (const size_t number : {size_t{1}, arguments.size() - 1}) arguments[number] = unsignedNumber(arguments[number]);
  }
  if (stores) {
    builder_.storeMatrix(arguments[0], arguments[1], arguments[2], arguments[3], column_major);
    return {};
  }
  const kernel::TypeId wanted = type(call.type);
  if (loads) return builder_.loadMatrix(wanted, arguments[0], arguments[1], arguments[2], column_major);
  if (signature == Signature::SubgroupMatrixConvert) return builder_.convertMatrix(wanted, arguments[0]);
  if (signature == Signature::SubgroupMatrixMultiply) arguments.push_back(builder_.zero(wanted));
  const bool products = signature == Signature::SubgroupMatrixMultiply || signature == Signature::SubgroupMatrixMultiplyAccumulate;
  if (products) return make(Op::SubgroupMatrixMultiplyAccumulate, std::move(arguments));
  const bool plain = signature == Signature::SubgroupMatrixPlace || signature == Signature::SubgroupMatrixRows;
  if (plain) return make(info(call.builtin).op, std::move(arguments));
  if (call.builtin == Builtin::SubgroupMatrixScalarMultiply) return make(Op::SubgroupMatrixScale, std::move(arguments));
  if (call.builtin == Builtin::SubgroupMatrixAdd) return make(Op::SubgroupMatrixAdd, std::move(arguments));
  // m + x and m - x.
  Value component = arguments[1];
  if (call.builtin == Builtin::SubgroupMatrixScalarSubtract) {
    const kernel::Scalar scalar = kernelType(component).scalar;
    const uint32_t sign = scalar == kernel::Scalar::F16 ? 0x8000u : 0x80000000u;
    component = isConstant(component) ? builder_.scalar(scalar, builder_.module()[component].bits ^ sign) : make(Op::Neg, {component});
  }
  return make(Op::SubgroupMatrixAdd, {arguments[0], filled(wanted, component)});
}

}  // namespace lockstep::wgsl
