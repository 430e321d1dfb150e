// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/ops/support/token_draw.h"

namespace lockstep::graph::rank_chunks_op {
namespace {

constexpr std::string_view kName = "rank_chunks";

int64_t chunkOf(const Attributes& attributes) { return attributes.get<int64_t>("chunk"); }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype != DType::F32 || x.shape.rank() != 2) return violated(kName, "C1", fmt::format("the operand is {}", toString(x)));
  const int64_t chunk = chunkOf(c.attributes);
  if (chunk < 1 || chunk > INT32_MAX || !std::has_single_bit(static_cast<uint64_t>(chunk)))
    return violated(kName, "C2", fmt::format("the chunk is {}", chunk));
  const std::vector<int64_t> made{x.shape.extent(0), (x.shape.extent(1) + chunk - 1) / chunk, chunk};
  LS_CHECK(checkExtents(kName, "C3", made));
  return std::vector{i32(Shape(made)), i32(Shape(made)), f32(Shape(made))};
}

TemplateTensor tensorOf(std::string_view name, const Shape& shape) {
  return {.name = name, .space = shape, .map = identityMap(shape.rank())};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const Shape &x = graph.shapeOf(node.operands[0]), &made = graph.shapeOf(node.results[0]);
  const int64_t chunk = made.extent(2), rows = made.extent(0) * made.extent(1);
  const auto doublings = static_cast<int64_t>(std::countr_zero(static_cast<uint64_t>(chunk)));
  constexpr int64_t kHeldPerElement = 3;  // a key, a place and a sum
  return {.operands = {tensorOf("x", x)},
          .results = {tensorOf("keys", made), tensorOf("places", made), tensorOf("sums", made)},
          .numbers = {{"batches", static_cast<double>(made.extent(0))},
                      {"length", static_cast<double>(x.extent(1))},
                      {"chunks", static_cast<double>(made.extent(1))},
                      {"doublings", static_cast<double>(doublings)},
                      {"chunk", static_cast<double>(chunk)}},
          .form = TemplateForm::Whole,
          .rows = rows,
          .length = chunk,
          .operations = rows * chunk * (doublings + 1) * (doublings + 1),
          .held = kHeldPerElement * chunk};
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  const Tensor& x = *c.operands[0];
  const auto chunk = static_cast<size_t>(chunkOf(c.node.attributes)), length = static_cast<size_t>(x.type.shape.extent(1));
  std::vector<Tensor> made{{c.results[0], {}}, {c.results[1], {}}, {c.results[2], {}}};
  for (size_t line = 0; line < x.data.size() / length; ++line) {
    for (size_t first = 0; first < length; first += chunk) {
      std::vector<std::pair<double, double>> ranked;  // a smaller pair comes first
      for (size_t i = 0; i < chunk; ++i) {
        const double key = first + i < length ? orderingKey(x.data[line * length + first + i]) : INT32_MIN;
        ranked.emplace_back(-key, static_cast<double>(i));
      }
      std::ranges::sort(ranked);
      double sum = 0;
      for (size_t i = 0; i < chunk; ++i) {
        if (first + i < length) sum += drawWeight(-ranked[i].first, -ranked[0].first);
        made[0].data.push_back(-ranked[i].first);
        made[1].data.push_back(ranked[i].second);
        made[2].data.push_back(sum);
      }
    }
  }
  return made;
}

std::vector<OpCase> cases() {
  const auto make = [](std::string_view name, const Shape& x, int64_t chunk) {
    return OpCase{name, {{f32(x), -9, 9}}, {{"chunk", chunk}}, 1e-6, "a power and a sum of numbers that are not negative"};
  };
  return {make("one", {3, 1}, 1), make("odd", {2, 37}, 8), make("short", {2, 5}, 64), make("long", {1, 2500}, 1024)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "Each chunk of a line sorted, largest first and of equal ones the lower place, by keys that order as the numbers do with NaN above "
        "all; the places in the chunk; and sums of the weights e^(x - largest of the chunk) up to each.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32 [B, N]"},
                                            {"C2", "the chunk is a power of two"},
                                            {"C3", "the results have at most 2^31 - 1 elements"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes =
        ConstantList<AttributeDef>{{"chunk", AttributeKind::Integer, "elements that are sorted together; the last ones may be fewer"}},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = cases,
};

}  // namespace lockstep::graph::rank_chunks_op
