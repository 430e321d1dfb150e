// SPDX-License-Identifier: Apache-2.0
// Geometric and matrix builtins as compositions.
#include "frontend/wgsl/lower/lower.h"

namespace lockstep::wgsl {

kernel::ValueId Lowerer::vectorComposition(Builtin builtin, const std::vector<Value>& arguments) {
  const Value x = arguments[0];
  const uint32_t width = kernelType(x).width();
  if (builtin == Builtin::Length) return length(x);
  if (builtin == Builtin::Distance) return length(make(Op::Sub, {x, arguments[1]}));
  if (builtin == Builtin::Normalize) return make(Op::Div, {x, splat(length(x), width)});
  if (builtin == Builtin::Cross) return cross(x, arguments[1]);
  if (builtin == Builtin::Transpose) return transpose(x);
  if (builtin == Builtin::Determinant) return determinant(x);
  if (builtin == Builtin::Refract) return refract(x, arguments[1], arguments[2]);
  if (builtin == Builtin::FaceForward) {
    const Value along = make(Op::Dot, {arguments[1], arguments[2]});
    return make(Op::Select, {make(Op::Neg, {x}), x, make(Op::Lt, {along, number(along, 0)})});
  }
  // Reflect.
  const Value normal = arguments[1];
  const Value along = make(Op::Dot, {normal, x});
  const Value twice = splat(make(Op::Mul, {number(along, 2), along}), width);
  return make(Op::Sub, {x, make(Op::Mul, {twice, normal})});
}

kernel::ValueId Lowerer::length(Value vector) {
  if (kernelType(vector).width() == 1) return make(Op::Abs, {vector});
  return make(Op::Sqrt, {make(Op::Dot, {vector, vector})});
}

kernel::ValueId Lowerer::cross(Value a, Value b) {
  const auto at = [&](Value vector, uint32_t i) { return extract(vector, i % 3); };
  std::vector<Value> components;
  for (uint32_t i = 0; i < 3; ++i) {
    const Value plus = make(Op::Mul, {at(a, i + 1), at(b, i + 2)});
    components.push_back(make(Op::Sub, {plus, make(Op::Mul, {at(a, i + 2), at(b, i + 1)})}));
  }
  return construct(builder_.typeIdOf(a), std::move(components));
}

/// k = 1 - eta^2 (1 - dot(n, i)^2); zero where k < 0, else eta i - (eta dot(n, i) + sqrt(k)) n.
kernel::ValueId Lowerer::refract(Value incident, Value normal, Value eta) {
  const uint32_t width = kernelType(incident).width();
  const Value cosine = make(Op::Dot, {normal, incident});
  const Value sine_squared = make(Op::Sub, {number(cosine, 1), make(Op::Mul, {cosine, cosine})});
  const Value k = make(Op::Sub, {number(eta, 1), make(Op::Mul, {make(Op::Mul, {eta, eta}), sine_squared})});
  const Value total_reflection = make(Op::Lt, {k, number(k, 0)});
  const Value root = make(Op::Sqrt, {make(Op::Max, {k, number(k, 0)})});
  const Value factor = make(Op::Add, {make(Op::Mul, {eta, cosine}), root});
  const Value bent = make(Op::Sub, {make(Op::Mul, {splat(eta, width), incident}), make(Op::Mul, {splat(factor, width), normal})});
  return make(Op::Select, {bent, number(bent, 0), total_reflection});
}

kernel::ValueId Lowerer::transpose(Value matrix) {
  const kernel::Type given = kernelType(matrix);
  kernel::TypeTable& types = builder_.types();
  const kernel::TypeId column = types.vector(given.scalar, given.columns);
  std::vector<Value> old_columns, columns;
  for (uint32_t i = 0; i < given.columns; ++i) old_columns.push_back(extract(matrix, i));
  for (uint32_t row = 0; row < given.rows; ++row) {
    std::vector<Value> entries;
    for (const Value old : old_columns) entries.push_back(extract(old, row));
    columns.push_back(construct(column, std::move(entries)));
  }
  return construct(types.matrix(given.scalar, given.rows, given.columns), std::move(columns));
}

/// Cofactor expansion along the columns, each minor computed once.
kernel::ValueId Lowerer::determinant(Value matrix) {
  const uint32_t n = kernelType(matrix).columns;
  std::vector<std::vector<Value>> m(n);
  for (uint32_t c = 0; c < n; ++c) {
    const Value column = extract(matrix, c);
    for (uint32_t r = 0; r < n; ++r) m[c].push_back(extract(column, r));
  }
  const auto two = [&](uint32_t c0, uint32_t c1, uint32_t r0, uint32_t r1) {
    return make(Op::Sub, {make(Op::Mul, {m[c0][r0], m[c1][r1]}), make(Op::Mul, {m[c1][r0], m[c0][r1]})});
  };
  if (n == 2) return two(0, 1, 0, 1);
  if (n == 3) {
    const Value a = make(Op::Mul, {m[0][0], two(1, 2, 1, 2)}), b = make(Op::Mul, {m[1][0], two(0, 2, 1, 2)});
    const Value c = make(Op::Mul, {m[2][0], two(0, 1, 1, 2)});
    return make(Op::Add, {make(Op::Sub, {a, b}), c});
  }
  // Laplace expansion in 2x2 minors: rows 0, 1 against rows 2, 3.
  struct Term {
    uint32_t c0, c1, d0, d1;
    bool minus;
  };
  constexpr Term kTerms[] = {{0, 1, 2, 3, false}, {0, 2, 1, 3, true}, {0, 3, 1, 2, false},
                             {1, 2, 0, 3, false}, {1, 3, 0, 2, true}, {2, 3, 0, 1, false}};
  Value sum;
  for (const Term& term : kTerms) {
    const Value product = make(Op::Mul, {two(term.c0, term.c1, 0, 1), two(term.d0, term.d1, 2, 3)});
    sum = !sum.valid() ? product : make(term.minus ? Op::Sub : Op::Add, {sum, product});
  }
  return sum;
}

}  // namespace lockstep::wgsl
