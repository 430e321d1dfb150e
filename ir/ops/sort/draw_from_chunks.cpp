// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "ir/ops/support/token_draw.h"

namespace lockstep::graph::draw_from_chunks_op {
namespace {

constexpr std::string_view kName = "draw_from_chunks";
constexpr size_t kFirstSetting = 3;  // among the operands

int64_t lengthOf(const Attributes& attributes) { return attributes.get<int64_t>("length"); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const Shape& ranks = c.operands[0].shape;
  if (ranks.rank() != 3 || c.operands[0] != i32(ranks) || c.operands[1] != i32(ranks) || c.operands[2] != f32(ranks))
    return violated(kName, "C1",
                    fmt::format("they are {}, {} and {}", toString(c.operands[0]), toString(c.operands[1]), toString(c.operands[2])));
  LS_CHECK(checkDrawSettings(kName, "C2", c.operands, ranks[0]));
  const int64_t length = lengthOf(c.attributes), chunk = ranks.extent(2);
  if (length < 1 || !std::has_single_bit(static_cast<uint64_t>(chunk)) || (length + chunk - 1) / chunk != ranks.extent(1))
    return violated(kName, "C3", fmt::format("the length is {} for {} chunks of {}", length, ranks.extent(1), chunk));
  return std::vector{i32(Shape{ranks.extent(0)})};
}

TemplateTensor tensorOf(std::string_view name, const Shape& shape) {
  return {.name = name, .space = shape, .map = identityMap(shape.rank())};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const Shape &ranks = graph.shapeOf(node.operands[0]), &each = graph.shapeOf(node.results[0]);
  const int doublings = std::countr_zero(static_cast<uint64_t>(ranks.extent(2)));
  constexpr int64_t kHeldPerChunk = 7;
  // Three searches of up to 34 steps, in which one invocation sums up what the chunks have, in units of the six loops of a run.
  constexpr int64_t kRepeats = 18;
  return {.operands = {tensorOf("keys", ranks), tensorOf("places", ranks), tensorOf("sums", ranks), tensorOf("top_k", each),
                       tensorOf("top_p", each), tensorOf("min_p", each), tensorOf("uniform", each)},
          .results = {tensorOf("place", each)},
          .numbers = {{"batches", static_cast<double>(ranks.extent(0))},
                      {"length", static_cast<double>(lengthOf(node.attributes))},
                      {"chunks", static_cast<double>(ranks.extent(1))},
                      {"doublings", static_cast<double>(doublings)},
                      {"chunk", static_cast<double>(ranks.extent(2))}},
          .form = TemplateForm::Whole,
          .rows = ranks.extent(0),
          .length = ranks.extent(1),
          .repeats = kRepeats,
          .operations = kRepeats * ranks.extent(0) * ranks.extent(1),
          .held = kHeldPerChunk * ranks.extent(1) + 16};
}

/// Of one line: its elements in the order of the rules, with weights out of the sums of their chunks.
std::vector<Tensor> evaluate(const EvaluateContext& c) {
  const Shape& ranks = c.operands[0]->type.shape;
  const auto chunks = static_cast<size_t>(ranks.extent(1)), chunk = static_cast<size_t>(ranks.extent(2));
  const auto length = static_cast<size_t>(lengthOf(c.node.attributes));
  Tensor made{c.results[0], {}};
  for (size_t line = 0; line < static_cast<size_t>(ranks.extent(0)); ++line) {
    const auto at = [&](size_t operand, size_t place) { return c.operands[operand]->data[line * chunks * chunk + place]; };
    const auto sumTo = [&](size_t place) {
      return std::isnan(at(2, place)) ? 0.0 : std::clamp(at(2, place), 0.0, static_cast<double>(chunk));
    };
    std::vector<std::tuple<double, size_t>> order;  // by falling keys; chunks and the places in each go up
    for (size_t i = 0; i < chunks; ++i) {
      for (size_t rank = 0; rank < std::min(chunk, length - i * chunk); ++rank)
        order.emplace_back(-at(0, i * chunk + rank), i * chunk + rank);
    }
    std::ranges::sort(order);
    const double largest = -std::get<0>(order.front());
    Ranked ranked;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [key, place] = order[i];
      const double before = place % chunk == 0 ? 0 : sumTo(place - 1);
      ranked.ratios.push_back(drawWeight(-key, largest));
      ranked.weights.push_back((sumTo(place) - before) * drawWeight(at(0, place - place % chunk), largest));
      ranked.tied.push_back(i > 0 && std::get<0>(order[i - 1]) == key);
    }
    const size_t drawn = std::get<1>(order[drawRanked(ranked, drawSettingsOf(c, kFirstSetting, line))]);
    made.data.push_back(static_cast<double>(drawn - drawn % chunk) + at(1, drawn));
  }
  return {std::move(made)};
}

std::vector<std::optional<IntegerRange>> rangeOfDrawn(const RangeContext& c) { return {IntegerRange{0, lengthOf(c.node.attributes) - 1}}; }

// Chunks of one element are ranked whatever the case's values are; others are tested by draw_token.
std::vector<OpCase> cases() {
  const auto make = [](std::string_view name, int64_t lines, int64_t length, double top_k, double least_p, double most_min) {
    const Shape ranks{lines, length, 1}, each{lines};
    // Keys of numbers from 1 to 16.
    return OpCase{name,
                  {{i32(ranks), 1065353216, 1098907648},
                   {i32(ranks), 0, 0},
                   {f32(ranks), 1, 1},
                   {i32(each), 0, top_k},
                   {f32(each), least_p, 1},
                   {f32(each), 0, most_min},
                   {f32(each), 0, 1}},
                  {{"length", length}},
                  0,
                  "a position"};
  };
  return {make("all", 5, 13, 0, 1, 0),   make("largest", 7, 40, 9, 1, 0),          make("nucleus", 7, 40, 0, 0, 0),
          make("least", 4, 11, 0, 1, 1), make("every_rule", 9, 67, 67, 0.5, 0.01), make("one", 2, 1, 3, 0, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "draw_token by a template, from the ranks of chunks: a workgroup searches for the keys at which the rules end (Hoare 1961).",
    .constraints = ConstantList<Constraint>{{"C1", "keys and places are i32 [B, C, chunk], sums are f32 of the same shape"},
                                            {"C2", kDrawSettings},
                                            {"C3", "the length is that of the line whose chunks these are, each of a power of two"}},
    .operands = ConstantList<std::string_view>{"keys", "places", "sums", "top_k", "top_p", "min_p", "uniform"},
    .attributes = ConstantList<AttributeDef>{{"length", AttributeKind::Integer, "elements of a line"}},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is an index"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
    .range = rangeOfDrawn,
};

}  // namespace lockstep::graph::draw_from_chunks_op
