// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "frontend/wgsl/lower/lower.h"

namespace lockstep::wgsl {
namespace {

/// Kernel op of each binary operator, in the order of BinaryOp (the logical ones on cheap operands).
constexpr std::array kBinaryOps{kernel::Op::Add, kernel::Op::Sub, kernel::Op::Mul, kernel::Op::Div, kernel::Op::Rem, kernel::Op::And,
                                kernel::Op::Or,  kernel::Op::Xor, kernel::Op::Shl, kernel::Op::Shr, kernel::Op::Eq,  kernel::Op::Ne,
                                kernel::Op::Lt,  kernel::Op::Le,  kernel::Op::Gt,  kernel::Op::Ge,  kernel::Op::And, kernel::Op::Or};

uint32_t componentIndex(char letter) {
  constexpr std::string_view kLetters = "xyzwrgba";
  return static_cast<uint32_t>(kLetters.find(letter) % 4);
}

}  // namespace

kernel::ValueId Lowerer::lowerValue(ExprId id) {
  const ExprInfo& info = infoOf(id);
  const Expr& expr = ast_[id];
  if (info.value) return constant(*info.value);
  if (types_.isReference(info.type)) {
    const Value pointer = lowerReference(id);
    at(expr.span);
    return builder_.load(pointer);
  }
  switch (expr.kind) {
    case ExprKind::Literal:
      internalError("a literal has no value");
    case ExprKind::Identifier:
      return entity_values_[info.entity.index()];
    case ExprKind::Call:
      return lowerCall(id);
    case ExprKind::Unary:
      return lowerUnary(id);
    case ExprKind::Binary:
      return lowerBinary(id);
    case ExprKind::Index: {
      const Value base = lowerValue(expr.left);
      const Value index = lowerValue(expr.right);
      at(expr.span);
      const uint64_t known = isConstant(index) ? builder_.module()[index].bits : UINT64_MAX;
      if (kernelType(base).kind == kernel::TypeKind::SubgroupMatrix) return matrixElement(base, index);
      return known < builder_.types().elementCount(builder_.typeIdOf(base)) ? extract(base, static_cast<uint32_t>(known))
                                                                            : make(Op::Extract, {base, runTimeIndex(index)});
    }
    case ExprKind::Member:
      return lowerMember(id);
  }
  internalError("an unknown kind of expression");
}

/// How many elements an invocation holds, and so what is out of range, is not known here. The only constant matrix is zero.
kernel::ValueId Lowerer::matrixElement(Value matrix, Value index) {
  if (isConstant(matrix)) return builder_.zero(builder_.types().elementOf(builder_.typeIdOf(matrix)));
  const bool negative = isConstant(index) && kernelType(index).scalar == kernel::Scalar::I32 && builder_.module()[index].bits > INT32_MAX;
  return make(Op::Extract, {matrix, negative ? runTimeIndex(index) : index});
}

/// A constant that is no constant expression (a `let`) may be out of range, which the IR wants to see as a run-time value.
kernel::ValueId Lowerer::runTimeIndex(Value index) {
  return isConstant(index) ? builder_.load(builder_.var(builder_.typeIdOf(index), "", index)) : index;
}

/// The pointer to what a reference expression names: one access with all the indices from the root.
kernel::ValueId Lowerer::lowerReference(ExprId id) { return accessPlace(lowerPlace(id)); }

kernel::ValueId Lowerer::accessPlace(MemoryPlace place) {
  if (place.indices.empty()) return place.root;
  at(place.span);
  return builder_.access(place.root, std::move(place.indices), place.in_bounds);
}

Lowerer::MemoryPlace Lowerer::lowerPlace(ExprId id) {
  std::vector<ExprId> steps;
  ExprId root = id;
  while (true) {
    const Expr& expr = ast_[root];
    const bool is_place = types_.isReference(infoOf(root).type);
    if (is_place && expr.kind == ExprKind::Unary && isAddressOf(expr.left)) {
      root = ast_[expr.left].left;  // `*&e`
    } else if (root != id && isAddressOf(root)) {
      root = expr.left;  // `(&e).x`
    } else if (is_place && (expr.kind == ExprKind::Index || expr.kind == ExprKind::Member)) {
      steps.push_back(root);
      root = expr.left;  // may be a pointer value: `p[i]` stands for `(*p)[i]`
    } else {
      break;
    }
  }
  Value pointer;
  const Expr& expr = ast_[root];
  if (!types_.isReference(infoOf(root).type)) {
    pointer = lowerValue(root);
  } else if (expr.kind == ExprKind::Unary) {
    pointer = lowerValue(expr.left);
  } else {
    pointer = entity_values_[infoOf(root).entity.index()];
  }
  std::vector<Value> indices;
  bool in_bounds = true;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Expr& part = ast_[*step];
    const Ty base_type = infoOf(part.left).type;
    const Ty base = types_[base_type].element;
    if (part.kind == ExprKind::Index) {
      Value index = lowerValue(part.right);
      const uint32_t count = types_.elementCount(base);
      const uint32_t known = isConstant(index) ? builder_.module()[index].bits : 0;
      const bool negative = known > INT32_MAX && kernelType(index).scalar == kernel::Scalar::I32;
      const bool outside = negative || (count > 0 && known >= count);
      if (outside) index = runTimeIndex(index);
      indices.push_back(index);
      in_bounds = in_bounds && !outside && isConstant(index) && count > 0;
    } else if (types_.isVector(base)) {
      indices.push_back(builder_.u32(componentIndex(part.name[0])));
    } else {
      const auto& members = types_.structure(base).members;
      const auto member = std::find_if(members.begin(), members.end(), [&](const StructMember& m) { return m.name == part.name; });
      indices.push_back(builder_.u32(static_cast<uint32_t>(member - members.begin())));
    }
  }
  return {.root = pointer, .indices = std::move(indices), .in_bounds = in_bounds, .span = ast_[id].span};
}

bool Lowerer::isAddressOf(ExprId id) const { return ast_[id].kind == ExprKind::Unary && ast_[id].unary == UnaryOp::AddressOf; }

kernel::ValueId Lowerer::lowerUnary(ExprId id) {
  const Expr& expr = ast_[id];
  if (expr.unary == UnaryOp::AddressOf) return lowerReference(expr.left);
  const Value operand = lowerValue(expr.left);
  at(expr.span);
  return make(expr.unary == UnaryOp::Not ? Op::Not : expr.unary == UnaryOp::Complement ? Op::Complement : Op::Neg, {operand});
}

kernel::ValueId Lowerer::lowerBinary(ExprId id) {
  std::vector<ExprId> spine;
  ExprId first = id;
  while (ast_[first].kind == ExprKind::Binary && !infoOf(first).value) {
    spine.push_back(first);
    first = ast_[first].left;
  }
  Value result = lowerValue(first);
  for (auto node = spine.rbegin(); node != spine.rend(); ++node) {
    const Expr& expr = ast_[*node];
    if (expr.binary == BinaryOp::LogicalAnd || expr.binary == BinaryOp::LogicalOr) {
      result = lowerLogical(*node, result);
      continue;
    }
    const Value right = lowerValue(expr.right);
    at(expr.span);
    result = binary(expr.binary, result, right);
  }
  return result;
}

/// Short-circuit evaluation needs control flow, unless evaluating the right side anyway makes no difference.
kernel::ValueId Lowerer::lowerLogical(ExprId id, Value left) {
  const Expr& expr = ast_[id];
  const bool is_and = expr.binary == BinaryOp::LogicalAnd;
  if (isCheap(expr.right)) {
    const Value right = lowerValue(expr.right);
    at(expr.span);
    return make(is_and ? Op::And : Op::Or, {left, right});
  }
  at(expr.span);
  const Value result = builder_.var(builder_.types().boolean(), "", left);
  const Value go_on = is_and ? left : make(Op::Not, {left});
  builder_.ifThen(go_on, [&] {
    const Value right = lowerValue(expr.right);
    at(expr.span);
    builder_.store(result, right);
  });
  return builder_.load(result);
}

bool Lowerer::isCheap(ExprId id) const {
  const ExprInfo& info = infoOf(id);
  const Expr& expr = ast_[id];
  if (info.value) return true;
  if (expr.kind == ExprKind::Identifier) return true;
  // Parts of memory may be out of bounds or slow to read; calls may do anything. Parts of values are harmless.
  const bool memory = types_.isReference(info.type);
  if (memory || expr.kind == ExprKind::Index || expr.kind == ExprKind::Call) return false;
  if (expr.kind == ExprKind::Member) return isCheap(expr.left);
  if (expr.kind == ExprKind::Unary) return isCheap(expr.left);
  ExprId at = id;
  for (; ast_[at].kind == ExprKind::Binary && !infoOf(at).value; at = ast_[at].left) {
    if (!isCheap(ast_[at].right)) return false;
  }
  return isCheap(at);
}

kernel::ValueId Lowerer::splat(Value value, uint32_t width) {
  if (width == 1 || kernelType(value).kind == kernel::TypeKind::Vector) return value;
  const kernel::TypeId type = builder_.types().vector(kernelType(value).scalar, width);
  return isConstant(value) ? construct(type, std::vector<Value>(width, value)) : builder_.construct(type, {value});
}

/// A composite; constant when its parts are.
kernel::ValueId Lowerer::construct(kernel::TypeId type, std::vector<Value> parts) {
  const bool constant = std::all_of(parts.begin(), parts.end(), [&](Value part) { return isConstant(part); });
  if (!constant) return builder_.construct(type, std::move(parts));
  const bool splat = parts.size() == 1 && builder_.types()[type].kind == kernel::TypeKind::Vector;
  if (splat) parts.resize(builder_.types()[type].rows, parts[0]);
  const bool zero = std::all_of(parts.begin(), parts.end(), [&](Value part) { return part == builder_.zero(builder_.typeIdOf(part)); });
  return zero ? builder_.zero(type) : builder_.composite(type, std::move(parts));
}

/// Part `index` of a composite value; constant when that is.
kernel::ValueId Lowerer::extract(Value composite, uint32_t index) {
  if (!isConstant(composite)) return builder_.extract(composite, index);
  const kernel::TypeId element = builder_.types().elementOf(builder_.typeIdOf(composite), index);
  const kernel::Value& value = builder_.module()[composite];
  return value.elements.empty() ? builder_.zero(element) : value.elements[index];
}

kernel::ValueId Lowerer::binary(BinaryOp op, Value left, Value right) {
  const bool matrix = kernelType(left).kind == kernel::TypeKind::Matrix || kernelType(right).kind == kernel::TypeKind::Matrix;
  if (matrix) return matrixBinary(op, left, right);
  const uint32_t width = std::max(kernelType(left).width(), kernelType(right).width());
  left = splat(left, width);
  right = splat(right, width);
  return make(kBinaryOps[static_cast<size_t>(op)], {left, right});
}

/// Sums and scalings go column by column; products are one op.
kernel::ValueId Lowerer::matrixBinary(BinaryOp op, Value left, Value right) {
  const kernel::Type a = kernelType(left), b = kernelType(right);
  const bool scaling = a.kind == kernel::TypeKind::Scalar || b.kind == kernel::TypeKind::Scalar;
  if (op == BinaryOp::Mul && !scaling) return make(Op::MatMul, {left, right});
  const bool left_matrix = a.kind == kernel::TypeKind::Matrix;
  const uint32_t rows = left_matrix ? a.rows : b.rows;
  const Value l = scaling && !left_matrix ? splat(left, rows) : left, r = scaling && left_matrix ? splat(right, rows) : right;
  std::vector<Value> columns;
  for (uint32_t i = 0; i < (left_matrix ? a.columns : b.columns); ++i) {
    const Value x = left_matrix ? extract(l, i) : l;
    const Value y = left_matrix && scaling ? r : extract(r, i);
    columns.push_back(make(kBinaryOps[static_cast<size_t>(op)], {x, y}));
  }
  const kernel::TypeId type = builder_.typeIdOf(left_matrix ? left : right);
  return construct(type, std::move(columns));
}

kernel::ValueId Lowerer::swizzle(Value vector, std::string_view letters) {
  std::vector<uint32_t> components;
  for (const char letter : letters) components.push_back(componentIndex(letter));
  if (components.size() == 1) return extract(vector, components[0]);
  if (!isConstant(vector)) return builder_.swizzle(vector, components);
  std::vector<Value> parts;
  for (const uint32_t component : components) parts.push_back(extract(vector, component));
  const kernel::TypeId type = builder_.types().vector(kernelType(vector).scalar, static_cast<uint32_t>(components.size()));
  return construct(type, std::move(parts));
}

kernel::ValueId Lowerer::lowerMember(ExprId id) {
  const Expr& expr = ast_[id];
  const Ty base_type = infoOf(expr.left).type;
  const bool through_pointer = types_.isPointer(base_type);
  Value base = lowerValue(expr.left);
  at(expr.span);
  if (through_pointer) base = builder_.load(base);
  const Ty base_value = through_pointer ? types_[base_type].element : types_.value(base_type);
  if (types_.isVector(base_value)) return swizzle(base, expr.name);
  const auto& members = types_.structure(base_value).members;
  const auto member = std::find_if(members.begin(), members.end(), [&](const StructMember& m) { return m.name == expr.name; });
  return extract(base, static_cast<uint32_t>(member - members.begin()));
}

kernel::ValueId Lowerer::lowerCall(ExprId id) {
  const ExprInfo& info = infoOf(id);
  const Expr& expr = ast_[id];
  if (info.call == CallKind::Construct) return lowerConstructor(id);
  if (info.call == CallKind::Builtin) return lowerBuiltin(id);
  std::vector<Value> arguments;
  for (const ExprId argument : expr.arguments) arguments.push_back(lowerValue(argument));
  at(expr.span);
  return builder_.call(functions_[info.function], std::move(arguments));
}

kernel::ValueId Lowerer::lowerConstructor(ExprId id) {
  const ExprInfo& info = infoOf(id);
  const Expr& expr = ast_[id];
  const kernel::TypeId wanted = type(info.type);
  std::vector<Value> parts;
  for (const ExprId argument : expr.arguments) parts.push_back(lowerValue(argument));
  at(expr.span);
  if (types_.isSubgroupMatrix(info.type)) return filled(wanted, parts[0]);
  if (types_.isScalar(info.type)) return builder_.typeIdOf(parts[0]) == wanted ? parts[0] : builder_.convert(wanted, parts[0]);
  if (types_.isVector(info.type)) {
    const kernel::Type first = kernelType(parts[0]);
    const bool whole = parts.size() == 1 && first.kind == kernel::TypeKind::Vector;
    if (whole) return builder_.typeIdOf(parts[0]) == wanted ? parts[0] : builder_.convert(wanted, parts[0]);
    std::vector<Value> scalars;
    for (const Value part : parts) {
      const uint32_t width = kernelType(part).width();
      for (uint32_t i = 0; i < width; ++i) scalars.push_back(width == 1 ? part : extract(part, i));
    }
    return construct(wanted, std::move(scalars));
  }
  if (types_.isMatrix(info.type)) {
    const Type matrix = types_[info.type];
    const kernel::TypeId column = builder_.types().vector(scalar(info.type), matrix.rows);
    if (parts.size() == 1) {
      if (builder_.typeIdOf(parts[0]) == wanted) return parts[0];
      std::vector<Value> columns;
      for (uint32_t i = 0; i < matrix.columns; ++i) columns.push_back(builder_.convert(column, extract(parts[0], i)));
      return construct(wanted, std::move(columns));
    }
    if (parts.size() > matrix.columns) {
      std::vector<Value> columns;
      for (size_t i = 0; i < parts.size(); i += matrix.rows) {
        const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(i);
        columns.push_back(construct(column, {begin, begin + matrix.rows}));
      }
      return construct(wanted, std::move(columns));
    }
  }
  return construct(wanted, std::move(parts));
}

}  // namespace lockstep::wgsl
