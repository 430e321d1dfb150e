// SPDX-License-Identifier: Apache-2.0
// What the front end adds to the ops: broadcasting, numbers, axes, composites. Values are those of the f64 evaluator.
#include <cmath>
#include <limits>

#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;
using In = std::vector<Tensor>;

std::string codeOf(const std::vector<TensorType>& types, const std::function<Tensor(const In&)>& function) {
  return caught([&] { traced(types, function); }).code;
}

TEST(Ops, binary_broadcasts_both_sides) {
  graph::Tensor y = counted({f32(3, 1), f32(1, 2)}, [](const In& in) { return in[0] * in[1]; });
  EXPECT_EQ(y.type.shape, (Shape{3, 2}));
  EXPECT_EQ(y.data, (Values{1, 2, 2, 4, 3, 6}));
  EXPECT_EQ(counted({f32(2, 2), f32()}, [](const In& in) { return in[0] - in[1]; }).data, (Values{0, 1, 2, 3}));
}

TEST(Ops, number_stands_on_either_side) {
  auto run = [](auto function) { return counted({f32(3)}, function).data; };
  EXPECT_EQ(run([](const In& in) { return in[0] + 2; }), (Values{3, 4, 5}));
  EXPECT_EQ(run([](const In& in) { return 2 - in[0]; }), (Values{1, 0, -1}));
  EXPECT_EQ(run([](const In& in) { return in[0] / 2; }), (Values{0.5, 1, 1.5}));
  EXPECT_EQ(run([](const In& in) { return 6 / in[0]; }), (Values{6, 3, 2}));
  EXPECT_EQ(run([](const In& in) { return max(2, in[0]); }), (Values{2, 2, 3}));
  EXPECT_EQ(run([](const In& in) { return min(in[0], 2.5f); }), (Values{1, 2, 2.5}));
  EXPECT_EQ(run([](const In& in) { return -in[0]; }), (Values{-1, -2, -3}));
  EXPECT_EQ(run([](const In& in) { return less(2, in[0]); }), (Values{0, 0, 1}));
  EXPECT_EQ(run([](const In& in) { return in[0] < 2; }), (Values{1, 0, 0}));
  EXPECT_EQ(run([](const In& in) { return 2 > in[0]; }), (Values{1, 0, 0}));
  EXPECT_EQ(run([](const In& in) { return in[0] > 2; }), (Values{0, 0, 1}));
}

TEST(Ops, comparisons_stand_on_either_side) {
  auto run = [](auto function) { return counted({f32(3)}, function).data; };
  EXPECT_EQ(run([](const In& in) { return in[0] <= 2; }), (Values{1, 1, 0}));
  EXPECT_EQ(run([](const In& in) { return 2 <= in[0]; }), (Values{0, 1, 1}));
  EXPECT_EQ(run([](const In& in) { return in[0] >= 2; }), (Values{0, 1, 1}));
  EXPECT_EQ(run([](const In& in) { return 2 >= in[0]; }), (Values{1, 1, 0}));
  EXPECT_EQ(run([](const In& in) { return equal(2, in[0]); }), (Values{0, 1, 0}));
  EXPECT_EQ(run([](const In& in) { return not_equal(in[0], 2); }), (Values{1, 0, 1}));
  EXPECT_EQ(run([](const In& in) { return logical_and(in[0] > 1, in[0] < 3); }), (Values{0, 1, 0}));
  EXPECT_EQ(run([](const In& in) { return logical_or(in[0] <= 1, logical_not(in[0] < 3)); }), (Values{1, 0, 1}));
  EXPECT_EQ(run([](const In& in) { return equal(in[0] < 2, in[0] < 3); }), (Values{1, 0, 1}));
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return logical_and(in[0], in[0]); }), "logical_and.C1");
}

TEST(Ops, bits_of_integers) {
  auto run = [](auto function) { return counted({u32(3)}, function).data; };
  EXPECT_EQ(run([](const In& in) { return bitwise_and(in[0], 2); }), (Values{0, 2, 2}));
  EXPECT_EQ(run([](const In& in) { return bitwise_or(4, in[0]); }), (Values{5, 6, 7}));
  EXPECT_EQ(run([](const In& in) { return bitwise_xor(in[0], in[0] * 3); }), (Values{2, 4, 10}));
  EXPECT_EQ(run([](const In& in) { return left_shift(in[0], 4); }), (Values{16, 32, 48}));
  EXPECT_EQ(run([](const In& in) { return right_shift(96 + in[0], in[0]); }), (Values{48, 24, 12}));
  EXPECT_EQ(run([](const In& in) { return right_shift(cast(in[0], DType::I32) - 4, 1); }), (Values{-2, -1, -1}));
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return bitwise_and(in[0], 1); }), "bitwise_and.C1");
  EXPECT_EQ(codeOf({u32(2)}, [](const In& in) { return left_shift(in[0], cast(in[0], DType::I32)); }), "left_shift.C2");
}

TEST(Ops, powers_and_casts) {
  auto run = [](auto function) { return counted({f32(3)}, function, -1.5).data; };
  EXPECT_EQ(run([](const In& in) { return pow(in[0], 2); }), (Values{2.25, 9, 20.25}));
  EXPECT_EQ(run([](const In& in) { return pow(2, cast(cast(in[0], DType::I32), DType::F32)); }), (Values{0.5, 0.125, 0.0625}));
  EXPECT_EQ(counted({f32(3)}, [](const In& in) { return cast(in[0] - 2, DType::Bool); }).data, (Values{1, 0, 1}));
}

TEST(Ops, logsumexp_neither_overflows_nor_loses_infinities) {
  const auto of = [](const std::vector<double>& x, const Axes& axes, ReduceOptions options) {
    const graph::Graph graph = traced({f32(2, 2)}, [&](const In& in) { return logsumexp(in[0], axes, options); });
    return graph::evaluate(graph, {{"a", {f32(2, 2), x}}}).orThrow().front();
  };
  const double inf = std::numeric_limits<double>::infinity();
  const graph::Tensor columns = of({1000, -1000, 1000, -1000}, 0, {});
  EXPECT_EQ(columns.type.shape, (Shape{2}));
  EXPECT_NEAR(columns.data[0], 1000 + std::log(2.0), 1e-9);
  EXPECT_NEAR(columns.data[1], -1000 + std::log(2.0), 1e-9);
  EXPECT_EQ(of({-inf, -inf, inf, 0}, 1, {}).data, (Values{-inf, inf}));
  EXPECT_TRUE(std::isnan(of({std::nan(""), 0, 0, 0}, {0, 1}, {}).data[0]));
  EXPECT_EQ(of({0, 0, 0, 0}, {}, {.keep_dims = true}).type.shape, (Shape{1, 1}));
  EXPECT_EQ(codeOf({i32(2)}, [](const In& in) { return logsumexp(in[0]); }), "logsumexp.C1");
}

TEST(Ops, activations_have_pytorchs_values) {
  auto run = [](auto function) { return counted({f32(4)}, function, -1.5).data; };
  EXPECT_EQ(run([](const In& in) { return hard_tanh(in[0] + 4); }), (Values{1, 1, -0.5, -1}));
  EXPECT_EQ(run([](const In& in) { return leaky_relu(in[0], 0.5); }), (Values{-0.75, -1.5, -2.25, -3}));
  EXPECT_EQ(run([](const In& in) { return clamp(in[0], -4, -2); }), (Values{-2, -3, -4, -4}));
  Values gate{0.25, 0, 0, 0}, swish{-0.375, 0, 0, 0}, elu_values{-0.7768698398515702, -0.950212931632136};
  Values hard = run([](const In& in) { return hard_sigmoid(in[0]); }), hard_x = run([](const In& in) { return hard_swish(in[0]); });
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(hard[i], gate[i], 1e-15);
    EXPECT_NEAR(hard_x[i], swish[i], 1e-15);
  }
  Values curve = run([](const In& in) { return elu(in[0]); });
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(curve[i], elu_values[i], 1e-15);
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return clamp(in[0], 2, 1); }), "clamp.C2");
}

TEST(Ops, constants_are_exact) {
  EXPECT_EQ(counted({f32(1)}, [](const In& in) { return in[0] * 0.1; }).data, (Values{0.1}));
}

TEST(Ops, number_must_fit_the_element_type) {
  EXPECT_EQ(codeOf({i32(2)}, [](const In& in) { return in[0] * 0.5; }), "mul.number");
  EXPECT_EQ(codeOf({i32(2)}, [](const In& in) { return in[0] + 3e9; }), "add.number");
  EXPECT_EQ(codeOf({u32(2)}, [](const In& in) { return in[0] + -1; }), "add.number");
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return in[0] + std::nan(""); }), "add.number");
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return in[0] * 1e39; }), "mul.number");
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return in[0] / 0; }), "div.number");
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return (in[0] < 1) + 1; }), "add.number");
  EXPECT_EQ(codeOf({f32(2)}, [](const In&) { return add(1, 2); }), "add.operands");
  EXPECT_EQ(counted({i32(2)}, [](const In& in) { return in[0] * -3; }).data, (Values{-3, -6}));
}

TEST(Ops, element_types_are_not_mixed) {
  EXPECT_EQ(codeOf({f32(2), i32(2)}, [](const In& in) { return in[0] + in[1]; }), "add.C1");
  EXPECT_EQ(codeOf({i32(2)}, [](const In& in) { return mean(in[0]); }), "mean.C1");
}

TEST(Ops, where_broadcasts_all_three) {
  graph::Tensor y = counted({f32(2, 1), f32(3)}, [](const In& in) { return where(in[0] < 2, in[1], 0); });
  EXPECT_EQ(y.data, (Values{1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(codeOf({f32(2), f32(2)}, [](const In& in) { return where(in[0], in[0], in[1]); }), "where.C1");
  EXPECT_EQ(codeOf({f32(2), i32(2)}, [](const In& in) { return where(in[0] < 1, in[0], in[1]); }), "where.C2");
  EXPECT_EQ(codeOf({f32(3), f32(2)}, [](const In& in) { return where(in[0] < 1, in[1], 0); }), "where.C3");
}

TEST(Ops, reductions_take_any_axis_or_none) {
  auto run = [](auto function) { return counted({f32(2, 3)}, function); };
  EXPECT_EQ(run([](const In& in) { return sum(in[0]); }).data, (Values{21}));
  EXPECT_EQ(run([](const In& in) { return sum(in[0]); }).type.shape, Shape{});
  EXPECT_EQ(run([](const In& in) { return sum(in[0], 0); }).data, (Values{5, 7, 9}));
  EXPECT_EQ(run([](const In& in) { return mean(in[0], -1); }).data, (Values{2, 5}));
  EXPECT_EQ(run([](const In& in) { return mean(in[0], -1, {.keep_dims = true}); }).type.shape, (Shape{2, 1}));
  const auto over = [](const std::function<Tensor(const Tensor&)>& function) {
    return counted({f32(2, 3, 2)}, [&](const In& in) { return function(in[0]); });
  };
  EXPECT_EQ(over([](const Tensor& x) { return sum(x, {0, 2}); }).data, (Values{18, 26, 34}));
  EXPECT_EQ(over([](const Tensor& x) { return sum(x, {-1, 0}); }).data, (Values{18, 26, 34})) << "in any order";
  EXPECT_EQ(over([](const Tensor& x) { return mean(x, {1, 2}); }).data, (Values{3.5, 9.5}));
  EXPECT_EQ(over([](const Tensor& x) { return mean(x, {1, 2}, {.keep_dims = true}); }).type.shape, (Shape{2, 1, 1}));
  EXPECT_EQ(over([](const Tensor& x) { return reduce_max(x, {0, 1}); }).data, (Values{11, 12}));
  EXPECT_EQ(over([](const Tensor& x) { return sum(x, {0, 1, 2}); }).data, (Values{78}));
  EXPECT_EQ(over([](const Tensor& x) { return sum(x, std::vector<int64_t>{}); }).type.shape, (Shape{2, 3, 2})) << "over none";
  EXPECT_EQ(over([](const Tensor& x) { return cast(any(x > 11, {0, 1}), DType::F32); }).data, (Values{0, 1}));
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return sum(in[0], {0, -2}); }), "sum.axes");
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return sum(in[0], 2); }), "sum.axis");
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return mean(in[0], -3); }), "mean.axis");
}

TEST(Ops, extrema_products_and_positions_take_any_axis_or_none) {
  auto run = [](auto function) { return counted({f32(2, 3)}, function); };
  EXPECT_EQ(run([](const In& in) { return reduce_max(in[0]); }).data, (Values{6}));
  EXPECT_EQ(run([](const In& in) { return reduce_min(in[0], -1); }).data, (Values{1, 4}));
  EXPECT_EQ(run([](const In& in) { return reduce_max(in[0], 0, {.keep_dims = true}); }).type.shape, (Shape{1, 3}));
  EXPECT_EQ(run([](const In& in) { return prod(in[0], 0); }).data, (Values{4, 10, 18}));
  EXPECT_EQ(run([](const In& in) { return prod(in[0]); }).data, (Values{720}));
  EXPECT_EQ(run([](const In& in) { return argmax(in[0]); }).data, (Values{5}));
  EXPECT_EQ(run([](const In& in) { return argmax(in[0]); }).type, i32());
  EXPECT_EQ(run([](const In& in) { return argmin(in[0], -1); }).data, (Values{0, 0}));
  EXPECT_EQ(run([](const In& in) { return argmax(in[0], 0); }).type, i32(3));
  EXPECT_EQ(run([](const In& in) { return any(in[0] > 5, 0); }).data, (Values{0, 0, 1}));
  EXPECT_EQ(run([](const In& in) { return all(in[0] > 3, -1); }).data, (Values{0, 1}));
  EXPECT_EQ(run([](const In& in) { return all(in[0] > 0); }).type, (TensorType{DType::Bool, Shape{}}));
  EXPECT_EQ(counted({f32()}, [](const In& in) { return argmax(in[0]); }).data, (Values{0}));
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return argmax(in[0], 2); }), "argmax.axis");
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return any(in[0]); }), "any.C1");
}

TEST(Ops, reshape_infers_one_extent) {
  EXPECT_EQ(counted({f32(2, 6)}, [](const In& in) { return reshape(in[0], {4, -1}); }).type.shape, (Shape{4, 3}));
  EXPECT_EQ(codeOf({f32(2, 6)}, [](const In& in) { return reshape(in[0], {5, -1}); }), "reshape.C2");
  EXPECT_EQ(codeOf({f32(2, 6)}, [](const In& in) { return reshape(in[0], {-1, -1}); }), "reshape.C2");
  EXPECT_EQ(codeOf({f32(2, 6)}, [](const In& in) { return reshape(in[0], {0, -1}); }), "reshape.C2");
  EXPECT_EQ(codeOf({f32(2, 6)}, [](const In& in) { return reshape(in[0], {3, 5}); }), "reshape.C2");
}

TEST(Ops, heads_split_and_merge_back) {
  graph::Tensor split = counted({f32(1, 2, 4)}, [](const In& in) { return split_heads(in[0], 2); });
  EXPECT_EQ(split.type.shape, (Shape{1, 2, 2, 2}));
  EXPECT_EQ(split.data, (Values{1, 2, 5, 6, 3, 4, 7, 8}));
  EXPECT_EQ(counted({f32(1, 2, 4)}, [](const In& in) { return merge_heads(split_heads(in[0], 2)); }).data,
            (Values{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(codeOf({f32(2, 4)}, [](const In& in) { return split_heads(in[0], 3); }), "split_heads.C2");
  EXPECT_EQ(codeOf({f32(2, 4)}, [](const In& in) { return merge_heads(in[0]); }), "merge_heads.C1");
}

TEST(Ops, shape_ops_agree_with_their_definition) {
  EXPECT_EQ(counted({f32(2, 3)}, [](const In& in) { return swap_axes(in[0], 0, -1); }).data, (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(counted({f32(2, 3)}, [](const In& in) { return narrow(in[0], -1, 1, 2); }).data, (Values{2, 3, 5, 6}));
  EXPECT_EQ(counted({f32(2, 1)}, [](const In& in) { return broadcast_to(in[0], {2, 2}); }).data, (Values{1, 1, 2, 2}));
  EXPECT_EQ(counted({f32(2, 2)}, [](const In& in) { return sum_to_shape(in[0], {2}); }).data, (Values{4, 6}));
  EXPECT_THROW(traced({f32(2, 3)}, [](const In& in) { return narrow(in[0], 1, 2, 2); }), Error);
  EXPECT_THROW(traced({f32(2, 3)}, [](const In& in) { return permute(in[0], {0, 0}); }), Error);
}

TEST(Ops, softmax_works_along_any_axis) {
  graph::Tensor rows = counted({f32(2, 3)}, [](const In& in) { return sum(softmax(in[0], 0), 0); });
  for (double value : rows.data) EXPECT_NEAR(value, 1, 1e-12);
  graph::Tensor log = counted({f32(2, 3)}, [](const In& in) { return sum(exp(log_softmax(in[0], -1)), -1); });
  for (double value : log.data) EXPECT_NEAR(value, 1, 1e-12);
}

TEST(Ops, cross_entropy_reduces_as_told) {
  // Equal logits: ln 4 each.
  auto run = [](Reduction reduction) {
    return counted({f32(3, 4), i32(3)}, [&](const In& in) { return cross_entropy(in[0] * 0, in[1] - 1, {.reduction = reduction}); }).data;
  };
  EXPECT_EQ(run(Reduction::None).size(), 3u);
  EXPECT_NEAR(run(Reduction::Mean)[0], std::log(4), 1e-12);
  EXPECT_NEAR(run(Reduction::Sum)[0], 3 * std::log(4), 1e-12);
}

TEST(Ops, constants_and_fills) {
  auto run = [](auto function) { return counted({}, function); };
  EXPECT_EQ(run([](const In&) { return full({2}, 0.25); }).data, (Values{0.25, 0.25}));
  EXPECT_EQ(run([](const In&) { return ones({2}, DType::I32); }).type.dtype, DType::I32);
  EXPECT_EQ(run([](const In&) { return arange(3); }).data, (Values{0, 1, 2}));
  std::vector<float> data{1, 2, 3, 4};
  EXPECT_EQ(run([&](const In&) { return constant(data, {2, 2}) * 2; }).data, (Values{2, 4, 6, 8}));
  EXPECT_EQ(codeOf({}, [&](const In&) { return constant(data, {3}); }), "constant.length");
  EXPECT_EQ(codeOf({}, [&](const In&) { return constant(data, {-2, -2}); }), "constant.length");
}

TEST(Ops, scalar_times_itself_is_square) {
  EXPECT_EQ(counted({f32(3)}, [](const In& in) { return square(in[0]); }).data, (Values{1, 4, 9}));
}

TEST(Ops, compound_operators_rebind) {
  EXPECT_EQ(counted({f32(2), f32(2)},
                    [](const In& in) {
                      Tensor x = in[0];
                      x += in[1];
                      x *= 2;
                      return x;
                    })
                .data,
            (Values{4, 8}));
}

TEST(Ops, extent_counts_from_the_end) {
  traced({f32(2, 3)}, [](const In& in) {
    EXPECT_EQ(in[0].extent(-1), 3);
    EXPECT_EQ(caught([&] { (void)in[0].extent(2); }).code, "tensor.axis");
    return in[0];
  });
}

TEST(Ops, refused_arguments_come_with_a_remedy) {
  struct Refused {
    std::string code;
    std::function<Tensor(const In&)> function;  ///< of f32[3, 4] and i32[3, 4]
  };
  for (const Refused& refused :
       std::vector<Refused>{{"uniform.range", [](const In&) { return uniform({3}, 1, 1); }},
                            {"uniform.range", [](const In&) { return uniform({3}, 0, INFINITY); }},
                            {"normal.scale", [](const In&) { return normal({3}, 0, -1); }},
                            {"normal.scale", [](const In&) { return normal({3}, NAN, 1); }},
                            {"gather.C1", [](const In& in) { return gather(in[0], 0, reshape(in[1], {12})); }},
                            {"gather.C2", [](const In& in) { return gather(in[0], 1, reshape(in[1], {4, 3})); }}}) {
    Diagnostic error = caught([&] { traced({f32(3, 4), i32(3, 4)}, refused.function); });
    EXPECT_EQ(error.code, refused.code);
    EXPECT_NE(error.remedy, "") << refused.code;
  }
}

}  // namespace
}  // namespace lockstep
