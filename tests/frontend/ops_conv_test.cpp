// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, resampling, norms and attention against figures of PyTorch 1.13 in f64, for tensors that count 1, 2, 3, ...
#include <cmath>

#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;
using In = std::vector<Tensor>;

void expectNear(const graph::Tensor& got, const Shape& shape, const Values& want) {
  EXPECT_EQ(got.type.shape, shape);
  ASSERT_EQ(got.data.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.data[i], want[i], 1e-6) << i;
}

std::string codeOf(const std::vector<TensorType>& types, const std::function<Tensor(const In&)>& function) {
  return caught([&] { traced(types, function); }).code;
}

TEST(Convolution, conv2d_takes_stride_padding_and_dilation_an_axis) {
  graph::Tensor y = counted({f32(1, 2, 5, 4), f32(2, 2, 2, 2)},
                            [](const In& in) { return conv2d(in[0], in[1], {.stride = {2, 1}, .padding = {1, 0}, .dilation = {2, 1}}); });
  expectNear(y, {1, 2, 3, 3}, {422, 444, 466, 896, 932, 968, 410, 424, 438, 918, 972, 1026, 2144, 2244, 2344, 1162, 1208, 1254});
}

TEST(Convolution, conv1d_has_groups) {
  graph::Tensor y =
      counted({f32(1, 4, 5), f32(2, 2, 3)}, [](const In& in) { return conv1d(in[0], in[1], {.stride = 2, .padding = 1, .groups = 2}); });
  expectNear(y, {1, 2, 3}, {80, 142, 100, 576, 910, 628});
}

TEST(Convolution, conv_transpose2d_spreads_each_element) {
  graph::Tensor y = counted({f32(1, 2, 2, 2), f32(2, 1, 3, 2)},
                            [](const In& in) { return conv_transpose2d(in[0], in[1], {.stride = 2, .padding = 1, .output_padding = 1}); });
  expectNear(y, {1, 1, 4, 3}, {54, 60, 68, 128, 136, 156, 82, 84, 96, 102, 108, 120});
  y = counted({f32(1, 2, 2, 2), f32(2, 1, 2, 2)},
              [](const In& in) { return conv_transpose2d(in[0], in[1], {.dilation = {2, 1}, .groups = 2}); });
  expectNear(y, {1, 2, 4, 3}, {1, 4, 4, 3, 10, 8, 3, 10, 8, 9, 24, 16, 25, 60, 36, 35, 82, 48, 35, 82, 48, 49, 112, 64});
}

TEST(Convolution, mistakes_have_codes) {
  EXPECT_EQ(codeOf({f32(2, 5, 4), f32(2, 2, 2, 2)}, [](const In& in) { return conv2d(in[0], in[1]); }), "conv2d.C1");
  EXPECT_EQ(codeOf({f32(1, 2, 5, 4), f32(2, 3, 2, 2)}, [](const In& in) { return conv2d(in[0], in[1]); }), "conv.C4");
  EXPECT_EQ(codeOf({f32(1, 2, 5, 4), f32(2, 2, 6, 2)}, [](const In& in) { return conv2d(in[0], in[1]); }), "conv.C5");
  EXPECT_EQ(codeOf({f32(1, 2, 5), f32(2, 2, 2)}, [](const In& in) { return conv1d(in[0], in[1], {.stride = 0}); }), "conv.C3");
  EXPECT_EQ(codeOf({f32(1, 1, 5, 4)}, [](const In& in) { return max_pool2d(in[0], 2, {.padding = 2}); }), "max_pool.C2");
}

TEST(Pooling, averages_may_leave_padding_out) {
  auto pool = [](bool all) {
    return counted({f32(1, 1, 4, 4)},
                   [&](const In& in) { return avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .count_include_pad = all}); });
  };
  expectNear(pool(true), {1, 1, 2, 2}, {14.0 / 9, 30.0 / 9, 57.0 / 9, 11});
  expectNear(pool(false), {1, 1, 2, 2}, {3.5, 5, 9.5, 11});
}

TEST(Pooling, maximum_ignores_padding) {
  auto pool = [](const In& in) { return max_pool2d(in[0], 3, {.stride = 2, .padding = 1}); };
  expectNear(counted({f32(1, 1, 4, 4)}, pool), {1, 1, 2, 2}, {6, 8, 14, 16});
  expectNear(counted({f32(1, 1, 4, 4)}, pool, -1), {1, 1, 2, 2}, {-1, -2, -5, -6});
  EXPECT_EQ(counted({f32(1, 1, 4, 6)}, [](const In& in) { return max_pool2d(in[0], {2, 3}); }).type.shape, (Shape{1, 1, 2, 2}));
}

TEST(Pooling, global_pools_leave_one_element_a_channel) {
  expectNear(counted({f32(1, 2, 2, 2)}, [](const In& in) { return global_avg_pool2d(in[0]); }), {1, 2, 1, 1}, {2.5, 6.5});
  expectNear(counted({f32(1, 2, 2, 2)}, [](const In& in) { return global_max_pool2d(in[0]); }), {1, 2, 1, 1}, {4, 8});
}

TEST(Resampling, nearest_repeats_elements) {
  expectNear(counted({f32(1, 1, 1, 2)}, [](const In& in) { return nearest_upsample2d(in[0], {2, 3}); }), {1, 1, 2, 6},
             {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  EXPECT_EQ(codeOf({f32(1, 1, 1, 2)}, [](const In& in) { return nearest_upsample2d(in[0], 0); }), "nearest_upsample2d.factor");
}

TEST(Resampling, bilinear_takes_pixel_centres) {
  // The weights are f32.
  auto resized = [](const TensorType& type, Size2 size) {
    return counted({type}, [&](const In& in) { return bilinear_upsample2d(in[0], size); });
  };
  expectNear(resized(f32(1, 1, 2, 3), {4, 5}), {1, 1, 4, 5},
             {1, 1.4, 2, 2.6, 3, 1.75, 2.15, 2.75, 3.35, 3.75, 3.25, 3.65, 4.25, 4.85, 5.25, 4, 4.4, 5, 5.6, 6});
  expectNear(resized(f32(1, 1, 4, 6), {2, 3}), {1, 1, 2, 3}, {4.5, 6.5, 8.5, 16.5, 18.5, 20.5});
}

TEST(Norms, group_norm_takes_groups_of_channels) {
  graph::Tensor y = counted({f32(1, 4, 2), f32(4), f32(4)}, [](const In& in) { return group_norm(square(in[0]), in[1], in[2], 2); });
  expectNear(y, {1, 4, 2}, {-0.144586, 0.383684, 2.52827, 4.993533, -0.80951, 1.455604, 5.510076, 9.628465});
}

TEST(Norms, batch_norm_gives_its_statistics) {
  auto run = [](auto pick) {
    return counted({f32(2, 2, 2), f32(2), f32(2)}, [&](const In& in) { return pick(batch_norm(square(in[0]), in[1], in[2])); });
  };
  expectNear(run([](const BatchNormResult& r) { return r.y; }), {2, 2, 2},
             {-0.063917, 0.142002, -0.240271, 0.374706, 1.583438, 2.338477, 3.273879, 4.591686});
  expectNear(run([](const BatchNormResult& r) { return r.mean; }), {2}, {16.5, 34.5});
  expectNear(run([](const BatchNormResult& r) { return r.variance; }), {2}, {212.25, 518.25});
}

TEST(Norms, batch_norm_takes_running_statistics) {
  graph::Tensor y = counted({f32(2, 2, 2), f32(2)}, [](const In& in) { return batch_norm(square(in[0]), in[1], in[1], in[1], in[1] * 4); });
  expectNear(y, {2, 2, 2}, {1, 2.499998, 6.949744, 11.899489, 12.999985, 18.499978, 35.233998, 45.840593});
  EXPECT_EQ(codeOf({f32(2, 3), f32(2)}, [](const In& in) { return batch_norm(in[0], in[1], in[1], in[1], in[1]); }), "batch_norm.C3");
}

TEST(Attention, causal_with_an_offset) {
  graph::Tensor y = counted({f32(1, 2, 2), f32(1, 3, 2), f32(1, 3, 2)}, [](const In& in) {
    return scaled_dot_product_attention(in[0] * 0.1, in[1] * 0.1, in[2], {.causal = true, .offset = 1});
  });
  expectNear(y, {1, 2, 2}, {2.02121, 3.02121, 3.131778, 4.131778});
}

TEST(Attention, mask_and_positions_do_what_offsets_do) {
  // One program serves every place of a cache: what differs comes as data.
  graph::Tensor difference = counted({f32(1, 2, 4), f32(1, 3, 4), f32(1, 3, 4), f32(2)}, [](const In& in) {
    Tensor q = in[0] * 0.1, k = in[1] * 0.1;
    Tensor row = cast(in[3], DType::I32) + 2.0;  // in[3] counts 1, 2: rows at 3, 4
    Tensor by_position = rope(q, row), by_offset = rope(q, RopeOptions{.offset = 3});
    Tensor keys = broadcast_to(reshape(arange(3), {1, 3}), {2, 3}), last = broadcast_to(reshape(cast(in[3], DType::I32), {2, 1}), {2, 3});
    Tensor mask = where(keys > last, full({2, 3}, -1e30), zeros({2, 3}));
    Tensor masked = scaled_dot_product_attention(by_position, k, in[2], {.mask = mask});
    return masked - scaled_dot_product_attention(by_offset, k, in[2], {.causal = true, .offset = 1});
  });
  for (double value : difference.data) EXPECT_NEAR(value, 0, 1e-6);
  EXPECT_EQ(codeOf({f32(2, 4), i32(3)}, [](const In& in) { return rope(in[0], in[1]); }), "rope.C6");
}

TEST(Attention, rope_keeps_columns_beyond_dims) {
  graph::Tensor y = counted({f32(2, 3)}, [](const In& in) { return rope(in[0], {.offset = 1, .dims = 2}); });
  expectNear(y, {2, 3},
             {std::cos(1) - 2 * std::sin(1), std::sin(1) + 2 * std::cos(1), 3, 4 * std::cos(2) - 5 * std::sin(2),
              4 * std::sin(2) + 5 * std::cos(2), 6});
}

}  // namespace
}  // namespace lockstep
