// SPDX-License-Identifier: Apache-2.0
// What the ops mean where it is easy to get wrong: ties, indices outside, integers, infinities. Expected values are written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"
#include "passes/graph/grad.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

struct Applied {
  Builder builder;
  LeafValues leaves;
  std::vector<ValueId> operands;
  ValueId result;

  Applied(std::string_view op, std::vector<Tensor> tensors, Attributes attributes = {}) {
    for (Tensor& tensor : tensors) {
      std::string name = "operand" + std::to_string(operands.size());
      operands.push_back(addInput(builder, name, tensor.type));
      leaves.emplace(name, std::move(tensor));
    }
    result = builder.make(op, operands, std::move(attributes));
  }
  Numbers value() {
    builder.mutableGraph().outputs.clear();
    builder.output(OutputKind::Result, "y", result);
    return run(builder.graph(), leaves).front().data;
  }
  /// Gradient by an operand of sum(result * weights).
  Numbers gradient(size_t operand, const Numbers& weights) {
    Builder copy(builder.graph());
    copy.mutableGraph().outputs.clear();
    TensorType type = copy.typeOf(result);
    LeafValues values = leaves;
    values.emplace("weights", Tensor{type, weights});
    ValueId loss = copy.mul(result, addInput(copy, "weights", type));
    if (type.shape.rank() > 0) loss = copy.make("sum", {loss}, {{"axes", allAxes(type.shape.rank())}, {"keep_dims", false}});
    copy.output(OutputKind::Loss, "loss", loss);
    Graph graph = passes::grad(copy.graph(), {.wrt = {"operand" + std::to_string(operand)}}).orThrow();
    return run(graph, values).back().data;
  }
};

Tensor floats(Shape shape, Numbers data) { return {f32(std::move(shape)), std::move(data)}; }
Tensor integers(Shape shape, Numbers data) { return {i32(std::move(shape)), std::move(data)}; }

TEST(Min, Tie_GivesTheGradientToB) {
  Applied min("min", {floats({3}, {1, 2, 3}), floats({3}, {2, 2, 2})});
  EXPECT_EQ(min.value(), (Numbers{1, 2, 2}));
  EXPECT_EQ(min.gradient(0, {5, 6, 7}), (Numbers{5, 0, 0}));
  EXPECT_EQ(min.gradient(1, {5, 6, 7}), (Numbers{0, 6, 7}));
}

TEST(Max, Tie_GivesTheGradientToB) {
  Applied max("max", {floats({3}, {1, 2, 3}), floats({3}, {2, 2, 2})});
  EXPECT_EQ(max.value(), (Numbers{2, 2, 3}));
  EXPECT_EQ(max.gradient(0, {5, 6, 7}), (Numbers{0, 0, 7}));
  EXPECT_EQ(max.gradient(1, {5, 6, 7}), (Numbers{5, 6, 0}));
}

TEST(Relu, Zero_HasGradientZero) {
  Applied relu("relu", {floats({3}, {-1, 0, 2})});
  EXPECT_EQ(relu.value(), (Numbers{0, 0, 2}));
  EXPECT_EQ(relu.gradient(0, {5, 6, 7}), (Numbers{0, 0, 7}));
}

TEST(Div, Integers_TruncateAndKeepTheDividendOverZero) {
  double lowest = -2147483648.0;
  Applied div("div", {integers({6}, {7, -7, 7, -7, 5, lowest}), integers({6}, {2, 2, -2, -2, 0, -1})});
  EXPECT_EQ(div.value(), (Numbers{3, -3, -3, 3, 5, lowest}));
}

TEST(Add, Integers_Wrap) {
  EXPECT_EQ(Applied("add", {integers({2}, {2147483647, -2147483648.0}), integers({2}, {1, -1})}).value(),
            (Numbers{-2147483648.0, 2147483647}));
  EXPECT_EQ(Applied("sub", {Tensor{u32({2}), {0, 5}}, Tensor{u32({2}), {1, 3}}}).value(), (Numbers{4294967295.0, 2}));
}

TEST(Mul, Integers_WrapWithoutLosingBits) {
  // 4294967295^2 = 2^64 - 2^33 + 1, far above what a double counts exactly.
  EXPECT_EQ(Applied("mul", {Tensor{u32({1}), {4294967295.0}}, Tensor{u32({1}), {4294967295.0}}}).value(), (Numbers{1}));
  EXPECT_EQ(Applied("mul", {integers({2}, {65536, -3}), integers({2}, {65536, 7})}).value(), (Numbers{0, -21}));
}

TEST(Neg, LowestInteger_StaysItself) {
  EXPECT_EQ(Applied("neg", {integers({2}, {-2147483648.0, 4})}).value(), (Numbers{-2147483648.0, -4}));
}

TEST(Less, NaN_IsFalse) {
  double nan = std::nan("");
  EXPECT_EQ(Applied("less", {floats({3}, {nan, 1, 1}), floats({3}, {1, nan, 2})}).value(), (Numbers{0, 0, 1}));
  EXPECT_EQ(Applied("greater", {floats({3}, {nan, 1, 2}), floats({3}, {1, nan, 1})}).value(), (Numbers{0, 0, 1}));
}

TEST(Equal, NaN_DiffersFromItself) {
  double nan = std::nan("");
  EXPECT_EQ(Applied("equal", {floats({3}, {nan, 1, 2}), floats({3}, {nan, 1, 1})}).value(), (Numbers{0, 1, 0}));
  EXPECT_EQ(Applied("not_equal", {floats({3}, {nan, 1, 2}), floats({3}, {nan, 1, 1})}).value(), (Numbers{1, 0, 1}));
  EXPECT_EQ(Applied("less_equal", {floats({3}, {nan, 1, 2}), floats({3}, {nan, 1, 1})}).value(), (Numbers{0, 1, 0}));
  EXPECT_EQ(Applied("greater_equal", {floats({3}, {nan, 1, 2}), floats({3}, {nan, 1, 1})}).value(), (Numbers{0, 1, 1}));
}

TEST(Same, NaN_IsTheSameAsEveryNaN) {
  EXPECT_EQ(Applied("same", {floats({5}, {kNaN, 1, -0.0, kNaN, kInfinity}), floats({5}, {-kNaN, kNaN, 0, 1, kInfinity})}).value(),
            (Numbers{1, 0, 1, 0, 1}));
}

TEST(IsFinite, OnlyNumbers_AreFinite) {
  EXPECT_EQ(Applied("is_finite", {floats({5}, {0, 3e38, kInfinity, -kInfinity, std::nan("")})}).value(), (Numbers{1, 1, 0, 0, 0}));
}

TEST(Cast, Float_TruncatesAndSaturates) {
  auto x = [] { return floats({7}, {2.9, -2.9, 3e9, -3e9, kInfinity, std::nan(""), -0.5}); };
  EXPECT_EQ(Applied("cast", {x()}, {{"dtype", DType::I32}}).value(), (Numbers{2, -2, 2147483647, -2147483648.0, 2147483647, 0, 0}));
  EXPECT_EQ(Applied("cast", {x()}, {{"dtype", DType::U32}}).value(), (Numbers{2, 0, 3e9, 0, 4294967295.0, 0, 0}));
  EXPECT_EQ(Applied("cast", {x()}, {{"dtype", DType::Bool}}).value(), (Numbers{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Applied("cast", {integers({2}, {-1, 7})}, {{"dtype", DType::U32}}).value(), (Numbers{4294967295.0, 7}));
  EXPECT_EQ(Applied("cast", {Tensor{u32({2}), {4294967295.0, 7}}}, {{"dtype", DType::I32}}).value(), (Numbers{-1, 7}));
}

TEST(Pow, BaseZero_HasFiniteGradients) {
  Applied pow("pow", {floats({4}, {0, 0, 0, -2}), floats({4}, {2, 1, 0, 3})});
  EXPECT_EQ(pow.value(), (Numbers{0, 0, 1, -8}));
  EXPECT_EQ(pow.gradient(0, {5, 6, 7, 8}), (Numbers{0, 6, 0, 96}));
  Numbers by_exponent = pow.gradient(1, {5, 6, 7, 8});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(by_exponent[i], 0) << i;
}

TEST(Round, Halves_GoToTheEvenNeighbour) {
  Applied round("round", {floats({6}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.6})});
  EXPECT_EQ(round.value(), (Numbers{0, 2, 2, 0, -2, 3}));
  EXPECT_EQ(round.gradient(0, {1, 1, 1, 1, 1, 1}), (Numbers(6, 0.0)));
  EXPECT_EQ(Applied("sign", {floats({3}, {-3, 0, 0.1})}).value(), (Numbers{-1, 0, 1}));
}

TEST(Clamp, Bounds_HaveGradientZero) {
  Applied clamp("clamp", {floats({5}, {-2, -1, 0, 1, 2})}, {{"lo", -1.0}, {"hi", 1.0}});
  EXPECT_EQ(clamp.value(), (Numbers{-1, -1, 0, 1, 1}));
  EXPECT_EQ(clamp.gradient(0, {5, 6, 7, 8, 9}), (Numbers{0, 0, 7, 0, 0}));
}

TEST(Softplus, Zero_HasGradientOneHalf) {
  Applied softplus("softplus", {floats({3}, {-800, 0, 800})});
  EXPECT_NEAR(softplus.value()[1], std::log(2.0), 1e-15);
  EXPECT_EQ(softplus.value()[2], 800);
  EXPECT_EQ(softplus.gradient(0, {2, 2, 2}), (Numbers{0, 1, 2}));
}

TEST(Activations, Zero_TakesTheLeftSlope) {
  EXPECT_EQ(Applied("leaky_relu", {floats({2}, {0, 3})}, {{"alpha", 0.25}}).gradient(0, {4, 4}), (Numbers{1, 4}));
  EXPECT_EQ(Applied("elu", {floats({2}, {0, 900})}, {{"alpha", 0.5}}).gradient(0, {4, 4}), (Numbers{2, 4}));
}

TEST(Prod, Zeros_HaveTheRightGradient) {
  Attributes last{{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}};
  Applied prod("prod", {floats({3, 3}, {2, 3, 4, 2, 0, 4, 0, 3, 0})}, last);
  EXPECT_EQ(prod.value(), (Numbers{24, 0, 0}));
  EXPECT_EQ(prod.gradient(0, {1, 10, 100}), (Numbers{12, 8, 6, 0, 80, 0, 0, 0, 0}));
}

TEST(Prod, ZerosOfLongRow_HaveTheRightGradients) {
  const Attributes all{{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}};
  Numbers factors(100, 1.0), expected(100, 0.0);
  factors[7] = 2, factors[50] = 0, factors[99] = 3;
  expected[50] = 6;
  EXPECT_EQ(Applied("prod", {floats({100}, factors)}, all).gradient(0, {1}), expected);
  // Two zeros: only the derivative by both of them is not 0.
  factors[2] = 0;
  Applied prod("prod", {floats({100}, factors)}, all);
  EXPECT_EQ(prod.gradient(0, {1}), Numbers(100, 0.0));
  Builder& b = prod.builder;
  b.output(OutputKind::Loss, "loss", prod.result);
  Builder second(passes::grad(b.graph(), {.wrt = {"operand0"}}).orThrow());
  ValueId gradient = second.graph().outputs.back().value;
  Numbers weights(100);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i);
  prod.leaves.emplace("weights", floats({100}, weights));
  ValueId weighted = second.mul(gradient, addInput(second, "weights", f32({100})));
  second.mutableGraph().outputs.clear();
  second.output(OutputKind::Loss, "loss", second.sum(weighted, 0, false));
  Numbers mixed(100, 0.0);
  mixed[2] = 50 * 6, mixed[50] = 2 * 6;
  EXPECT_EQ(run(passes::grad(second.graph(), {.wrt = {"operand0"}}).orThrow(), prod.leaves).back().data, mixed);
}

TEST(HardActivations, AtTheKinks_GradientIsThatOfTheOuterSide) {
  EXPECT_EQ(Applied("hard_sigmoid", {floats({2}, {-3, 3})}).gradient(0, {5, 7}), (Numbers{0, 0}));
  EXPECT_EQ(Applied("hard_swish", {floats({2}, {-3, 3})}).gradient(0, {5, 7}), (Numbers{0, 7}));
  EXPECT_EQ(Applied("hard_tanh", {floats({2}, {-1, 1})}).gradient(0, {5, 7}), (Numbers{0, 0}));
}

TEST(Prod, VeryLongRow_HasAGradient) {
  // A square of the factors would have more than 2^32 elements.
  Applied prod("prod", {floats({70000}, Numbers(70000, 1.0))}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
  prod.builder.output(OutputKind::Loss, "loss", prod.result);
  EXPECT_TRUE(passes::grad(prod.builder.graph(), {.wrt = {"operand0"}}).ok());
}

TEST(ReduceMin, Tie_GivesTheGradientToTheFirst) {
  Applied row("reduce_min", {floats({2, 3}, {4, 1, 1, 9, 9, 9})}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  EXPECT_EQ(row.value(), (Numbers{1, 9}));
  EXPECT_EQ(row.gradient(0, {5, 6}), (Numbers{0, 5, 0, 6, 0, 0}));
}

TEST(Argmax, Tie_GivesTheLowestPosition) {
  EXPECT_EQ(Applied("argmax", {floats({2, 3}, {1, 4, 4, 9, 9, 9})}, {{"axis", int64_t{1}}}).value(), (Numbers{1, 0}));
  EXPECT_EQ(Applied("argmin", {floats({2, 3}, {4, 1, 1, 9, 9, 9})}, {{"axis", int64_t{1}}}).value(), (Numbers{1, 0}));
  EXPECT_EQ(Applied("argmax", {integers({3, 2}, {5, 7, 6, 7, 6, 1})}, {{"axis", int64_t{0}}}).value(), (Numbers{1, 0}));
}

/// Numbers that may be NaN, in the order of both.
void expectNumbers(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) << i << ": " << got[i];
}

// The values and gradients of PyTorch 2.

TEST(NaN, PassesThroughChoices) {
  const Numbers a{kNaN, 1, kNaN, kInfinity}, b{2, kNaN, -kNaN, -kInfinity};
  for (std::string_view op : {"max", "min"}) {
    Applied chosen(op, {floats({4}, a), floats({4}, b)});
    expectNumbers(chosen.value(), {kNaN, kNaN, kNaN, op == "max" ? kInfinity : -kInfinity});
    expectNumbers(chosen.gradient(0, {5, 6, 7, 8}), {5, 6, 7, op == "max" ? 8.0 : 0.0});
    expectNumbers(chosen.gradient(1, {5, 6, 7, 8}), {5, 6, 7, op == "max" ? 0.0 : 8.0});
  }
}

TEST(NaN, PassesThroughActivations) {
  const Numbers x{kNaN, -kInfinity, kInfinity}, dy{5, 6, 7};
  auto applied = [&](std::string_view op, Attributes attributes = {}) { return Applied(op, {floats({3}, x)}, std::move(attributes)); };
  expectNumbers(applied("relu").value(), {kNaN, 0, kInfinity});
  expectNumbers(applied("relu").gradient(0, dy), {5, 0, 7});
  expectNumbers(applied("leaky_relu", {{"alpha", 0.5}}).value(), {kNaN, -kInfinity, kInfinity});
  expectNumbers(applied("leaky_relu", {{"alpha", 0.5}}).gradient(0, dy), {2.5, 3, 7});
  expectNumbers(applied("clamp", {{"lo", -1.0}, {"hi", 2.0}}).value(), {kNaN, -1, 2});
  expectNumbers(applied("clamp", {{"lo", -1.0}, {"hi", 2.0}}).gradient(0, dy), {0, 0, 0});
  expectNumbers(applied("hard_tanh").value(), {kNaN, -1, 1});
  expectNumbers(applied("hard_tanh").gradient(0, dy), {5, 0, 0});
  expectNumbers(applied("hard_sigmoid").value(), {kNaN, 0, 1});
  expectNumbers(applied("hard_sigmoid").gradient(0, dy), {0, 0, 0});
  expectNumbers(applied("hard_swish").gradient(0, dy), {5, 0, 7});
  expectNumbers(applied("sign").value(), {kNaN, -1, 1});
}

TEST(NaN, PassesThroughReductions) {
  const Tensor x = floats({3, 4}, {1, kNaN, 3, kNaN, 4, 3, 2, 1, -kInfinity, -kInfinity, -kInfinity, -kInfinity});
  const Attributes rows{{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}};
  for (auto [op, extremum, position] : {std::tuple("reduce_max", 4.0, size_t{4}), std::tuple("reduce_min", 1.0, size_t{7})}) {
    Applied reduced(op, {x}, rows);
    expectNumbers(reduced.value(), {kNaN, extremum, -kInfinity});
    Numbers gradient(12, 0.0);
    gradient[1] = 5;  // the first NaN
    gradient[position] = 6;
    gradient[8] = 7;
    expectNumbers(reduced.gradient(0, {5, 6, 7}), gradient);
  }
  expectNumbers(Applied("argmax", {x}, {{"axis", int64_t{1}}}).value(), {1, 0, 0});
  expectNumbers(Applied("argmin", {x}, {{"axis", int64_t{1}}}).value(), {1, 3, 0});
}

TEST(NaN, IsLeftOutOfTheLargestNumber) {
  const Tensor x = floats({2, 4}, {kNaN, 1, kNaN, 3, 4, -kInfinity, kNaN, 2});
  Applied largest("reduce_max_number", {x}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  expectNumbers(largest.value(), {3, 4});
  expectNumbers(largest.gradient(0, {5, 6}), {0, 0, 0, 5, 6, 0, 0, 0});
}

TEST(NaN, IsTheLargestOfASortedLine) {
  const Tensor x = floats({5}, {2, kNaN, kInfinity, -kNaN, 1});
  expectNumbers(Applied("sort", {x}, {{"axis", int64_t{0}}, {"descending", false}}).value(), {1, 2, kInfinity, kNaN, kNaN});
  expectNumbers(Applied("sort", {x}, {{"axis", int64_t{0}}, {"descending", true}}).value(), {kNaN, kNaN, kInfinity, 2, 1});
  Applied largest("top_k", {x}, {{"axis", int64_t{0}}, {"k", int64_t{3}}});
  expectNumbers(largest.value(), {kNaN, kNaN, kInfinity});
  expectNumbers(largest.gradient(0, {5, 6, 7}), {0, 5, 7, 6, 0});
}

TEST(NaN, PassesThroughMaxPool) {
  Applied pool("max_pool", {floats({1, 1, 6}, {1, kNaN, kNaN, 7, -kInfinity, -kInfinity})},
               {{"kernel", std::vector<int64_t>{3}}, {"stride", std::vector<int64_t>{3}}, {"padding", std::vector<int64_t>{0}}});
  expectNumbers(pool.value(), {kNaN, 7});
  expectNumbers(pool.gradient(0, {5, 6}), {0, 5, 0, 6, 0, 0});
}

TEST(OneHot, IndexOutside_GivesZeroRow) {
  EXPECT_EQ(Applied("one_hot", {integers({4}, {1, -1, 3, 0})}, {{"depth", int64_t{3}}}).value(),
            (Numbers{0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
}

TEST(Embedding, InfiniteRow_DoesNotReachOtherRows) {
  Applied embedding("embedding", {floats({2, 2}, {1, 2, kInfinity, 4}), integers({4}, {0, 2, -1, 1})});
  EXPECT_EQ(embedding.value(), (Numbers{1, 2, 0, 0, 0, 0, kInfinity, 4}));
}

TEST(Embedding, RepeatedIndex_SumsTheGradient) {
  Applied embedding("embedding", {floats({3, 1}, {1, 2, 3}), integers({5}, {0, 2, 0, 7, 0})});
  EXPECT_EQ(embedding.gradient(0, {1, 10, 100, 1000, 10000}), (Numbers{10101, 0, 10}));
}

TEST(TakeAlongAxis, OneIndexOutside_GivesZeroAndNoGradient) {
  Applied take("take_along_axis", {floats({3, 2}, {1, 2, 3, 4, 5, 6}), integers({3, 1}, {1, 2, -1})}, {{"axis", int64_t{1}}});
  EXPECT_EQ(take.value(), (Numbers{2, 0, 0}));
  EXPECT_EQ(take.gradient(0, {7, 8, 9}), (Numbers{0, 7, 0, 0, 0, 0}));
}

TEST(WhereCausal, Gradient_IsZeroWhereMasked) {
  Applied masked("where_causal", {floats({2, 2}, {1, 2, 3, 4})}, {{"fill", -9.0}});
  EXPECT_EQ(masked.value(), (Numbers{1, -9, 3, 4}));
  EXPECT_EQ(masked.gradient(0, {5, 6, 7, 8}), (Numbers{5, 0, 7, 8}));
}

TEST(ReduceMax, Tie_GivesTheGradientToTheFirst) {
  Applied row("reduce_max", {floats({2, 3}, {1, 4, 4, 9, 9, 9})}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  EXPECT_EQ(row.value(), (Numbers{4, 9}));
  EXPECT_EQ(row.gradient(0, {5, 6}), (Numbers{0, 5, 0, 6, 0, 0}));
  Applied all("reduce_max", {floats({2, 2}, {1, 7, 7, 3})}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
  EXPECT_EQ(all.gradient(0, {5}), (Numbers{0, 5, 0, 0}));
}

TEST(ReduceMax, OnlyNegativeInfinities_GiveNegativeInfinity) {
  Applied row("reduce_max", {floats({2}, {-kInfinity, -kInfinity})}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
  EXPECT_EQ(row.value(), (Numbers{-kInfinity}));
}

TEST(SoftmaxCausal, MaskedElements_AreExactlyZeroWhateverTheyHold) {
  for (double masked : {1e30, -1e30, kInfinity}) {
    Applied softmax("softmax_causal", {floats({2, 2}, {-1e30, masked, 3, 3})});
    EXPECT_EQ(softmax.value(), (Numbers{1, 0, 0.5, 0.5}));
    Node node = softmax.builder.graph().definition(softmax.result);
    softmax.result = std::get<DecomposeLowering>(*node.op->lower).decompose(softmax.builder, node, softmax.operands).front();
    EXPECT_EQ(softmax.value(), (Numbers{1, 0, 0.5, 0.5}));
  }
}

TEST(LogSoftmax, LargeLogits_DoNotOverflow) {
  Applied row("log_softmax", {floats({1, 2}, {1e30, 1e30})});
  EXPECT_NEAR(row.value()[0], -std::log(2.0), 1e-12);
  Applied low("log_softmax", {floats({1, 2}, {-3e38, -3e38})});
  EXPECT_NEAR(low.value()[1], -std::log(2.0), 1e-12);
}

TEST(CrossEntropy, TargetOutside_AddsNothingButCounts) {
  double loss = std::log(2.0);
  auto logits = [] { return floats({3, 2}, {0, 0, 5, 6, 0, 0}); };
  auto targets = [] { return integers({3}, {0, 2, -1}); };
  Applied none("cross_entropy", {logits(), targets()}, {{"reduction", std::string("none")}});
  EXPECT_NEAR(none.value()[0], loss, 1e-15);
  EXPECT_EQ(none.value()[1], 0);
  EXPECT_EQ(none.value()[2], 0);
  Applied mean("cross_entropy", {logits(), targets()}, {{"reduction", std::string("mean")}});
  EXPECT_NEAR(mean.value()[0], loss / 3, 1e-15);
  Numbers gradient = mean.gradient(0, {6});
  EXPECT_NEAR(gradient[0], -1, 1e-12);
  EXPECT_NEAR(gradient[1], 1, 1e-12);
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(gradient[i], 0) << i;
}

TEST(StopGradient, NothingFlowsBack) {
  Applied stopped("stop_gradient", {floats({2}, {3, 4})});
  EXPECT_EQ(stopped.value(), (Numbers{3, 4}));
  EXPECT_EQ(stopped.gradient(0, {1, 1}), (Numbers{0, 0}));
}

TEST(Pack, Padding_IsZero) {
  Applied pack("pack", {floats({2}, {1, 2}), floats({1, 1}, {3})}, {{"offsets", std::vector<int64_t>{0, 64}}, {"total", int64_t{66}}});
  Numbers expected(66, 0.0);
  expected[0] = 1, expected[1] = 2, expected[64] = 3;
  EXPECT_EQ(pack.value(), expected);
}

TEST(UpdateSlice, Gradient_GoesToWhatRemains) {
  Applied update("update_slice", {floats({2, 2}, {1, 2, 3, 4}), floats({2}, {8, 9})}, {{"offset", int64_t{1}}});
  EXPECT_EQ(update.value(), (Numbers{1, 8, 9, 4}));
  EXPECT_EQ(update.gradient(0, {5, 6, 7, 8}), (Numbers{5, 0, 0, 8}));
  EXPECT_EQ(update.gradient(1, {5, 6, 7, 8}), (Numbers{6, 7}));
}

TEST(Dense, Value_IsTheConstantsData) {
  Builder builder;
  builder.mutableGraph().constants.push_back({f32({3}), {1.5, -2, 0}});
  builder.output(OutputKind::Result, "y", builder.make("dense", {}, {{"data", ConstantId(0)}}));
  EXPECT_EQ(run(builder.graph(), {}).front().data, (Numbers{1.5, -2, 0}));
}

TEST(Arange, Numbers_CountFromZero) {
  Applied numbers("arange", {}, {{"n", int64_t{4}}, {"dtype", DType::I32}});
  EXPECT_EQ(numbers.value(), (Numbers{0, 1, 2, 3}));
}

}  // namespace
}  // namespace lockstep::graph::testing
