// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::rope_op {
namespace {

struct Spec {
  explicit Spec(const Attributes& attributes)
      : base(attributes.get<double>("base")),
        offset(attributes.get<int64_t>("offset")),
        dims(attributes.get<int64_t>("dims")),
        layout(attributes.get<std::string>("layout")),
        inverse(attributes.get<bool>("inverse")) {}
  [[nodiscard]] bool half() const { return layout == "half"; }
  /// The pair that an element belongs to, and whether it is the second one of it.
  [[nodiscard]] int64_t pair(int64_t column) const { return half() ? column % (dims / 2) : column / 2; }
  [[nodiscard]] bool second(int64_t column) const { return half() ? column >= dims / 2 : column % 2 == 1; }
  [[nodiscard]] int64_t partner(int64_t column) const { return half() ? (column + dims / 2) % dims : column ^ 1; }
  [[nodiscard]] double frequency(int64_t column) const {
    return (inverse ? -1 : 1) * std::pow(base, -2.0 * static_cast<double>(pair(column)) / static_cast<double>(dims));
  }
  [[nodiscard]] double angle(int64_t position, int64_t column) const { return static_cast<double>(position + offset) * frequency(column); }

  double base;
  int64_t offset, dims;
  std::string layout;
  bool inverse;
};

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype != DType::F32 || x.shape.rank() < 2)
    return violated("rope", "C1", fmt::format("x is {}, wanted f32 [..., T, D]", toString(x)));
  Spec spec(c.attributes);
  if (spec.dims < 2 || spec.dims % 2 != 0 || spec.dims > x.shape.extent(x.shape.rank() - 1))
    return violated("rope", "C2", fmt::format("dims is {} and x is {}", spec.dims, toString(x)));
  if (spec.layout != "half" && spec.layout != "interleaved")
    return violated("rope", "C3", fmt::format("layout is '{}', wanted half or interleaved", spec.layout));
  if (!(spec.base > 0 && std::isfinite(spec.base)))
    return violated("rope", "C4", fmt::format("base is {}, wanted a positive number", spec.base));
  if (spec.offset <= INT32_MIN || spec.offset >= INT32_MAX)
    return violated("rope", "C5", fmt::format("offset is {}, wanted a number of 32 bits", spec.offset));
  const Dim& rows = x.shape[x.shape.rank() - 2];
  const TensorType for_all{DType::I32, Shape{rows}}, own{DType::I32, Shape{x.shape[0], rows}};
  const bool fits = c.operands.size() < 2 || c.operands[1] == for_all || (x.shape.rank() > 2 && c.operands[1] == own);
  if (c.operands.size() > 2 || !fits) {
    return violated("rope", "C6",
                    fmt::format("there are {} operands of positions, the last {}, wanted one {}{}", c.operands.size() - 1,
                                toString(c.operands.back()), toString(for_all), x.shape.rank() > 2 ? " or " + toString(own) : ""));
  }
  return std::vector{x};
}

// A rotation: its transpose turns back.
std::vector<ValueId> gradient(const GradientContext& g) {
  Attributes attributes = g.node.attributes;
  attributes.set("inverse", !attributes.get<bool>("inverse"));
  std::vector<ValueId> operands(g.operands.begin(), g.operands.end()), gradients(g.operands.size());
  operands[0] = g.cotangents[0];
  gradients[0] = g.builder.make("rope", std::move(operands), std::move(attributes));
  return gradients;
}

/// [T, dims] each, or [B, 1, ..., T, dims] with positions per entry of the first axis; sines are negative for the first element of a pair.
struct Tables {
  ValueId cosines, sines;
};

/// For rows at 0, 1, …: constants. Angles of f64 lose nothing far from the start.
Tables constantTables(Builder& b, const Spec& spec, int64_t rows) {
  Constant cosines{f32({rows, spec.dims}), {}}, sines = cosines;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < spec.dims; ++column) {
      double angle = spec.angle(row, column);
      cosines.data.push_back(std::cos(angle));
      sines.data.push_back(spec.second(column) ? std::sin(angle) : -std::sin(angle));
    }
  }
  ValueId cosine_table = makeDense(b, std::move(cosines));
  return {cosine_table, makeDense(b, std::move(sines))};
}

/// For rows at `positions` of an x of this rank, with angles of f32.
Tables computedTables(Builder& b, const Spec& spec, ValueId positions, size_t rank) {
  Constant frequencies{f32({spec.dims}), {}}, signs = frequencies;
  for (int64_t column = 0; column < spec.dims; ++column) {
    frequencies.data.push_back(spec.frequency(column));
    signs.data.push_back(spec.second(column) ? 1 : -1);
  }
  std::vector<int64_t> extents = b.shapeOf(positions).extents();
  if (extents.size() > 1) extents.insert(extents.begin() + 1, rank - 3, 1);
  extents.push_back(1);
  const Shape single(extents);
  extents.back() = spec.dims;
  const Shape shape(extents);
  if (spec.offset != 0) positions = b.add(positions, static_cast<double>(spec.offset));
  ValueId numbers = b.reshape(b.make("cast", {positions}, {{"dtype", DType::F32}}), single);
  ValueId repeated = b.broadcastTo(numbers, shape);
  ValueId angles = b.mul(repeated, b.broadcastTo(makeDense(b, std::move(frequencies)), shape));
  ValueId sines = b.make("sin", {angles});
  sines = b.mul(sines, b.broadcastTo(makeDense(b, std::move(signs)), shape));
  return {b.make("cos", {angles}), sines};
}

/// x times the cosines plus the partner of each element times the signed sines.
ValueId rotate(Builder& b, const Spec& spec, const Tables& tables, ValueId x) {
  Shape shape = b.shapeOf(x);
  auto last = static_cast<int64_t>(shape.rank()) - 1;
  ValueId partner;
  if (spec.half()) {
    partner = b.make("roll", {x}, {{"axis", last}, {"shift", spec.dims / 2}});
  } else {
    std::vector<int64_t> pairs = shape.extents();
    pairs.back() /= 2;
    pairs.push_back(2);
    partner = b.reshape(b.make("flip", {b.reshape(x, Shape(pairs))}, {{"axes", std::vector<int64_t>{last + 1}}}), shape);
  }
  ValueId straight = b.mul(x, tables.cosines);
  ValueId crossed = b.mul(partner, tables.sines);
  return b.add(straight, crossed);
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Spec spec(node.attributes);
  Shape shape = b.shapeOf(operands[0]);
  auto last = static_cast<int64_t>(shape.rank()) - 1;
  int64_t columns = shape.extent(shape.rank() - 1);
  Tables tables =
      operands.size() > 1 ? computedTables(b, spec, operands[1], shape.rank()) : constantTables(b, spec, shape.extent(shape.rank() - 2));
  if (spec.dims == columns) return {rotate(b, spec, tables, operands[0])};
  auto part = [&](int64_t start, int64_t length) {
    return b.make("narrow", {operands[0]}, {{"axis", last}, {"start", start}, {"length", length}});
  };
  ValueId rotated = rotate(b, spec, tables, part(0, spec.dims));
  return {b.make("concat", {rotated, part(spec.dims, columns - spec.dims)}, {{"axis", last}})};
}

/// Rows have the positions of their axis, or those that are given.
std::optional<std::vector<Opened>> openRope(const OpenContext& c) {
  OpenAxes axes = c.operands[0].axes;
  const size_t rows = axes.size() - 2;
  if (axes.back() != 0) return std::nullopt;
  std::vector<ValueId> operands{c.operands[0].value};
  if (c.operands.size() > 1) {
    const OpenAxes& places = c.operands[1].axes;
    if (places.back() != axes[rows] || (places.size() > 1 && places[0] != axes[0])) return std::nullopt;
    operands.push_back(c.operands[1].value);
  } else if (axes[rows] != 0) {
    const int64_t extent = c.shapeOf(0).extent(rows);
    if (!countsFirst(axes[rows], extent, c.capacity)) return std::nullopt;
    axes[rows] = fromFirst(axes[rows], extent, c.capacity);
  }
  return c.made(operands, axes);
}

std::vector<Tensor> evaluateRope(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  Spec spec(c.node.attributes);
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    int64_t& column = index.back();
    int64_t row = index[index.size() - 2];
    if (c.operands.size() > 1) {
      const Tensor& positions = *c.operands[1];
      const int64_t first = positions.type.shape.rank() > 1 ? index[0] * positions.type.shape.extent(1) : 0;
      row = static_cast<int64_t>(positions.data[static_cast<size_t>(first + row)]);
    }
    double here = x(index), angle = spec.angle(row, column);
    if (column >= spec.dims) return here;
    bool second = spec.second(column);
    column = spec.partner(column);
    double other = x(index);
    return second ? here * std::cos(angle) + other * std::sin(angle) : here * std::cos(angle) - other * std::sin(angle);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, int64_t dims, int64_t offset, std::string layout, bool inverse) {
    return OpCase{name,
                  {{f32(std::move(x)), -2, 2}},
                  {{"base", 10000.0}, {"offset", offset}, {"dims", dims}, {"layout", std::move(layout)}, {"inverse", inverse}},
                  1e-6,
                  "tables and products rounded once each"};
  };
  auto at = [&](std::string_view name, Shape x, OperandCase positions, int64_t dims, int64_t offset, std::string layout, bool inverse) {
    OpCase made = make(name, std::move(x), dims, offset, std::move(layout), inverse);
    made.operands.push_back(std::move(positions));
    made.tolerance = 4e-6;
    made.reason = "an angle below 60 of f32, its sine and cosine";
    return made;
  };
  return {make("half", {2, 3, 7, 8}, 8, 0, "half", false),
          make("interleaved", {2, 7, 6}, 6, 0, "interleaved", false),
          make("offset", {3, 5, 8}, 8, 100, "half", false),
          make("partial", {2, 5, 10}, 4, 3, "half", false),
          make("back", {5, 6}, 4, 2, "interleaved", true),
          at("positions", {2, 3, 5, 8}, {i32({5}), 0, 50}, 8, 0, "half", false),
          at("own_positions", {3, 2, 5, 8}, {i32({3, 5}), 0, 50}, 6, 0, "half", false),
          at("own_of_three", {3, 5, 6}, {i32({3, 5}), 0, 50}, 6, 1, "interleaved", false),
          at("one_position", {2, 1, 6}, {i32({1}), -9, 9}, 4, 7, "interleaved", true)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "rope",
    .summary =
        "Pairs of columns of x [..., T, D] turned by (position + offset) base^(-2 pair / dims), row t at t, positions[t] or "
        "positions[b, t] (RoFormer, 2021).",
    .constraints =
        ConstantList<Constraint>{
            {"C1", "x is f32 with a rank of at least 2"},
            {"C2", "dims is even, at least 2 and at most the last extent of x"},
            {"C3", "layout is half or interleaved"},
            {"C4", "base is positive"},
            {"C5", "offset fits in 32 bits"},
            {"C6", "positions are at most one operand, i32 [T], or i32 [B, T] where x has a first axis B before these two"}},
    .operands = ConstantList<std::string_view>{"x", "positions..."},
    .attributes = ConstantList<AttributeDef>{{"base", AttributeKind::Float, "of the wavelengths"},
                                             {"offset", AttributeKind::Integer, "added to each position"},
                                             {"dims", AttributeKind::Integer, "columns that turn; the others stay"},
                                             {"layout", AttributeKind::String, "half: pairs (i, i + dims/2), interleaved: (2 i, 2 i + 1)"},
                                             {"inverse", AttributeKind::Boolean, "turn back"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateRope,
    .cases = cases,
    .open = openRope,
};

}  // namespace lockstep::graph::rope_op
