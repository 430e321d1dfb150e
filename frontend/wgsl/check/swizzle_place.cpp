// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {
namespace {

/// Positions of the components that a swizzle names; it was checked before.
std::vector<uint32_t> lettersOf(std::string_view name) {
  constexpr std::string_view kLetters = "xyzwrgba";
  std::vector<uint32_t> positions;
  for (const char letter : name) positions.push_back(static_cast<uint32_t>(kLetters.find(letter) % 4));
  return positions;
}

}  // namespace

std::optional<SwizzlePlace> findSwizzlePlace(const Ast& ast, const Program& program, ExprId id) {
  // Down to the vector in memory, then back up through what was picked from it.
  std::vector<ExprId> picks;
  ExprId base = id;
  const auto vectorInMemory = [&](ExprId at) {
    const Type& type = program.types[program[at].type];
    const bool view = type.kind == Kind::Reference || type.kind == Kind::Pointer;
    return view && program.types.isVector(type.element);
  };
  while (!vectorInMemory(base)) {
    const Expr& expr = ast[base];
    if (expr.kind != ExprKind::Member && expr.kind != ExprKind::Index) return std::nullopt;
    picks.push_back(base);
    base = expr.left;
  }
  if (picks.empty() || ast[picks.back()].kind != ExprKind::Member) return std::nullopt;
  SwizzlePlace place{.vector = base, .components = lettersOf(ast[picks.back()].name), .index = {}};
  picks.pop_back();
  for (auto pick = picks.rbegin(); pick != picks.rend(); ++pick) {
    const Expr& expr = ast[*pick];
    if (place.index.valid()) return std::nullopt;
    std::vector<uint32_t> positions = lettersOf(expr.kind == ExprKind::Member ? expr.name : "");
    if (expr.kind == ExprKind::Index) {
      const std::optional<ConstValue>& index = program[expr.right].value;
      if (!index) {
        place.index = expr.right;
        continue;
      }
      positions = {static_cast<uint32_t>(index->integer)};
    }
    std::vector<uint32_t> picked;
    for (const uint32_t position : positions) {
      if (position >= place.components.size()) return std::nullopt;
      picked.push_back(place.components[position]);
    }
    place.components = std::move(picked);
  }
  return place;
}

}  // namespace lockstep::wgsl
