// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/support/largest_smallest.h"
#include "ir/ops/support/sort_lines.h"
#include "ir/ops/support/token_draw.h"

namespace lockstep::graph::draw_token_op {
namespace {

// The rules, in their order, leave out: what is below the top_k-th largest (0: nothing); with the elements in falling order, those from
// which on probabilities are at most 1 - top_p together; what is below min_p times the largest. The largest stays, and of equal ones the
// lower place comes first. Where the largest is not finite, only what equals it is drawn. Settings beyond [0, 1] count as its ends; one
// that is NaN leaves nothing out, or draws the first.
constexpr std::string_view kName = "draw_token";
constexpr size_t kFirstSetting = 1;  // among the operands

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype != DType::F32 || x.shape.rank() != 2) return violated(kName, "C1", fmt::format("the logits are {}", toString(x)));
  LS_CHECK(checkDrawSettings(kName, "C2", c.operands, x.shape[0]));
  LS_CHECK(checkSortable(kName, "C3", x.shape, 1));
  return std::vector{i32(Shape{x.shape.extent(0)})};
}

/// What a device is told, of each line beside its elements.
struct Settings {
  Builder& b;
  Shape lines;  ///< [B, N]

  [[nodiscard]] ValueId column(ValueId x) const { return b.reshape(x, Shape{lines.extent(0), 1}); }
  [[nodiscard]] ValueId wide(ValueId x) const { return b.broadcastTo(x, lines); }
  /// Of a number in [0, 1].
  [[nodiscard]] ValueId within(ValueId x, double otherwise) const {
    const ValueId keys = b.make("ordering", {x});
    const ValueId is_number = b.make("less", {keys, b.constant(INT32_MAX, b.typeOf(keys))});
    const ValueId clamped = b.make("clamp", {x}, {{"lo", 0.0}, {"hi", 1.0}});
    return column(b.make("where", {is_number, clamped, b.constant(otherwise, b.typeOf(x))}));
  }
};

ValueId sumsAlong(Builder& b, ValueId x, bool reverse) { return b.make("cumsum", {x}, {{"axis", int64_t{1}}, {"reverse", reverse}}); }

ValueId at(Builder& b, ValueId x, int64_t place) {
  return b.make("narrow", {x}, {{"axis", int64_t{1}}, {"start", place}, {"length", int64_t{1}}});
}

/// By all elements in their order, of which each rule leaves a first part.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  const Shape lines = b.shapeOf(operands[0]);
  const int64_t length = lines.extent(1);
  const Settings settings{b, lines};
  const std::vector<ValueId> sorted = b.makeAll("sort", {operands[0]}, {{"axis", int64_t{1}}, {"descending", true}});
  const ValueId keys = b.make("ordering", {sorted[0]}), largest = settings.wide(at(b, sorted[0], 0));
  const ValueId rank = placesAlong(b, lines, 1), is_first = b.make("equal", {rank, b.constant(0, i32(lines))});
  const ValueId zero = b.constant(0, lines), one = b.constant(1, lines);

  // Relative to the largest, so no rule has to divide, and none takes infinities.
  const ValueId is_largest = b.make("equal", {keys, settings.wide(at(b, keys, 0))});
  const ValueId powers = b.make("exp", {b.sub(sorted[0], largest)});
  const ValueId others = b.make("where", {b.make("is_finite", {largest}), powers, zero});
  const ValueId ratios = b.make("where", {is_largest, one, others});

  const ValueId top_k = settings.column(operands[kFirstSetting]);
  const TensorType each = b.typeOf(top_k);
  const ValueId most = b.constant(static_cast<double>(length), each);
  const ValueId asked = b.make("where", {b.make("greater", {top_k, b.constant(0, each)}), top_k, most});
  const ValueId last_rank = b.sub(b.make("min", {asked, most}), b.constant(1, each));
  const ValueId least = b.make("take_along_axis", {keys, last_rank}, {{"axis", int64_t{1}}});
  ValueId stays = b.make("greater_equal", {keys, settings.wide(least)});
  ValueId weights = b.make("where", {stays, ratios, zero});

  const ValueId top_p = settings.within(operands[kFirstSetting + 1], 1), ones = b.constant(1, b.shapeOf(top_p));
  const ValueId from_here = sumsAlong(b, weights, true);
  const ValueId outside = b.mul(b.sub(ones, top_p), at(b, from_here, 0));
  const ValueId all_stay = b.make("greater_equal", {top_p, ones});
  const ValueId in_nucleus = b.make("greater", {from_here, settings.wide(outside)});
  const ValueId min_p = settings.within(operands[kFirstSetting + 2], 0);
  stays = b.make("logical_and", {stays, b.make("logical_or", {in_nucleus, settings.wide(all_stay)})});
  stays = b.make("logical_and", {stays, b.make("greater_equal", {ratios, settings.wide(min_p)})});
  stays = b.make("logical_or", {stays, is_first});
  weights = b.make("where", {stays, weights, zero});

  const ValueId up_to_here = sumsAlong(b, weights, false);
  const ValueId bound = b.mul(settings.within(operands[kFirstSetting + 3], 0), at(b, up_to_here, length - 1));
  const auto count = [&](ValueId of) { return b.sum(b.make("cast", {of}, {{"dtype", DType::I32}}), 1, true); };
  const ValueId before = count(b.make("less_equal", {up_to_here, settings.wide(bound)}));
  // Rounding may put the bound at the sum itself.
  const ValueId last = b.sub(count(stays), b.constant(1, each));
  const ValueId drawn = b.make("take_along_axis", {sorted[1], b.make("min", {before, last})}, {{"axis", int64_t{1}}});
  return {b.reshape(drawn, Shape{lines.extent(0)})};
}

std::vector<ValueId> build(Builder& b, const Node&, std::span<const ValueId> operands, const std::vector<bool>&) {
  const int64_t length = b.shapeOf(operands[0]).extent(1);
  std::vector<ValueId> ranks = b.makeAll("rank_chunks", {operands[0]}, {{"chunk", rankedChunk(length)}});
  ranks.insert(ranks.end(), operands.begin() + kFirstSetting, operands.end());
  return b.makeAll("draw_from_chunks", ranks, {{"length", length}});
}

int64_t sortedElements(const Graph& graph, const Node& node) { return graph.shapeOf(node.operands[0]).elementCount(); }
constexpr TemplateChoice kChoice{.name = "draw_token", .build = build, .saved_elements = sortedElements, .gain = TemplateGain::Time};

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  const Tensor& x = *c.operands[0];
  const auto length = static_cast<size_t>(x.type.shape.extent(1));
  Tensor made{c.results[0], {}};
  for (size_t line = 0; line < x.data.size() / length; ++line) {
    const auto logit = [&](size_t i) { return x.data[line * length + i]; };
    const auto same = [&](size_t i, size_t j) { return logit(i) == logit(j) || (std::isnan(logit(i)) && std::isnan(logit(j))); };
    std::vector<size_t> order(length);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t i, size_t j) { return std::isnan(logit(i)) ? !std::isnan(logit(j)) : logit(i) > logit(j); });
    Ranked ranked;
    for (size_t i = 0; i < length; ++i) {
      const double most = logit(order[0]);
      ranked.ratios.push_back(same(order[i], order[0]) ? 1 : std::isfinite(most) ? std::exp(logit(order[i]) - most) : 0);
      ranked.tied.push_back(i > 0 && same(order[i], order[i - 1]));
    }
    ranked.weights = ranked.ratios;
    made.data.push_back(static_cast<double>(order[drawRanked(ranked, drawSettingsOf(c, kFirstSetting, line))]));
  }
  return {std::move(made)};
}

std::vector<std::optional<IntegerRange>> rangeOfDrawn(const RangeContext& c) {
  return {IntegerRange{0, c.graph.shapeOf(c.node.operands[0]).extent(1) - 1}};
}

std::vector<OpCase> cases() {
  const auto make = [](std::string_view name, int64_t lines, int64_t length, double top_k, double least_p, double most_min) {
    const Shape each{lines};
    return OpCase{
        name,
        {{f32({lines, length}), -4, 4}, {i32(each), 0, top_k}, {f32(each), least_p, 1}, {f32(each), 0, most_min}, {f32(each), 0, 1}},
        {},
        0,
        "a position"};
  };
  return {make("all", 5, 37, 0, 1, 0),
          make("largest", 7, 40, 9, 1, 0),
          make("nucleus", 7, 40, 0, 0, 0),
          make("least", 4, 11, 0, 1, 1),
          make("every_rule", 9, 67, 67, 0.5, 0.01),
          make("long", 3, 2500, 900, 0.6, 0.001),
          make("longer", 2, 5003, 0, 0, 0),
          make("one", 3, 1, 2, 0, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "The place of one element of each line, drawn with the probabilities of its softmax after the rules top_k, top_p and min_p have "
        "left "
        "some out: the first, in falling order, whose probability and those before it are more than uniform times their sum.",
    .constraints = ConstantList<Constraint>{{"C1", "the logits are f32 [B, N]"}, {"C2", kDrawSettings}, {"C3", kSortable}},
    .operands = ConstantList<std::string_view>{"logits", "top_k", "top_p", "min_p", "uniform"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is an index"},
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kChoice},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
    .range = rangeOfDrawn,
};

}  // namespace lockstep::graph::draw_token_op
