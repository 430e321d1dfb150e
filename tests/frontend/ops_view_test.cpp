// SPDX-License-Identifier: Apache-2.0
// Joining, cutting, repeating, reordering and einsum; figures as NumPy and PyTorch give them.
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;
using In = std::vector<Tensor>;

std::string codeOf(const std::vector<TensorType>& types, const std::function<Tensor(const In&)>& function) {
  return caught([&] { traced(types, function); }).code;
}
Values of(const TensorType& type, const std::function<Tensor(const Tensor&)>& function) {
  return counted({type}, [&](const In& in) { return function(in[0]); }).data;
}
Shape shapeOf(const TensorType& type, const std::function<Tensor(const Tensor&)>& function) {
  return counted({type}, [&](const In& in) { return function(in[0]); }).type.shape;
}

TEST(Views, axes_come_and_go) {
  EXPECT_EQ(shapeOf(f32(2, 3), [](const Tensor& x) { return expand_dims(x, 1); }), (Shape{2, 1, 3}));
  EXPECT_EQ(shapeOf(f32(2, 3), [](const Tensor& x) { return expand_dims(x, -1); }), (Shape{2, 3, 1}));
  EXPECT_EQ(shapeOf(f32(2, 1, 3), [](const Tensor& x) { return squeeze(x, -2); }), (Shape{2, 3}));
  EXPECT_EQ(shapeOf(f32(2, 3, 4), [](const Tensor& x) { return flatten(x); }), (Shape{24}));
  EXPECT_EQ(shapeOf(f32(2, 3, 4, 5), [](const Tensor& x) { return flatten(x, 1, -2); }), (Shape{2, 12, 5}));
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return squeeze(in[0], 1); }), "squeeze.axis");
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return expand_dims(in[0], 3); }), "expand_dims.axis");
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return flatten(in[0], 1, 0); }), "flatten.axis");
}

TEST(Views, tensors_are_joined) {
  EXPECT_EQ(counted({f32(2, 1), f32(2, 2)}, [](const In& in) { return concat(in, -1); }).data, (Values{1, 1, 2, 2, 3, 4}));
  EXPECT_EQ(counted({f32(2), f32(2)}, [](const In& in) { return stack({in[0], in[1] * 10}, -1); }).data, (Values{1, 10, 2, 20}));
  EXPECT_EQ(codeOf({f32(2), f32(3)}, [](const In& in) { return stack(in); }), "stack.C2");
  EXPECT_EQ(codeOf({f32(2), i32(2)}, [](const In& in) { return concat(in, 0); }), "concat.C3");
  EXPECT_EQ(codeOf({f32(2)}, [](const In&) { return concat({}, 0); }), "concat.C1");
}

TEST(Views, tensors_are_cut) {
  EXPECT_EQ(of(f32(5), [](const Tensor& x) { return split(x, {1, 3, 1}, 0)[1]; }), (Values{2, 3, 4}));
  EXPECT_EQ(of(f32(5), [](const Tensor& x) { return split(x, 2, 0).at(2); }), (Values{5}));
  EXPECT_EQ(codeOf({f32(5)}, [](const In& in) { return split(in[0], {1, 3}, 0)[0]; }), "split.C1");
  EXPECT_EQ(codeOf({f32(5)}, [](const In& in) { return split(in[0], 0, 0)[0]; }), "split.C2");
}

// Every start, stop and step of an axis of 7, as NumPy counts, in the middle of two others.
TEST(Views, slices_are_what_NumPy_makes) {
  size_t compared = 0;
  for (int64_t step : {1, 2, 3, 6, 7, 9, -1, -2, -3, -7, -9}) {
    for (int64_t start = -7; start < 7; ++start) {
      for (int64_t stop = -7; stop <= 7; ++stop) {
        const int64_t first = start < 0 ? start + 7 : start, last = stop < 0 ? stop + 7 : stop;
        Values wanted;
        for (int64_t row = 0; row < 2; ++row) {
          for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
            for (int64_t k = 0; k < 3; ++k) wanted.push_back(static_cast<double>(1 + (row * 7 + i) * 3 + k));
          }
        }
        const auto cut = [&](const Tensor& x) { return slice(x, {whole(), range(start, stop, step)}); };
        if (wanted.empty()) {
          EXPECT_EQ(codeOf({f32(2, 7, 3)}, [&](const In& in) { return cut(in[0]); }), "slice.range") << start << ":" << stop << ":" << step;
        } else {
          ++compared;
          EXPECT_EQ(of(f32(2, 7, 3), cut), wanted) << start << ":" << stop << ":" << step;
        }
      }
    }
  }
  EXPECT_GT(compared, 700u);
}

TEST(Views, slices_may_be_open_or_one_position) {
  EXPECT_EQ(of(f32(5), [](const Tensor& x) { return slice(x, {range(3)}); }), (Values{4, 5}));
  EXPECT_EQ(of(f32(5), [](const Tensor& x) { return slice(x, {range({}, 2)}); }), (Values{1, 2}));
  EXPECT_EQ(of(f32(5), [](const Tensor& x) { return slice(x, {range({}, {}, -2)}); }), (Values{5, 3, 1}));
  EXPECT_EQ(of(f32(2, 3), [](const Tensor& x) { return slice(x, {at(-1), range(1)}); }), (Values{5, 6}));
  EXPECT_EQ(shapeOf(f32(2, 3, 4), [](const Tensor& x) { return slice(x, {at(0), whole(), at(1)}); }), (Shape{3}));
  EXPECT_EQ(shapeOf(f32(2, 3), [](const Tensor& x) { return slice(x, {at(0), at(2)}); }), Shape{});
  EXPECT_EQ(shapeOf(f32(2, 3), [](const Tensor& x) { return slice(x, {}); }), (Shape{2, 3}));
  for (const Slice& wrong : {at(5), at(-6), range(5), range(0, 6), range(0, -6), range(0, 5, 0), range(3, 3)}) {
    EXPECT_EQ(codeOf({f32(5)}, [&](const In& in) { return slice(in[0], {wrong}); }), "slice.range");
  }
  EXPECT_EQ(codeOf({f32(5)}, [](const In& in) { return slice(in[0], {whole(), whole()}); }), "slice.axes");
}

TEST(Views, elements_change_their_order) {
  EXPECT_EQ(of(f32(2, 3), [](const Tensor& x) { return flip(x, {-1, 0}); }), (Values{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(of(f32(2, 3), [](const Tensor& x) { return roll(x, -1, 1); }), (Values{2, 3, 1, 5, 6, 4}));
  EXPECT_EQ(of(f32(2, 3), [](const Tensor& x) { return roll(x, 7, -1); }), (Values{3, 1, 2, 6, 4, 5}));
  EXPECT_EQ(codeOf({f32(2, 3)}, [](const In& in) { return flip(in[0], {0, -2}); }), "flip.C1");
}

TEST(Views, elements_repeat) {
  EXPECT_EQ(of(f32(2, 2), [](const Tensor& x) { return repeat(x, 2, 1); }), (Values{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(of(f32(2), [](const Tensor& x) { return tile(x, {2, 2}); }), (Values{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(of(f32(2, 2), [](const Tensor& x) { return tile(x, {2}); }), (Values{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return repeat(in[0], 0, 0); }), "repeat.C1");
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return tile(in[0], {-1}); }), "tile.C1");
}

TEST(Views, padding_has_a_pair_an_axis) {
  EXPECT_EQ(of(f32(2, 2), [](const Tensor& x) { return pad(x, {{0, 2}, {1, 0}}, 9); }), (Values{9, 1, 2, 9, 3, 4, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(codeOf({f32(2, 2)}, [](const In& in) { return pad(in[0], {{1, 1}}); }), "pad.axes");
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return pad(in[0], {{-1, 1}}); }), "pad.C2");
}

TEST(Views, triangles_are_kept) {
  EXPECT_EQ(of(f32(3, 3), [](const Tensor& x) { return tril(x, 1); }), (Values{1, 2, 0, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(of(f32(2, 3), [](const Tensor& x) { return tril(x, -1); }), (Values{0, 0, 0, 4, 0, 0}));
  EXPECT_EQ(of(f32(3, 3), [](const Tensor& x) { return triu(x, 1); }), (Values{0, 2, 3, 0, 0, 6, 0, 0, 0}));
  EXPECT_EQ(of(f32(3, 2), [](const Tensor& x) { return triu(x, -1); }), (Values{1, 2, 3, 4, 0, 6}));
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return tril(in[0]); }), "tril.C1");
}

TEST(Views, windows_slide) {
  EXPECT_EQ(of(f32(5), [](const Tensor& x) { return windows(x, {3}, {.stride = {2}}); }), (Values{1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(of(f32(2), [](const Tensor& x) { return windows(x, {2}, {.padding = {1}}); }), (Values{0, 1, 1, 2, 2, 0}));
  EXPECT_EQ(codeOf({f32(2)}, [](const In& in) { return windows(in[0], {3}); }), "windows.C2");
}

TEST(Einsum, several_tensors_pair_from_the_left) {
  auto run = [](const char* equation, const std::vector<TensorType>& types) {
    return counted(types, [&](const In& in) { return einsum(equation, in); });
  };
  EXPECT_EQ(run("ij,jk,kl->il", {f32(2, 2), f32(2, 3), f32(3, 2)}).data, (Values{120, 156, 262, 340}));
  EXPECT_EQ(run("i, i ->", {f32(3), f32(3)}).data, (Values{14}));
}

TEST(Einsum, equation_is_completed) {
  auto run = [](const char* equation, const std::vector<TensorType>& types) {
    return counted(types, [&](const In& in) { return einsum(equation, in); });
  };
  EXPECT_EQ(run("ba", {f32(2, 3)}).data, (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("ba,cb", {f32(2, 3), f32(2, 2)}).data, (Values{9, 19, 12, 26, 15, 33}));
  graph::Tensor batched = run("...ij,...jk->...ik", {f32(2, 1, 2), f32(2, 2, 1)});
  EXPECT_EQ(batched.type.shape, (Shape{2, 1, 1}));
  EXPECT_EQ(batched.data, (Values{5, 25}));
  EXPECT_EQ(run("...i", {f32(2, 3)}).type.shape, (Shape{2, 3}));
}

TEST(Einsum, mistakes_have_codes) {
  auto code = [](const char* equation, const std::vector<TensorType>& types) {
    return codeOf(types, [&](const In& in) { return einsum(equation, in); });
  };
  EXPECT_EQ(code("ij,jk->ik", {f32(2, 3)}), "einsum.C2");
  EXPECT_EQ(code("ij;->ij", {f32(2, 3)}), "einsum.C2");
  EXPECT_EQ(code("ii->i", {f32(3, 3)}), "einsum.C4");
  EXPECT_EQ(code("ij,jk->ik", {f32(2, 3), f32(4, 2)}), "einsum.C5");
  EXPECT_EQ(code("...i,...j->...ij", {f32(2, 3), f32(2, 2, 3)}), "einsum.C3");
  EXPECT_EQ(code("...ij->...", {f32(3)}), "einsum.C3");
}

}  // namespace
}  // namespace lockstep
