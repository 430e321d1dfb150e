// SPDX-License-Identifier: Apache-2.0
// Losses against figures that PyTorch 1.13 gave for the same operands in f64.
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;
using In = std::vector<Tensor>;

void expectNear(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-14) << i;
}

Tensor numbers(const std::vector<float>& values) { return constant(values, {static_cast<int64_t>(values.size())}); }

/// For x = 1, 2, 3, 4 and y = 1.5, 1, 5, 4.
template <class Loss>
Values ofPair(Loss loss) {
  return counted({f32(4)}, [&](const In& in) { return loss(in[0], numbers({1.5F, 1, 5, 4})); }).data;
}

/// For the logits sin(1), sin(2), ..., [4, 3], the targets 0, 2, 1, 2 and the weights 0.5, 1, 1.5.
template <class Loss>
Values ofClasses(Loss loss) {
  return counted({f32(4, 3)},
                 [&](const In& in) { return loss(sin(in[0]), cast(numbers({0, 2, 1, 2}), DType::I32), numbers({0.5F, 1, 1.5F})); })
      .data;
}

std::string codeOf(const std::vector<TensorType>& types, const std::function<Tensor(const In&)>& function) {
  return caught([&] { traced(types, function); }).code;
}

TEST(Losses, distances_are_pytorchs) {
  expectNear(ofPair([](Tensor x, Tensor y) { return mse_loss(x, y, Reduction::None); }), {0.25, 1, 4, 0});
  expectNear(ofPair([](Tensor x, Tensor y) { return mse_loss(x, y); }), {1.3125});
  expectNear(ofPair([](Tensor x, Tensor y) { return l1_loss(x, y, Reduction::None); }), {0.5, 1, 2, 0});
  expectNear(ofPair([](Tensor x, Tensor y) { return l1_loss(x, y, Reduction::Sum); }), {3.5});
  expectNear(ofPair([](Tensor x, Tensor y) { return huber_loss(x, y, 0.75, Reduction::None); }), {0.125, 0.46875, 1.21875, 0});
  expectNear(ofPair([](Tensor x, Tensor y) { return huber_loss(x, y, 0.75); }), {0.453125});
}

TEST(Losses, cross_entropy_takes_pytorchs_options) {
  for (auto [reduction, want] :
       {std::pair(Reduction::None, Values{0.631060376587584, 1.1179876237339, 0, 1.38049999269696}),
        std::pair(Reduction::Mean, Values{0.894156569433839}), std::pair(Reduction::Sum, Values{3.12954799301844})}) {
    expectNear(ofClasses([&](Tensor x, Tensor t, Tensor w) {
                 return cross_entropy(x, t, {.reduction = reduction, .ignore_index = 1, .class_weights = w, .label_smoothing = 0.2});
               }),
               want);
  }
  expectNear(ofClasses([](Tensor x, Tensor t, Tensor) { return cross_entropy(x, t, {.ignore_index = 1}); }), {0.887081222959336});
  expectNear(ofClasses([](Tensor x, Tensor t, Tensor) { return cross_entropy(x, t, {.label_smoothing = 0.2}); }), {0.924040157183951});
  expectNear(ofClasses([](Tensor x, Tensor t, Tensor) { return cross_entropy(x, t, {.ignore_index = 1, .label_smoothing = 0.2}); }),
             {0.937309796064729});
  expectNear(ofClasses([](Tensor x, Tensor t, Tensor w) { return cross_entropy(x, t, {.class_weights = w}); }), {0.860639462307319});
}

TEST(Losses, nll_loss_takes_log_probabilities) {
  auto run = [](NllOptions options, bool weighted) {
    return ofClasses([&](Tensor x, Tensor t, Tensor w) {
      if (weighted) options.class_weights = w;
      return nll_loss(log_softmax(x), t, options);
    });
  };
  expectNear(run({}, false), {0.871208537200136});
  expectNear(run({.reduction = Reduction::None, .ignore_index = 1}, true), {0.471289201428306, 1.13225800578498, 0, 1.44573989324711});
  expectNear(run({.ignore_index = 1}, true), {0.871224885845829});
  expectNear(run({.reduction = Reduction::Sum, .ignore_index = 1}, true), {3.0492871004604});
}

TEST(Losses, bce_with_logits_neither_overflows_nor_cancels) {
  auto run = [](Reduction reduction) {
    return counted({}, [&](const In&) { return bce_with_logits(numbers({-30, -1, 0.5F, 40}), numbers({0, 0.25F, 1, 1}), reduction); }).data;
  };
  Values each = run(Reduction::None);
  expectNear(each, {9.34807786734338e-14, 0.563261687518223, 0.474076984180107, 0});
  EXPECT_NEAR(each[0], 9.357622968839737e-14, 1e-28);  // log1p(e^-30)
  expectNear(run(Reduction::Mean), {0.259334667924606});
}

TEST(Losses, kl_div_takes_log_q_and_p) {
  auto run = [](Reduction reduction) {
    return counted({f32(4)}, [&](const In& in) { return kl_div(log_softmax(sin(in[0])), numbers({0.5F, 0, 0.25F, 0.25F}), reduction); })
        .data;
  };
  expectNear(run(Reduction::None), {0.162639916648627, 0, 0.0831209073713344, 0.307601533213283});
  expectNear(run(Reduction::Mean), {0.138340589308311});
  expectNear(run(Reduction::Sum), {0.553362357233244});
}

TEST(Losses, operands_must_have_one_shape_and_be_f32) {
  EXPECT_EQ(codeOf({f32(3, 1), f32(3)}, [](const In& in) { return mse_loss(in[0], in[1]); }), "mse_loss.C2");
  EXPECT_EQ(codeOf({f32(3), i32(3)}, [](const In& in) { return l1_loss(in[0], in[1]); }), "l1_loss.C1");
  EXPECT_EQ(codeOf({f32(3), f32(3)}, [](const In& in) { return huber_loss(in[0], in[1], 0); }), "huber_loss.delta");
  EXPECT_EQ(codeOf({f32(2, 3), f32(2)}, [](const In& in) { return nll_loss(in[0], in[1]); }), "nll_loss.C1");
  EXPECT_EQ(codeOf({f32(2, 3), i32(3)}, [](const In& in) { return nll_loss(in[0], in[1]); }), "nll_loss.C2");
  EXPECT_EQ(codeOf({f32(), i32()}, [](const In& in) { return nll_loss(in[0], in[1]); }), "nll_loss.C2");
  EXPECT_EQ(codeOf({f32(2, 3), i32(2), f32(2)}, [](const In& in) { return cross_entropy(in[0], in[1], {.class_weights = in[2]}); }),
            "cross_entropy.C5");
  EXPECT_EQ(codeOf({f32(2, 3), i32(2)}, [](const In& in) { return cross_entropy(in[0], in[1], {.label_smoothing = 2}); }),
            "cross_entropy.C6");
}

}  // namespace
}  // namespace lockstep
